# SPDX-License-Identifier: Apache-2.0
"""Virtual threads of Java: a stack leads through the virtual thread to its carrier and to where that began. Of one that
has waited, the outer frames are still in the heap, and shown all the same; a mark stands in their place while they are
moved there or back, or where the sampler does not copy them. hotspot_lib.py says which JDKs and modes are tried; of 21 and
later all below /usr/lib/jvm are looked at, and without HOTSPOT=all the newest is tried."""
import collections
import os
import re
import subprocess

import hotspot_lib
import lib

HZ = lib.rate(499)
SECONDS = int(os.environ.get("SECONDS", 20 if hotspot_lib.ALL else 6))
MODES = {"tiered": [], "interpreted": ["-Xint"], "C1": ["-XX:TieredStopAtLevel=1"], "C2": ["-XX:-TieredCompilation"],
         "serial": ["-XX:+UseSerialGC"], "parallel": ["-XX:+UseParallelGC"], "uncompressed": ["-XX:-UseCompressedOops"],
         "compact headers": ["-XX:+UnlockExperimentalVMOptions", "-XX:+UseCompactObjectHeaders"]}
PROGRAM = re.compile(r"Virtual\.(still|after|down|stays|computes|waits|turns|pause|alone|north|east|south|west)\(.*")
# What may call each, from the virtual thread's start on.
AROUND = {"north", "east", "south", "west"}
CALLERS = {"still": {"stays"}, "stays": {"stays", "computes"}, "after": {"down", "alone"} | AROUND, "down": {"down", "waits"},
           "alone": {"pause"}, "pause": AROUND, "north": {"west", "turns"}, "east": {"north"}, "south": {"east"}, "west": {"south"},
           "computes": {None}, "waits": {None}, "turns": {None}}
# The heap's frames are being changed: what waits, and what comes back.
MOVES = re.compile(r"jdk\.internal\.vm\.Continuation\.(doYield|yield).*|\[(stub: )?[cC]ont.*")
HEAP = "[virtual thread: its callers are in the heap]"
ENTRY = ("jdk.internal.vm.Continuation.enter(", "jdk.internal.vm.Continuation.enterSpecial(", "jdk.internal.vm.Continuation.run(")
UNKNOWN = re.compile(r"\[anon\]|\[Java function\]|\[unknown\]|\[cut: .*")
ROOT = re.compile(r"start_thread|(__)?clone3?|libc\.so\.6\+0x.*")


def version_of(java):
    text = subprocess.run(java.command(["-version"]), capture_output=True, text=True).stderr
    m = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(m[1]) if m else 0


def fault_of(names):
    """What is wrong with a stack, from the innermost frame out; None: nothing is."""
    calls = [PROGRAM.fullmatch(n) for n in names]
    ours = [i for i, m in enumerate(calls) if m]
    outermost = ours[-1]
    for i in ours:
        caller = calls[i + 1][1] if i + 1 < len(names) and calls[i + 1] else None
        at_mark = i == outermost and names[i + 1] == HEAP
        if not at_mark and caller not in CALLERS[calls[i][1]]:
            return "%s called by %s" % (names[i], names[i + 1])
    rest = names[outermost + 1:]
    if HEAP in rest:
        rest = rest[rest.index(HEAP) + 1:]
        if not rest or not rest[0].startswith(ENTRY[-1]):
            return "%s behind the mark" % rest[:1]
    else:
        at = [next((i for i, n in enumerate(rest) if n.startswith(e)), -1) for e in ENTRY]
        if -1 in at or at != sorted(at):
            return "not by a continuation: %s" % rest[:3]
    if not any(n.startswith("java.lang.VirtualThread.runContinuation(") for n in rest):
        return "no carrier"
    return None if any(map(ROOT.fullmatch, names[-3:])) else "ends at %s" % names[-1]


def judge(label, samples):
    """Whether there were enough samples for that."""
    right, heap, moves, unknown, faults = 0, 0, 0, 0, collections.Counter()
    for s in samples:
        names = lib.user_part(s)[0]
        if any(map(UNKNOWN.fullmatch, names)):
            unknown += s.count
        elif any(map(PROGRAM.fullmatch, names)):
            fault = fault_of(names)
            right += s.count * (fault is None)
            if fault is None and HEAP in names:
                moves += s.count * any(map(MOVES.fullmatch, names))
                heap += s.count * (not any(map(MOVES.fullmatch, names)))
            if fault:
                faults[fault] += s.count
    if hotspot_lib.too_busy("%s: virtual threads" % label, right + faults.total()):
        return False
    lib.ok(right and faults.total() <= 0.01 * (right + faults.total()), "%s: %d stacks of virtual threads lead to the start of "
           "their carrier, %d do not: %s" % (label, right, faults.total(), faults.most_common(3)))
    lib.ok(heap <= 0.01 * right, "%s: %d of them have callers in the heap that are not shown, but for %d while these are "
           "moved" % (label, heap, moves))
    lib.ok(unknown <= 0.5 * HZ + 0.05 * right, "%s: %d further stacks are not known" % (label, unknown))
    return True


def main():
    versions = sorted(((version_of(j), j.home, j) for j in hotspot_lib.homes(everywhere=True)), reverse=True)
    found = [j for v, _, j in versions if v >= 21][:None if hotspot_lib.ALL else 1]
    lib.need(found, "stacks of virtual threads", "there is no JDK of 21 or later")
    classes = hotspot_lib.compile_program("Virtual.java")
    lib.need(classes, "stacks of virtual threads", "there is no javac")
    d = lib.Otprofd(hz=HZ, profile={"sample_attributes": "process.pid"})
    runs = hotspot_lib.run(d, found, hotspot_lib.chosen(MODES, "tiered"), classes, "Virtual", SECONDS)
    if all([judge(label, samples) for label, samples in runs]):
        seen = d.last_status()["quality"]["interpreted"]
        lib.ok(seen["of_heap"] > 100 and seen["without_heap"] <= 0.05 * seen["of_heap"],
               "%(of_heap)d stacks lead through the heap, %(without_heap)d show the mark" % seen)


main()
lib.finish()

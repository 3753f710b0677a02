# SPDX-License-Identifier: Apache-2.0
"""Java calls that are made, waited in and ended otherwise than by a call and a return: each thread runs the function that it is
named after, whose callees CALLERS lists, and stacks have all callers, one by one, to the start of the thread.
hotspot_lib.py says which JDKs and modes are tried; SECONDS, if it is set, for how long."""
import collections
import os
import re

import hotspot_lib
import lib

HZ = lib.rate(499)
SECONDS = int(os.environ.get("SECONDS", 15 if hotspot_lib.ALL else 8))
FAR = ["-XX:CompileCommand=quiet"] + ["-XX:CompileCommand=dontinline,Calls::%s" % m for m in (
    "thrown1", "thrown2", "thrown3", "thrown4", "givenUpFar", "osrFar", "handleCalled", "checksMany")]
MODES = {
    "tiered": [],
    "interpreted": ["-Xint"],
    "C1": ["-XX:TieredStopAtLevel=1"],
    "C2": ["-XX:-TieredCompilation"],
    "frame pointers": ["-XX:+PreserveFramePointer"],
    "C1 with frame pointers": ["-XX:+PreserveFramePointer", "-XX:TieredStopAtLevel=1"],
    "C2 with frame pointers": ["-XX:+PreserveFramePointer", "-XX:-TieredCompilation"],
    "serial": ["-XX:+UseSerialGC"],
    "parallel, uncompressed": ["-XX:+UseParallelGC", "-XX:-UseCompressedOops"],
    "Z": ["-XX:+UseZGC"],
    "Shenandoah": ["-XX:+UseShenandoahGC"],
    "narrow vectors": ["-XX:UseAVX=0"],
}
# What may call each; functions that threads are named after are called by rounds.
CALLERS = {"thrown1": {"thrown"}, "thrown2": {"thrown1"}, "thrown3": {"thrown2"}, "thrown4": {"thrown3"},
           "givenUpOuter": {"givenUp"}, "givenUpMiddle": {"givenUpOuter"}, "givenUpNear": {"givenUpMiddle"},
           "givenUpFar": {"givenUpNear"}, "target1": {"givenUpNear", "givenUpOuter"}, "target2": {"givenUpNear", "givenUpOuter"},
           "lockedMethod": {"locked"}, "lockedBlock": {"locked"}, "nativeBack": {"lambda"}, "handleCalled": {"handle"},
           "table": {"tables"}, "checksMany": {"checks"}, "aes": {"ciphers"}, "osrFar": {"osr"},
           "spin": {"givenUpFar", "lockedMethod", "lockedBlock", "nativeBack", "handleCalled", "osrFar"}}
FUNCTIONS = ("thrown", "traces", "givenUp", "locked", "natives", "handle", "tables", "checks", "ciphers", "digests", "numbers",
             "texts", "arrays", "real", "stores", "osr")
OURS = re.compile(r"Calls(?:\$Shape\d)?\.(\w+?)(?:\$\w+\$\d+)?\(.*")


# Code that is not known yet, or gone; where a frame is being made or taken down.
UNKNOWN = re.compile(r"\[(anon|unknown|Java function|cut: .*)\]")


def fault_of(sample):
    """What is wrong with a stack, and whether it is but unknown; None: it is whole and legal."""
    names, marker = lib.user_part(sample)
    at = next((n for n in names if UNKNOWN.fullmatch(n)), marker)
    ours = [m[1] for m in map(OURS.fullmatch, names) if m]
    if at:
        return "%s: %s" % (names[-1] if names else "", at), True
    if not ours or ours[-2:-1] == ["start"]:
        return "a thread begins or ends: %s" % names[:1], True
    while ours[-1:] and ours[-1] != "rounds":
        ours.pop()
    if not ours or "java.lang.Thread.run()" not in names[-20:]:
        return "ends at %s" % (names[-1:] or "the kernel"), False
    for callee, caller in zip(ours, ours[1:]):
        legal = {"rounds"} if callee in FUNCTIONS else {"natives"} if callee == "lambda" else CALLERS.get(callee, ())
        if caller not in legal:
            return "%s called by %s" % (callee, caller), False
    if len(ours) > 1 and ours[-2] != sample.attributes["thread.name"]:
        return "%s in the thread %s" % (ours[-2], sample.attributes["thread.name"]), False
    return None


def judge(label, samples):
    right, wrong, unknown, seen = 0, collections.Counter(), collections.Counter(), collections.Counter()
    for s in samples:
        name = s.attributes.get("thread.name")
        if name not in FUNCTIONS or "do_exit" in s.stack:
            continue
        fault = fault_of(s)
        seen[name] += s.count
        if not fault:
            right += s.count
            continue
        (unknown if fault[1] else wrong)["%s: %s" % (name, fault[0])] += s.count
        if os.environ.get("SHOW"):
            print("#", name, fault[0], s.stack[:25])
    all_ = right + wrong.total() + unknown.total()
    if hotspot_lib.too_busy("%s: calls" % label, right):
        return
    lib.ok(len(seen) == len(FUNCTIONS), "%s: each function was sampled %s" % (label, dict(seen)))
    lib.ok(wrong.total() <= 0.001 * all_, "%s: of %d stacks %d are whole and legal, %d have another caller: %s" % (
        label, all_, right, wrong.total(), wrong.most_common(4)))
    # Until the virtual machine is attached to, and what it compiles anew is known.
    lib.ok(unknown.total() <= 0.5 * HZ + 0.05 * all_, "%s: of %d stacks %d have code that is not known: %s" % (
        label, all_, unknown.total(), unknown.most_common(4)))


def main():
    modes = {k: FAR + v for k, v in MODES.items()}
    for label, samples in hotspot_lib.run_program("Calls", "calls of Java programs", modes, HZ, SECONDS):
        judge(label, samples)


main()
lib.finish()

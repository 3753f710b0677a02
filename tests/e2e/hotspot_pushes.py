# SPDX-License-Identifier: Apache-2.0
"""Java code that has more on the stack than its frame for some instructions: each thread runs the function that it is named
after and no other, and its stacks lead through that to the start of the thread. hotspot_lib.py says which JDKs and modes are
tried; SECONDS, if it is set, for how long."""
import collections
import os
import re

import hotspot_lib
import lib

HZ = lib.rate(499)
SECONDS = int(os.environ.get("SECONDS", 15 if hotspot_lib.ALL else 6))
MODES = {
    "tiered": [],
    "C1": ["-XX:TieredStopAtLevel=1"],
    "C2": ["-XX:-TieredCompilation"],
    "Parallel, uncompressed": ["-XX:+UseParallelGC", "-XX:-UseCompressedOops"],
    "Z": ["-XX:+UseZGC"],
    "Shenandoah": ["-XX:+UseShenandoahGC"],
}
FUNCTIONS = ("remainder", "compare", "digest", "copy", "math", "natives", "seek")
NAME = re.compile(r"Pushes\.(%s)\(\)" % "|".join(FUNCTIONS))
ROUNDS = re.compile(r"Pushes\.rounds\(")


def fault_of(sample):
    """What is wrong with a stack; None: it is whole and legal."""
    names, marker = lib.user_part(sample)
    if marker:
        return "%s: %s" % (names[-1] if names else "", marker)
    found = [m[1] for m in map(NAME.fullmatch, names) if m]
    if found not in ([], [sample.attributes["thread.name"]]):
        return "%s in the thread %s" % (found, sample.attributes["thread.name"])
    if not any(map(ROUNDS.match, names)) or "java.lang.Thread.run()" not in names[-20:]:
        return "ends at %s" % (names[-1:] or "the kernel")
    return None


def is_last(sample):
    """The last thread frees the process' memory: it has no stack then."""
    return "do_exit" in sample.stack and not lib.user_part(sample)[0]


def judge(label, samples):
    right, faults, seen = 0, collections.Counter(), collections.Counter()
    for s in samples:
        if s.attributes.get("thread.name") not in FUNCTIONS or is_last(s):
            continue
        fault = fault_of(s)
        right += s.count * (fault is None)
        faults[fault] += s.count * (fault is not None)
        seen[s.attributes["thread.name"]] += s.count
    if hotspot_lib.too_busy("%s: words on the stack" % label, right + faults.total()):
        return
    lib.ok(len(seen) == len(FUNCTIONS), "%s: each function was sampled %s" % (label, dict(seen)))
    lib.ok(faults.total() <= 0.01 * (right + faults.total()), "%s: %d stacks are whole and legal, %d not: %s" %
           (label, right, faults.total(), [(f, n) for f, n in faults.most_common(4) if n]))


def main():
    for label, samples in hotspot_lib.run_program("Pushes", "words on the stacks of Java programs", MODES, HZ, SECONDS):
        judge(label, samples)


main()
lib.finish()

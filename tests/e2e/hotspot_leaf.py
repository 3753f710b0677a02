# SPDX-License-Identifier: Apache-2.0
"""Java functions that differ by name alone, interpreted, compiled by each compiler, and inlined: the innermost frame must
be the one that its thread is named after, or, where compiled code does not tell, a caller of it; never another one.
hotspot_lib.py says which JDKs and modes are tried; SECONDS, if it is set, for how long."""
import collections
import os
import re

import hotspot_lib
import lib

HZ = lib.rate(997)
SECONDS = int(os.environ.get("SECONDS", 20 if hotspot_lib.ALL else 6))
# What several leaves compute alike, the compiler says to be one's.
ALL_INFORMATION = "C2 with all debug information"
MODES = {
    "tiered": [],
    "interpreted": ["-Xint"],
    "C1": ["-XX:TieredStopAtLevel=1"],
    "C2": ["-XX:-TieredCompilation"],
    "C2 without polls in loops": ["-XX:-TieredCompilation", "-XX:+UseSerialGC"],
    ALL_INFORMATION: ["-XX:-TieredCompilation", "-XX:+UseSerialGC", "-XX:+UnlockDiagnosticVMOptions",
                      "-XX:+DebugNonSafepoints"],
}
# A loop without a poll is known to be in the caller, or what was inlined into it.
NO_POLLS = re.compile(r"without polls in loops$|java-8-\S* (tiered|C2)$")
NAME = re.compile(r"Leaf\.(leaf\d+)\(int\)")


def leaf_of(sample):
    """The innermost of the functions; their caller; else None."""
    for name in lib.user_part(sample)[0]:
        m = NAME.fullmatch(name)
        if m or name.startswith(("Leaf.call(", "Leaf.rounds(")):
            return m[1] if m else "caller"
    return None


def judge(label, samples):
    right, caller, wrong, none = 0, 0, collections.Counter(), 0
    for s in samples:
        thread = s.attributes.get("thread.name", "")
        if not re.fullmatch(r"leaf\d+", thread):
            continue
        leaf = leaf_of(s)
        right += s.count * (leaf == thread)
        caller += s.count * (leaf == "caller")
        none += s.count * (leaf is None)
        if leaf not in (thread, "caller", None):
            wrong["%s as %s" % (thread, leaf)] += s.count
    all_ = right + caller + wrong.total()
    if hotspot_lib.too_busy("%s: innermost functions" % label, all_):
        return
    highest = 0.001 * all_ if label.endswith(ALL_INFORMATION) else 0
    lib.ok(right and wrong.total() <= highest, "%s: of %d stacks %d end in the function that ran, %d in its caller, %d in "
           "another one, %d not known: %s" % (label, all_, right, caller, wrong.total(), none, wrong.most_common(3)))
    lib.ok(right >= 0.99 * all_ or NO_POLLS.search(label), "%s: the function that ran is named" % label)


def main():
    for label, samples in hotspot_lib.run_program("Leaf", "innermost functions of Java programs", MODES, HZ, SECONDS, "3000"):
        judge(label, samples)


main()
lib.finish()

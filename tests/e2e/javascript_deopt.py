# SPDX-License-Identifier: Apache-2.0
"""Code of V8 that is found to be wrong while it is on the stack: until it is returned to, and when its functions run on
in unoptimized code, each of them is there, with its callers. javascript_lib.py says which programs of node are tried;
JAVASCRIPT=all runs every mode, and longer."""
import collections
import platform
import re

import javascript_lib
import known_program
import lib
from javascript_lib import ALL, CUT, UNKNOWN

HZ = lib.rate(997)
SECONDS = 10 if ALL else 4
NATIVE = "--allow-natives-syntax"
MODES = {"optimized": [], "baseline": ["--always-sparkplug"], "maglev": ["--maglev"],
         "copies": ["--interpreted-frames-native-stack"]}
CHAIN = ["inner", "middle", "deep", "first"]


def expected(name):
    kind, n = name.split("_")
    return ["%s_%s" % (k, n) for k in CHAIN[CHAIN.index(kind):]] + ["run"]


def judge(label, samples):
    """While function KIND_N has called what works, the thread has its name."""
    right, wrong, unknown = 0, collections.Counter(), collections.Counter()
    for s in samples:
        thread = s.attributes.get("thread.name", "")
        names = [f[0] for f in s.frames if f[1] == "v8js"]
        if not re.fullmatch(r"(inner|middle|deep)_\d+", thread) or "work" not in names:
            continue
        callers = names[names.index("work") + 1:]
        missing = next((n for n in s.stack if n in UNKNOWN or CUT.match(n)), None)
        if missing:
            unknown[missing] += s.count
        elif callers[:len(expected(thread))] == expected(thread):
            right += s.count
        else:
            wrong["%s: %s" % (thread, ";".join(callers[:6]))] += s.count
    lib.ok(right > 0.05 * SECONDS * HZ, "%s: %d stacks have all callers" % (label, right))
    lib.ok(not wrong, "%s: %d have others: %s" % (label, sum(wrong.values()), wrong.most_common(3)))
    # Until the runtime is known; and code that was compiled a moment ago.
    lib.ok(sum(unknown.values()) <= 0.5 * HZ + 0.02 * right, "%s: %d are not known: %s" % (
        label, sum(unknown.values()), dict(unknown)))


def run(node, options):
    p = javascript_lib.start(node, options, "deopt.js", SECONDS)
    p.wait(SECONDS * 8)
    lib.ok(p.returncode == 0, "deopt.js ends well with %s (%s)" % (options, p.returncode))
    return p.pid


def main():
    lib.need(platform.machine() == "x86_64", "stacks of JavaScript", "V8's code is read on x86-64 alone")
    found = javascript_lib.nodes()
    modes = {m: [NATIVE] + o for m, o in list(MODES.items())[:len(MODES) if ALL else 2]}
    taken = [(n, m, o) for n in found for m, o in modes.items() if javascript_lib.takes(n, *o)]
    if not taken:
        return
    d = lib.Otprofd(hz=HZ, profile={"sample_attributes": "process.pid thread.name"},
                    targets={"include": sorted({"exe:" + n.name for n in found})})
    ran = [("%s %s" % (n.label, m), run(n, o)) for n, m, o in taken]
    last = d.stop()
    by_pid = known_program.samples_by_pid(d)
    for label, pid in ran:
        judge(label, by_pid[pid])
    lib.check_ledger(last, "the ledger balances", stopped=True)


main()
lib.finish()

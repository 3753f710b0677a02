# SPDX-License-Identifier: Apache-2.0
"""A program of node that looks for patterns: code of a regular expression, which makes its frame at its end, has the
function that looks for it as caller."""
import time

import javascript_lib
import lib

HZ = lib.rate(499)
SECONDS = 12 if javascript_lib.ALL else 4
LEAF = "[regular expression]"
CALLERS = ("find", "change")


def check(node):
    what = "%s: patterns" % (node,)
    d = lib.Otprofd(hz=HZ)
    p = javascript_lib.start(node, [], "regexp.js", SECONDS)
    time.sleep(SECONDS)
    p.wait(timeout=30)
    last = d.stop()
    of_it = [s for s in lib.samples(d.files) if lib.service(s) == "regexp.js" and LEAF in s.stack]
    total = sum(s.count for s in of_it)
    whole = [s for s in of_it if not lib.user_part(s)[1]]
    called = [s for s in whole if any(c in s.stack for c in CALLERS) and "search" in s.stack]
    lib.ok(p.returncode == 0, "%s: the program ends well (%d)" % (what, p.returncode))
    lib.ok(total >= SECONDS * HZ / 40, "%s: %d stacks are in code of regular expressions" % (what, total))
    lib.ok(sum(s.count for s in whole) >= 0.99 * total, "%s: %d of them are whole" % (what, sum(s.count for s in whole)))
    lib.ok(sum(s.count for s in called) >= 0.99 * total,
           "%s: in %d a function of the program has called it" % (what, sum(s.count for s in called)))
    lib.check_ledger(last, what, stopped=True)


for program in javascript_lib.nodes():
    check(program)
lib.finish()

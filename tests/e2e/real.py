# SPDX-License-Identifier: Apache-2.0
"""Debian's own programs under load: at least 99 % of their user stacks end at
a true root, and their functions have names where the files have any."""
import time

import lib
import workloads

SECONDS = 6


def check(name):
    tools, begin, services, _ = workloads.ALL[name]
    if not workloads.have(*tools):
        lib.skip(name, "not installed")
        return
    d = lib.Otprofd(hz=499)
    processes = begin(SECONDS + 2)
    time.sleep(SECONDS)
    last = d.stop()
    workloads.end_all(processes)
    total = whole = named = frames = 0
    reasons = {}
    for s in lib.samples(d.files):
        if lib.service(s) not in services and lib.executable(s) not in services:
            continue
        names, marker = lib.user_part(s)
        if not names and not marker:
            continue # no user side at all
        total += s.count
        whole += 0 if marker else s.count
        if marker:
            reasons[marker] = reasons.get(marker, 0) + s.count
        frames += len(names) * s.count
        named += sum(s.count for n in names if "+0x" not in n)
    lib.ok(total > 500, "%s: %d user stacks" % (name, total))
    lib.ok(whole >= 0.99 * total, "%s: %.2f %% end at a true root %s" % (name, 100 * whole / max(total, 1), reasons or ""))
    lib.note("%s: %.1f %% of %d frames have a name (Debian's files are stripped)" % (name, 100 * named / max(frames, 1), frames))
    lib.check_ledger(last, name, stopped=True)


for workload in workloads.ALL:
    check(workload)
lib.finish()

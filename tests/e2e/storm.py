# SPDX-License-Identifier: Apache-2.0
"""Thousands of forks and execs a second neither stall nor leak nor lose the
ledger, also with side-band buffers so small that they overflow."""
import json
import os
import subprocess
import time

import lib

SECONDS = 5


def memory_kib(status):
    pids = [status["pid"]] + [w["pid"] for w in status["workers"].values()]
    total = 0
    for pid in pids:
        with open("/proc/%d/smaps_rollup" % pid) as f:
            total += sum(int(line.split()[1]) for line in f if line.startswith("Pss:"))
    return total


def descriptors(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


def storm():
    """Two of them, static, since one dynamic storm is bound by its own exec."""
    both = [lib.program("forkstorm-static", 2500, SECONDS, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    results = [json.loads(p.communicate(timeout=60)[0]) for p in both]
    return sum(r["made"] for r in results), max(r["seconds"] for r in results)


def check(what, sampler):
    d = lib.Otprofd(hz=499, sampler=sampler)
    storm()
    time.sleep(1)
    first = d.status()
    before = memory_kib(first), descriptors(d.pid), descriptors(first["workers"]["engine"]["pid"])
    made, seconds = storm()
    answered = time.monotonic()
    during = d.status()
    answered = time.monotonic() - answered
    time.sleep(2)
    status = d.status()
    after = memory_kib(status), descriptors(d.pid), descriptors(status["workers"]["engine"]["pid"])
    lib.ok(made >= 1000, "%s: %.0f forks and execs a second" % (what, made / seconds))
    lib.ok(during and answered < 5, "%s: status answers meanwhile (%.3f s)" % (what, answered))
    lib.ok(all(w["restarts"] == 0 for w in status["workers"].values()), "%s: no worker was restarted" % what)
    lib.ok(after[0] <= before[0] + 8192, "%s: memory stays (%d -> %d KiB)" % (what, before[0], after[0]))
    lib.ok(after[1] <= before[1] + 8 and after[2] <= before[2] + 64,
           "%s: descriptors stay (monitor %d -> %d, engine %d -> %d)" % (what, before[1], after[1], before[2], after[2]))
    lib.ok(status["processes"] < 20000, "%s: the process table is bounded (%d)" % (what, status["processes"]))
    kernel = lib.kernel_counters(d.pid)
    later = d.status()["ledger"]["taken"]
    lib.ok(status["ledger"]["taken"] <= kernel["taken"] <= later, "%s: taken agrees with the kernel" % what)
    last = d.stop()
    lib.check_ledger(last, what, stopped=True)
    total = sum(s.count for s in lib.samples(d.files))
    lib.ok(total and total == last["ledger"]["exported"]["files"], "%s: all that is exported is in the files (%d)" % (what, total))
    return last


check("storm", {})
check("storm, tiny side-band", {"sideband_size": "4K"})
lib.finish()

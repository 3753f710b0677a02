# SPDX-License-Identifier: Apache-2.0
"""Two sources look at the same programs at the same time: shares, stacks,
names and losses agree within sampling error.
OTPROF_AGREE names them, "bpf perf" by default."""
import collections
import math
import os
import shutil
import subprocess
import time

import lib

HZ = int(os.environ.get("OTPROF_AGREE_HZ", "499"))
SECONDS = int(os.environ.get("OTPROF_AGREE_SECONDS", "4"))
SOURCES = os.environ.get("OTPROF_AGREE", "bpf perf").split()
# What the loader did before the program's own entry is a few samples, and others for each.
STARTUP = 0.02


class View:
    """What one source saw of each program."""

    def __init__(self, daemon):
        self.last = daemon.stop()
        self.stacks = collections.defaultdict(collections.Counter)
        for s in lib.samples(daemon.files):
            user, marker = lib.user_part(s)
            self.stacks[lib.executable(s)][(tuple(user), marker)] += s.count

    def total(self, program):
        return sum(self.stacks[program].values())

    def shares(self, program, depth=1):
        """By the innermost user frames."""
        out = collections.Counter()
        for (user, marker), n in self.stacks[program].items():
            out[user[:depth] + ((marker,) if marker else ())] += n
        return {k: n / self.total(program) for k, n in out.items()}

    def usual(self, program, of):
        """Whole stacks that are at least this part of all."""
        return {k for k, n in self.stacks[program].items() if n >= of * self.total(program)}


def within(a, b, n, m):
    """Two shares of n and m samples each, 4 sigma and a little for the ends of the run."""
    p = (a + b) / 2
    return abs(a - b) <= 4 * math.sqrt(p * (1 - p) * (1 / n + 1 / m)) + 0.005


def compare(program, one, two):
    a, b = one.total(program), two.total(program)
    if not lib.ok(min(a, b) > HZ * SECONDS // 10, "%s: both saw it (%d and %d samples)" % (program, a, b)):
        return
    # Under emulation some ticks come too late for one and not for the other: its status counts them as missed.
    lib.ok(abs(a - b) <= (0.3 if lib.SLOW else 0.03) * max(a, b) + 4 * math.sqrt(a + b) * 0.5, "%s: as often (%d and %d)" % (program, a, b))
    p, q = one.shares(program), two.shares(program)
    wrong = {k: (round(p.get(k, 0), 4), round(q.get(k, 0), 4)) for k in set(p) | set(q)
             if not within(p.get(k, 0), q.get(k, 0), a, b)}
    lib.ok(not wrong, "%s: the shares of its functions agree %s" % (program, wrong or {k[0]: round(v, 3) for k, v in p.items() if k and v > STARTUP}))
    u, v = one.usual(program, STARTUP), two.usual(program, STARTUP)
    for k in one.stacks[program]:
        if k in v:
            u.add(k)
    for k in two.stacks[program]:
        if k in u:
            v.add(k)
    lib.ok(u and u == v, "%s: the same stacks, name by name (%d) %s" % (program, len(u), list(u ^ v)[:2] if u != v else ""))
    cut = [sum(n for (_, marker), n in x.stacks[program].items() if marker) / x.total(program) for x in (one, two)]
    lib.ok(abs(cut[0] - cut[1]) <= 0.01, "%s: as many are cut (%.2f %% and %.2f %%)" % (program, 100 * cut[0], 100 * cut[1]))


def own(name):
    """Under a name of this test's own: others may run the same program meanwhile."""
    to = os.path.join(bin_directory, "%s-%d" % (name, os.getpid()))
    if not os.path.exists(to):
        shutil.copy(os.path.join(lib.PROGRAMS, name), to)
    return to


bin_directory = lib.scratch()
daemons = []
for source in SOURCES:
    daemons.append(lib.Otprofd(hz=HZ, sampler={"mode": source}))
time.sleep(1)
programs = [lib.start([own(name), str(SECONDS)], stdout=subprocess.DEVNULL) for name in ("shares", "kernelio")]
for p in programs:
    p.wait()
for _ in range(20):
    subprocess.run([own("short"), "50"])
time.sleep(1)
views = [View(d) for d in daemons]
for source, view in zip(SOURCES[1:], views[1:]):
    lib.note("%s beside %s" % (SOURCES[0], source))
    # The last one is little else than its start there, a few samples each of many stacks.
    for program in ("shares", "kernelio", "short")[:2 if lib.SLOW else None]:
        compare(os.path.basename(own(program)), views[0], view)
for source, view in zip(SOURCES, views):
    lost = {k: n for k, n in view.last["ledger"]["lost"].items() if n}
    # Two samplers on a machine that has other things to do may find no room now and then; nothing else is lost.
    # What perf writes waits for a process that has to get a CPU.
    most = 0.1 if source == "perf" else 0.02
    lib.ok(not set(lost) - {"ring_full"} and sum(lost.values()) <= most * view.last["ledger"]["taken"],
           "%s lost next to nothing of %d samples %s" % (source, view.last["ledger"]["taken"], lost or ""))
    lib.ok(view.last["sampler"]["mode"] == source, "%s says so in its status" % source)
    lib.check_ledger(view.last, source, stopped=True)
lib.finish()

# SPDX-License-Identifier: Apache-2.0
"""A busy start under the guard against overload: no file has an index yet, and
programs that nobody has seen start one after the other, each from a file of
its own. Reading files is no steady cost: stacks stay whole and shares right
throughout, and the configured rate is in force again soon after."""
import json
import math
import os
import shutil
import subprocess
import time

import lib

HZ = 997 if os.environ.get("GUARD_FULL") else 197 # the lower, the more of the cost is for files, on a busy machine too
CPUS = os.cpu_count()
STORM, BACK = 24, 10
FILES, SHELLS = 1000, 3 # shells on each CPU, which run them one after the other
STORM_MS = 15 # of CPU time for each
ROOM, BASE = 2, 0.3 # times the steady cost of sampling is allowed, and so many percent for the rest
PARTS = ("work_half", "work_third", "work_fifth")
INNER = ["descend"] * 20 + ["timed", "run_rounds", "main"]


SAMPLING = ("kernel_ns", "engine_cpu_ns", "net_cpu_ns")


def cpu_seconds(status, parts=SAMPLING + ("monitor_cpu_ns", "opener_cpu_ns")):
    return sum(status["cost"][k] for k in parts) / 1e9


def sampler(**limits):
    """Of the programs here alone: what else the host does costs nothing."""
    return lib.Otprofd(hz=HZ, targets={"include": ["exe:shares", "exe:short-*"]}, **limits)


def steady_percent():
    """What sampling costs here. Openers and monitor are left out: new processes of the host make them busy."""
    d = sampler()
    work = [lib.program("shares", 60, stdout=subprocess.DEVNULL) for _ in range(CPUS)]
    time.sleep(3)
    first, began = d.status(), time.monotonic()
    time.sleep(4)
    percent = (cpu_seconds(d.status(), SAMPLING) - cpu_seconds(first, SAMPLING)) / (time.monotonic() - began) / CPUS * 100
    for p in work:
        lib.end(p)
    d.stop()
    return percent


class Storm:
    """Copies of a program, each run once, some at a time on each CPU."""

    def __init__(self, directory):
        self.paths = [os.path.join(directory, "short-%d" % i) for i in range(FILES)]
        for path in self.paths:
            shutil.copy(os.path.join(lib.PROGRAMS, "short"), path)
        self.shells, self.done = [], os.path.join(directory, "done")

    def begin(self):
        open(self.done, "w").close()
        for i in range(SHELLS * CPUS):
            script = 'for f; do "$f" %d; echo >>"$0"; done' % STORM_MS
            self.shells.append(lib.start(["sh", "-c", script, self.done] + self.paths[i::SHELLS * CPUS]))

    def end(self):
        for p in self.shells:
            lib.end(p)
        return os.path.getsize(self.done)


class Known:
    """Runs that report their own shares, one after the other."""

    def __init__(self):
        self.truths, self.running = [], None
        self.turn()

    def collect(self, timeout=60):
        self.truths.append(json.loads(self.running.communicate(timeout=timeout)[0]))

    def turn(self):
        if self.running and self.running.poll() is None:
            return
        if self.running:
            self.collect()
        self.running = lib.program("shares", 1, stdout=subprocess.PIPE, text=True)

    def sum(self):
        return {part: sum(t[part] for t in self.truths) for part in PARTS}


class Watch:
    """What status says of the guard, look by look."""

    def __init__(self, daemon):
        self.d, self.lowest, self.deepest = daemon, HZ, 0

    def look(self):
        s = self.d.status()
        if not s:
            return None
        self.lowest = min(self.lowest, s["sampler"]["rate_hz"])
        self.deepest = max(self.deepest, s["guard"]["stack_shift"])
        return s

    def back(self):
        s = self.look()
        return s and s["sampler"]["rate_hz"] == HZ


def weigh(samples):
    """By leaf; a sample stands for its profile's period."""
    weights, squares, broken = dict.fromkeys(PARTS, 0), 0, []
    for s in samples:
        names, _ = lib.user_part(s)
        if not names or names[0] not in PARTS:
            continue
        if names[1:1 + len(INNER)] != INNER or names[-1] != "_start":
            broken.append(names)
        weights[names[0]] += s.count * s.profile.period
        squares += s.count * s.profile.period ** 2
    return weights, squares, broken


def check_shares(samples, truth, what):
    weights, squares, broken = weigh(samples)
    total, cpu = sum(weights.values()), sum(truth[p] for p in PARTS)
    if not lib.ok(total, "%s: it was sampled" % what):
        return
    lib.ok(not broken, "%s: every stack is whole %s" % (what, broken[:1]))
    for part in PARTS:
        want, got = truth[part] / cpu, weights[part] / total
        chance = 3 * math.sqrt(want * (1 - want) * squares) / total
        lib.ok(abs(got - want) <= chance + 0.005, "%s: %s has %.2f %% of the samples, %.2f %% of the CPU time" % (
            what, part, 100 * got, 100 * want))


def check_cut(samples):
    mine = [s for s in samples if lib.service(s).startswith(("shares", "short-"))]
    count, cut = sum(s.count for s in mine), [(lib.user_part(s)[1], s.count) for s in mine if lib.user_part(s)[1]]
    lib.ok(count and sum(n for _, n in cut) <= 0.01 * count, "of %d stacks of known programs, %d are cut %s" % (
        count, sum(n for _, n in cut), cut[:3]))


def main():
    steady = steady_percent()
    allowed = steady * ROOM + BASE
    scratch = lib.scratch()
    storm = Storm(scratch)
    d = sampler(limits={"cpu_percent": "%.2f" % allowed}, symbols={"cache_dir": os.path.join(scratch, "symbols")})
    watch, known = Watch(d), Known()
    first, began = d.status(), time.monotonic()
    storm.begin()
    while time.monotonic() - began < STORM:
        known.turn()
        watch.look()
        time.sleep(0.2)
    used = (cpu_seconds(d.status()) - cpu_seconds(first)) / STORM / CPUS * 100
    lib.note("%d new files: %.2f %% of the CPUs used, %.2f %% allowed, %.2f %% steady; lowest rate %d Hz" % (
        storm.end(), used, allowed, steady, watch.lowest))
    if used <= allowed:
        lib.skip("a start that costs more than is allowed", "the files did not cost so much here")
    lib.ok(lib.wait_for(watch.back, BACK, 0.5), "the configured rate is in force again (lowest %d Hz)" % watch.lowest)
    lib.ok(watch.lowest >= HZ / 4, "the rate fell no further than what sampling cost")
    known.collect()
    watch.look()
    lib.ok(watch.deepest == 0, "no shorter stacks were copied at any time")
    last = d.stop()
    samples, pids = list(lib.samples(d.files)), {t["pid"] for t in known.truths}
    check_cut(samples)
    check_shares([s for s in samples if lib.service(s) == "shares" and
                  s.attributes.get("process.pid") in pids | {None}], known.sum(), "the programs that ran throughout")
    lib.check_ledger(last, "a busy start", stopped=True)
    lib.finish()


main()

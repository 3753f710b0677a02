# SPDX-License-Identifier: Apache-2.0
"""The guard against overload: asked for 10,000 samples a second and CPU, with a
crowd of processes and threads, otprof stays below its share of the machine,
and under a memory limit of 40 MiB below that, with the ledger exact.

GUARD_FULL=1 takes 1,000 processes and 20,000 threads and looks for longer."""
import os
import subprocess
import time

import lib

FULL = bool(os.environ.get("GUARD_FULL"))
PROCESSES, THREADS = (1000, 20000) if FULL else (100, 1000)
WATCHED = 30 if FULL else 8
HZ = 10000
PERCENT = 2
SLACK = 1.1 if FULL else 1.3 # the guard looks at ten seconds at a time, a short watch at less
LIMIT = 40 << 20
CPUS = os.cpu_count()


# A control group made by hand, of either version.

class Group:
    """None of the machine's own: below the root of the hierarchy that has the memory controller."""

    def __init__(self, limit):
        v2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
        top = "/sys/fs/cgroup" if v2 else "/sys/fs/cgroup/memory"
        self.dir = os.path.join(top, "otprof-guard-%d" % os.getpid())
        self.used = os.path.join(self.dir, "memory.current" if v2 else "memory.usage_in_bytes")
        self.events = os.path.join(self.dir, "memory.events" if v2 else "memory.oom_control")
        os.mkdir(self.dir)
        lib.at_end(os.rmdir, self.dir)
        with open(os.path.join(self.dir, "memory.max" if v2 else "memory.limit_in_bytes"), "w") as f:
            f.write(str(limit))

    def enter(self):
        """argv that begins a program inside."""
        return ["sh", "-c", 'echo $$ > "$0" && exec "$@"', os.path.join(self.dir, "cgroup.procs")]

    def bytes(self):
        with open(self.used) as f:
            return int(f.read())

    def killed(self):
        with open(self.events) as f:
            return sum(int(line.split()[1]) for line in f if line.startswith("oom_kill "))


def make_group():
    try:
        return Group(LIMIT)
    except OSError as e:
        lib.skip("memory limit of 40 MiB", "no control group can be made here: %s" % e)
        return None


def cpu_seconds(status):
    """All of otprof, by the kernel's account of processes and the sampler's of itself; less what reads files."""
    cost = status["cost"]
    return (sum(cost[k] for k in ("kernel_ns", "monitor_cpu_ns", "engine_cpu_ns", "net_cpu_ns", "opener_cpu_ns")) -
            cost["files_cpu_ns"]) / 1e9


def begin_crowd():
    p = lib.program("crowd", PROCESSES, THREADS, 600, stdout=subprocess.PIPE, text=True)
    lib.ok(p.stdout.readline() == "ready\n", "%d threads in %d processes run" % (THREADS, PROCESSES))
    return p


def begin_work():
    """Keeps every CPU busy: the crowd alone is so light that 10,000 Hz cost a quick machine less than its share."""
    return [lib.program("shares", 600, stdout=subprocess.DEVNULL, preexec_fn=lambda: os.nice(19)) for _ in range(CPUS)]


def lowered(d):
    s = d.status()
    return s if s and s["sampler"]["rate_hz"] < HZ else None


def settle(d):
    """Until one window of the guard has passed without a change."""
    rate, since = d.status()["sampler"]["rate_hz"], time.monotonic()
    deadline = since + 45
    while time.monotonic() < min(since + 11, deadline):
        time.sleep(0.5)
        now = d.status()["sampler"]["rate_hz"]
        if now != rate:
            rate, since = now, time.monotonic()


def watch_cpu(d):
    s = lib.wait_for(lambda: lowered(d), 150 if FULL else 45, 0.5) # a daemon that gets no CPU uses none
    if not lib.ok(s, "%d Hz cost more than %d %%: the rate falls" % (HZ, PERCENT)):
        return
    steps = s["guard"]["cpu"]["lowered"]
    lib.ok(steps["rate"] >= 1 and s["guard"]["cpu"]["level"] > 0, "the step is counted %s" % steps)
    settle(d)
    first, began = d.status(), time.monotonic()
    time.sleep(WATCHED)
    second, seconds = d.status(), time.monotonic() - began
    share = (cpu_seconds(second) - cpu_seconds(first)) / seconds / CPUS * 100
    lib.ok(share <= PERCENT * SLACK, "then all of otprof takes %.2f %% of %d CPUs at %d Hz, %d %% allowed" % (
        share, CPUS, second["sampler"]["rate_hz"], PERCENT))
    said = [line for line in d.log_text().splitlines() if "overload guard" in line]
    changes = sum(sum(second["guard"][c][w].values()) for c in ("cpu", "memory") for w in ("lowered", "raised"))
    lib.ok(1 <= len(said) <= changes + 1, "each step is said once (%d lines, %d steps)" % (len(said), changes))
    lib.note("; ".join(line.split(": ", 2)[-1] for line in said))
    lib.check_ledger(second, "under the guard")


def check_memory(d, group, peak):
    s = d.status()
    if not lib.ok(s, "40 MiB: the daemon answers"):
        return
    lib.ok(s["guard"]["memory_limit_bytes"] == LIMIT, "40 MiB: the control group's limit is known")
    lib.ok(peak <= LIMIT and not group.killed(), "40 MiB: nobody is killed (peak %.1f MiB)" % (peak / (1 << 20)))
    if not lib.ok(all(w["restarts"] == 0 for w in s["workers"].values()), "40 MiB: no worker ends"):
        lib.note(d.log_text()[-600:])
    exported = s["ledger"]["exported"]["files"]
    lib.ok(exported > 0, "40 MiB: profiles go on (%d samples exported)" % exported)
    lib.note("40 MiB: steps given up: %s" % s["guard"]["memory"]["lowered"])
    lib.check_ledger(s, "40 MiB")
    last = d.stop()
    lib.check_ledger(last, "40 MiB", stopped=True)


def told(path):
    """Of one request: its periods, begin, end, and the CPU time that it tells of by them."""
    heads = lib.profiles(lib.read(path))
    ns = sum(sum(s.values[0] for s in p.samples) * p.period for p in heads)
    begin = min(p.time_unix_nano for p in heads)
    return {p.period for p in heads}, begin, max(p.time_unix_nano + p.duration_nano for p in heads), ns


def cpus_told(requests):
    """CPUs busy on average, as these requests have it. One alone may hold what the ring held before it."""
    return sum(r[3] for r in requests) / (max(r[2] for r in requests) - min(r[1] for r in requests))


def check_periods(d):
    requests = [told(f) for f in lib.profile_files(d.files)]
    periods = set().union(*(r[0] for r in requests))
    lib.ok(all(len(r[0]) == 1 for r in requests), "a profile has one period")
    lib.ok(len(periods) >= 2 and 10**9 // HZ in periods, "profiles of both rates came: periods %s" % sorted(periods))
    lib.ok(cpus_told(requests) <= CPUS * 1.02, "all tell of no more CPU time than there was (%.2f of %d CPUs)" % (
        cpus_told(requests), CPUS))
    for period in sorted(periods - {10**9 // HZ}):
        slow = [r for r in requests if period in r[0]]
        if len(slow) >= 5:
            lib.ok(0.3 < cpus_told(slow) <= CPUS * 1.15, "nor do those of the period %d ns tell of another (%.2f CPUs)" % (
                period, cpus_told(slow)))


def main():
    lib.need(lib.shutil.which("sh"), "guard", "no shell")
    group = make_group()
    small = lib.Otprofd(hz=499, argv_prefix=group.enter(), exporters={
        "files": {"endpoint": "file://FILES", "keep_files": 5}}) if group else None
    fast = lib.Otprofd(hz=HZ, limits={"cpu_percent": PERCENT})
    load = [begin_crowd()] + begin_work()
    watch_cpu(fast)
    if small:
        check_memory(small, group, group.bytes())
    for p in load:
        lib.end(p)
    lib.ok(fast.status()["guard"]["stack_shift"] == 0, "stacks are as deep as before")
    if FULL: # else what other programs do to a busy host may cost as much
        before = fast.status()["sampler"]["rate_hz"]
        back = lib.wait_for(lambda: fast.status()["sampler"]["rate_hz"] > before, 60, 1)
        lib.ok(back, "the rate comes back when the load has gone")
    last = fast.stop()
    lib.check_ledger(last, "after the guard", stopped=True)
    check_periods(fast)
    lib.finish()


main()

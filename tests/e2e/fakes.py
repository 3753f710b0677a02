# SPDX-License-Identifier: Apache-2.0
"""Programs that pretend to run an interpreter: lists of frames that loop, lead nowhere or change while they are read,
names without end, memory that never answers. They lose their own names only, within bounds of time and memory."""
import os
import re
import subprocess
import sys
import time

import known_program
import lib

HZ = lib.rate(199)
SECONDS = 6
MODES = ("loop", "nowhere", "change", "names", "silent")
RSS_MAX = 96 << 20


def stack_of(sample, kind):
    return "".join("%s %s:%d;" % (name, os.path.basename(source), line) for name, type_, _, _, line, source in
                   reversed(sample.frames) if type_ == kind)


def judge_neighbour(samples):
    """An honest interpreter beside them has all its names."""
    lines = [text + " done 0" for s in samples for text in [stack_of(s, "cpython")] * s.count if text]
    r = known_program.run_check(lines, "python.truth", "--slack", "5")
    lib.ok(lines and r.returncode == 0, "an honest interpreter beside them has its names: %s" % r.stdout.partition("\n")[0])


def judge(mode, samples):
    """Native frames are what they were, and a frame of the fake has a name that it claimed, or none."""
    count = sum(s.count for s in samples)
    lib.ok(count >= 20, "%s: %d samples" % (mode, count))
    native = sum(s.count for s in samples if "main" in s.stack or "start_thread" in s.stack)
    lib.ok(native >= 0.9 * count, "%s: %d of %d stacks begin where their thread does" % (mode, native, count))
    claimed = r"x+|\[PHP function\]|\{main\}|include .*|\{yield from\}|x*::.*"
    strange = {name for s in samples for name, type_, *_ in s.frames if type_ == "php" and not re.fullmatch(claimed, name)}
    lib.ok(not strange, "%s: no other name is made of it %s" % (mode, sorted(strange)[:3]))
    longest = max((len(s.frames) for s in samples), default=0)
    lib.ok(longest <= 400, "%s: %d frames at most" % (mode, longest))


def fake(mode):
    return lib.program("fakeruntime", mode, SECONDS, stdout=subprocess.DEVNULL)


def rss_of(pid):
    with open("/proc/%d/status" % pid, encoding="utf-8") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1]) << 10


def watch(d, until):
    """The largest memory of the engine, and how long status takes at most."""
    rss, slowest = 0, 0
    while time.monotonic() < until:
        began = time.monotonic()
        status = d.status()
        slowest = max(slowest, time.monotonic() - began)
        if status:
            rss = max(rss, rss_of(status["workers"]["engine"]["pid"]))
        time.sleep(0.5)
    return rss, slowest


def main():
    if lib.SOURCE == "perf":
        lib.skip("programs that pretend to run an interpreter", "perf does not walk interpreters")
        return
    d = lib.Otprofd(hz=HZ, profile={"sample_attributes": "process.pid"})
    honest = lib.start([os.path.realpath(sys.executable), os.path.join(known_program.WHERE, "python.py"), str(4 * SECONDS)],
                       stdout=subprocess.DEVNULL)
    watch(d, time.monotonic() + SECONDS) # its names are known; decoders of one control group are few
    fakes = {mode: fake(mode) for mode in MODES}
    rss, slowest = watch(d, time.monotonic() + 2 * SECONDS)
    honest.wait(10 * SECONDS)
    skipped = {mode for mode, p in fakes.items() if p.wait(10 * SECONDS) == 77}
    last = d.stop()
    by_pid = {}
    for s in lib.samples(d.files):
        by_pid.setdefault(s.attributes.get("process.pid"), []).append(s)
    for mode, p in fakes.items():
        if mode in skipped:
            lib.skip(mode, "not possible on this kernel")
        else:
            judge(mode, by_pid.get(p.pid, []))
    judge_neighbour(by_pid.get(honest.pid, []))
    lib.ok(all(w["restarts"] == 0 for w in last["workers"].values()), "no worker was restarted")
    lib.ok(slowest < 5, "status answers (%.3f s at most)" % slowest)
    lib.ok(0 < rss < RSS_MAX, "the engine's memory is bounded: %d KiB" % (rss >> 10))
    lib.check_ledger(last, "the ledger balances", stopped=True)
    lib.note(str(last["quality"]["interpreted"]["decoders"]))


main()
lib.finish()

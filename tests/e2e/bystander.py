# SPDX-License-Identifier: Apache-2.0
"""Programs of another user, beside an attack: whether their profile is complete,
named and on time while the attack goes on. Stacks, CPU time and names are known
(tests/programs/shares.c)."""
import collections
import os
import shutil
import subprocess
import time

import lib

SOMEBODY = 65533 # no attacker has this user
NAMED_S = 5
GAP_S = 2.5 # between requests of an interval of 1 s, on a machine that is busy
INNER = ["descend"] * 20 + ["timed", "run_rounds", "main"]
PARTS = ("work_half", "work_third", "work_fifth")
# What a daemon whose bystanders are judged needs.
PROFILE = {"sample_attributes": "process.pid"}
_decoded = {}


def put(work, name, program, owner):
    path = os.path.join(work, name)
    shutil.copy(os.path.join(lib.PROGRAMS, program), path)
    os.chown(path, owner, owner)


def start(work, name, program, owner=0):
    """From a file of its own, which belongs to owner."""
    path = os.path.join(work, name)
    if not os.path.exists(path):
        put(work, name, program, owner)
    p = lib.start([path, "60"], stdout=subprocess.DEVNULL, user=SOMEBODY, group=SOMEBODY, extra_groups=[])
    p.name, p.began = name, time.time()
    return p


def cpu_seconds(p):
    with open("/proc/%d/schedstat" % p.pid) as f:
        return int(f.read().split()[0]) / 1e9


def has_lines(sample):
    return next(f[4] for f in sample.frames if f[0] in PARTS) > 0


def is_of(p, sample):
    return lib.service(sample) == p.name and sample.attributes.get("process.pid") == p.pid


def is_right(sample):
    names, marker = lib.user_part(sample)
    return not marker and names[:1] and names[0] in PARTS and names[1:1 + len(INNER)] == INNER and names[-1] == "_start"


def requests(sink):
    """(when it arrived, its samples), in order."""
    paths = [(r["time"], os.path.join(sink.sink.directory, r["stored"])) for r in sink.log() if r["stored"]]
    for _, path in paths:
        if path not in _decoded:
            _decoded[path] = lib.samples_of(lib.read(path))
    return [(at, _decoded[path]) for at, path in paths]


def named_at(sink, p, lines=False):
    """When its first stack with all names arrived, and with lines."""
    return next((at for at, samples in requests(sink) if any(
        is_of(p, s) and is_right(s) and (not lines or has_lines(s)) for s in samples)), None)


def is_named(what, sink, p, within, lines=False):
    named = named_at(sink, p, lines)
    after = named and named - p.began
    lib.ok(after and after <= within, "%s: who starts meanwhile is named%s within %d s (%s)" % (
        what, ", with lines," if lines else "", within, after and "%.1f s" % after))


def is_on_time(what, sink, since, until, most):
    times = [since] + [r["time"] for r in sink.log() if since < r["time"] < until] + [until]
    gap = max(b - a for a, b in zip(times, times[1:]))
    lib.ok(gap <= most, "%s: requests arrive at most %.1f s apart (%d in %.1f s, %.1f s apart)" % (
        what, most, len(times) - 2, until - since, gap))


def uncounted(last):
    """Samples that the ledger says were not taken, or were lost, whoever's they were."""
    return last["ledger"]["missed"] + sum(sum(d["lost"].values()) for d in last["ledger"]["destinations"].values())


def is_complete(what, sink, p, ticks, missed):
    mine = [s for _, samples in requests(sink) for s in samples if is_of(p, s)]
    count = sum(s.count for s in mine)
    right = sum(s.count for s in mine if is_right(s))
    others = collections.Counter()
    for s in mine:
        if not is_right(s):
            names, marker = lib.user_part(s)
            others[" < ".join(names[:3] + names[-1:]), marker] += s.count
    lib.ok(count >= 0.95 * ticks - 20 - missed, "%s: %d samples of %s, whose CPU time is worth %.0f" % (
        what, count, p.name, ticks))
    lib.ok(count and right >= 0.98 * count - 2, "%s: %d of %d stacks of %s are whole and named" % (
        what, right, count, p.name) + (" %s" % others.most_common(3) if others else ""))


def is_everywhere(what, sink, p, since, until):
    """The first request after the start may be of the time before."""
    has = [any(is_of(p, s) and is_right(s) for s in samples) for at, samples in requests(sink) if since + NAMED_S < at < until]
    lib.ok(has and all(has), "%s: %s is in all of %d requests (%d)" % (what, p.name, len(has), sum(has)))


class Bystanders:
    """One that is known before the attack, one that starts meanwhile. The daemon d exports to sink, samples hz times
    a second, and has PROFILE."""

    def __init__(self, what, d, sink, hz):
        self.what, self.d, self.sink, self.hz, self.work = what, d, sink, hz, lib.scratch()
        put(self.work, "late", "shares-static-pie", SOMEBODY)
        self.early = start(self.work, "early", "shares")
        lib.ok(lib.wait_for(lambda: named_at(sink, self.early), 15, 0.3), "%s: the bystander is named before" % what)

    def attack_began(self):
        self.began = time.time()
        time.sleep(1)
        self.late = start(self.work, "late", "shares-static-pie", SOMEBODY) # it has never run

    def judge(self, seconds):
        """Ends the daemon when both have been watched for so long; its last status."""
        time.sleep(max(0, self.late.began + seconds - time.time()))
        both = (self.early, self.late)
        used, until = {p: cpu_seconds(p) for p in both}, time.time()
        last = self.d.stop()
        is_on_time(self.what, self.sink, self.began, until, GAP_S)
        is_named(self.what, self.sink, self.late, NAMED_S)
        for p in both:
            is_complete(self.what, self.sink, p, used[p] * self.hz, uncounted(last))
            is_everywhere(self.what, self.sink, p, p.began, until)
            lib.end(p)
        lib.check_ledger(last, self.what, stopped=True)
        return last

# SPDX-License-Identifier: Apache-2.0
"""What the tests of code that comes and goes share: how often their programs run, and what their samples say. CHURN_SAMPLES, if
it is set, is how many samples of each program are to be judged: it runs again and again until there are so many."""
import collections
import os
import resource
import time

import lib

SAMPLES = int(os.environ.get("CHURN_SAMPLES", 0))
ROUNDS_MAX = 100
SETTLE = 4  # seconds, in intervals of one: samples wait for names at most two of them
START = 3  # seconds: of a long run, what is not known then is counted apart
BUSY = 0.6 # CPUs that are used by others than the program, the daemon's own part included: readings come late then
RIGHT, WRONG, UNKNOWN, ELSEWHERE, STARTING = "right", "wrong", "unknown", "elsewhere", "starting"


def cpu_of_all():
    """Seconds of CPU time that this machine has spent, and those of programs that have ended here."""
    with open("/proc/stat") as f:
        spent = [int(n) for n in f.readline().split()[1:]]
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (sum(spent[:3]) + sum(spent[5:8])) / os.sysconf("SC_CLK_TCK"), own.ru_utime + own.ru_stime


class Judged:
    """The samples of one program, by what a judge says of each: a verdict, and what was seen. Those that are elsewhere tell
    nothing of code that comes and goes."""

    def __init__(self, label, judge, highest):
        self.label, self.judge, self.highest = label, judge, highest
        self.seen = {v: collections.Counter() for v in (RIGHT, WRONG, UNKNOWN, ELSEWHERE, STARTING)}
        self.seconds = self.others = 0.0 # while its programs ran: of the clock, and of CPU time that others had

    def add(self, sample, starts):
        verdict, what = self.judge(sample)
        if starts and verdict == UNKNOWN:
            verdict = STARTING
        self.seen[verdict][what] += sample.count

    def count(self, *verdicts):
        return sum(self.seen[v].total() for v in verdicts)

    def judged(self):
        return self.count(RIGHT, WRONG, UNKNOWN)

    def ok_alone(self, good, what):
        """A fact that need not hold where readings come late: then it is skipped."""
        if good or self.others <= BUSY * self.seconds:
            return lib.ok(good, what)
        return lib.skip(what, "others had %.1f CPUs meanwhile" % (self.others / self.seconds))

    def report(self):
        all_, unknown = self.judged(), self.count(UNKNOWN)
        lib.note("%s: judged %d, wrong %d, unknown %d (%.3f %%); at the start %d unknown, elsewhere %d" % (
            self.label, all_, self.count(WRONG), unknown, 100.0 * unknown / max(all_, 1), self.count(STARTING),
            self.count(ELSEWHERE)))
        lib.ok(all_ >= max(SAMPLES, 1) and self.count(RIGHT), "%s: %d samples are judged" % (self.label, all_))
        lib.ok(not self.seen[WRONG], "%s: none of %d stacks has another one's name, %d do: %s" % (
            self.label, all_, self.count(WRONG), self.seen[WRONG].most_common(3)))
        self.ok_alone(unknown <= self.highest * all_, "%s: %d of %d stacks (%.2f %%) are not known, at most %.0f %%: %s" % (
            self.label, unknown, all_, 100.0 * unknown / max(all_, 1), 100 * self.highest, dict(self.seen[UNKNOWN].most_common(5))))


class Churn:
    """Programs of code that comes and goes, under a daemon whose samples have the attribute process.pid."""

    def __init__(self, daemon):
        self.daemon, self.read, self.by_pid, self.all = daemon, set(), {}, []

    def run(self, label, begin, seconds, judge, highest):
        """begin starts processes, which end by themselves after so many seconds. judge answers of a sample: verdict, what."""
        judged = Judged(label, judge, highest)
        self.all.append(judged)
        for _ in range(ROUNDS_MAX):
            before, began = cpu_of_all(), time.time_ns()
            processes = begin()
            self.by_pid.update({p.pid: (judged, began) for p in processes})
            for p in processes:
                p.wait(seconds * 8)
                lib.ok(p.returncode == 0, "%s ends well (%s)" % (label, p.returncode))
            spent = [after - b for after, b in zip(cpu_of_all(), before)]
            judged.seconds += (time.time_ns() - began) / 1e9
            judged.others += spent[0] - spent[1]
            if not SAMPLES:
                return
            time.sleep(SETTLE)
            self.judge_new()
            if judged.judged() >= SAMPLES:
                return

    def judge_new(self):
        for path in lib.profile_files(self.daemon.files):
            if path not in self.read:
                self.read.add(path)
                for s in lib.samples_of(lib.read(path)):
                    judged, began = self.by_pid.get(s.attributes.get("process.pid"), (None, 0))
                    if judged:
                        judged.add(s, SAMPLES and s.profile.time_unix_nano < began + START * 10**9)

    def stop(self):
        """Stops the daemon, and says what is true of each program's samples, and of the daemon itself."""
        last = self.daemon.stop()
        self.judge_new()
        for judged in self.all:
            judged.report()
        lib.check_ledger(last, "the ledger balances", stopped=True)
        decoders = last["quality"]["interpreted"]["decoders"]
        lib.ok(not decoders["died"], "decoders read what they are asked for: %s" % decoders)

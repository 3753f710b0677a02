# SPDX-License-Identifier: Apache-2.0
"""Programs that work in step with the clock, at periods that timers have
everywhere and at odd ones: each has as many samples as its CPU time is due, at
rates that divide those periods and at rates that do not.

A cell is one program at one rate. Ticks that are independent of the program
hit it mu = CPU time x rate times on average, with a variance of at most mu:
each tick hits or does not (binomial: mu (1 - share)), and ticks that are spread
evenly over time vary less. A sampler in step is off by far more than
sqrt(mu) in many cells. Two facts, so that a sound sampler fails less than once
in 10,000 runs:
- no cell has a Poisson probability below 1e-6 (55 cells: less than 6e-5);
- chi-square over all cells is below its quantile at 4 sigma (3e-5)."""
import collections
import json
import math

import lib

RATES = (19, 20, 49, 97, 100)
# Microseconds: period, and CPU time in each.
WORK = ((1000, 50), (4000, 200), (5000, 250), (7000, 350), (10000, 500), (13000, 650), (20000, 1000), (37000, 2000),
        (50000, 8000), (100000, 8000), (1000000, 80000))
SECONDS = 20
# The module admits four samplers at a time.
TOGETHER = 3 if lib.SOURCE == "kmod" else len(RATES)
RARE = 1e-6
SIGMAS = 4


class Cell:
    """n samples, where between low and mu were due: low, if all ticks that the sampler missed were this program's share."""

    def __init__(self, period_us, hz, n, mu, low):
        self.period_us, self.hz, self.n, self.mu, self.low = period_us, hz, n, mu, low
        self.off = n - mu if n > mu else min(n - low, 0)

    def sigmas(self):
        return self.off / math.sqrt(self.mu)

    def chance(self):
        """Of a count at least as far off on its side, by Poisson."""
        mu = self.mu if self.n > self.mu else self.low
        if not self.off:
            return 1
        counts = range(self.n, self.n + 2000) if self.off > 0 else range(self.n + 1)
        return sum(math.exp(k * math.log(mu) - mu - math.lgamma(k + 1)) for k in counts)

    def __str__(self):
        return "%g ms at %d Hz: %d of %.1f (%+.1f sigma)" % (self.period_us / 1000, self.hz, self.n, self.mu, self.sigmas())


def chi_square_bound(cells):
    """The quantile at SIGMAS of the sum of (n - mu)^2 / mu for Poisson counts, by Wilson and Hilferty."""
    shape = len(cells) ** 2 / sum(2 + 1 / c.mu for c in cells)
    return len(cells) * (1 - 1 / (9 * shape) + SIGMAS / (3 * math.sqrt(shape))) ** 3


def run_programs():
    """CPU time by pid and period."""
    programs = [lib.program("lockstep", SECONDS, period, work, stdout=lib.subprocess.PIPE, text=True) for period, work in WORK]
    return [json.loads(p.communicate(timeout=SECONDS + 60)[0]) for p in programs]


def counts_by_pid(d):
    n = collections.Counter()
    for s in lib.samples(d.files):
        n[s.attributes.get("process.pid")] += s.count
    return n


def cells_of(rates):
    daemons = [(hz, lib.Otprofd(hz=hz, profile={"sample_attributes": "process.pid"})) for hz in rates]
    truth = run_programs()
    total_ns = sum(t["cpu_ns"] for t in truth)
    cells = []
    for hz, d in daemons:
        last = d.stop()
        lib.check_ledger(last, "%d Hz" % hz, stopped=True)
        missed, n = last["ledger"]["missed"], counts_by_pid(d)
        lib.note("%d Hz: %d ticks missed" % (hz, missed))
        for t in truth:
            mu = t["cpu_ns"] / 1e9 * hz
            cells.append(Cell(t["period_us"], hz, n[t["pid"]], mu, max(mu - missed * t["cpu_ns"] / total_ns, mu / 2)))
    return cells


def check(cells):
    for c in cells:
        lib.note(str(c))
    far = [c for c in cells if abs(c.sigmas()) > 3]
    lib.note("%d of %d cells are more than 3 sigma off" % (len(far), len(cells)))
    lib.ok(all(c.mu > 5 for c in cells), "each program used enough CPU time to be counted at each rate")
    worst = min(cells, key=Cell.chance)
    lib.ok(worst.chance() > RARE, "no program is counted in step with its timer: the worst is %s, by chance %.2g" % (
        worst, worst.chance()))
    chi, bound = sum(c.off ** 2 / c.mu for c in cells), chi_square_bound(cells)
    lib.ok(chi < bound, "all %d counts are as independent ticks make them: chi-square %.1f, at most %.1f" % (
        len(cells), chi, bound))


check([c for i in range(0, len(RATES), TOGETHER) for c in cells_of(RATES[i:i + TOGETHER])])
lib.finish()

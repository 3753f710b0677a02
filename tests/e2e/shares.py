# SPDX-License-Identifier: Apache-2.0
"""A program that knows its CPU shares: what otprof says of it must agree, in
shares, in number and in every frame; also stripped, static and static-pie."""
import json
import math
import os
import re
import time

import lib

HZ = lib.rate(997)
SECONDS = 6
PARTS = ("work_half", "work_third", "work_fifth")
INNER = ["descend"] * 20 + ["timed", "run_rounds", "main"]
# What the C library has between main and the entry point differs by version and linkage.
LIBC = r"(_?_libc_start_call_main|_?_libc_start_main.*|call_init|generic_start_main.*|.*\+0x[0-9a-f]+)"
# Before its work proper a run is in the loader, in main's set-up, or printing; bounded, not ignored.
STARTUP = 0.1 if lib.SLOW else 0.01


def named_by_twin(names, twin):
    """binary+0xoffset through the symbol table of the same program, not stripped."""
    out = []
    for name in names:
        m = re.match(r"shares-stripped\+0x([0-9a-f]+)$", name)
        out.append(twin(int(m[1], 16)) if m else name)
    return out


def symbol_table(path):
    table = []
    for line in lib.subprocess.run(["nm", "-n", path], capture_output=True, text=True).stdout.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in "tT":
            table.append((int(words[0], 16), words[2]))
    return lambda at: max((a, n) for a, n in table + [(-1, "?")] if a <= at)[1]


def whole(names):
    """The frames that are there, not one more or less, from the leaf to the entry."""
    if names[0] not in PARTS or names[1:1 + len(INNER)] != INNER or names[-1] != "_start":
        return False
    between = names[1 + len(INNER):-1]
    return len(between) <= 2 and all(re.match(LIBC + "$", n) for n in between)


def expected_shares(truth):
    total = sum(truth[p] for p in PARTS)
    return {p: truth[p] / total for p in PARTS}


def check(variant):
    d = lib.Otprofd(hz=HZ)
    began = time.monotonic()
    p = lib.program(variant, SECONDS, stdout=lib.subprocess.PIPE, text=True)
    truth = json.loads(p.communicate(timeout=60)[0])
    part = min(1, truth["total_ns"] / 1e9 / (time.monotonic() - began)) # of a CPU that it had
    last = d.stop()
    mine = [s for s in lib.samples(d.files) if s.attributes.get("process.pid", truth["pid"]) == truth["pid"] and
            (lib.service(s) == variant)]
    count = sum(s.count for s in mine)
    want = truth["total_ns"] / 1e9 * HZ
    missed = last["ledger"]["missed"]
    # Ticks that come too late under emulation are missed.
    least = int(5000 / 997 * HZ) - (missed if lib.SLOW else 0)
    lib.ok(count >= least, "%s: at least %d samples (%d)" % (variant, least, count))
    # Of few ticks on a CPU that it shares, chance decides how many find it there: three standard deviations.
    chance = 3 * math.sqrt(want * (1 - part)) if lib.SLOW else 0
    lib.ok(abs(count - want) <= 0.02 * want + chance + missed,
           "%s: %d samples are CPU time x rate within 2 %% (%.0f; %d ticks missed; %.0f by chance)" % (
               variant, count, want, missed, chance))

    user = [(lib.user_part(s)[0], s.count) for s in mine if lib.user_part(s)[0]]
    if variant.endswith("stripped"):
        # A tick may fall into the loader, before the program's entry; it has names where its debug file is installed.
        fits = sum(n for names, n in user if re.match(r"(shares-stripped|ld-linux[^+]*)\+0x[0-9a-f]+$", names[-1]) or
                   names[-1] == "_start" and not any(name.startswith("shares-stripped+") for name in names))
        lib.ok(user and fits == sum(n for _, n in user), "%s: what cannot be named is binary+0xoffset" % variant)
        twin = symbol_table(os.path.join(lib.PROGRAMS, "shares"))
        user = [(named_by_twin(names, twin), n) for names, n in user]
    in_work = [(names, n) for names, n in user if names[0] in PARTS]
    in_all = sum(n for _, n in in_work)
    lib.ok(count and in_all >= (1 - STARTUP) * count, "%s: %d of %d samples are in the work itself" % (variant, in_all, count))
    broken = [names for names, _ in in_work if not whole(names)]
    lib.ok(in_work and not broken, "%s: every stack is whole to main and the entry, frame by frame %s" % (variant, broken[:1]))
    cut = [lib.user_part(s)[1] for s in mine if lib.user_part(s)[1]]
    # Of few, one may be its exec.
    lib.ok(len(cut) <= 0.001 * count + lib.SLOW, "%s: none is cut %s" % (variant, cut[:3]))

    for part, share in expected_shares(truth).items():
        agree(variant, part, sum(n for names, n in in_work if names[0] == part) / max(in_all, 1), share, in_all)
    lib.check_ledger(last, variant, stopped=True)


def agree(variant, part, got, want, n):
    sigma = math.sqrt(want * (1 - want) / max(n, 1))
    lib.ok(n and abs(got - want) <= 3 * sigma + 0.005,
           "%s: %s has %.2f %% of the samples, %.2f %% of the CPU time" % (variant, part, 100 * got, 100 * want))


for name in ("shares", "shares-stripped", "shares-static-pie", "shares-static")[:1 if lib.BRIEF else None]:
    check(name)
lib.finish()

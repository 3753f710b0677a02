# SPDX-License-Identifier: Apache-2.0
"""Real programs under load: at least 99 % of their user stacks end at a true
root, and their functions have names where the files have any; and, of those of
C, a call precedes each return address."""
import time

import callsites
import lib
import roots
import workloads
import workloads_native

SECONDS = 6
# Compilers and what drives them: processes of milliseconds, and stacks with frames of 100 KiB and more.
NAMES = [*workloads.ALL, "g++", "rustc", "cargo"]
# Samples a second, stacks at least; of rustc, 500 whole ones a second are more than the bound on copied bytes lets through.
USUAL = (499, 500)
DEEP = {"rustc": (97, 100), "cargo": (97, 20)}


def named(directory, services):
    """Frames of these programs' own side, and those of them that have a name."""
    total = known = 0
    for s in lib.samples(directory):
        if lib.service(s) in services or lib.executable(s) in services:
            names, _ = lib.user_part(s)
            total += len(names) * s.count
            known += sum(s.count for n in names if "+0x" not in n)
    return total, known


def check(name):
    tools, begin, services, _ = workloads_native.NATIVE[name]
    if not workloads.have(*tools):
        lib.skip(name, "not installed")
        return
    hz, least = DEEP.get(name, USUAL)
    d = lib.Otprofd(hz=hz)
    processes = begin(SECONDS + 2)
    time.sleep(SECONDS)
    last = d.stop()
    workloads.end_all(processes)
    total, whole, apart, reasons = roots.count(d.files, services)
    lib.ok(total > least, "%s: %d user stacks" % (name, total))
    lib.ok(whole >= 0.99 * total, "%s: %.2f %% end at a true root %s" % (name, 100 * whole / max(total, 1), reasons or ""))
    frames, known = named(d.files, services)
    lib.note("%s: %.1f %% of %d frames have a name (Debian's files are stripped)%s" % (
        name, 100 * known / max(frames, 1), frames,
        "".join("; %d %s, not counted" % (n, why) for why, n in apart.items())))
    if name in workloads.ALL and callsites.is_known_here():
        callsites.check_calls(name, lib.samples(d.files), services)
    lib.check_ledger(last, name, stopped=True)


for workload in NAMES:
    check(workload)
lib.finish()

# SPDX-License-Identifier: Apache-2.0
"""The hardening of the systemd unit, without systemd: its capabilities and no
others, a /proc that hides the processes of other users, the kernel's symbols on
standard input and nowhere else. Everything is named as without it."""
import os
import re
import signal
import time

import lib

NOBODY = 65534
NAMES = ("work_half", "work_third", "work_fifth")
COMMAND = """
ulimit -l unlimited 2>/dev/null || true # two CPUs do without
exec </proc/kallsyms
mount -t proc -o hidepid=invisible proc /proc
mount --bind /dev/null /proc/kallsyms
mount -o bind,remount,ro /proc/sys 2>/dev/null || mount --bind -o ro /proc/sys /proc/sys
exec setpriv --no-new-privs --bounding-set "$0" "$@"
"""


def unit(key):
    with open(os.path.join(lib.TOP, "packaging", "systemd", "otprofd.service.in")) as f:
        return " ".join(re.findall("^%s=(.*)$" % key, f.read(), re.M))


def capabilities(pid):
    with open("/proc/%d/status" % pid) as f:
        return int(re.search(r"^CapBnd:\s*(\w+)$", f.read(), re.M).group(1), 16)


def kernel_names(samples):
    """Of frames below read(2)."""
    mine = [s for s in samples if lib.executable(s) == "kernelio"]
    return {n for s in mine for n, t in zip(s.stack, s.types) if t == "kernel"}


def fresh(d, known):
    """Samples of requests that are not known."""
    return [s for f in lib.profile_files(d.files) if f not in known for s in lib.samples_of(lib.read(f))]


def are_named(d, known, what):
    names = lib.wait_for(lambda: kernel_names(fresh(d, known)), 15, 0.3)
    lib.ok("vfs_read" in names and not any(n.startswith("[kernel]") for n in names),
           "%s: kernel functions have names %s" % (what, sorted(names)[:4]))


def is_input_null(pid):
    return os.path.samestat(os.stat("/proc/%d/fd/0" % pid), os.stat("/dev/null"))


def another_engine(d):
    known, before = set(lib.profile_files(d.files)), d.worker("engine")
    os.kill(before, signal.SIGKILL)
    lib.wait_for(lambda: d.worker("engine") not in (0, before), 10)
    known |= set(lib.profile_files(d.files))
    are_named(d, known, "after a restart of the engine")


wanted = sorted(c[len("CAP_"):].lower() for c in unit("CapabilityBoundingSet").split())
lib.need(wanted and "ProtectProc" in lib.read(os.path.join(lib.TOP, "packaging/systemd/otprofd.service.in")).decode(),
         "the unit", "it restricts nothing")
lib.program("kernelio", 60)
theirs = lib.program("shares", 60, stdout=lib.subprocess.DEVNULL, user=NOBODY, group=NOBODY, extra_groups=[])
d = lib.Otprofd(hz=199, argv_prefix=["unshare", "--mount", "--propagation", "slave", "sh", "-ec", COMMAND,
                                     ",".join(["-all"] + ["+" + c for c in wanted])])
held = bin(capabilities(d.pid)).count("1")
lib.ok(held <= len(wanted), "the daemon has the capabilities of the unit, or fewer (%d of %d)" % (held, len(wanted)))
are_named(d, set(), "with the unit's rights")
lib.ok(all(is_input_null(d.worker(w)) for w in ("engine", "net")), "no worker has the daemon's standard input")
another_engine(d)
time.sleep(1)
last = d.stop()
mine = [s for s in lib.samples(d.files) if lib.executable(s) == "shares"]
named = sum(s.count for s in mine if s.stack[0] in NAMES)
lib.ok(mine and named >= 0.9 * sum(s.count for s in mine), "programs of other users have names (%d of %d samples)" % (
    named, sum(s.count for s in mine)))
refused = [line for line in d.log_text().splitlines() if re.search("cannot|denied|not permitted|refuse", line)]
lib.ok(not refused, "nothing that otprofd does is refused %s" % refused[:3])
lib.check_ledger(last, "unit", stopped=True)
lib.finish()

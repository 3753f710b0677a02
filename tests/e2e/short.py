# SPDX-License-Identifier: Apache-2.0
"""A process that used 50 ms of CPU and is gone is named and complete, also one
whose mount, pid and cgroup namespaces and files went with it."""
import os
import shutil
import subprocess
import time

import lib

HZ = lib.rate(999)
INNER = ["short_work", "short_middle", "main"]
# At the low rate of a slow guest the ring is looked at every 250 ms: what went with its files before has no names.
INSIDE_MS = 600 if lib.SLOW else 50


def cgroup2():
    with open("/proc/mounts") as f:
        return next((line.split()[1] for line in f if line.split()[2] == "cgroup2"), None)


def in_container(work, program):
    """Runs it as a container would: own mounts, pids and cgroup, a root of its own that vanishes."""
    mount = cgroup2()
    group = mount and os.path.join(mount, "otprof-e2e-%d" % os.getpid())
    script = """
        set -e
        [ -z "$GROUP" ] || {{ mkdir -p "$GROUP"; echo $$ > "$GROUP/cgroup.procs"; }}
        exec {unshare} --mount --pid --cgroup --fork sh -ec '
            mount -t tmpfs none {work}/root
            mkdir {work}/root/opt
            cp {program} {work}/root/opt/inside
            chroot {work}/root /opt/inside {ms}'
    """.format(work=work, program=program, ms=INSIDE_MS, unshare=shutil.which("unshare")) # not a shell's own
    p = subprocess.run(["sh", "-c", script], env=dict(os.environ, GROUP=group or ""), capture_output=True, text=True)
    if group:
        lib.wait_for(lambda: not _rmdir(group), 2)
    return p


def _rmdir(path):
    try:
        os.rmdir(path)
    except OSError as e:
        return e


def check(samples, name, what, runs):
    """About 50 samples a run, and each of them whole."""
    mine = [s for s in samples if lib.service(s) == name]
    count = sum(s.count for s in mine)
    if lib.SLOW:
        lib.skip("%s: as many samples as its 50 ms have" % what, "under emulation its start takes longer")
    else:
        lib.ok(0.9 * 50 * runs <= count <= 1.15 * 55 * runs, "%s: %d samples in %d runs of 50 ms" % (what, count, runs))
    work = [(lib.user_part(s), s.count) for s in mine]
    # In the kernel only, or from the loader's entry, or from the program's own.
    good = sum(n for (names, marker), n in work if not marker and (
        not names or names[-1] == "_start" and (names[0] != INNER[0] or names[:3] == INNER) or
        names[-1].startswith("ld-linux")))
    in_work = sum(n for (names, _), n in work if names[:3] == INNER)
    lib.ok(count and in_work >= (0 if lib.SLOW else 0.85) * count, "%s: %d of %d samples are short_work < short_middle < main" % (what, in_work, count))
    # Its file is gone with it: under emulation its 50 ms may lie between two looks at what was started. That is said.
    if lib.SLOW and what == "deleted file":
        good += sum(n for (_, marker), n in work if marker == "[cut: file not readable]")
    # Of few, one may be a start that is deeper than its copy.
    lib.ok(count and good >= 0.98 * count - lib.SLOW, "%s: %d of %d are complete %s" % (
        what, good, count, [w for w in work if w[0][1]][:2]))


work = lib.scratch()
os.mkdir(os.path.join(work, "root"))
once = os.path.join(work, "once")
d = lib.Otprofd(hz=HZ)
time.sleep(1)
for _ in range(10):
    subprocess.run([os.path.join(lib.PROGRAMS, "short"), "50"])
for _ in range(10): # unlinks itself first: a deleted file
    shutil.copy(os.path.join(lib.PROGRAMS, "short"), once)
    subprocess.run([once, "50", once])
errors = [p.stderr for p in (in_container(work, os.path.join(lib.PROGRAMS, "short-static")) for _ in range(10))
          if p.returncode]
time.sleep(1.5)
last = d.stop()
samples = lib.samples(d.files)
check(samples, "short", "short", 10)
check(samples, "once", "deleted file", 10)
if errors:
    lib.skip("a container that is gone", errors[0].strip()[-200:])
else:
    check(samples, "inside", "container that is gone", 10)
lib.check_ledger(last, "short", stopped=True)
lib.finish()

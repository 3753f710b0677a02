# SPDX-License-Identifier: Apache-2.0
"""otprof record by an ordinary user: without root and without a daemon, on what
kernel.perf_event_paranoid allows, the user code of a command and of all that
it starts; what is forbidden is said before anything runs."""
import os
import re
import shutil
import signal
import subprocess
import time

import lib

SYSCTL = "/proc/sys/kernel/perf_event_paranoid"
HZ = 499
USER = 65534
AS_USER = ["setpriv", "--reuid=%d" % USER, "--regid=%d" % USER, "--clear-groups", "--inh-caps=-all", "--bounding-set=-all",
           "--no-new-privs", "--"]
work = lib.scratch()
os.chown(work, USER, USER)


def paranoid(level):
    with open(SYSCTL, "w") as f:
        f.write("%d" % level)


def own(name):
    """A program where the user may run it, wherever the build lies."""
    to = os.path.join(work, name)
    if not os.path.exists(to):
        shutil.copy(os.path.join(lib.PROGRAMS, name), to)
        os.chmod(to, 0o755)
    return to


def record(*args, command=None, timeout=60):
    path = os.path.join(work, "out.collapsed")
    if os.path.exists(path):
        os.unlink(path)
    argv = AS_USER + [os.path.join(work, "otprof"), "record", "-F", str(HZ), "-o", path] + list(args)
    p = subprocess.run(argv + (["--"] + command if command else []), capture_output=True, text=True, timeout=timeout,
                       stdin=subprocess.DEVNULL, cwd=work, env=dict(os.environ, TMPDIR=work, HOME=work))
    text = ""
    if os.path.exists(path):
        with open(path) as f:
            text = f.read()
    return p, [line.rsplit(" ", 1) for line in text.splitlines()]


def count(stacks, word=""):
    return sum(int(n) for s, n in stacks if word in s)


def running():
    """Programs of this test's directory."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            exe = os.readlink("/proc/%s/exe" % pid)
        except OSError:
            continue
        if exe.startswith(work):
            found.append((pid, os.path.basename(exe)))
    return found


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def one_command():
    p, stacks = record(command=[own("shares"), "2"])
    lib.ok(p.returncode == 0 and 0.85 * 2 * HZ <= count(stacks) <= 1.1 * 2 * HZ,
           "a command of 2 s at %d Hz has %d samples %s" % (HZ, count(stacks), p.stderr[-400:] if p.returncode else ""))
    whole = [n for s, n in stacks if s.count("descend") == 20 and "main;run_rounds;timed" in s]
    lib.ok(sum(map(int, whole)) >= 0.97 * count(stacks) > 0, "its stacks are whole and named (%d)" % sum(map(int, whole)))
    foreign = {s.split(";")[0] for s, _ in stacks} - {"shares", "otprof"}
    lib.ok(not foreign, "and nothing else is in it %s" % (foreign or ""))
    lib.ok(lib.wait_for(lambda: not running(), 5), "nothing of it is left to run %s" % running())


def family():
    """Children, one after the other and at once, each with an exec; 0.2 s of work each."""
    script = "for i in 1 2 3; do %s 200; done; %s 200 & %s 200 & wait" % ((own("short"),) * 3)
    p, stacks = record(command=["sh", "-c", script])
    got, want = count(stacks, "short_work"), 5 * 0.2 * HZ
    lib.ok(p.returncode == 0 and 0.85 * want <= got <= 1.1 * want, "what it starts is sampled too (%d of %d)" % (got, want))


def running_process():
    mine = lib.start(AS_USER + [own("shares"), "60"], stdout=subprocess.DEVNULL)
    time.sleep(0.5)
    used = cpu_seconds(mine.pid)
    p, stacks = record("-d", "2", "-p", str(mine.pid))
    used = cpu_seconds(mine.pid) - used
    # It ran on while otprof started and ended.
    lib.ok(p.returncode == 0 and max(10, 0.2 * used * HZ) <= count(stacks, "work_") <= 1.1 * used * HZ,
           "a process of one's own that runs already has %d samples in 2 s (CPU time in all: %.1f s)" % (
               count(stacks, "work_"), used))
    lib.end(mine, signal.SIGTERM)
    p, _ = record("-d", "1", "-p", "1")
    lib.ok(p.returncode != 0 and re.search("somebody else|not permitted", p.stderr), "one of root's is refused: %s" % p.stderr.strip()[-200:])


def whole_host():
    p, _ = record("-d", "1")
    lib.ok(p.returncode != 0 and "whole host" in p.stderr, "the whole host is root's: %s" % p.stderr.strip()[:150])


def forbidden():
    """Debian's kernels know a level 3, which forbids it all; others take it for 2."""
    paranoid(3)
    p, stacks = record(command=[own("short"), "100"])
    if p.returncode == 0:
        lib.skip("level 3 is refused with the name of the setting", "this kernel has no such level")
    else:
        lib.ok("sysctl kernel.perf_event_paranoid=2" in p.stderr and not stacks,
               "level 3 is refused with the name of the setting: %s" % p.stderr.strip()[:200])


lib.need(os.path.exists(SYSCTL), "an ordinary user's recording", "this kernel has no perf events")
with open(SYSCTL) as f:
    before = int(f.read())
lib.at_end(paranoid, before)
for name in ("otprof", "otprofd", "otprof-worker"):
    shutil.copy(os.path.join(lib.BUILD, name), os.path.join(work, name))
    os.chmod(os.path.join(work, name), 0o755)
paranoid(2)
one_command()
family()
running_process()
whole_host()
forbidden()
lib.finish()

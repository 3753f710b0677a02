# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on real hosts: each a clear message or a counted loss, and
nothing else stops."""
import os
import re
import shutil
import subprocess
import tempfile
import time

import lib

TIMEOUT = 20


def refused(d, words, what, code=None):
    """otprofd ends by itself, soon, with a line on stderr that has these words."""
    try:
        p = subprocess.run(d.argv, capture_output=True, text=True, timeout=TIMEOUT, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as e:
        lib.ok(False, "%s: refused at start (it runs on) %s" % (what, (e.stderr or b"")[-300:]))
        return
    hit = [line for line in p.stderr.splitlines() if all(w.lower() in line.lower() for w in words)]
    lib.ok(p.returncode != 0 and hit, "%s: refused with a line that says why: %s" % (
        what, hit[0][:200] if hit else "%s %s" % (p.returncode, p.stderr[-400:])))


# Configuration: FILE:LINE: section.key: what is wrong, what was expected.

BAD_CONFIGS = (
    ("[sampler]\nfrequency_hz = fast\n", 2, "sampler.frequency_hz"),
    ("[sampler]\nfrequency_hz = 0\n", 2, "sampler.frequency_hz"),
    ("[sampler]\nfrequenzy_hz = 20\n", 2, "frequency_hz"),
    ("[smapler]\nfrequency_hz = 20\n", None, "smapler"),
    ("[exporter x]\nendpoint = gopher://nowhere\n", 2, "endpoint"),
    ("[exporter x]\nendpoint = http://127.0.0.1:4318\ntimeout = 5\n", 3, "timeout"),
    ("[profile]\ninterval = -5s\n", 2, "profile.interval"),
    ("\n[metrics]\nlisten = 0.0.0.0:9464\n", 3, "metrics.listen"),
)


def bad_configuration():
    path = os.path.join(lib.scratch(), "bad.conf")
    for text, line, word in BAD_CONFIGS:
        with open(path, "w") as f:
            f.write(text)
        p = subprocess.run([lib.OTPROFD, "-t", "-f", path], capture_output=True, text=True, timeout=TIMEOUT)
        place = "%s:%s:" % (path, line if line else "")
        hit = [m for m in p.stderr.splitlines() if place.rstrip(":") in m and word in m]
        lib.ok(p.returncode != 0 and hit, "configuration %r: %s" % (
            text.splitlines()[-1], hit[0].replace(path, "FILE") if hit else p.stderr))
    p = subprocess.run([lib.OTPROFD, "-t", "-f", path + ".gone"], capture_output=True, text=True, timeout=TIMEOUT)
    lib.ok(p.returncode != 0 and "bad.conf.gone" in p.stderr, "an unreadable file is named: " + p.stderr.strip())
    with open(path + ".log", "w+") as log:
        st = os.fstat(log.fileno())
        subprocess.run([lib.OTPROFD, "-f", path], stderr=log, timeout=TIMEOUT,
                       env=dict(os.environ, JOURNAL_STREAM="%d:%d" % (st.st_dev, st.st_ino)))
        log.seek(0)
        said = log.read().splitlines()
    lib.ok(said and all(line.startswith("<3>") for line in said), "in the journal it is an error: %s" % said)


def programs():
    """otprofd does not run without the program of its workers, which has no network library."""
    alone = os.path.join(lib.scratch(), "otprofd")
    shutil.copy(lib.OTPROFD, alone)
    d = lib.Otprofd(daemon=False)
    d.argv = [alone if a == lib.OTPROFD else a for a in d.argv]
    refused(d, ("otprof-worker", "neither"), "no otprof-worker")
    worker = os.path.join(lib.BUILD, "otprof-worker")
    p = subprocess.run([worker], capture_output=True, text=True, timeout=TIMEOUT)
    lib.ok(p.returncode == 2 and "otprofd" in p.stderr, "otprof-worker says what it is: " + p.stderr.strip())
    text = subprocess.run(["ldd", worker], capture_output=True, text=True).stdout
    lib.ok("libc.so" in text and not re.search("curl|ssl|gnutls|microhttpd", text), "otprof-worker has no network library")


def effective_configuration():
    """What -n prints parses to the same again."""
    d = lib.Otprofd(daemon=False)
    one = subprocess.run([lib.OTPROFD, "-n", "-f", d.conf], capture_output=True, text=True, timeout=TIMEOUT)
    again = os.path.join(d.dir, "again.conf")
    with open(again, "w") as f:
        f.write(one.stdout)
    two = subprocess.run([lib.OTPROFD, "-n", "-f", again], capture_output=True, text=True, timeout=TIMEOUT)
    lib.ok(one.returncode == 0 and one.stdout and one.stdout == two.stdout, "the effective configuration reparses to itself")


# What the kernel or its operator withholds.

HIDE_BTF = ["unshare", "-m", "--propagation", "private", "sh", "-c",
            'mount -t tmpfs none /sys/kernel/btf && exec "$@"', "sh"]


def next_source():
    """auto without BTF: the module where it is loaded, else perf; status and log say why."""
    module = os.path.exists("/dev/otprof")
    d = lib.Otprofd(argv_prefix=HIDE_BTF, hz=97, sampler={"mode": "auto"})
    sampler = d.status()["sampler"]
    lib.ok(sampler["mode"] == ("kmod" if module else "perf") and "not bpf: no BTF" in sampler["why"],
           "auto goes on to %(mode)s: %(why)s" % sampler)
    if not module:
        lib.ok("otprof-dkms" in sampler["why"] and "modprobe otprof" in sampler["why"],
               "and names the module's package and command")
    said = [line for line in d.log_text().splitlines() if "no BTF" in line]
    lib.ok(len(said) == 1, "the log says it once (%d lines)" % len(said))
    lib.check_ledger(d.stop(), "auto", stopped=True)


def missing_btf():
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        lib.note("this kernel has no BTF at all")
    refused(lib.Otprofd(daemon=False, argv_prefix=HIDE_BTF, sampler={"mode": "bpf"}), ["BTF"], "no BTF")


def missing_capability():
    drop = ["setpriv", "--bounding-set", "-bpf,-perfmon,-sys_admin", "--inh-caps", "-all", "--"]
    refused(lib.Otprofd(daemon=False, argv_prefix=drop), ["CAP_"], "no CAP_BPF, CAP_PERFMON")


def paranoid():
    """Without CAP_SYS_ADMIN: Debian's own level 3 refuses it, other kernels do not."""
    drop = ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-all", "--"]
    d = lib.Otprofd(daemon=False, argv_prefix=drop)
    try:
        d.start()
    except RuntimeError:
        text = d.log_text()
        lib.ok("perf_event_paranoid" in text or "CAP_SYS_ADMIN" in text,
               "no CAP_SYS_ADMIN: the message names what withholds it: " + text[-300:].strip())
        return
    lib.ok(d.status()["ledger"] is not None, "no CAP_SYS_ADMIN: it samples all the same on this kernel")
    lib.check_ledger(d.stop(), "no CAP_SYS_ADMIN", stopped=True)


def own_pid_namespace():
    apart = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    refused(lib.Otprofd(daemon=False, argv_prefix=apart), ["pid namespace"], "a pid namespace of its own")


def second_daemon():
    d = lib.Otprofd()
    twin = lib.Otprofd(daemon=False)
    twin.argv = d.argv
    refused(twin, [d.runtime], "a second daemon in the same directory")
    lib.ok(d.status() is not None, "a second daemon: the first is not disturbed")
    d.stop()


# What the destination does.

def wait_for_destinations(d, holds):
    """Until that holds of the ledger's destinations; what they are then."""
    lib.wait_for(lambda: holds(d.status()["ledger"]["destinations"]), 15, 0.2)
    return d.status()["ledger"]["destinations"]


def unreachable():
    busy = lib.program("shares", 8, stdout=subprocess.DEVNULL)
    d = lib.Otprofd(hz=499, exporters={
        "away": {"endpoint": "http://127.0.0.1:9", "retry_initial": "100ms", "retry_max": "200ms", "retry_max_elapsed": "1s"},
        "files": {"endpoint": "file://FILES"}})
    dest = wait_for_destinations(d, lambda to: to["away"]["lost"].get("retry_expired") and to["files"]["exported"])
    lib.ok(dest["away"]["lost"].get("retry_expired", 0) > 0,
           "unreachable endpoint: a counted loss (%s)" % {k: v for k, v in dest["away"]["lost"].items() if v})
    lib.ok(dest["files"]["exported"] > 0, "unreachable endpoint: the other destination goes on")
    lib.ok("away" in d.log_text(), "unreachable endpoint: the log names it")
    p = subprocess.run([lib.OTPROF, "status", "--runtime-dir", d.runtime], capture_output=True, text=True, timeout=TIMEOUT)
    lib.ok("Failed to connect" in p.stdout, "unreachable endpoint: the status page says why")
    began = time.monotonic()
    last = d.stop()
    lib.ok(time.monotonic() - began < 15, "unreachable endpoint: it stops in time (%.1f s)" % (time.monotonic() - began))
    lib.check_ledger(last, "unreachable endpoint", stopped=True)
    lib.end(busy)


def full_disk():
    small = os.path.join(lib.scratch(), "small")
    os.mkdir(small)
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k,mode=777", "none", small], capture_output=True, text=True)
    if made.returncode:
        lib.skip("full disk at the file destination", made.stderr.strip())
        return
    lib.at_end(subprocess.run, ["umount", "-l", small])
    busy = lib.program("shares", 8, stdout=subprocess.DEVNULL)
    d = lib.Otprofd(hz=499, interval="300ms", exporters={
        "small": {"endpoint": "file://" + small, "retry_initial": "100ms", "retry_max": "200ms",
                  "retry_max_elapsed": "1s"}, "files": {"endpoint": "file://FILES"}})
    dest = wait_for_destinations(d, lambda to: to["small"]["lost"].get("write") and to["files"]["exported"])
    lib.ok(dest["small"]["lost"].get("write", 0) > 0, "full disk: a counted loss (%s samples)" % dest["small"]["lost"].get("write"))
    lib.ok(dest["files"]["exported"] > 0 and not dest["files"]["lost"].get("write"), "full disk: the other destination goes on")
    last = d.stop()
    lib.check_ledger(last, "full disk", stopped=True)
    half = [f for f in lib.profile_files(small) if not os.path.getsize(f)]
    lib.ok(not half and sum(s.count for s in lib.samples(small)) == last["ledger"]["exported"]["small"],
           "full disk: files that are there are whole")
    lib.end(busy)


def full_cache():
    """Where no index can be kept: said once, no file is blamed for it, and it costs next to nothing."""
    small = os.path.join(lib.scratch(), "small")
    os.mkdir(small)
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "none", small], capture_output=True, text=True)
    if made.returncode:
        lib.skip("full disk below the indexes", made.stderr.strip())
        return
    lib.at_end(subprocess.run, ["umount", "-l", small])
    cache = os.path.join(small, "symbols")
    busy = lib.program("shares", 8, stdout=subprocess.DEVNULL)
    d = lib.Otprofd(symbols={"cache_dir": cache})
    said = lib.wait_for(lambda: [line for line in d.log_text().splitlines() if cache in line], 20)
    time.sleep(1)
    d.stop()
    said = [line for line in d.log_text().splitlines() if cache in line]
    lib.ok(len(said) == 1 and "No space left" in said[0], "full cache: the log says so, once: %s" % said)
    kept = os.listdir(cache)
    lib.ok(not [f for f in kept if f.endswith(".none") or f.startswith(".making")], "full cache: no file is given up for a day: %s" % kept)
    lib.end(busy)


def private_directory():
    """Root's own directory, closed to everybody else, below another such: that it is configured opens it to net."""
    parent = tempfile.mkdtemp(prefix="otprof-e2e-")
    lib.at_end(subprocess.run, ["rm", "-rf", parent])
    private = tempfile.mkdtemp(dir=parent)
    busy = lib.program("shares", 60, stdout=subprocess.DEVNULL)
    for turn in ("first", "second"):
        d = lib.Otprofd(hz=97, interval="500ms", exporters={"private": {"endpoint": "file://" + private}})
        before = len(lib.profile_files(private))
        time.sleep(1.5)
        last = d.stop()
        mode = os.stat(private)
        lib.ok(len(lib.profile_files(private)) > before and last["ledger"]["exported"]["private"] > 0 and
               not sum(last["ledger"]["lost"].values()),
               "a directory of root's with mode 0700 receives files, %s start" % turn)
        said = [line for line in d.log_text().splitlines() if private in line and "open to net" in line]
        lib.ok(len(said) == (turn == "first"), "and the log says so once: %s" % (said or ""))
        lib.ok(mode.st_uid == 0 and not mode.st_mode & 0o007, "and it stays closed to others (%o)" % mode.st_mode)
    lib.end(busy)


def private_parent():
    """Where nothing can be mounted, net cannot go along the path of a directory in somebody's home; it holds it."""
    parent = tempfile.mkdtemp(prefix="otprof-e2e-")
    lib.at_end(subprocess.run, ["rm", "-rf", parent])
    files = os.path.join(parent, "profiles")
    drop = ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-all", "--"]
    d = lib.Otprofd(daemon=False, argv_prefix=drop, interval="500ms", exporters={"files": {"endpoint": "file://" + files}})
    try:
        d.start()
    except RuntimeError:
        lib.skip("no mounts: a directory below a private one", "this kernel wants CAP_SYS_ADMIN")
        return
    busy = lib.program("shares", 60, stdout=subprocess.DEVNULL)
    time.sleep(1.5)
    before = len(lib.profile_files(files))
    old = d.worker("net")
    os.kill(old, 9)
    lib.wait_for(lambda: d.worker("net") not in (0, old))
    time.sleep(1.5)
    after = len(lib.profile_files(files))
    last = d.stop()
    lib.end(busy)
    lib.ok("no mount is allowed here" in d.log_text() and before > 0 and last["ledger"]["exported"]["files"] > 0,
           "no mounts: a directory below a private one receives files (%d)" % before)
    lib.ok(after > before, "no mounts: also from a second net (%d)" % (after - before))


if not lib.BRIEF:
    bad_configuration()
    programs()
    effective_configuration()
    private_directory()
    private_parent()
    missing_btf()
next_source()
missing_capability()
paranoid()
own_pid_namespace()
second_daemon()
if not lib.BRIEF:
    unreachable()
    full_disk()
    full_cache()
lib.finish()

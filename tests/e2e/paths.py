# SPDX-License-Identifier: Apache-2.0
"""Paths that root is given below a directory of another user: nothing of
root's is made, opened or given away there, and the start says why."""
import os
import stat
import subprocess
import time

import lib

NOBODY = 65534
TIMEOUT = 20


def of_nobody(name):
    """A directory in which an unprivileged user can exchange everything."""
    path = os.path.join(work, name)
    os.mkdir(path)
    os.chown(path, NOBODY, NOBODY)
    return path


def ends_with(d, words, what):
    try:
        p = subprocess.run(d.argv, capture_output=True, text=True, timeout=TIMEOUT, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        lib.ok(False, "%s: refused at the start (it hangs, or runs on)" % what)
        return
    hit = [line for line in p.stderr.splitlines() if all(w in line for w in words)]
    lib.ok(p.returncode == 1 and hit, "%s: refused with a line that says why: %s" % (what, hit[:1] or p.stderr[-300:]))


def capture():
    path = os.path.join(work, "capture")
    with open(path, "w+b") as old:
        os.fchmod(old.fileno(), 0o644)
        d = lib.Otprofd(extra_args=["--capture", path])
        time.sleep(1)
        d.stop()
        st = os.stat(path)
        lib.ok(stat.S_IMODE(st.st_mode) == 0o600 and st.st_size > 0, "a capture is 0600 where a readable file was (%o)" % st.st_mode)
        lib.ok(not old.read(), "and who had that file open sees nothing of it")
    fifo = os.path.join(work, "fifo")
    os.mkfifo(fifo)
    ends_with(lib.Otprofd(daemon=False, extra_args=["--capture", fifo]), [fifo, "no regular file"], "a capture to a FIFO")
    theirs = os.path.join(work, "theirs")
    with open(theirs, "w"):
        os.chown(theirs, NOBODY, NOBODY)
    ends_with(lib.Otprofd(daemon=False, extra_args=["--capture", theirs]), [theirs, "belongs to user 65534"],
              "a capture to another's file")


def destination():
    secret = os.path.join(work, "secret")
    os.mkdir(secret, 0o700)
    home = of_nobody("home")
    os.symlink(secret, os.path.join(home, "link"))
    os.mkdir(os.path.join(home, "kept"), 0o700)
    d = lib.Otprofd(exporters={"link": {"endpoint": "file://%s/link/profiles" % home},
                               "new": {"endpoint": "file://%s/new" % home},
                               "kept": {"endpoint": "file://%s/kept" % home}, "files": {"endpoint": "file://FILES"}})
    said = [line for line in d.log_text().splitlines() if home in line and "belongs to user 65534" in line]
    lib.wait_for(lambda: lib.profile_files(d.files), 10)
    d.stop()
    kept = os.stat(os.path.join(home, "kept"))
    lib.ok(not os.listdir(secret), "no link of another leads root's mkdir and chown elsewhere: %s" % os.listdir(secret))
    lib.ok(not os.path.exists(home + "/new") and len(said) == 3, "no destination is made below another's directory: %s" % said[:1])
    lib.ok(stat.S_IMODE(kept.st_mode) == 0o700 and not kept.st_gid, "and none that is there is opened to net")
    lib.ok(lib.profile_files(d.files), "other destinations go on")


def runtime():
    home = of_nobody("home2")
    d = lib.Otprofd(daemon=False)
    with open(d.conf) as f:
        text = f.read().replace("runtime_dir = " + d.runtime, "runtime_dir = " + home + "/rt")
    with open(d.conf, "w") as f:
        f.write(text)
    ends_with(d, [home, "belongs to user 65534"], "a runtime_dir below another's directory")
    lib.ok(not os.listdir(home), "and nothing is made there: %s" % os.listdir(home))


def lock():
    d = lib.Otprofd()
    mode = os.stat(os.path.join(d.runtime, "lock")).st_mode
    lib.ok(not mode & 0o077, "nobody else can open the lock file, and so hold it (%o)" % mode)
    d.stop()
    os.chmod(os.path.join(d.runtime, "lock"), 0o644)
    d.start()
    mode = os.stat(os.path.join(d.runtime, "lock")).st_mode
    lib.ok(not mode & 0o077, "also where an earlier version made it (%o)" % mode)
    d.stop()


def cache():
    home = of_nobody("home3")
    d = lib.Otprofd(symbols={"cache_dir": home + "/symbols"})
    lib.ok(home + " belongs to user 65534" in d.log_text() and not os.listdir(home),
           "no cache is made below another's directory, and the log says why")
    d.stop()


def temporary():
    home = of_nobody("home4")
    out = os.path.join(work, "recording.otlp")
    p = lib.start([lib.OTPROF, "record", "--duration", "3s", "-o", out], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                  text=True, env=dict(os.environ, TMPDIR=home))
    seen = set()
    while p.poll() is None:
        seen.update(os.listdir(home))
        time.sleep(0.05)
    lib.ok(p.returncode == 0 and not seen, "root records nothing below an inherited TMPDIR %s%s" % (
        sorted(seen), p.stderr.read()[-200:] if p.returncode else ""))


def strict_umask():
    """As the unit has it, or root's shell: what net and the engine enter is open to them all the same."""
    d = lib.Otprofd(argv_prefix=["sh", "-c", 'umask 077; exec "$@"', "sh"], interval="500ms")
    lib.wait_for(lambda: lib.profile_files(d.files), 10)
    last = d.stop()
    modes = {stat.S_IMODE(os.stat(f).st_mode) for f in lib.profile_files(d.files)}
    lib.ok(modes == {0o640} and not sum(last["ledger"]["lost"].values()),
           "under umask 077 files are written, and with their own mode %s" % [oct(m) for m in modes])


work = lib.scratch()
capture()
destination()
runtime()
lock()
cache()
temporary()
strict_umask()
lib.finish()

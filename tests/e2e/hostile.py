# SPDX-License-Identifier: Apache-2.0
"""Programs that make looking at them unpleasant: files that never answer or
are swapped for something else, silent pages, files cut short. Nothing stalls,
and nothing is opened that should not be."""
import glob
import os
import shutil
import signal
import stat
import subprocess
import threading
import time

import lib

# rcx = rdi; loop: rcx--, until 0; return. Behind the first 256 bytes of a page.
CODE = b"\x7fELF".ljust(256, b"\0") + bytes.fromhex("4889f948ffc975fbc3")
CODE = CODE.ljust(65536, b"\0")
SECRET = "otprof-secret-%d" % os.getpid()


class Watch(threading.Thread):
    """Looks all the time at what the daemon and its workers hold open."""

    def __init__(self, daemon, forbidden):
        super().__init__(daemon=True)
        self.daemon_process, self.forbidden, self.seen, self.going = daemon, forbidden, set(), True

    def run(self):
        while self.going:
            for pid in [self.daemon_process.pid] + list(descendants(self.daemon_process.pid)):
                for fd in glob.glob("/proc/%d/fd/*" % pid):
                    try:
                        target = os.readlink(fd)
                    except OSError:
                        continue
                    self.seen.update(f for f in self.forbidden if target.startswith(f))
            time.sleep(0.002)


def descendants(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            children = [int(c) for c in f.read().split()]
    except OSError:
        return
    for child in children:
        yield child
        yield from descendants(child)


def responsive(d, what):
    """Status answers at once, samples of a healthy program go on arriving, no worker was lost."""
    slowest = 0
    first = d.status()
    for _ in range(20):
        began = time.monotonic()
        d.status()
        slowest = max(slowest, time.monotonic() - began)
        time.sleep(0.1)
    second = d.status()
    grown = second["ledger"]["exported"]["files"] - first["ledger"]["exported"]["files"]
    lib.ok(slowest < 1, "%s: status answers (%.3f s at most)" % (what, slowest))
    lib.ok(grown > 300, "%s: samples go on arriving (%d in 2 s)" % (what, grown))
    lib.ok(all(w["restarts"] == 0 for w in second["workers"].values()), "%s: no worker was restarted" % what)
    wrong = lib.imbalance(second)
    lib.ok(not wrong, "%s: the ledger balances %s" % (what, wrong))


def hostile(*args, seconds=4, root=None):
    argv = [os.path.join(lib.PROGRAMS, "hostile")] + list(args) + [str(seconds)]
    if root:
        shutil.copy(argv[0] + "-static", root + "/hostile")
        argv = ["chroot", root, "/hostile"] + argv[1:]
    p = lib.start(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return p if p.stdout.readline().strip() == "ready" else None


def go(p):
    p.stdin.write("go\n")
    p.stdin.flush()


def silent_file(d, work):
    mount = os.path.join(work, "fuse")
    os.mkdir(mount)
    server = lib.start([os.path.join(lib.PROGRAMS, "fusefile"), mount, os.path.join(work, "code")],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if server.stdout.readline().strip() != "mounted":
        lib.skip("a file that never answers", server.stderr.read().strip())
        return
    lib.at_end(subprocess.run, ["umount", "-l", mount])
    p = hostile("map", mount + "/file")
    server.send_signal(signal.SIGUSR1)
    time.sleep(0.2)
    go(p)
    responsive(d, "a FUSE file that never answers")
    lib.end(p)
    lib.end(server)


def silent_page(d):
    p = hostile("environ")
    if not p:
        lib.skip("an environment under userfaultfd", "not possible on this kernel")
        return
    go(p)
    responsive(d, "an environment under userfaultfd")
    lib.end(p)


def swapped(d, work, what, swap):
    """A file in a container's root is swapped, once mapped, for something that must not be opened."""
    root = os.path.join(work, what.replace(" ", "-"))
    os.mkdir(root)
    path = os.path.join(root, "file")
    with open(path, "wb") as f:
        f.write(CODE)
    p = hostile("map", "/file", root=root)
    os.unlink(path)
    swap(path)
    go(p)
    responsive(d, what)
    lib.end(p)


def cut_short(d, work):
    """A mapped program loses everything behind its code, unwind tables too, while it runs."""
    copy = os.path.join(work, "cut")
    shutil.copy(os.path.join(lib.PROGRAMS, "shares"), copy)
    loader = next((p for p in glob.glob("/lib64/ld-linux-x86-64.so.2") + glob.glob("/lib/ld-linux-aarch64.so.1")), None)
    if not loader:
        lib.skip("a file cut short", "no known loader")
        return
    headers = subprocess.run(["readelf", "-lW", copy], capture_output=True, text=True).stdout.split("\n")
    code = next(line.split() for line in headers if " R E " in line)
    p = lib.start([loader, copy, "4"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.3)
    os.truncate(copy, int(code[1], 16) + int(code[4], 16))
    responsive(d, "a file cut short while it runs")
    lib.end(p)


work = lib.scratch()
with open(os.path.join(work, "code"), "wb") as f:
    f.write(CODE)
secret = os.path.join(work, SECRET)
with open(secret, "wb") as f:
    f.write(CODE)
os.chmod(secret, stat.S_IRUSR)

healthy = lib.program("shares", 120, stdout=subprocess.DEVNULL)
d = lib.Otprofd(hz=997)
watch = Watch(d, [secret, "/etc/shadow", "/dev/mem", "/dev/zero", os.path.join(work, "a-fifo")])
watch.start()
silent_file(d, work)
silent_page(d)
swapped(d, work, "a symlink out of the container", lambda path: os.symlink("../" * 8 + secret.lstrip("/"), path))
swapped(d, work, "an absolute symlink", lambda path: os.symlink(secret, path))
swapped(d, work, "a fifo", os.mkfifo)
swapped(d, work, "a device", lambda path: os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5)))
swapped(d, work, "a directory", os.mkdir)
cut_short(d, work)
watch.going = False
watch.join()
lib.ok(not watch.seen, "nothing was opened that should not be %s" % (watch.seen or ""))
lib.check_ledger(d.stop(), "hostile", stopped=True)
lib.finish()

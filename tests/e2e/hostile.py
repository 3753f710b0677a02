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
import sys
import time

import lib

# rcx = rdi; loop: rcx--, until 0; return. Behind the first 256 bytes of a page.
CODE = b"\x7fELF".ljust(256, b"\0") + bytes.fromhex("4889f948ffc975fbc3")
CODE = CODE.ljust(65536, b"\0")
SECRET = "otprof-secret-%d" % os.getpid()


def watch(pid, forbidden):
    """Looks all the time at what the daemon and its workers hold open; a process of its own, so as not to slow the
    test. Prints what it saw that is forbidden; an O_PATH descriptor opens nothing."""
    seen = set()
    os.nice(10)
    while True:
        for one in [pid] + list(descendants(pid)):
            for fd in glob.glob("/proc/%d/fd/*" % one):
                try:
                    target = os.readlink(fd)
                    if target in forbidden - seen and not opened_by_path_only(one, os.path.basename(fd)):
                        seen.add(target)
                        print(target, flush=True)
                except OSError:
                    continue
        time.sleep(0.01)


def opened_by_path_only(pid, fd):
    with open("/proc/%d/fdinfo/%s" % (pid, fd)) as f:
        flags = next(int(line.split()[1], 8) for line in f if line.startswith("flags:"))
    return flags & os.O_PATH


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
    lib.ok(slowest < 5, "%s: status answers (%.3f s at most)" % (what, slowest))
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
    mounts = os.path.join(work, "mounts")
    os.mkdir(mounts)
    server = lib.start([os.path.join(lib.PROGRAMS, "hang"), "host", "fuse", "none", "1", "all", mounts,
                        os.path.join(work, "code"), "/dev/fuse"],
                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if server.stdout.readline().strip() != "ready":
        lib.skip("a file that never answers", server.stderr.read().strip())
        return
    lib.at_end(subprocess.run, ["umount", "-l", mounts + "/fuse"])
    p = hostile("map", mounts + "/fuse/file0")
    go(server)
    lib.ok(server.stdout.readline().strip() == "silent", "the file system is silent")
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


if "--watch" in sys.argv:
    watch(int(sys.argv[2]), set(sys.argv[3:]))

work = lib.scratch()
with open(os.path.join(work, "code"), "wb") as f:
    f.write(CODE)
secret = os.path.join(work, SECRET)
with open(secret, "wb") as f:
    f.write(CODE)
os.chmod(secret, stat.S_IRUSR)

healthy = lib.program("shares", 120, stdout=subprocess.DEVNULL)
d = lib.Otprofd(hz=997)
forbidden = [secret, "/etc/shadow", os.path.join(work, "a-fifo", "file"), os.path.join(work, "a-device", "file")]
watcher = lib.start([sys.executable, "-B", __file__, "--watch", str(d.pid)] + forbidden, stdout=subprocess.PIPE, text=True)
silent_file(d, work)
silent_page(d)
swapped(d, work, "a symlink out of the container", lambda path: os.symlink("../" * 8 + secret.lstrip("/"), path))
swapped(d, work, "an absolute symlink", lambda path: os.symlink(secret, path))
swapped(d, work, "a fifo", os.mkfifo)
swapped(d, work, "a device", lambda path: os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5)))
swapped(d, work, "a directory", os.mkdir)
cut_short(d, work)
lib.ok(watcher.poll() is None, "what the daemon holds open was looked at all the time")
watcher.terminate()
seen = watcher.communicate()[0].split()
lib.ok(not seen, "nothing was opened that should not be %s" % (seen or ""))
lib.check_ledger(d.stop(), "hostile", stopped=True)
lib.finish()

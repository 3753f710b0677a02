# SPDX-License-Identifier: Apache-2.0
"""Programs run from a file system that stops answering: an attack by a user in
namespaces of its own, or an administrator's dead file server. Whoever waits for
it cannot be killed. Status answers, everyone else's profile is complete, named
and on time, and the daemon stops, all of it while the file system is silent.

HANG=all, or words of a mode's name, chooses modes ("user flush"); by default four."""
import os
import select
import shutil
import signal
import subprocess
import time

import bystander
import lib

# Where an engine hangs, what is sampled until the next one runs must fit what may wait for names.
RATES = {"user": lib.rate(499), "host": lib.rate(97)}
NOBODY = 65534 # the attacker
STATUS_S, STOP_S, WATCH_S = 2, 10, 6
# On root's mounts a worker may hang, with the samples that it has; what follows goes on after so long. An indexer is left
# after 10 s, for which everybody's lines wait.
ABANDONED_S, INDEXER_S = 5, 11
# Monitor, engine, net, indexer, fetcher, two openers; and those that hang. The daemon leaves 32 of them behind at most
# (ABANDONED_MAX); no mode may need as many.
PROCESSES_MAX = 7 + 24

# Where, style, how, so many programs, the request that is never answered: see tests/programs/hang/hang.c.
# "lines" are reads of debug information, which the indexer maps. "shared" are reads of pages that others already read:
# who waits for those can be killed, and the next one waits for them again.
MODES = [("user", "overlay", "run", 1, silent) for silent in
         ("flush", "read", "lines", "getattr", "open", "release", "statfs", "lookup", "all")]
MODES += [("user", "overlay", "pass", 1, silent) for silent in ("flush", "read", "lines", "all")]
MODES += [("user", "overlay", how, 1, "all") for how in ("arguments", "environment")]
MODES += [("user", "overlay", "run", 24, silent) for silent in ("open", "flush")]
MODES += [("user", "overlay", "pass", 24, "all")]
MODES += [("user", "fuse", "run", 1, "all"), ("user", "fuse", "pass", 1, "all")]
MODES += [("host", "overlay", "run", 1, silent) for silent in ("flush", "read", "shared", "lines", "open", "all")]
MODES += [("host", "fuse", "run", 1, "all"), ("host", "overlay", "run", 24, "all")]
BRIEF = [("user", "overlay", "run", 1, "flush"), ("host", "overlay", "run", 1, "read"), ("host", "overlay", "run", 1, "shared"),
         ("user", "overlay", "run", 24, "open")]


# The debug information of everything else on this machine would be read before theirs.
ONLY = {"include": "exe:early exe:late exe:file*"}


# Reads every page of a file, each in a thread, when it is told to.
READERS = """
import os, sys, threading
fd = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
threading.stack_size(65536)
go = threading.Event()
def read(at):
    go.wait()
    os.pread(fd, 1, at)
for at in range(0, os.fstat(fd).st_size, 4096):
    threading.Thread(target=read, args=(at,), daemon=True).start()
print("ready", flush=True)
sys.stdin.readline()
go.set()
sys.stdin.readline()
os._exit(0)
"""


def title(mode):
    return "%s %s %s %d %s" % mode


def chosen():
    words = os.environ.get("HANG", "").split()
    if words == ["all"]:
        return MODES
    return [m for m in MODES if set(words) <= set(title(m).split())] if words else BRIEF


def middle_of(program, section):
    """Its place in the file."""
    text = subprocess.run(["readelf", "-SW", program], capture_output=True, text=True).stdout
    words = next(line.split("]")[1].split() for line in text.splitlines() if section + " " in line)
    return int(words[3], 16) + int(words[4], 16) // 2


class Attack:
    """The programs wait, idle, until go(). However this test ends, the end of the pipe ends them."""

    def __init__(self, where, style, how, count, silent):
        self.dir = os.path.join(lib.scratch(), "mounts")
        os.mkdir(self.dir)
        if where == "user":
            os.chown(self.dir, NOBODY, NOBODY)
        program = os.path.join(work, "hang")
        request = {"lines": "read@%d" % middle_of(program, ".debug_info"), "shared": "read"}.get(silent, silent)
        argv = [program, where, style, how, str(count), request, self.dir, program, os.path.join(work, "fuse")]
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if where == "user" else {}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True, **user)
        lib.at_end(self.end)
        self.ready = self.said() == "ready"
        self.readers = self.ready and silent == "shared" and self.start_readers()

    def start_readers(self):
        pipe = subprocess.PIPE
        p = lib.start(["python3", "-c", READERS, os.path.join(self.dir, "merged", "file0")], stdin=pipe, stdout=pipe,
                      stderr=subprocess.DEVNULL, text=True)
        p.stdout.readline()
        return p

    def said(self):
        """Its next line; empty when it ended, or after 15 s."""
        return self.process.stdout.readline().strip() if select.select([self.process.stdout], [], [], 15)[0] else ""

    def go(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        silent = self.said() == "silent"
        if self.readers:
            self.readers.stdin.write("go\n")
            self.readers.stdin.flush()
        return silent

    def why_not(self):
        self.end()
        return self.process.stderr.read().strip()

    def end(self):
        if not self.process.stdin.closed:
            self.process.stdin.close()
        if lib.wait_for(lambda: self.process.poll() is not None, 5) is False:
            self.process.kill() # the server dies with it
            self.process.wait()
        for name in ("merged", "fuse"): # where root mounted and was killed
            path = os.path.join(self.dir, name)
            while os.path.isdir(self.dir) and path in mounted():
                subprocess.run(["umount", "-l", path])


def mounted():
    with open("/proc/self/mounts") as f:
        return [line.split()[1] for line in f]


def is_attacker(sample):
    return lib.executable(sample) == "hang" or lib.executable(sample).startswith("file")


def children(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            return [int(c) for c in f.read().split()]
    except OSError:
        return []


class Watch:
    """What is seen of the daemon while the file system is silent."""

    def __init__(self, d, seconds):
        self.slowest, self.wrong, self.most, self.pids = 0, "", 0, {d.pid}
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.slowest <= STATUS_S:
            began = time.monotonic()
            status = d.status(timeout=2 * STATUS_S)
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.wrong = self.wrong or (lib.imbalance(status) if status else "no status")
            now = children(d.pid)
            self.most = max(self.most, len(now) + 1)
            self.pids.update(now)
            time.sleep(max(0, min(0.25, end - time.monotonic())))
        time.sleep(max(0, end - time.monotonic()))


def stops(what, d):
    """While the file system is still silent."""
    began = time.monotonic()
    d.process.send_signal(signal.SIGTERM)
    lib.wait_for(lambda: d.process.poll() is not None, STOP_S)
    return lib.ok(d.process.poll() == 0, "%s: the daemon stops within %d s (%.1f s, %s)" % (
        what, STOP_S, time.monotonic() - began, d.process.poll()))


def left(pids):
    """Those that are still processes of the daemon's."""
    def is_ours(pid):
        try:
            return os.readlink("/proc/%d/exe" % pid).startswith(os.path.join(lib.BUILD, "otprof")) and lib.alive(pid)
        except OSError:
            return False
    return [pid for pid in pids if is_ours(pid)]


def check(mode):
    what = title(mode)
    attack = Attack(*mode)
    if not attack.ready:
        why = attack.why_not()
        if attack.process.returncode == lib.SKIP:
            lib.skip(what, why)
        else:
            lib.ok(False, "%s: its programs are ready: %s" % (what, why))
        return
    sink = lib.Sink()
    lines = mode[4] == "lines"
    hz = RATES[mode[0]]
    cache = os.path.join(lib.scratch(), "symbols")
    d = lib.Otprofd(hz=hz, exporters={"sink": {"endpoint": sink.url}}, profile=bystander.PROFILE,
                    symbols={"cache_dir": cache}, targets=ONLY if lines else {})
    lib.at_end(attack.end) # before the daemon's own end, which would wait for it
    early = bystander.start(work, "early", "shares")
    lib.ok(lib.wait_for(lambda: bystander.named_at(sink, early, lines), 15, 0.3), "%s: the bystander is named before" % what)
    lib.ok(attack.go(), "%s: the file system is silent" % what)
    began = time.time()
    time.sleep(1)
    late = bystander.start(work, "late", "shares-static-pie") # nothing is known of it yet
    patience = 0 if mode[0] != "host" else INDEXER_S if lines else ABANDONED_S
    watch = Watch(d, WATCH_S + patience)
    seconds, until = {p: bystander.cpu_seconds(p) for p in (early, late)}, time.time()
    stopped = stops(what, d)
    attack.end()
    bystander.is_on_time(what, sink, began, until, bystander.GAP_S + patience)
    bystander.is_named(what, sink, late, bystander.NAMED_S + patience, lines)
    last = d.last_status() if stopped else None
    for p in (early, late):
        bystander.is_complete(what, sink, p, seconds[p] * hz, bystander.uncounted(last) if last else 0)
        lib.end(p)
    if last:
        lib.check_ledger(last, what, stopped=True)
    is_bounded(what, d, sink, watch)
    sink.sink.stop()


def is_bounded(what, d, sink, watch):
    lib.ok(watch.slowest <= STATUS_S, "%s: status answers within %d s (%.2f s)" % (what, STATUS_S, watch.slowest))
    lib.ok(not watch.wrong, "%s: the ledger balances %s" % (what, watch.wrong))
    lib.ok(watch.most <= PROCESSES_MAX, "%s: hung processes are bounded (%d processes)" % (what, watch.most))
    taken = sum(s.count for _, samples in bystander.requests(sink) for s in samples if is_attacker(s))
    lib.ok(taken > 0, "%s: its programs are sampled too (%d)" % (what, taken))
    lib.wait_for(lambda: not left(watch.pids), 5)
    lib.ok(not left(watch.pids), "%s: no process is left when the file system is gone %s" % (
        what, left(watch.pids) or ""))
    lib.end(d.process)


work = lib.scratch()
shutil.copy(os.path.join(lib.PROGRAMS, "hang"), work)
try:
    # /dev/fuse may be for root only.
    info = os.stat("/dev/fuse")
    os.mknod(os.path.join(work, "fuse"), info.st_mode, info.st_rdev)
    os.chmod(os.path.join(work, "fuse"), 0o666)
except OSError as e:
    lib.need(False, "a file system that stops answering", "no device of FUSE: %s" % e)
for mode in chosen():
    check(mode)
lib.finish()

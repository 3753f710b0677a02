# SPDX-License-Identifier: Apache-2.0
"""otprof explain beside a daemon that runs: of a program with symbols and one
without, of processes that are not selected, gone or never were; clients that
ask nothing or nonsense; who may ask. And a service manager that does not read."""
import json
import os
import shutil
import socket
import subprocess
import time

import lib

PID_MAX = 4194304
USER = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]


def explain(d, *args, prefix=(), otprof=lib.OTPROF):
    p = subprocess.run(list(prefix) + [otprof, "explain", "--runtime-dir", d.runtime] + [str(a) for a in args],
                       capture_output=True, text=True, timeout=30)
    return p.returncode, p.stdout, p.stderr


def told(d, pid):
    code, out, err = explain(d, "--json", pid)
    return json.loads(out) if code == 0 else {"error": err}


def file_of(answer, end):
    return next((f for f in answer.get("process", {}).get("files", []) if f["path"].endswith(end)), {})


def is_sampled(d, pid):
    p = told(d, pid).get("process", {})
    index = [f["names"]["index"] for f in p.get("files", []) if "names" in f and f["kind"] == "file"]
    return p.get("stacks", {}).get("stacks", 0) > 20 and index and "being made" not in index and "not asked" not in index


def with_symbols(d, pid):
    a = told(d, pid)
    p, f = a.get("process", {}), file_of(a, "/shares")
    stacks = p.get("stacks", {"stacks": 0, "complete": 0})
    lib.ok(a.get("selected") and a.get("running"), "a process that is sampled is selected")
    lib.ok(stacks["complete"] >= 0.99 * stacks["stacks"] > 0, "its stacks are whole (%(complete)d of %(stacks)d)" % stacks)
    lib.ok(p["plan"]["stack_bytes"] >= 512 and p["plan"]["stack_max_bytes"] >= p["plan"]["stack_bytes"],
           "the plan in force is told (%d bytes)" % p["plan"]["stack_bytes"])
    lib.ok(f.get("unwind", {}).get("by") == "eh_frame_hdr", "its file is unwound through the sorted table")
    lib.ok(f["names"]["dwarf"] and f["names"]["index"] == "ready" and not f["missing"],
           "its names come from debug information, and nothing is missing")
    lib.ok(p["workload"] and p["workload"][0]["named_by"]["dwarf"] > 0, "frames are counted by where names come from")
    ident = subprocess.run(["readelf", "-n", os.path.join(lib.PROGRAMS, "shares")], capture_output=True, text=True).stdout
    lib.ok(f["build_id"] and f["build_id"] in ident, "its build-id is the file's")
    code, out, err = explain(d, pid)
    lib.ok(code == 0 and not err and "debug information: functions, inlined calls and lines" in out and
           "through its sorted table" in out, "the page says the same in words")


def unknown_version(d):
    """Of a runtime that nobody knows yet: native stacks, one line in the log, the same words in explain."""
    pids = [lib.program("tomorrow-static", 120, stdout=subprocess.DEVNULL).pid for _ in range(2)]

    def told_of(pid):
        runtimes = told(d, pid).get("process", {}).get("runtimes", [])
        return bool(runtimes) and "Ruby 9.9.9 is not known" in json.dumps(runtimes)

    lib.ok(lib.wait_for(lambda: all(told_of(p) for p in pids), 60),
           "the version of a runtime that is not known is told: %s" % told(d, pids[0]).get("process", {}).get("runtimes"))
    lines = [line for line in d.log_text().splitlines() if "Ruby 9.9.9 is not known" in line]
    lib.ok(len(lines) == 1, "the log has one line of it, however many processes run it: %s" % lines[:3])
    refused = d.status()["quality"]["interpreted"]["runtimes_refused"]
    lib.ok(refused >= 2, "each of them is counted: %d" % refused)


def without_symbols(d, pid):
    f = file_of(told(d, pid), "/shares-stripped")
    lib.ok(f.get("missing", "").startswith("names"), "of a stripped program is said what is missing (%s)" % f.get("missing"))
    lib.ok(not f["names"]["symtab"] and not f["names"]["dwarf"], "and that it has neither symbols nor debug information")
    lib.ok("package" not in f, "no package is named for what none has brought")


def packaged(d, pids):
    """Programs of the distribution, the first file of them without its debug package."""
    if not shutil.which("dpkg-query"):
        lib.skip("the debug package is named", "there is no dpkg here")
        return
    found = ((a, f) for a in map(lambda p: told(d, p), pids) for f in a["process"]["files"] if f.get("package"))
    a, f = next(found, (None, None))
    if not f:
        lib.skip("the debug package is named", "all that these programs run has its debug package here")
        return
    owner = subprocess.run("dpkg-query -S %s || dpkg-query -S %s" % (f["path"], f["path"].replace("/usr", "", 1)), shell=True,
                           capture_output=True, text=True).stdout.split(":")[0]
    lib.ok(f["package"] == owner, "the package is the one that dpkg names (%s)" % owner)
    lib.ok(f["debug_package"] in a["process"]["advice"]["packages"], "and its debug package is advised (%s)" % f["debug_package"])


def refusals(d, gone):
    code, _, err = explain(d, PID_MAX - 1)
    lib.ok(code == 1 and "no such process" in err, "a pid that nobody has is refused with 1")
    code, _, err = explain(d, gone)
    lib.ok(code == 1 and ("it has ended" in err or "no such process" in err), "so is one that has ended and is not collected yet")
    code, _, err = explain(d, 2)
    lib.ok(code == 1 and "kernel thread" in err or "not known" in err or "no such" in err, "so is a kernel thread")
    for args in ([], ["x"], ["0"], ["1", "2"], ["--nonsense"]):
        code, _, err = explain(d, *args)
        lib.ok(code == 2 and "--help" in err, "wrong usage is 2 (%s)" % " ".join(args))
    p = subprocess.run([lib.OTPROF, "explain", "--runtime-dir", "/nonexistent", "1"], capture_output=True, text=True)
    lib.ok(p.returncode == 3 and "Is otprofd running?" in p.stderr, "without a daemon it is 3")
    # Where an ordinary user may run it, wherever the build lies.
    tool = os.path.join(d.dir, "otprof")
    shutil.copy(lib.OTPROF, tool)
    code, _, err = explain(d, os.getpid(), prefix=USER, otprof=tool)
    lib.ok(code == 1 and "Only root may ask" in err, "an ordinary user is refused, and told why (%d)" % code)


def ask(d, line):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(10)
        s.connect(os.path.join(d.runtime, "query.sock"))
        s.sendall(line)
        answer = b""
        while True:
            part = s.recv(65536)
            if not part:
                return answer
            answer += part


def bad_clients(d, pid):
    # The last one is as long as a line may be, and has no end.
    for line in (b"\n", b"status\n", b"explain 0\n", b"explain 1\nexplain 2\n", b"x" * 2064):
        answer = ask(d, line)
        lib.ok(answer and "error" in json.loads(answer), "%r is answered by an error" % line[:20])
    silent = []
    for _ in range(6):
        s = socket.socket(socket.AF_UNIX)
        s.connect(os.path.join(d.runtime, "query.sock"))
        silent.append(s)
    before = time.monotonic()
    lib.ok(d.status() and time.monotonic() - before < 1, "clients that ask nothing do not stop the monitor")
    # Two rounds of them, each with its deadline; who asks then is served.
    time.sleep(11)
    before = time.monotonic()
    lib.ok("process" in told(d, pid), "and are sent away after a while (%.1f s)" % (time.monotonic() - before))
    for s in silent:
        s.close()


def root_that_is_silent(d):
    """A container whose debug directory never answers: the rest is told all the same, and soon."""
    root = lib.scratch()
    usr = os.path.join(root, "usr/lib")
    os.makedirs(usr)
    os.symlink("fuse", usr + "/debug") # where the file system is mounted
    shutil.copy(os.path.join(lib.PROGRAMS, "shares-static"), root + "/shares")
    server = lib.start([os.path.join(lib.PROGRAMS, "hang"), "host", "fuse", "none", "1", "all", usr, root + "/shares",
                        "/dev/fuse"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if server.stdout.readline().strip() != "ready":
        lib.skip("a root that never answers", server.stderr.read().strip())
        return
    lib.at_end(subprocess.run, ["umount", "-l", usr + "/fuse"])
    p = lib.start(["chroot", root, "/shares", "60"], stdout=subprocess.DEVNULL)
    lib.wait_for(lambda: told(d, p.pid).get("process", {}).get("stacks", {}).get("stacks", 0) > 20, 20, 0.3)
    server.stdin.write("go\n")
    server.stdin.flush()
    lib.ok(server.stdout.readline().strip() == "silent", "the file system is silent")
    before = time.monotonic()
    try:
        code, out, err = explain(d, p.pid)
    except subprocess.TimeoutExpired:
        code, out, err = -1, "", "no answer"
    lib.ok(code == 0 and "Stacks" in out and "its root cannot be read" in err and time.monotonic() - before < 15,
           "a root that never answers is given up (%.1f s, %d: %s)" % (time.monotonic() - before, code, err.strip()))
    lib.end(server)
    lib.end(p)


def not_selected(busy):
    d = lib.Otprofd(hz=97, targets={"include": "exe:no-such-program"})
    time.sleep(1)
    code, out, err = explain(d, busy.pid)
    lib.ok((code == 0 and "no: [targets] leaves it out" in out) or (code == 1 and "[targets] leaves it out" in err),
           "a process that is not selected is said to be not (%d)" % code)
    d.stop()
    d = lib.Otprofd(hz=97, targets={"include": "exe:shares"})
    lib.wait_for(lambda: told(d, busy.pid).get("process", {}).get("stacks", {}).get("stacks", 0), 5)
    lib.ok(told(d, busy.pid).get("selected") is True, "one that is selected by its executable is said to be")
    lib.ok(told(d, os.getpid()).get("selected") is not True, "while others are not")
    d.stop()


def manager_that_does_not_read():
    path = os.path.join(lib.scratch(), "notify")
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(path)
    full = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    full.setblocking(False)
    try:
        while True:
            full.sendto(b"x", path)
    except BlockingIOError:
        pass
    os.environ.update(NOTIFY_SOCKET=path, WATCHDOG_USEC="400000")
    try:
        d = lib.Otprofd(hz=97)
    finally:
        del os.environ["NOTIFY_SOCKET"], os.environ["WATCHDOG_USEC"]
    time.sleep(2)
    lib.ok(d.status()["ledger"]["taken"] > 0, "a service manager that does not read stops nothing")
    manager.settimeout(0.1)
    heard = []
    deadline = time.monotonic() + 4
    while time.monotonic() < deadline and not any(b"READY=1" in h for h in heard):
        try:
            heard.append(manager.recv(4096))
        except socket.timeout:
            pass
    lib.ok(any(b"READY=1" in h for h in heard), "and hears that we are ready when it reads again")
    d.stop()


def main():
    busy = lib.program("shares", 120, stdout=subprocess.DEVNULL)
    stripped = lib.program("shares-stripped", 120, stdout=subprocess.DEVNULL)
    distributed = [lib.start(["python3", "-c", "while True: pass"])]
    if shutil.which("openssl"):
        distributed.append(lib.start(["openssl", "speed", "-seconds", "60", "sha256"], stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL))
    gone = lib.program("shares", 1, stdout=subprocess.DEVNULL) # not collected by us: a zombie
    d = lib.Otprofd(hz=97)
    for p in [busy, stripped] + distributed:
        lib.wait_for(lambda: is_sampled(d, p.pid), 20, 0.3)
    lib.wait_for(lambda: not lib.alive(gone.pid), 20)
    with_symbols(d, busy.pid)
    without_symbols(d, stripped.pid)
    if lib.SOURCE != "perf":
        unknown_version(d)
    packaged(d, [p.pid for p in distributed])
    refusals(d, gone.pid)
    bad_clients(d, busy.pid)
    root_that_is_silent(d)
    lib.end(stripped)
    for p in distributed:
        lib.end(p)
    lib.check_ledger(d.stop(), "explain", stopped=True)
    if not lib.BRIEF:
        not_selected(busy)
        manager_that_does_not_read()
    lib.end(busy)
    lib.finish()


main()

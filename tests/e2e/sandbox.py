# SPDX-License-Identifier: Apache-2.0
"""What the workers cannot do, tried from inside them: system calls are made in
their name by ptrace, before and after a restart. A call that is answered by an
error, or that ends the worker, counts as refused."""
import ctypes
import errno
import os
import platform
import signal
import socket
import time

import lib

lib.need(platform.machine() == "x86_64", "system calls in a worker's name", "written for x86-64")

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
ATTACH, DETACH, STEP, GETREGS, SETREGS, CONT = 16, 17, 9, 12, 13, 7
NAMES = ("r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss "
         "fs_base gs_base ds es fs gs").split()


class Regs(ctypes.Structure):
    _fields_ = [(n, ctypes.c_ulonglong) for n in NAMES]


SENDMSG, SENDMMSG, PIDFD_GETFD = 46, 307, 438
READ, OPEN, SOCKET, CONNECT, FORK, EXECVE, KILL, PTRACE, OPENAT, MEMFD, BPF = 0, 2, 41, 42, 57, 59, 62, 101, 257, 319, 321
IOCTL, MKDIR, PROCESS_VM_READV, PERF_EVENT_OPEN, MOUNT, SETUID, IO_URING = 16, 83, 310, 298, 165, 105, 425
AT_FDCWD = 2**64 - 100


def ptrace(request, pid, data=0):
    result = libc.ptrace(request, pid, None, data)
    if result < 0:
        raise OSError(ctypes.get_errno(), "ptrace %d" % request)


def stopped(pid):
    _, status = os.waitpid(pid, 0x40000000) # __WALL
    return os.WIFSTOPPED(status)


def at_system_call(pid):
    """Attached, with the instruction pointer just behind a syscall instruction."""
    for _ in range(200):
        ptrace(ATTACH, pid)
        if not stopped(pid):
            return None
        regs = Regs()
        ptrace(GETREGS, pid, ctypes.byref(regs))
        with open("/proc/%d/mem" % pid, "rb") as mem:
            mem.seek(regs.rip - 2)
            if mem.read(2) == b"\x0f\x05":
                return regs
        ptrace(DETACH, pid)
        time.sleep(0.01)
    return None


def call(pid, number, *args):
    """The result of a system call made by pid, or "killed". Text arguments are put below its stack."""
    saved = at_system_call(pid)
    if saved is None:
        return None
    regs = Regs.from_buffer_copy(saved)
    at = (saved.rsp - 8192) & ~15
    values = []
    with open("/proc/%d/mem" % pid, "r+b", buffering=0) as mem:
        for a in args:
            if isinstance(a, (str, bytes)):
                raw = a.encode() + b"\0" if isinstance(a, str) else a
                mem.seek(at)
                mem.write(raw)
                values.append(at)
                at += (len(raw) + 15) & ~15
            else:
                values.append(a)
    for name, value in zip(("rdi", "rsi", "rdx", "r10", "r8", "r9"), values + [0] * 6):
        setattr(regs, name, value % 2**64)
    regs.rax, regs.orig_rax, regs.rip = number, 2**64 - 1, saved.rip - 2
    ptrace(SETREGS, pid, ctypes.byref(regs))
    ptrace(STEP, pid)
    _, status = os.waitpid(pid, 0x40000000)
    if not os.WIFSTOPPED(status):
        return "killed"
    if os.WSTOPSIG(status) == signal.SIGSYS:
        ptrace(DETACH, pid, signal.SIGSYS)
        return "killed"
    ptrace(GETREGS, pid, ctypes.byref(regs))
    result = ctypes.c_long(regs.rax).value
    ptrace(SETREGS, pid, ctypes.byref(saved))
    ptrace(DETACH, pid)
    return result


def worker(role):
    """The pid of a worker that is up and whose sandbox is closed."""
    def up():
        s = d.status()
        pid = decoder() if role == "decoder" else s and s["workers"][role]["pid"]
        return pid if pid and lib.alive(pid) and field(pid, "Seccomp") == "2" else 0
    return lib.wait_for(up, 40, 0.1)


def field(pid, key):
    try:
        with open("/proc/%d/status" % pid) as f:
            return next((line.split(":", 1)[1].strip() for line in f if line.startswith(key + ":")), "")
    except OSError:
        return ""


def children(name):
    with open("/proc/%d/task/%d/children" % (d.pid, d.pid)) as f:
        return [c for c in map(int, f.read().split()) if field(c, "Name") == name]


def openers():
    return children("otprof-opener")


def decoder():
    """The newest, which holds the memory of a process: it ends soon, so each call is made in another one."""
    ready = [c for c in children("otprof-decoder") if field(c, "Seccomp") == "2" and lib.alive(c)]
    return ready[-1] if ready else 0


def refused(role, what, number, *args):
    result = call(worker(role), number, *args)
    text = result if not isinstance(result, int) else "ok" if result >= 0 else os.strerror(-result)
    lib.ok(result == "killed" or isinstance(result, int) and result < 0, "%s cannot %s (%s)" % (role, what, text))


def filtered(role, what, number, *args):
    """By the filter: not by what the kernel says of this descriptor or protocol."""
    result = call(worker(role), number, *args)
    lib.ok(result in ("killed", -errno.EPERM), "%s may not %s (%s)" % (role, what, result))


def limits(role):
    """Bytes of RLIMIT_DATA and RLIMIT_FSIZE; unlimited is much."""
    with open("/proc/%d/limits" % worker(role)) as f:
        rows = {line[:25].strip(): line[25:].split()[0] for line in f}
    return {short: int(rows[name].replace("unlimited", str(1 << 62)))
            for short, name in (("data", "Max data size"), ("file", "Max file size"))}


def environment(pid):
    with open("/proc/%d/environ" % pid, "rb") as f:
        return dict(v.split("=", 1) for v in f.read().decode().split("\0") if v)


def standing(role, generation):
    pid = worker(role)
    zero = "0" * 16
    lib.ok(field(pid, "CapEff") == zero and field(pid, "CapPrm") == zero, "%s%s has no capability" % (role, generation))
    lib.ok(field(pid, "NoNewPrivs") == "1" and field(pid, "Seccomp") == "2", "%s%s is under a filter for good" % (role, generation))
    lib.ok(field(pid, "Uid").split()[0] != "0", "%s%s runs as user %s" % (role, generation, field(pid, "Uid").split()[0]))
    return pid


def engine():
    refused("engine", "open /etc/passwd", OPENAT, AT_FDCWD, "/etc/passwd", 0)
    refused("engine", "open it the old way", OPEN, "/etc/passwd", 0)
    refused("engine", "create a file", OPENAT, AT_FDCWD, "/tmp/otprof-e2e-engine", os.O_CREAT | os.O_RDWR, 0o600)
    for name, family in (("a TCP socket", 2), ("a Unix socket", 1), ("a netlink socket", 16)):
        refused("engine", "make " + name, SOCKET, family, 1, 0)


    lib.ok(limits("engine")["data"] <= 1 << 30 and limits("engine")["file"] <= 1 << 30,
           "the engine's memory and files are bounded: %s" % limits("engine"))


def net():
    # Of netlink only routes, of terminals and raw sockets nothing.
    for name, args in (("a socket of the audit", (16, 3, 9)), ("a socket of netfilter", (16, 3, 12)),
                       ("an SCTP socket", (2, 1, 132))):
        filtered("net", "make " + name, SOCKET, *args)
    for name, request in (("type into a terminal", 0x5412), ("paste into it", 0x541c), ("ask for its state", 0x5401)):
        filtered("net", name, IOCTL, 2, request, "x")
    lib.ok(call(worker("net"), IOCTL, 0, 0x541b, b"\0" * 8) != -1, "net can ask how much a socket holds")
    lib.ok(limits("net")["data"] <= 2 << 30 and limits("net")["file"] <= 1 << 30,
           "net's memory and files are bounded: %s" % limits("net"))
    for path in ("/etc/shadow", "/etc/passwd", "/proc/1/status", "/proc/self/mem", "/home", "/root", "/usr/bin",
                 "/../etc/shadow", "/dev/mem", lib.HERE):
        refused("net", "open " + path, OPENAT, AT_FDCWD, path, 0)
    refused("net", "kill the monitor", KILL, d.pid, 9)


def hub():
    """It accepts connections to its listener, and opens nothing."""
    for name, family in (("a TCP socket", 2), ("a Unix socket", 1), ("a netlink socket", 16)):
        filtered("hub", "make " + name, SOCKET, family, 1, 0)
    for path in ("/etc/passwd", "/proc/self/mem", "/"):
        filtered("hub", "open " + path, OPENAT, AT_FDCWD, path, 0)
    filtered("hub", "connect", CONNECT, 0, b"\x02\x00\x00\x50\x7f\x00\x00\x01" + b"\0" * 8, 16)
    filtered("hub", "ask for a terminal's state", IOCTL, 2, 0x5401, "x")
    filtered("hub", "kill the monitor", KILL, d.pid, 9)
    lib.ok(limits("hub")["data"] <= 4 << 30 and limits("hub")["file"] <= 1 << 30,
           "the hub's memory and files are bounded: %s" % limits("hub"))
    if os.path.exists("/proc/%d/root" % worker("hub")):
        lib.ok(not os.listdir("/proc/%d/root" % worker("hub")), "the hub's root is empty")


def decoders():
    """It has been given the memory of others' processes: nothing may leave it but by its two sockets."""
    for name, args in (("open /etc/passwd", (OPENAT, AT_FDCWD, "/etc/passwd", 0)), ("make a TCP socket", (SOCKET, 2, 1, 0)),
                       ("make a Unix socket", (SOCKET, 1, 1, 0)), ("make a file in memory", (MEMFD, "x", 0)),
                       ("read another process' memory", (PROCESS_VM_READV, d.pid, 0, 0, 0, 0, 0)),
                       ("pass a descriptor", (SENDMSG, 0, 0, 0)), ("pass several", (SENDMMSG, 0, 0, 1, 0)),
                       ("take a descriptor of another", (PIDFD_GETFD, 0, 0, 0)), ("start a process", (FORK,)),
                       ("run a program", (EXECVE, "/bin/true", 0, 0)), ("kill the monitor", (KILL, d.pid, 9)),
                       ("trace the engine", (PTRACE, ATTACH, worker("engine"), 0, 0)), ("become root", (SETUID, 0)),
                       ("load a BPF program", (BPF, 5, 0, 0)), ("set up an io_uring", (IO_URING, 8, 0))):
        filtered("decoder", name, *args)


# Each of these may end the worker, which then comes back after a pause that grows: once is enough.
DEADLY = (
    ("engine", "run a program", EXECVE, "/bin/true", 0, 0),
    ("engine", "trace net", PTRACE, ATTACH, "net", 0, 0),
    ("engine", "read net's memory", PROCESS_VM_READV, "net", 0, 0, 0, 0, 0),
    ("net", "run a program", EXECVE, "/bin/true", 0, 0),
    ("net", "trace the engine", PTRACE, ATTACH, "engine", 0, 0),
    ("net", "mount", MOUNT, "none", "/", "tmpfs", 0, 0),
    ("net", "load a BPF program", BPF, 5, 0, 0),
    ("engine", "open a perf event", PERF_EVENT_OPEN, 0, 0, -1, -1, 0),
    ("engine", "become root", SETUID, 0),
    ("hub", "run a program", EXECVE, "/bin/true", 0, 0),
    ("hub", "trace the engine", PTRACE, ATTACH, "engine", 0, 0),
    ("engine", "set up an io_uring", IO_URING, 8, 0),
)


def deadly(role, what, number, *args):
    refused(role, what, number, *[worker(a) if a in ("engine", "net") else a for a in args])


# Of the environment what is theirs to know, however long it is; of the rest nothing.
os.environ.update(no_proxy="h.example," * 300, OTPROF_TEST_SECRET="x")
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
d = lib.Otprofd(hz=97, exporters={"away": {"endpoint": "http://127.0.0.1:9"}, "files": {"endpoint": "file://FILES"}},
                hub={"listen": "127.0.0.1:%d" % port}, runtimes={"walk": "yes"})
uids = {field(standing(role, ""), "Uid") for role in ("engine", "net", "hub")}
lib.ok(len(uids) == 3, "engine, net and hub have different users")
given = environment(worker("net"))
lib.ok(given.get("no_proxy") == os.environ["no_proxy"] and "OTPROF_TEST_SECRET" not in given,
       "net knows the proxies' variables and no others: %s" % sorted(given))
others = [pid for pid in lib.wait_for(lambda: openers(), 10) or [] if lib.alive(pid)] + [worker("engine"), worker("hub")]
lib.ok(len(others) > 1 and not any("_proxy" in name.lower() for pid in others for name in environment(pid)),
       "engine and openers know no proxy, whose URL may hold a password (%d processes)" % len(others))
lib.ok(all(not 61184 <= int(field(pid, "Uid").split()[0]) <= 65519 for pid in others + [worker("net")] if field(pid, "Uid")),
       "no worker has an id of those that systemd gives to services")
if os.path.exists("/proc/%d/root" % worker("engine")):
    lib.ok(not os.listdir("/proc/%d/root" % worker("engine")), "the engine's root is empty")
for role, attempts in (("engine", engine), ("net", net), ("hub", hub)):
    attempts()
    pid = worker(role)
    if pid and lib.alive(pid):
        os.kill(pid, signal.SIGKILL)
        lib.wait_for(lambda: not lib.alive(pid))
    standing(role, ", restarted,")
    attempts()
for attempt in DEADLY:
    deadly(*attempt)
# New functions all the time: there is always a decoder that reads them.
source = "n = 0\nwhile True:\n n += 1\n exec('def f%d(x):\\n return sum(i * x for i in range(20000))\\nf%d(3)' % (n, n))"
interpreter = lib.start(["/usr/bin/python3", "-c", source]) if os.path.exists("/usr/bin/python3") else None
if interpreter and lib.SOURCE != "perf":
    standing("decoder", "")
    decoders()
    lib.end(interpreter)
else:
    lib.skip("what a decoder cannot do", "no python3, or a source that does not walk")
lib.check_ledger(d.stop(), "sandbox", stopped=True)
lib.finish()

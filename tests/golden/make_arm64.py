# SPDX-License-Identifier: Apache-2.0
"""Makes the arm64 golden cases on any machine: runs small programs under
qemu-aarch64, stops them with gdb, and writes what the sampler would have seen
there as a capture, and gdb's own stacks as what a replay must find.
    make_arm64.py [CASE...]
Needs gcc-aarch64-linux-gnu, qemu-user-static and gdb-multiarch (Debian).
Stops: at random moments, and at each instruction of the functions of a case,
so that prologues, epilogues and PLT entries are met as well.
Formats: userspace/daemon/engine/capture.h, userspace/process/host.h."""
import gzip
import json
import os
import random
import socket
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import elf64  # noqa: E402

SYSROOT = "/usr/aarch64-linux-gnu"
PAGE, PID, START_NS = 4096, 4000, 5_000_000_000
BATCH, SAMPLE, ANSWER, FILE, PAGES, FLUSH = 1, 2, 4, 5, 6, 8
OPEN_MAPPED, SCAN = 1, 5
FLAGS = "-std=gnu11 -D_GNU_SOURCE -O2 -fomit-frame-pointer -g0".split()
WORK = ["descend", "timed", "run_rounds", "work_half", ".plt"]
NO_TABLES = "-fno-asynchronous-unwind-tables -fno-unwind-tables -g".split() # -g: .debug_frame, for gdb alone
#       case: source, more flags, qemu's processor, functions looked into
CASES = {
    "shares": ("../programs/shares.c", [], "cortex-a72", WORK),
    "shares-static": ("../programs/shares.c", ["-static"], "cortex-a72", WORK + ["clock_gettime"]),
    # return addresses are signed while they lie on the stack
    "shares-signed": ("../programs/shares.c", ["-mbranch-protection=standard"], "max", WORK),
    "threads": ("threads_arm64.c", [], "cortex-a72", ["mix", "crowded", "sized", ".plt"]),
    "signals": ("signals_arm64.c", [], "cortex-a72", ["handler", "restorer", "inner"]),
    # read on to their return: frames of all kinds, with signed return addresses too
    "no-tables": ("../programs/shares.c", NO_TABLES, "cortex-a72", WORK),
    "no-tables-signed": ("../programs/shares.c", NO_TABLES + ["-mbranch-protection=standard"], "max", WORK),
    "no-tables-threads": ("threads_arm64.c", NO_TABLES, "cortex-a72", ["mix", "crowded", "sized"]),
    # a copy with pages that are not there, and one of the stack's outermost bytes
    "deep": ("deep_arm64.c", [], "cortex-a72", ["mix", "leaf", "sparse"]),
}
COPY = {"deep": 16384}
BASE = {"deep": 4096}


# --- the program, and gdb at it ---

def some(addresses):
    """Both ends of a function, and a few of what lies between."""
    middle = addresses[4:-4]
    return sorted(set(addresses[:4] + addresses[-4:] + random.sample(middle, min(len(middle), 4))))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def stops_of(program, case, processor, addresses, code, work):
    """What gdb_arm64.py found at each stop."""
    port, out = free_port(), os.path.join(work, "stops.json")
    name = "/opt/demo/" + os.path.basename(program)
    qemu = subprocess.Popen(["qemu-aarch64-static", "-L", SYSROOT, "-cpu", processor, "-g", str(port), "-0", name,
                             program, "3600"], env={}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        asked = {"port": port, "qemu": qemu.pid, "program": program, "addresses": addresses, "code": [code], "out": out,
                 "sysroot": SYSROOT, "copy": COPY.get(case, 8192), "base": BASE.get(case, 0)}
        subprocess.run(["gdb-multiarch", "-nx", "-batch", "-x", os.path.join(HERE, "gdb_arm64.py")], check=True,
                       env=dict(os.environ, OTP_ASKED=json.dumps(asked)), stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, timeout=900)
    finally:
        qemu.kill()
        qemu.wait()
    with open(out) as f:
        return json.load(f)


# --- what the process has mapped ---

class Mapped:
    """One file in the process: its code, and the pages of it that a replay reads."""

    def __init__(self, number, path, shown, base):
        self.elf, self.shown, self.base, self.ino = elf64.File(path), shown, base, 100 + number
        self.offset, self.start, self.end = self.elf.code(base)
        self.points = set()

    def add_point(self, address):
        self.points.add(address - self.base)

    def has(self, address):
        return self.start <= address < self.end

    def line(self):
        return "%x-%x r-xp %08x 08:01 %d %s\n" % (self.start, self.end, self.offset, self.ino, self.shown)

    def name(self, address, caller):
        vaddr = address - self.base - caller
        return self.elf.names(vaddr), "%s+0x%x" % (os.path.basename(self.shown), self.elf.function_start(vaddr))


def mapped_files(found, program):
    files = [Mapped(0, program, "/opt/demo/" + os.path.basename(program), found["base"])]
    for number, (path, text) in enumerate(sorted(found["libraries"].items())):
        base = text[0] - elf64.File(path).sections[".text"][3]
        files.append(Mapped(number + 1, path, path.replace(SYSROOT, ""), base))
    return files


def file_at(files, address):
    return next((f for f in files if f.has(address)), None)


# --- the capture ---

def record(kind, payload):
    return struct.pack("<II", kind, len(payload)) + payload + bytes(-len(payload) % 8)


def kept(word, stop, files):
    """As a capture keeps it: what leads into code or into the stack. A signed address is one all the same."""
    address = word & (1 << 48) - 1
    if stop["sp"] - 128 <= word < stop["sp"] + (1 << 19):
        return word
    f = file_at(files, address)
    if not f:
        return 0
    f.add_point(address)
    return word


def copied(kind, stop, files, at, raw):
    """A section of stack bytes."""
    words = [kept(w, stop, files) for w in struct.unpack("<%dQ" % (len(raw) // 8), raw)]
    return struct.pack("<HHIQ%dQ" % len(words), kind, 0, 8 + len(words) * 8, at, *words)


def has_holes(raw):
    return any(not any(raw[i:i + PAGE]) for i in range(0, len(raw) - PAGE, PAGE))


def sample(number, stop, files, comm):
    registers = [kept(r, stop, files) for r in stop["registers"]]
    raw, base = bytes.fromhex(stop["stack"]), bytes.fromhex(stop["base"])
    body = struct.pack("<HHIQ33Q", 1, 0, 34 * 8, (1 << 33) - 1, *registers)
    if base:
        body += copied(8, stop, files, stop["stack_end"] - len(base), base)
    body += copied(3, stop, files, stop["stack_addr"], raw)
    size = COPY.get(comm, 8192)
    mode = (1 << 5 if len(raw) < size else 0) | (1 << 9 if has_holes(raw) else 0)  # OTP_MODE_SHORT, OTP_MODE_HOLES
    head = struct.pack("<HHIQQIIIIQQQQ16sIIIHHQ", 1, 0, 112 + len(body), START_NS * 2 + number * 10_000_000, number, 0,
                       PID, PID, 0, START_NS, 1, 1, 0, comm.encode()[:15], mode, size, 1, 2, 3 if base else 2,
                       stop["stack_end"] if base else 0)
    return record(SAMPLE, head + body)


def answer(kind, pid, start, end, path, number, data):
    return record(ANSWER, struct.pack("<IIQQiIII", kind, pid, start, end, 0, len(path), number, len(data)) + path + data)


def scan(files, comm):
    exe = files[0].shown.encode()
    status = "Name:\t%s\nTgid:\t%d\nPid:\t%d\nPPid:\t1\nNSpid:\t%d\n" % (comm, PID, PID, PID)
    texts = [exe, exe + b"\0", b"0::/\n", b"", status.encode()]
    identity = struct.pack("<QI5I2I", START_NS, 1, *(len(t) for t in texts), 0, 0)
    identity += bytes(-len(identity) % 8) + b"".join(texts)
    maps = "".join(f.line() for f in sorted(files, key=lambda f: f.start)).encode()
    data = struct.pack("<IIII", PID, len(identity), len(maps), 0) + identity + maps
    return answer(SCAN, 0, 0, 0, b"", 0, data + bytes(-len(data) % 8))


def file_records(number, f):
    path, dev = f.shown.encode(), os.makedev(8, 1)
    out = record(FILE, struct.pack("<IIQQQQ", number, len(path), dev, f.ino, len(f.elf.data), START_NS) + path)
    out += answer(OPEN_MAPPED, PID, f.start, f.end, path, number, b"")
    for offset in sorted(f.elf.pages(f.points)):
        data = f.elf.data[offset:offset + PAGE]
        out += record(PAGES, struct.pack("<QQQII", dev, f.ino, offset, len(data), 0) + data)
    return out


def capture(stops, files, comm):
    now = START_NS * 2 + 1_000_000_000
    samples = [sample(i + 1, s, files, comm) for i, s in enumerate(stops)]
    used = [f for f in files if f.points]
    return b"".join([struct.pack("<8sIIQQ", b"OTPCAP01", 1, 0, 10_309_278, 1_795_000_000_000_000_000), scan(files, comm)] +
                    [file_records(i + 1, f) for i, f in enumerate(used)] +
                    [record(BATCH, struct.pack("<Q", START_NS * 2))] + samples + [record(FLUSH, struct.pack("<Q", now))])


# --- what gdb says ---

def frame_name(files, pc, name, exact):
    """Of a function's names gdb knows one; shown is the plainest."""
    f = file_at(files, pc)
    if not f:
        return hex(pc)
    names, fallback = f.name(pc, 0 if exact else 1)
    if name and name.endswith("@plt"):
        return name
    if names and name not in names:
        raise SystemExit("gdb calls %x %s, its file %s" % (pc, name, names))
    return min(names, key=len) if names else fallback


def stack_line(files, stop, comm):
    frames, exact = [], True
    for pc, name, kind in stop["frames"]:
        frames.append(frame_name(files, pc, name, exact or kind == "signal"))
        exact = kind == "signal"
    return ";".join([comm] + frames[::-1])


def make(case):
    source, flags, processor, functions = CASES[case]
    with tempfile.TemporaryDirectory() as work:
        program = os.path.join(work, case)
        subprocess.run(["aarch64-linux-gnu-gcc", *FLAGS, *flags, "-o", program, os.path.join(HERE, source)], check=True)
        if NO_TABLES[0] in flags:
            subprocess.run(["aarch64-linux-gnu-objcopy", "--strip-debug", "--keep-section=.debug_frame", program], check=True)
        elf = elf64.File(program)
        addresses = [a for f in functions for a in some(elf.instructions(f))]
        found = stops_of(program, case, processor, addresses, elf.code(0)[1:], work)
        if NO_TABLES[0] in flags:
            subprocess.run(["aarch64-linux-gnu-objcopy", "--remove-section=.debug_frame", program], check=True)
        files = mapped_files(found, program)
        data = capture(found["stops"], files, case)
    lines = [stack_line(files, s, case) for s in found["stops"]]
    out = os.path.join(HERE, "arm64-" + case)
    with gzip.GzipFile(out + ".capture.gz", "wb", mtime=0) as f:
        f.write(data)
    with open(out + ".ok", "w") as f:
        f.writelines("%s %d\n" % (line, lines.count(line)) for line in sorted(set(lines)))
    print("%s: %d stops, %d bytes" % (case, len(lines), os.path.getsize(out + ".capture.gz")))


random.seed(1)
for wanted in sys.argv[1:] or CASES:
    make(wanted)

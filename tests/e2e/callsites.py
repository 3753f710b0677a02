# SPDX-License-Identifier: Apache-2.0
"""Not a frame skipped: before the return address of each caller there is a call
instruction, and where the call is direct it leads to the callee, in at least
99.9 % of adjacent native frames. The bytes are read from the files themselves;
nothing of our unwinder or symbolizer is used.

Here of programs that know their stacks; of real programs' profiles, which
real.py takes, that asks check_calls."""
import bisect
import os
import platform
import struct
import subprocess
import time

import lib

SECONDS = 5


class Elf:
    """Code bytes by address in the file's terms, and where functions begin by its unwind table."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        phoff, = struct.unpack_from("<Q", self.data, 32)
        size, count = struct.unpack_from("<HH", self.data, 54)
        heads = [struct.unpack_from("<IIQQQQ", self.data, phoff + i * size) for i in range(count)]
        self.loads = [(v, v + n, o) for t, _, o, v, _, n in heads if t == 1]
        out = subprocess.run(["readelf", "-wf", "-W", path], capture_output=True, text=True).stdout
        self.functions = sorted({tuple(int(x, 16) for x in line.split("pc=")[1].split(".."))
                                 for line in out.splitlines() if " FDE " in line and "pc=" in line})
        self.starts = [f[0] for f in self.functions]

    def bytes_before(self, address, n):
        for start, stop, offset in self.loads:
            if start <= address - n and address <= stop:
                return self.data[address - n - start + offset:address - start + offset]
        return b""

    def function(self, address):
        i = bisect.bisect_right(self.starts, address) - 1
        return self.functions[i] if i >= 0 and address < self.functions[i][1] else None


def is_indirect_call(before):
    """ff /2 with its operand, in two to seven bytes up to the return address."""
    for n in range(2, 8):
        code = before[-n:]
        if len(code) < n or code[0] != 0xff or (code[1] >> 3) & 7 != 2:
            continue
        mod, rm = code[1] >> 6, code[1] & 7
        sib = mod != 3 and rm == 4
        disp = 4 if mod == 2 or mod == 0 and (rm == 5 or sib and len(code) > 2 and code[2] & 7 == 5) else mod == 1
        if n == 2 + sib + disp:
            return True
    return False


def files():
    cache = {}

    def get(path):
        if path not in cache:
            try:
                cache[path] = Elf(path) if os.path.isfile(path) else None
            except (struct.error, OSError, IndexError):
                cache[path] = None
        return cache[path]
    return get


class Tally:
    def __init__(self):
        self.pairs = self.called = self.direct = self.led = 0
        self.bad = {}

    def miss(self, what, caller, callee, n):
        key = "%s: %s <- %s" % (what, callee[0], caller[0])
        self.bad[key] = self.bad.get(key, 0) + n

    def look(self, elf_of, callee, caller, n):
        elf = elf_of(caller[3])
        if not elf:
            return
        # Callers carry the return address, or one less so that it lies within the call.
        for address in (caller[2], caller[2] + 1):
            before = elf.bytes_before(address, 7)
            if before[-5:-4] == b"\xe8" or is_indirect_call(before):
                break
        else:
            self.pairs += n
            self.miss("no call", caller, callee, n)
            return
        self.pairs += n
        self.called += n
        if before[-5:-4] == b"\xe8" and callee[3] == caller[3]:
            self.follow(elf, address + struct.unpack("<i", before[-4:])[0], caller, callee, n)

    def follow(self, elf, target, caller, callee, n):
        """The direct call's target is the callee's own function, or one that jumps (a PLT stub, a tail call)."""
        to, within = elf.function(target), elf.function(callee[2])
        if not to or not within:
            return
        self.direct += n
        if to == within or leaves_by_jump(elf, to):
            self.led += n
        else:
            self.miss("elsewhere", caller, callee, n)


def leaves_by_jump(elf, function):
    """A jump out of the function: a tail call, as compilers, hand-written code and PLT stubs make it."""
    start, stop = function
    code = elf.bytes_before(stop, stop - start)
    for i in range(len(code) - 4):
        if code[i] == 0xe9:
            to = start + i + 5 + struct.unpack_from("<i", code, i + 1)[0]
            if not start <= to < stop:
                return True
        if code[i] == 0x0f and code[i + 1] & 0xf0 == 0x80 and i + 6 <= len(code):
            to = start + i + 6 + struct.unpack_from("<i", code, i + 2)[0]
            if not start <= to < stop:
                return True
        if code[i] == 0xff and (code[i + 1] >> 3) & 7 == 4:
            return True
    return False


def is_known_here():
    """The machine code whose calls are read."""
    return platform.machine() == "x86_64"


def check_calls(name, samples, services):
    elf_of, tally = files(), Tally()
    for s in samples:
        if lib.service(s) not in services and lib.executable(s) not in services:
            continue
        # Inline frames share an address; the pairs are those of real frames.
        frames = [f for f in s.frames if f[1] == "native" and not lib.is_marker(f[0])]
        frames = [f for i, f in enumerate(frames) if not i or (f[2], f[3]) != (frames[i - 1][2], frames[i - 1][3])]
        for callee, caller in zip(frames, frames[1:]):
            tally.look(elf_of, callee, caller, s.count)
    worst = sorted(tally.bad.items(), key=lambda kv: -kv[1])[:4]
    lib.ok(tally.pairs > 1000 and tally.called >= 0.999 * tally.pairs,
           "%s: a call precedes the return address in %d of %d adjacent frames %s" % (name, tally.called, tally.pairs, worst))
    lib.ok(tally.led >= 0.999 * tally.direct, "%s: %d of %d direct calls lead to the callee" % (name, tally.led, tally.direct))


def main():
    lib.need(is_known_here(), "call sites", "written for x86-64")
    d = lib.Otprofd(hz=499)
    processes = [lib.program("depth", 60, SECONDS + 2, stdout=subprocess.DEVNULL), lib.program("kernelio", SECONDS + 2)]
    time.sleep(SECONDS)
    last = d.stop()
    for p in processes:
        lib.end(p)
    check_calls("truth programs", lib.samples(d.files), ("depth", "kernelio"))
    lib.check_ledger(last, "truth programs", stopped=True)
    lib.finish()


if __name__ == "__main__":
    main()

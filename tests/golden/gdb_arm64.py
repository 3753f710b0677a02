# SPDX-License-Identifier: Apache-2.0
"""Inside gdb-multiarch, for make_arm64.py: stops a program under qemu-aarch64
and writes registers, stack bytes and gdb's own stack of every stop."""
import json
import os
import random
import subprocess

import gdb

ASKED = json.loads(os.environ["OTP_ASKED"])
RANDOM_STOPS = 15


def run(command):
    return gdb.execute(command, to_string=True)


def registers():
    frame = gdb.newest_frame()
    names = ["x%d" % i for i in range(31)] + ["sp", "pc"]
    return [int(frame.read_register(n)) & (1 << 64) - 1 for n in names]


def stack(at, limit):
    """Up to so many bytes, or to the end of the stack."""
    out, step = b"", 256
    while len(out) < limit:
        try:
            out += bytes(gdb.selected_inferior().read_memory(at + len(out), step))
        except gdb.MemoryError:
            if step == 8:
                break
            step = 8
    return out


def stack_end():
    """The kernel's gifts lie there: the program's name is the last of them."""
    name = next(line for line in run("info auxv").splitlines() if "AT_EXECFN" in line)
    return (int(name.split()[-2], 16) | 4095) + 1


def bare(word):
    """A code address without its signature: where a word has one, its low 48 bits lie in the program's code."""
    address = word & (1 << 48) - 1
    return address if word != address and any(low <= address < high for low, high in ASKED["code"]) else word


def strip_signatures(values, raw, at):
    """For gdb, which asks the stub for the mask, and qemu's before 8.1 knows none."""
    words = [int.from_bytes(raw[i:i + 8], "little") for i in range(0, len(raw), 8)]
    signed = [at + 8 * i for i, w in enumerate(words) if bare(w) != w]
    for address in signed:
        word = bare(words[(address - at) // 8])
        gdb.selected_inferior().write_memory(address, word.to_bytes(8, "little"))
    if bare(values[30]) != values[30]:
        run("set $x30 = %d" % bare(values[30]))
    run("maintenance flush register-cache")
    return signed


def restore_signatures(values, raw, at, signed):
    for address in signed:
        gdb.selected_inferior().write_memory(address, raw[address - at:address - at + 8])
    run("set $x30 = %d" % values[30])


def frames():
    out, frame = [], gdb.newest_frame()
    while frame:
        kind = "signal" if frame.type() == gdb.SIGTRAMP_FRAME else "normal"
        out.append((frame.pc(), frame.name(), kind))
        frame = frame.older()
    return out


def stop():
    values = registers()
    at = values[31] - 128 & ~7
    raw = stack(at, ASKED["copy"])
    end = stack_end()
    signed = strip_signatures(values, raw, at)
    found = frames()
    restore_signatures(values, raw, at, signed)
    return {"registers": values, "sp": values[31], "stack_addr": at, "stack": raw.hex(), "frames": found,
            "stack_end": end, "base": stack(end - ASKED["base"], ASKED["base"]).hex()}


def continue_for(seconds):
    """On to a breakpoint, or for so long: qemu's stub hears a signal only."""
    timer = subprocess.Popen(["sh", "-c", "sleep %.3f; kill -USR1 %d" % (seconds, ASKED["qemu"])])
    run("continue")
    timer.kill()
    timer.wait()


def at_random():
    """A signal stops it at a jump; some steps lead away from there."""
    continue_for(random.uniform(0.01, 0.2))
    for _ in range(random.randrange(8)):
        run("stepi")
    return stop()


def at_address(address):
    point = gdb.Breakpoint("*%d" % address, temporary=True)
    continue_for(2)  # some code is never met
    if point.is_valid():
        point.delete()
    met = gdb.newest_frame().pc() == address
    return stop() if met else None


def entry_base():
    """Where the program was put: its entry point as the kernel says, less the file's."""
    entry = next(int(line.split()[-1], 16) for line in run("info auxv").splitlines() if "AT_ENTRY" in line)
    with open(ASKED["program"], "rb") as f:
        return entry - int.from_bytes(f.read(64)[24:32], "little")


def libraries():
    out = {}
    for line in run("info sharedlibrary").splitlines():
        words = line.split()
        if words and words[0].startswith("0x"):
            out[words[-1]] = int(words[0], 16), int(words[1], 16)  # of .text
    return out


def main():
    for setting in ("pagination off", "confirm off", "sysroot " + ASKED["sysroot"], "backtrace past-main on",
                    "backtrace past-entry on", "architecture aarch64"):
        run("set " + setting)
    run("file " + ASKED["program"])
    run("target remote 127.0.0.1:%d" % ASKED["port"])
    run("handle SIGUSR1 stop nopass")
    run("handle SIGALRM nostop noprint pass")
    run("tbreak main")
    run("continue")
    base = entry_base()
    ASKED["code"] = [(base + low, base + high) for low, high in ASKED["code"]] + list(libraries().values())
    stops = [at_random() for _ in range(RANDOM_STOPS)]
    stops += [s for s in (at_address(base + vaddr) for vaddr in ASKED["addresses"]) if s]
    with open(ASKED["out"], "w") as f:
        json.dump({"base": base, "libraries": libraries(), "stops": stops}, f)


random.seed(1)
main()

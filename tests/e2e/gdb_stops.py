# SPDX-License-Identifier: Apache-2.0
"""Runs inside gdb: stops a process at random moments and writes, for each
stop, registers, stack bytes, mappings and gdb's own backtrace, for
unwind_stops to compare. Driven by compare_gdb.sh through the environment:
STOPS_PID, STOPS_DIR, STOPS_COUNT. STOPS_GENERATED=1: only stops in generated
code, or in what it called, each with its caller as gdb_generated.py finds it."""
import ctypes
import os
import random
import signal
import sys
import threading
import time

import gdb

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gdb_generated  # noqa: E402

PID = int(os.environ["STOPS_PID"])
OUT = os.environ["STOPS_DIR"]
COUNT = int(os.environ["STOPS_COUNT"])
GENERATED = bool(os.environ.get("STOPS_GENERATED"))
TRIES = 200 if GENERATED else 3 # for each stop that is written
LIMIT = 512 << 10
RED_ZONE = 128
# DWARF order of the System V ABI
REGS = "rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip".split()
MASK = (1 << 64) - 1
libc = ctypes.CDLL(None)


def alive():
    return os.path.exists("/proc/%d/task" % PID)


def runs(tid):
    with open("/proc/%d/task/%s/stat" % (PID, tid)) as f:
        return f.read().rpartition(")")[2].split()[0] == "R"


def any_thread():
    tids = os.listdir("/proc/%d/task" % PID)
    if GENERATED: # generated code does not wait
        return int(random.choice([t for t in tids if runs(t)] or tids))
    return PID if random.random() < 0.5 else int(random.choice(tids))


def stop_later(stopped):
    """A signal that gdb keeps to itself, to any thread, after a random while;
    to the next one where a thread blocks it. Nothing here blocks SIGWINCH:
    PostgreSQL does so with SIGURG."""
    wait = random.uniform(0.001, 0.03)
    while not stopped.wait(wait):
        try:
            libc.syscall(234, PID, any_thread(), int(signal.SIGWINCH))  # tgkill
        except (OSError, IndexError): # a thread has ended, or all have
            if not alive():
                return
        wait = 0.05


def maps_text():
    with open("/proc/%d/maps" % PID) as f:
        return f.read()


def region_of(text, addr):
    for line in text.splitlines():
        start, end = (int(x, 16) for x in line.split()[0].split("-"))
        if start <= addr < end:
            return start, end
    return None


def pcs_of_gdb():
    """Frames that exist: inlined ones and tail calls are what gdb knows from debug data."""
    out, frame = [], gdb.newest_frame()
    while frame is not None and len(out) < 4096:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            out.append(frame.pc() & MASK)
        last, frame = frame, frame.older()
    return out, gdb.frame_stop_reason_string(last.unwind_stop_reason())


def backtrace(text):
    if not GENERATED:
        return pcs_of_gdb()
    pcs, whole = gdb_generated.stack_of(text)
    return pcs, "generated code" if whole else "generated code, up to the next"


class Writer:
    def __init__(self):
        self.stops = open(OUT + "/stops", "w")
        self.stacks = open(OUT + "/stacks", "wb")
        self.maps, self.nr_maps = None, 0

    def write_maps(self, text):
        code = "\n".join(l for l in text.splitlines() if "x" in l.split()[1])
        if code == self.maps:
            return
        self.maps = code
        self.nr_maps += 1
        name = "maps.%d" % self.nr_maps
        with open(OUT + "/" + name, "w") as f:
            f.write(code + "\n")
        for line in text.splitlines():
            if line.endswith("[vdso]"):
                start, end = (int(x, 16) for x in line.split()[0].split("-"))
                with open(OUT + "/vdso", "wb") as f:
                    f.write(gdb.selected_inferior().read_memory(start, end - start))
        self.stops.write("maps %s\n" % name)

    def write(self, number):
        text = maps_text()
        gdb.execute("select-frame 0", to_string=True)
        regs = [gdb_generated.reg(r) for r in REGS]
        sp = regs[7]
        region = region_of(text, sp)
        if region is None:
            return False
        start = max(sp - RED_ZONE, region[0])
        length = min(region[1] - start, LIMIT)
        stack = gdb_generated.read(start, length)
        base = gdb_generated.base_of(gdb_generated.Regions(text), sp) if GENERATED else None
        pcs, why = backtrace(text)
        if not pcs:
            return False
        self.stops.write("stop %d\n" % number)
        self.write_maps(text)
        self.stops.write("regs %s\n" % " ".join("%x" % r for r in regs))
        self.stops.write("stack %x %x %x\n" % (start, length, self.stacks.tell()))
        self.stacks.write(stack)
        if base:
            self.stops.write("base %x %x %x\n" % (base[0], len(base[1]), self.stacks.tell()))
            self.stacks.write(base[1])
        self.stops.write("why %s\n" % why)
        self.stops.write("pcs %s\n" % " ".join("%x" % p for p in pcs))
        return True


def main():
    for setting in ("pagination off", "confirm off", "backtrace past-main on", "backtrace past-entry on",
                    "backtrace limit 4096", "debuginfod enabled off", "auto-solib-add on", "print thread-events off"):
        gdb.execute("set " + setting, to_string=True)
    gdb.execute("attach %d" % PID, to_string=True)
    gdb.execute("handle SIGWINCH stop print nopass", to_string=True)
    for sig in ("SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGALRM", "SIGPROF", "SIGPIPE", "SIGSEGV"):
        gdb.execute("handle %s nostop pass noprint" % sig, to_string=True)
    writer, done, tries = Writer(), 0, 0
    while done < COUNT and tries < TRIES * COUNT and alive():
        tries += 1
        stopped = threading.Event()
        thread = threading.Thread(target=stop_later, args=(stopped,))
        thread.start()
        try:
            gdb.execute("continue", to_string=True)
        except gdb.error:
            break
        finally:
            stopped.set()
            thread.join()
        if not gdb.selected_thread() or not gdb.selected_thread().is_valid():
            break
        done += writer.write(done + 1)
    writer.stops.close()
    writer.stacks.close()
    if alive():
        gdb.execute("detach", to_string=True)


main()

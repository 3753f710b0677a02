# SPDX-License-Identifier: Apache-2.0
"""Runs inside gdb, for gdb_stops.py: who called generated code, of which gdb
knows nothing. The thread goes on until it arrives there: each return address on
the stack above the code's stack pointer is a breakpoint, and the first that is
met with the stack pointer right above its word is the caller."""
import gdb

NEARBY = 12 << 10 # bytes of the stack in which the caller's return address is looked for
BASE = 64 << 10   # and of the outermost of the thread's own stack, where the code has left that
PATIENCE = 2000   # breakpoints passed until the code has returned
MASK = (1 << 64) - 1


def reg(name):
    return int(gdb.parse_and_eval("(unsigned long)$" + name)) & MASK


def read(addr, length):
    return bytes(gdb.selected_inferior().read_memory(addr, length))


class Regions:
    """Those of a process, from the text of its maps."""

    def __init__(self, text):
        self.all = []
        for line in text.splitlines():
            fields = line.split(None, 5)
            start, end = (int(x, 16) for x in fields[0].split("-"))
            self.all.append((start, end, fields[1], fields[5] if len(fields) > 5 else ""))

    def find(self, addr):
        return next((r for r in self.all if r[0] <= addr < r[1]), None)

    def is_generated(self, pc):
        r = self.find(pc)
        return bool(r) and "x" in r[2] and not r[3].startswith(("/", "[v")) or bool(r) and r[3].startswith("/memfd:")

    def is_return_address(self, pc):
        """In code of a file, behind a call."""
        r = self.find(pc)
        if not r or "x" not in r[2] or not r[3].startswith("/") or pc - r[0] < 7:
            return False
        code = read(pc - 7, 7)
        return code[2] == 0xe8 or any(code[7 - n] == 0xff and code[8 - n] >> 3 & 7 == 2 for n in (2, 3, 4, 6, 7))


def base_of(regions, sp):
    """(address, bytes) of the outermost of the thread's own stack, where the stack pointer is not there; else None."""
    stack = next((r for r in regions.all if r[3] == "[stack]"), None)
    main = gdb.selected_thread().ptid[0] == gdb.selected_thread().ptid[1]
    # glibc has a thread's descriptor on its stack, which begins right below.
    own, end = (stack, stack[1]) if main else (regions.find(reg("fs_base")), reg("fs_base"))
    if not own or own[0] <= sp < own[1]:
        return None
    start = max(own[0], end - BASE) & ~7
    return start, read(start, end - start)


def innermost(regions):
    """The pcs up to the first frame of generated code, and the stack pointer there; None: there is none."""
    pcs, frame = [], gdb.newest_frame()
    while frame is not None and len(pcs) < 64:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            pcs.append(frame.pc() & MASK)
        if regions.is_generated(frame.pc()):
            return pcs, int(frame.read_register("rsp")) & MASK
        frame = frame.older()
    return None, 0


def outermost(regions):
    """The pcs from the newest frame on, and whether they are all: the next code that is generated ends them."""
    pcs, frame = [], gdb.newest_frame()
    while frame is not None and len(pcs) < 4096:
        if regions.is_generated(frame.pc()):
            return pcs, False
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            pcs.append(frame.pc() & MASK)
        frame = frame.older()
    return pcs, True


def run_to_caller(regions, sp):
    """Whether the generated code, whose stack pointer is sp, has returned to code of a file."""
    region, base = regions.find(sp), base_of(regions, sp)
    start, stack = base or (sp, read(sp, min(NEARBY, region[1] - sp)))
    words = memoryview(stack[:len(stack) // 8 * 8]).cast("Q")
    words = {start + 8 * i: w for i, w in enumerate(words) if regions.is_return_address(w)}
    points = [gdb.Breakpoint("*%d" % pc, internal=True) for pc in set(words.values())]
    gdb.execute("set scheduler-locking on", to_string=True)
    try:
        for _ in range(PATIENCE if points else 0):
            gdb.execute("continue", to_string=True)
            if words.get(reg("rsp") - 8) == reg("rip"):
                return True
            if reg("rsp") > max(words):
                break
    finally:
        gdb.execute("set scheduler-locking off", to_string=True)
        for p in points:
            p.delete()
    return False


def stack_of(text):
    """(pcs, whether they are all of the stack) through one frame of generated code; None: there is none, or no witness."""
    regions = Regions(text)
    inner, sp = innermost(regions)
    if not inner or not run_to_caller(regions, sp):
        return None, False
    outer, whole = outermost(regions)
    return inner + outer, whole

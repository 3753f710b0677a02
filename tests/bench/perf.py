# SPDX-License-Identifier: Apache-2.0
"""The same load seen by `perf record --call-graph dwarf`: how many user stacks
end at a true root. A root is judged by address, since Debian's files have few
names: the entry point of the program or of the loader, or in the C library
the functions that start a thread or a process."""
import os
import re
import shutil
import struct
import subprocess

KERNEL = 0x8000000000000000
MMAP = re.compile(r"^\s*(.*?)\s+(\d+)(?:/\d+)?\s.*PERF_RECORD_MMAP2? (-?\d+)/\d+: "
                  r"\[0x([0-9a-f]+)\(0x([0-9a-f]+)\) @ (0x[0-9a-f]+|0) .*\]: [r-][w-]x[ps] (.*)$")
HEAD = re.compile(r"^\s*(.*?)\s+(\d+)\s*:?$")
FRAME = re.compile(r"^\s+([0-9a-f]+)\s.*?\((/.*|\[.*\])\)$")
ENTRY_BYTES = 64
THREAD_STARTS = ("clone", "__clone", "clone3", "__clone3", "start_thread", "vfork", "__vfork", "posix_spawn")


def record(seconds, directory):
    """Path of what perf recorded of the whole host, and None; or None and why there is nothing."""
    if not shutil.which("perf"):
        return None, "perf is not installed"
    data = os.path.join(directory, "perf.data")
    p = subprocess.run(["perf", "record", "-q", "-B", "-N", "-a", "-F", "97", "-e", "cpu-clock", "--call-graph", "dwarf,4096",
                        "-o", data, "--", "sleep", str(seconds)], capture_output=True, text=True)
    if p.returncode:
        return None, "perf record ended with %d: %s" % (p.returncode, p.stderr.strip()[-200:])
    return data, None


def roots_in(data, comms):
    """(user stacks, those that end at a root) of threads with these names."""
    script = subprocess.Popen(["perf", "script", "--no-inline", "-i", data, "--show-mmap-events", "-F", "comm,pid,ip,sym,dso"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace")
    counts = count(script.stdout, comms)
    script.wait()
    return counts


def count(lines, comms):
    maps, stacks, whole, current = {}, 0, 0, None
    roots = Roots()
    for line in lines:
        mapped, frame = MMAP.match(line), FRAME.match(line)
        if mapped:
            start, length = int(mapped[4], 16), int(mapped[5], 16)
            maps.setdefault(int(mapped[3]), []).append((start, start + length, int(mapped[6], 16), mapped[7].strip()))
        elif not line.strip():
            if current and current[2]:
                stacks += 1
                whole += roots.is_root(maps.get(current[1], ()), *current[2][-1])
            current = None
        elif frame and current:
            ip = int(frame[1], 16)
            if ip < KERNEL and not frame[2].startswith("[kernel"):
                current[2].append((ip, frame[2]))
        elif not line.startswith("\t"):
            head = HEAD.match(line)
            current = (head[1], int(head[2]), []) if head and head[1] in comms else None
    return stacks, whole


class Roots:
    def __init__(self):
        self.files = {}

    def is_root(self, mappings, ip, path):
        """perf prints some addresses as the process sees them, others as the file does."""
        for start, stop, offset, mapped in reversed(mappings):
            if start <= ip < stop:
                return any(a <= ip - start + offset <= b for a, b in self.of(mapped))
        return any(a <= ip <= b for a, b in self.of(path))

    def of(self, path):
        if path not in self.files:
            try:
                self.files[path] = ranges(path)
            except (OSError, struct.error, ValueError):
                self.files[path] = []
        return self.files[path]


def ranges(path):
    """File offsets of the entry point and of functions that start threads."""
    with open(path, "rb") as f:
        head = f.read(64)
        if head[:5] != b"\x7fELF\x02":
            return []
        entry, phoff = struct.unpack_from("<QQ", head, 24)
        phentsize, phnum = struct.unpack_from("<HH", head, 54)
        f.seek(phoff)
        table = f.read(phentsize * phnum)
    loads = []
    for i in range(phnum):
        kind, _, offset, vaddr, _, filesz = struct.unpack_from("<IIQQQQ", table, i * phentsize)
        if kind == 1:
            loads.append((vaddr, vaddr + filesz, offset))

    def to_offset(vaddr):
        return next((vaddr - a + o for a, b, o in loads if a <= vaddr < b), None)

    found = [(to_offset(entry), ENTRY_BYTES)]
    for flags in (["-D"], []):
        out = subprocess.run(["nm", "-S", "--defined-only"] + flags + [path], capture_output=True, text=True).stdout
        for line in out.splitlines():
            words = line.split()
            if len(words) == 4 and words[3].split("@")[0] in THREAD_STARTS:
                found.append((to_offset(int(words[0], 16)), int(words[1], 16)))
    return [(a, a + n) for a, n in found if a is not None]

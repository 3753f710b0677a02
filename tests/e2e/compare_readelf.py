#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does every row of a file's .eh_frame mean to us what it means to readelf?

    compare_readelf.py UNWIND_ROWS FILE...

Both tables stream by, so a file of any size takes the same memory.
Exit status: 0 all rows equal, 1 differences, 77 no readelf. x86-64."""
import re
import shutil
import subprocess
import sys

NAMES = "rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15".split()
NUMBER = {n: "r%d" % i for i, n in enumerate(NAMES)}
BATCH = 100000
SHOWN = 10


def register(text):
    """rsp+8 -> r7+8"""
    m = re.match(r"([a-z][a-z0-9]*)([+-]\d+)$", text)
    return NUMBER[m.group(1)] + m.group(2) if m and m.group(1) in NUMBER else text


def readelf_functions(path):
    """The rows of one function after the other: {address: (CFA, {register: rule})}."""
    dump = subprocess.Popen(["readelf", "--debug-dump=frames-interp", path], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True, errors="replace")
    rows, columns, end = {}, None, 0
    for line in dump.stdout:
        words = line.split()
        if line.startswith("Contents of the") and ".eh_frame" not in line:
            break
        if " FDE cie=" in line or " CIE " in line:
            yield rows
            m = re.search(r" FDE cie=\S+ pc=([0-9a-f]+)\.\.([0-9a-f]+)", line)
            rows, columns, end = {}, None, int(m.group(2), 16) if m else 0
        elif words[:2] == ["LOC", "CFA"]:
            columns = words[2:]
        elif words[1:] == ["ZERO", "terminator"]:
            columns = None
        elif columns is not None and len(words) == len(columns) + 2:
            loc = int(words[0], 16)
            if loc < end:
                rules = {"ra" if c == "ra" else NUMBER.get(c, c): v for c, v in zip(columns, words[2:]) if v != "u"}
                rows[loc] = (register(words[1]), followed(rules))
    yield rows
    dump.stdout.close()
    dump.wait()


def batches(path):
    rows = {}
    for function in readelf_functions(path):
        rows.update(function)
        if len(rows) >= BATCH:
            yield rows
            rows = {}
    yield rows


def our_rows(tool, path, addresses):
    out = subprocess.run([tool, path], input="\n".join("%x" % a for a in addresses), stdout=subprocess.PIPE,
                         text=True, check=True).stdout
    rows = {}
    for line in out.splitlines():
        words = line.split()
        rows[int(words[0], 16)] = (words[1], dict(w.split("=") for w in words[2:]))
    return rows


def followed(rules):
    """Only registers that we follow: no vector registers, no flags."""
    return {c: v for c, v in rules.items() if c == "ra" or re.match(r"r\d+$", c)}


def compare(tool, path):
    total = different = 0
    shown = []
    for theirs in batches(path):
        ours = our_rows(tool, path, sorted(theirs)) if theirs else {}
        total += len(theirs)
        for a, row in theirs.items():
            if row != ours.get(a):
                different += 1
                shown += ["  %x readelf %s ours %s" % (a, row, ours.get(a))][:SHOWN - len(shown)]
    print("%s: %d rows, %d different" % (path, total, different))
    print("".join(line + "\n" for line in shown), end="", flush=True)
    return bool(different) or not total


if __name__ == "__main__":
    if not shutil.which("readelf"):
        sys.exit(77)
    sys.exit(any([compare(sys.argv[1], p) for p in sys.argv[2:]]))

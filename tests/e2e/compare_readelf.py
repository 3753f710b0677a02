#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does every row of a file's .eh_frame mean to us what it means to readelf?

    compare_readelf.py UNWIND_ROWS FILE...

Exit status: 0 all rows equal, 1 differences, 77 no readelf. x86-64."""
import re
import shutil
import subprocess
import sys

NAMES = "rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15".split()
NUMBER = {n: "r%d" % i for i, n in enumerate(NAMES)}


def register(text):
    """rsp+8 -> r7+8"""
    m = re.match(r"([a-z][a-z0-9]*)([+-]\d+)$", text)
    return NUMBER[m.group(1)] + m.group(2) if m and m.group(1) in NUMBER else text


def readelf_rows(path):
    out = subprocess.run(["readelf", "--debug-dump=frames-interp", path], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True, check=False).stdout
    rows, columns, end = {}, None, 0
    for line in out.splitlines():
        if line.startswith("Contents of the") and ".eh_frame" not in line:
            break
        m = re.search(r" FDE cie=\S+ pc=([0-9a-f]+)\.\.([0-9a-f]+)", line)
        words = line.split()
        if m:
            columns, end = None, int(m.group(2), 16)
            begin = int(m.group(1), 16)
            if begin < end:
                rows[begin] = None  # an FDE without rows of its own: filled by its first line
        elif " CIE " in line:
            columns, end = None, 0
        elif words[:2] == ["LOC", "CFA"]:
            columns = words[2:]
        elif columns is not None and len(words) == len(columns) + 2:
            loc = int(words[0], 16)
            if loc < end:
                rules = {"ra" if c == "ra" else NUMBER.get(c, c): v for c, v in zip(columns, words[2:]) if v != "u"}
                rows[loc] = (register(words[1]), rules)
    return {a: r for a, r in rows.items() if r}


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
    theirs = readelf_rows(path)
    ours = our_rows(tool, path, sorted(theirs))
    different = [a for a in theirs if (theirs[a][0], followed(theirs[a][1])) != ours.get(a)]
    print("%s: %d rows, %d different" % (path, len(theirs), len(different)))
    for a in different[:10]:
        print("  %x readelf %s ours %s" % (a, theirs[a], ours.get(a)))
    return bool(different) or not theirs


if __name__ == "__main__":
    if not shutil.which("readelf"):
        sys.exit(77)
    sys.exit(any([compare(sys.argv[1], p) for p in sys.argv[2:]]))

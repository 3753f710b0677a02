# SPDX-License-Identifier: Apache-2.0
"""Holds the address index against other readers of debug information:
    compare_lines.py [-n ADDRESSES] [-s SEED] [-v N] [-d DEBUG_DIRECTORY] [-w elfutils|llvm] FILE...
Random code addresses of each file, looked up by our index (symbol_index), by
eu-addr2line and by llvm-symbolizer. A place agrees when function, file and
line of every inlined frame are the same; it is wrong only where we agree with
neither. Names of one address count as one name (malloc, __libc_malloc), marks
of clones (.cold, .isra.0) and versions as none. Exit status 1 below 99.9 %."""
import argparse
import collections
import os
import random
import re
import subprocess
import sys
import tempfile

BUILD = os.environ.get("BUILD", "build")
TOOL = os.path.join(BUILD, "symbol_index")
debug_dir = "/usr/lib/debug"


def run(argv, text=None):
    return subprocess.run(argv, input=text, capture_output=True, text=True, errors="replace").stdout


def code_ranges(path):
    """Addresses of executable sections."""
    found = []
    for line in run(["readelf", "-SW", path]).splitlines():
        f = line.replace("[ ", "[").split()
        if len(f) > 7 and f[0].startswith("[") and f[2] == "PROGBITS" and "X" in f[7] and not f[1].startswith(".plt"):
            found.append((int(f[3], 16), int(f[5], 16)))
    return found


def debug_file(path):
    m = re.search(r"Build ID: ([0-9a-f]+)", run(["readelf", "-n", path]))
    there = m and os.path.join(debug_dir, ".build-id", m.group(1)[:2], m.group(1)[2:] + ".debug")
    return there if there and os.path.exists(there) else None


def aliases(path):
    """Names by symbol, all that share an address and a size."""
    at = collections.defaultdict(set)
    for p in [path, debug_file(path)]:
        for options in ([], ["-D"]) if p else ():
            for line in run(["nm"] + options + [p]).splitlines():
                f = line.split(" ", 2)
                if len(f) == 3 and f[0] and f[1] in "tTwWiVvu":
                    at[f[0]].add(bare(f[2]))
    same = {}
    shown = readable({n for names in at.values() for n in names})
    for names in at.values():
        whole = {shown.get(n, n) for n in names}
        for n in list(whole):
            whole |= same.get(n, set())
        for n in whole:
            same[n] = whole
    return same


def bare(name):
    """What link-time optimization calls its parts (compress.c.be532bb0) is no function's name; a
    name of more than 4 KiB is cut (INDEX_STRING_MAX)."""
    return "??" if re.search(r"\.(c|cc|cpp)\.[0-9a-f]{8}$", name) else name[:4095]


def readable(names):
    """Each of these names of the linker's: as otprof shows it. Witnesses demangle in other ways."""
    names = [n for n in names if "\n" not in n]
    return dict(zip(names, run([TOOL, "names"], "".join(n + "\n" for n in names)).split("\n")))


def demangled(answers):
    shown = readable({frame[0] for frames in answers for frame in frames})
    return [[(shown.get(f[0], f[0]),) + f[1:] for f in frames] for frames in answers]


def place(text):
    """'dir/./file.c:12:3 (discriminator 2)' -> ('dir/file.c', 12)"""
    text = text.split(" (")[0]
    m = re.match(r"(.*?):(\d+)(?::\d+)?$", text)
    if not m or m.group(1) in ("??", ""):
        return ("??", 0)
    path = os.path.normpath(m.group(1))
    return (path if int(m.group(2)) or path != "??" else "??", int(m.group(2)))


def ours(path, addresses, work):
    index = os.path.join(work, "index")
    report = run([TOOL, "make", path, index, debug_dir]).strip()
    answers, frames = [], []
    for line in run([TOOL, "find", path, index], "\n".join("%x" % a for a in addresses) + "\n").splitlines():
        if not line:
            answers.append(frames)
            frames = []
            continue
        name, where = line.split("\t")
        frames.append((bare(name),) + place(where))
    return answers, report


def elfutils(path, addresses, work):
    answers = []
    text = "\n".join("0x%x" % a for a in addresses) + "\n"
    lines = run(["eu-addr2line", "--debuginfo-path=" + debug_dir, "-a", "-i", "-f", "-e", path], text).splitlines()
    for line in lines:
        if re.fullmatch(r"0x[0-9a-f]{16}", line):
            answers.append([])
            name = None
        elif name is None:
            name = bare(re.sub(r" inlined at .*", "", line))
        else:
            answers[-1].append((name,) + place(line))
            name = None
    return answers


def llvm(path, addresses, work):
    tool = next((t for t in ("llvm-symbolizer", "llvm-symbolizer-14") if run(["which", t])), None)
    if not tool:
        return [[] for _ in addresses]
    answers, frames, name = [], [], None
    text = "\n".join("0x%x" % a for a in addresses) + "\n"
    out = run([tool, "--inlines", "--functions=linkage", "--no-demangle", "--obj=" + (debug_file(path) or path)], text)
    for line in out.splitlines():
        if not line:
            answers.append(frames)
            frames, name = [], None
        elif name is None:
            name = bare(line)
        else:
            frames.append((name,) + place(line))
            name = None
    return answers


def same_name(a, b, same):
    return a == b or "??" in (a, b) or b in same.get(a, ())


def same_path(a, b):
    """One may say less of the directory: its compiler did not."""
    return a == b or a.endswith("/" + b) or b.endswith("/" + a)


def agree(a, b, same):
    # Of a longer chain we keep what is inside and the outermost function (SYMBOL_LINES_MAX).
    b = b[:31] + b[-1:] if len(b) > 32 else b
    if len(a) != len(b):
        return False
    return all(same_name(x[0], y[0], same) and x[2] == y[2] and (same_path(x[1], y[1]) or not x[2]) for x, y in zip(a, b))


def unknown(frames):
    """No function is there: padding, at most with the line of what comes before it."""
    return not frames or frames[0][0] == "??"


def compare(path, args):
    rng = random.Random(args.seed)
    ranges = code_ranges(path)
    total = sum(size for _, size in ranges)
    picks = []
    for _ in range(args.n):
        at = rng.randrange(total)
        for start, size in ranges:
            if at < size:
                picks.append(start + at)
                break
            at -= size
    with tempfile.TemporaryDirectory() as work:
        mine, report = ours(path, picks, work)
        nothing = [None] * len(picks)
        theirs = demangled(elfutils(path, picks, work)) if args.w != "llvm" else nothing
        others = demangled(llvm(path, picks, work)) if args.w != "elfutils" else nothing
    same = aliases(path)
    count = collections.Counter()
    shown = 0
    for at, m, e, l in zip(picks, mine, theirs, others):
        with_e = e is not None and (agree(m, e, same) or (unknown(m) and unknown(e)))
        with_l = l is not None and (agree(m, l, same) or (unknown(m) and unknown(l)))
        count["elfutils"] += with_e
        count["llvm"] += with_l
        # They agree with each other, and we with neither: that is ours to explain.
        count["wrong"] += not with_e and not with_l
        count["alone"] += not with_e and not with_l and (e is None or l is None or agree(e, l, same))
        if args.v and not with_e and not with_l and shown < args.v:
            shown += 1
            print("  %x\n    ours     %s\n    elfutils %s\n    llvm     %s" % (at, m, e, l))
    n = max(len(picks), 1)
    print("%-40s %7d addresses  elfutils %.3f %%  llvm %.3f %%  neither %d (%.3f %%), against both %d" % (
        os.path.basename(path), len(picks), 100 * count["elfutils"] / n, 100 * count["llvm"] / n, count["wrong"],
        100 * count["wrong"] / n, count["alone"]))
    print("    " + report)
    return n, count["wrong"]


def main():
    global debug_dir
    p = argparse.ArgumentParser()
    p.add_argument("-n", type=int, default=10000)
    p.add_argument("-s", "--seed", type=int, default=1)
    p.add_argument("-v", type=int, default=0, help="show so many differences of each file")
    p.add_argument("-d", default=debug_dir, help="where debug files are")
    p.add_argument("-w", choices=("elfutils", "llvm"), help="hear this witness alone: large files take elfutils long")
    p.add_argument("files", nargs="+")
    args = p.parse_args()
    debug_dir = args.d
    total = wrong = 0
    for path in args.files:
        n, w = compare(os.path.realpath(path), args)
        total += n
        wrong += w
    print("%d addresses, %.4f %% agree" % (total, 100 * (total - wrong) / max(total, 1)))
    return 1 if wrong * 1000 > total else 0


sys.exit(main())

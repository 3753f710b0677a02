# SPDX-License-Identifier: Apache-2.0
"""Generated code that no table, map or runtime describes: its stacks lead to what
called it, by a guess that is counted as one, and never to what did not. A program
that knows its callers (tests/programs/makers.c) is the witness; grep -P runs
patterns that PCRE2 compiled, and Python calls code that it did not make."""
import os
import platform
import subprocess
import time

import lib

lib.need(platform.machine() == "x86_64", "generated code", "written for x86-64")

HZ = lib.rate(997)
SECONDS = 6
CODES = ("leaf", "locals", "saves", "frame", "back", "inner")
CALLERS = ("plain", "framed", "sized", "jumps")
PARTS = len(CODES) * len(CALLERS)
GENERATED = "[generated code, called by %s]"


def squeeze(names):
    """Code that calls code of the same region is one frame or two: the way out may pass over one of them."""
    return [n for i, n in enumerate(names) if not (n.startswith("[generated") and names[i - 1:i] == [n])]


def is_of(name, names):
    """Whether the stack is of that caller, or has nothing to say of whose it is: who entered it is its outermost function."""
    outer = [n for n in names if n.startswith("outer_")]
    return name in names and outer[-1:] in ([], ["outer_" + name])


def check_makers(samples):
    mine = [(lib.user_part(s), s.count) for s in samples if lib.service(s) == "makers"]
    inside = [(names, marker, n) for (names, marker), n in mine if any(x.startswith("[generated") for x in names)]
    every = sum(n for _, n in mine)
    for caller in CALLERS:
        for code in CODES:
            name = "%s_%s" % (caller, code)
            got = [(squeeze(names), marker, n) for names, marker, n in inside if is_of(name, names)]
            wanted = (["spin_back"] if code == "back" else []) + [GENERATED % "makers", name, "outer_" + name, "main"]
            count = sum(n for _, _, n in got)
            whole = sum(n for names, marker, n in got
                        if not marker and names[-1] == "_start" and names[:len(wanted)] == wanted)
            wrong = [([names[:2], len(names), names[-9:]], marker) for names, marker, n in got
                     if marker or names[-1] != "_start" or names[:len(wanted)] != wanted]
            lib.ok(count > 0.6 * SECONDS * HZ / PARTS and whole >= 0.99 * count, "%s: %d of %d stacks are what they were %s" % (
                name, whole, count, wrong[:2]))
    cut = sum(n for (names, marker), n in mine if marker)
    lib.ok(every and cut <= 0.01 * every, "makers: %d of %d stacks are cut" % (cut, every))
    known = {"%s%s_%s" % (o, c, k) for o in ("", "outer_") for c in CALLERS for k in CODES} | {"main", "spin_back"}
    # What libc and the loader call themselves has no name of these.
    stale = sum(n for names, _, n in inside if "dirty" in names)
    missing = sum(n for names, _, n in inside if not known & set(names))
    lib.ok(not stale, "makers: %d of %d stacks hold a call that had returned" % (stale, sum(n for _, _, n in inside)))
    lib.ok(missing <= 0.01 * every, "makers: %d stacks pass over their caller" % missing)


def check_real(samples, service, maker, between=None):
    """The stacks of a program in code that maker made: they end at a root, and functions of between are on them."""
    mine = [(lib.user_part(s), s.count) for s in samples if lib.service(s) == service]
    every, cut = sum(n for _, n in mine), sum(n for (_, marker), n in mine if marker)
    label = GENERATED % maker
    inside = [(names, marker, n) for (names, marker), n in mine if any(x.startswith("[generated") for x in names)]
    count = sum(n for _, _, n in inside)
    whole = sum(n for names, marker, n in inside if not marker and label in names)
    lib.ok(count > 100 and whole >= 0.99 * count, "%s: %d of %d stacks in generated code are whole, and name %s %s" % (
        service, whole, count, maker, [(n[:5], m) for n, m, _ in inside if m or label not in n][:2]))
    lib.ok(cut <= 0.01 * every, "%s: %d of %d stacks are cut %s" % (
        service, cut, every, sorted({m for (_, m), _ in mine if m})))
    if between:
        passed = sum(n for names, _, n in inside if between in names)
        lib.ok(passed >= 0.99 * count, "%s: %d of %d stacks pass through %s" % (service, passed, count, between))
    return inside


def run_grep(work):
    text = os.path.join(work, "text")
    with open(text, "w") as f:
        for i in range(40000):
            f.write("%d the quick brown fox jumps over lazy dogs aaaaaaaaaaaaaaaaaaaaaaa %x\n" % (i, i * 7919))
    end = time.monotonic() + 3
    while time.monotonic() < end:
        subprocess.run(["grep", "-cP", r"(\w+)\s(\w+)\s.*(a|aa)+c\1", text], stdout=subprocess.DEVNULL)


# mov ecx, LOOPS; again: dec ecx; jnz again; ret
IN_PYTHON = """
import ctypes, mmap, sys, time
room = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
room.write(bytes.fromhex("b900e1f505ffc975fcc3"))
spin = ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(room)))
def calls_generated():
    while time.process_time() < float(sys.argv[1]):
        spin()
calls_generated()
"""


def check_python(samples):
    """The runtime of the process makes no such code: it is named after its caller, and stands among Python's frames."""
    inside = check_real(samples, "python3", "libffi")
    outside = [names[-3:] for names, _, _ in inside if names[-1] != "_start"]
    lib.ok(not outside, "python3: stacks in generated code begin at _start %s" % outside[:2])
    # Until its decoder has attached, Python's own frames are not known.
    bare = sum(n for names, _, n in inside if "calls_generated" not in names)
    lib.ok(bare <= 0.5 * HZ, "python3: %d of %d stacks lack the function that called it" % (bare, sum(n for _, _, n in inside)))


work = lib.scratch()
has_pcre = subprocess.run(["grep", "-qP", "a"], input="a", text=True).returncode == 0
# Of the others, a machine that is busy has so many samples that reading them takes longer than the test.
d = lib.Otprofd(hz=HZ, targets={"include": ["exe:makers", "exe:grep", "exe:python3*"]})
time.sleep(1)
subprocess.run([os.path.join(lib.PROGRAMS, "makers"), str(SECONDS)], check=True)
if has_pcre:
    run_grep(work)
subprocess.run(["python3", "-c", IN_PYTHON, "2"], check=True)
time.sleep(1.5)
last = d.stop()
samples = lib.samples(d.files)
check_makers(samples)
if has_pcre:
    check_real(samples, "grep", "libpcre2-8", "pcre2_match_8")
else:
    lib.skip("grep -P", "this grep has no PCRE2")
check_python(samples)
lib.check_ledger(last, "makers", stopped=True)
lib.finish()

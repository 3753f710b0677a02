# SPDX-License-Identifier: Apache-2.0
"""A program of .NET whose functions differ only by name and know how long they ran: names, lines, callers and shares of code
of the JIT compiler, and of the framework, which was compiled before. DOTNET=all: .NET 9 and 10 too, and each tier alone."""
import collections
import os
import platform
import re
import shutil
import struct
import subprocess
import tarfile
import time
import zipfile

import dotnet_runtime
import known_program
import lib

HZ = lib.rate(499)
MS = 1500 if dotnet_runtime.ALL else 400
SOURCE = os.path.join(dotnet_runtime.PROGRAMS, "truth.cs")
STAYS = {"DOTNET_TieredPGO": "0", "DOTNET_TC_CallCounting": "0"}
MODES = {
    "": {},
    " in tier 0": dict(STAYS, DOTNET_TC_OnStackReplacement="0"),
    " replaced on the stack": dict(STAYS, DOTNET_OSR_HitLimit="1", DOTNET_TC_OnStackReplacement_InitialCounter="10"),
    " without profiles": {"DOTNET_TieredPGO": "0"},
    " without tiers": {"DOTNET_TieredCompilation": "0"},
}
TIMED = r"Known.Program.Timed(string, long, Func<long, long>)"
# As Roslyn calls them, or Mono's compiler.
LAMBDA = r"Known\.Program\.(<>c(__DisplayClass\w+)?\.|<Main>c__AnonStorey\d+\.)?<(Main)?>(m__\d+|b__\w+)\(long\)"
LATER = r"Known\.Program\.(<Later>(c__async0|d__\d+)\.MoveNext|<>c__DisplayClass\w+\.<Later>b__\d+)\(\)"
# From the leaf out; what a string does not match in full, it is as a text.
CHAINS = {
    "One": ["Known.Program.Deep(int, long)"] * 21 + [LAMBDA, TIMED],
    "Two": [LAMBDA, TIMED],
    "Three": ["Known.Virtual.Run(long)", TIMED],
    "Four": ["Known.Generic<TKey, TValue>.Nested.Call<TOther>(TKey, List<TOther>, long)",
             "Known.Generic<TKey, TValue>.Run(TValue)", LAMBDA, TIMED],
    "Five": ["Known.Program.Caught(long)"],
    "Six": [LATER],
    "Seven": [LAMBDA, TIMED],
}
# The marks of their lines.
LINES = {
    "One": ["bottom"] + ["deeper"] * 20 + ["lambda1", "timed"],
    "Two": ["lambda2", "timed"],
    "Three": ["virtual", "timed"],
    "Four": ["nested", "generic", "lambda4", "timed"],
    "Five": ["caught"],
    "Six": ["later"],
    "Seven": ["lambda7", "timed"],
}
CALLS = ["Known.Program.Tiny(long, long)", "Known.Program.Small(object[], long, long)", "Known.Program.Calls(long)", TIMED]
MISSING = (dotnet_runtime.Unavailable, OSError, ValueError, LookupError, struct.error, tarfile.TarError, zipfile.BadZipFile)
UNNAMED = re.compile(r"\.dll\+0x|memfd:|^\[unknown method|^\[generated code|^\[\.NET")


def fits(name, wanted):
    return name == wanted or re.fullmatch(wanted, name) is not None


def goes_on(stack, at, chain):
    return len(stack) >= at + len(chain) and all(fits(n, w) for n, w in zip(stack[at:], chain))


def is_whole(stack):
    return stack[-1] in ("_start", "__libc_start_main", "clone3", "__clone3", "clone", "__clone") or not any("[cut" in n for n in stack)


def leaf_of(stack):
    """Where a leaf's frame is; above it may be what it called of the runtime."""
    for i, name in enumerate(stack):
        m = re.fullmatch(r"Known\.Leaves\.(\w+)\(long\)", name)
        if m:
            return i, m[1]
    return None, None


def run(d, label, argv, env):
    """It runs a little until its memory is read, then for so long."""
    go, before = os.path.join(lib.scratch(), "go"), functions(d)
    p = lib.start(argv + [str(MS), go], stdout=subprocess.PIPE, text=True, env=dict(os.environ, **env))
    lib.ok(lib.wait_for(lambda: functions(d) > before + 10, 60), "%s: its memory is read" % label)
    time.sleep(2)
    open(go, "w").close()
    text, _ = p.communicate(timeout=100)
    took = {k: int(v) for k, v in re.findall(r"(?m)^(\w+) (\d+)$", text)}
    lib.ok(p.returncode == 0 and set(CHAINS) < took.keys(), "%s runs the program (%s)" % (label, p.returncode))
    return p.pid, took


def functions(d):
    return d.status()["quality"]["interpreted"]["decoders"]["functions"]


def judge_leaf(label, leaf, found):
    all_ = sum(s.count for s, _ in found)
    right = sum(s.count for s, i in found if goes_on(s.stack, i + 1, CHAINS[leaf]) and is_whole(s.stack))
    for s, i in [f for f in found if not goes_on(f[0].stack, f[1] + 1, CHAINS[leaf]) or not is_whole(f[0].stack)][:3]:
        lib.note("%s: %s" % (label, " < ".join(s.stack[i:i + 6] + s.stack[-2:])))
    lib.ok(all_ and right >= 0.99 * all_, "%s: %d of %d stacks in Leaves.%s have its callers" % (label, right, all_, leaf))


def judge_lines(label, leaf, found, marks):
    """Each frame stands at its call; the leaf, which is one line, has that or none. Who called tells which leaf is right."""
    calls = [marks[m] for m in LINES[leaf]]
    all_ = there = outside = confused = 0
    for s, i in found:
        have = [f[4] for f in s.frames[i:i + 1 + len(calls)]]
        all_ += s.count
        there += s.count * (have == [marks[leaf]] + calls)
        outside += s.count * (have[0] not in (0, marks[leaf]))
        confused += s.count * (len(have) > 1 and have[1] not in (0, calls[0]))
    lib.ok(all_ and there >= 0.97 * all_, "%s: %d of %d stacks in Leaves.%s have their lines" % (label, there, all_, leaf))
    lib.ok(outside + confused <= 0.001 * all_, "%s: %d of them have a line of another function, %d another one's caller" % (
        label, outside, confused))


def judge_calls(label, samples):
    """Frames that are made and taken down all the time: each caller is the one that calls."""
    right = collections.Counter()
    for s in samples:
        at = next((i for i, n in enumerate(s.stack) if n in CALLS[:3]), None)
        if at is not None:
            legal = goes_on(s.stack, at, CALLS[CALLS.index(s.stack[at]):]) and is_whole(s.stack)
            right[legal] += s.count
            if not legal:
                lib.note("%s: %s" % (label, " < ".join(s.stack[:6] + s.stack[-2:])))
    all_ = sum(right.values())
    lib.ok(all_ and right[True] >= 0.99 * all_, "%s: %d of %d stacks of small functions are legal" % (label, right[True], all_))


def judge_framework(label, samples):
    """The framework's methods are named, and of their assembly."""
    all_ = named = sorts = 0
    for s in samples:
        at = next((i for i, n in enumerate(s.stack) if n == "Known.Program.Framework(long)"), None)
        if at is None or goes_on(s.stack, at + 1, ["Known.Program.Warm(long)"]):
            continue
        all_ += s.count
        named += s.count * (not any(UNNAMED.search(n) for n in s.stack) and goes_on(s.stack, at + 1, [TIMED]))
        sorts += s.count * any(f[0].startswith("System.Collections.Generic.ArraySortHelper<T>.") and f[5] == "System.Private.CoreLib.dll" for f in s.frames)
    lib.ok(all_ > 20 and named >= 0.97 * all_, "%s: %d of %d stacks in the framework are named" % (label, named, all_))
    lib.ok(sorts > 0.1 * all_, "%s: %d of %d of them sort, by System.Private.CoreLib.dll" % (label, sorts, all_))


def judge(label, samples, took, marks):
    leaves, all_, cut = collections.defaultdict(list), 0, collections.Counter()
    for s in samples:
        all_ += s.count
        cut.update({n: s.count for n in s.stack if "[cut" in n})
        at, leaf = leaf_of(s.stack)
        if leaf:
            leaves[leaf].append((s, at))
    counts = {k: sum(s.count for s, _ in v) for k, v in leaves.items()}
    total = sum(counts.values())
    lib.note("%s: %d samples, %d in leaves, cut: %s" % (label, all_, total, dict(cut)))
    if not set(CHAINS) < took.keys():
        return
    for leaf in CHAINS:
        judge_leaf(label, leaf, leaves[leaf])
        if marks:
            judge_lines(label, leaf, leaves[leaf], marks)
    judge_calls(label, samples)
    judge_framework(label, samples)
    # Five throws, and Six changes threads, besides.
    known_program.check_shares(label, counts, {k: took[k] for k in CHAINS if k not in ("Five", "Six")})


def compile_program(symbols):
    """The program, and the lines of its marks: Mono's compiler knows no portable PDBs."""
    program = os.path.join(lib.scratch(), "truth.dll")
    try:
        dotnet_runtime.compile_with_roslyn(SOURCE, program, symbols)
    except MISSING as e:
        lib.skip("lines of .NET", "there is no compiler that writes them: %s" % e)
        dotnet_runtime.compile_with_mono(SOURCE, program)
        return program, None
    return program, known_program.mark_lines(SOURCE, "//")


def commands():
    """Label, command, environment and marks of each program to run."""
    for version, make in dotnet_runtime.RUNTIMES.items():
        program, marks = compile_program("TRIMMED" if version == "10" else "WHOLE")
        try:
            argv = make(program, lib.scratch())
        except MISSING as e:
            lib.skip("stacks of .NET " + version, "its runtime is not to be had: %s" % e)
            continue
        for mode, env in MODES.items() if dotnet_runtime.ALL else list(MODES.items())[:1]:
            yield ".NET " + version + mode, argv, env, marks


def main():
    lib.need(platform.machine() == "x86_64", "stacks of .NET", "its code is read on x86-64 alone")
    lib.need(shutil.which("mcs"), "stacks of .NET", "there is no compiler of C# (mono-mcs)")
    all_ = list(commands())
    lib.need(all_, "stacks of .NET", "there is no runtime")
    d = lib.Otprofd(hz=HZ, profile={"sample_attributes": "process.pid"}, targets={"include": ["exe:dotnet", "exe:azmcp"]})
    ran = [(label, *run(d, label, argv, env), marks) for label, argv, env, marks in all_]
    last = d.stop()
    by_pid = known_program.samples_by_pid(d)
    for label, pid, took, marks in ran:
        judge(label, by_pid[pid], took, marks)
    lib.check_ledger(last, "the ledger balances", stopped=True)


main()
lib.finish()

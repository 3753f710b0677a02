# SPDX-License-Identifier: Apache-2.0
"""A program of .NET whose functions differ only by name and know how long they ran: names, lines, callers and shares of code
of the JIT compiler, and of the framework, which was compiled before; lines by a PDB in the assembly or beside it.
DOTNET=all: .NET 9 and 10 too, and each tier alone."""
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
TIMED = "Known.Program.Timed(string, long, Func<long, long>)"
# As Roslyn calls them, or Mono's compiler.
LAMBDA = re.compile(r"Known\.Program\.(<>c(__DisplayClass\w+)?\.|<Main>c__AnonStorey\d+\.)?<(Main)?>(m__\d+|b__\w+)\(long\)")
LATER = re.compile(r"Known\.Program\.(<Later>(c__async0|d__\d+)\.MoveNext\(\)|Rest\(long\))")
# From the leaf out.
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
CALLED_AT = ["small", "calls", "timed"]
# What is called by a thunk, what faulted while its handler runs, what is stopped: from the inner one out. Where a return
# address was replaced, the stack ends.
ODD_CALLS = {
    "delegates": ["Known.Program.Target(long, long)", "Known.Program.Delegates(long)", TIMED],
    "faults": ["Known.Program.Length(string)", "Known.Program.Faults(long)", TIMED],
    "collects": ["Known.Program.Stopped(long)", "Known.Program.Collects(long)", TIMED],
}
HIJACKED = "[stub: hijacked return]"
OTHER_BUILD = " with another build's PDB beside it"
MISSING = (dotnet_runtime.Unavailable, OSError, ValueError, LookupError, struct.error, tarfile.TarError, zipfile.BadZipFile)
# What the framework calls to sort texts, and only then; and to make them.
SORTS = re.compile(r"System\.(Array\.Sort|Collections\.Generic\.(Generic)?ArraySortHelper<)")
SORTED = re.compile(r"System\.(String\.Compare|Ordinal\w*Comparer)")
PRINTS = re.compile(r"System\.(Int64\.ToString|Number\.)")
UNNAMED = re.compile(r"\.dll\+0x|memfd:|^\[unknown method|^\[generated code|^\[\.NET")


def fits(name, wanted):
    return name == wanted if isinstance(wanted, str) else wanted.fullmatch(name) is not None


def goes_on(stack, at, chain):
    return len(stack) >= at + len(chain) and all(fits(n, w) for n, w in zip(stack[at:], chain))


def chain_at(stack, at, leaf):
    """Names and marks of the leaf's callers: the compiler may have inlined the lambda, which then counts as its caller. Of
    that the call is in code that it made for the purpose, which has no place of its own."""
    chain = list(zip(CHAINS[leaf], LINES[leaf]))
    inlined = chain[:-2] + [(TIMED, "within")]
    return inlined if (LAMBDA, TIMED) == tuple(CHAINS[leaf][-2:]) and goes_on(stack, at, [c[0] for c in inlined]) else chain


def is_legal(stack, at, leaf):
    return goes_on(stack, at, [name for name, _ in chain_at(stack, at, leaf)]) and is_whole(stack)


def is_whole(stack):
    return stack[-1] in ("_start", "__libc_start_main", "clone3", "__clone3", "clone", "__clone") or not any("[cut" in n for n in stack)


def leaf_of(stack):
    """Where a leaf's frame is; above it may be what it called of the runtime."""
    for i, name in enumerate(stack):
        m = re.fullmatch(r"Known\.Leaves\.(\w+)\(long\)", name)
        if m:
            return i, m[1]
    return None, None


def run(d, label, argv, env, ms=MS):
    """It runs a little until its memory is read, then for so long."""
    go, before = os.path.join(lib.scratch(), "go"), functions(d)
    p = lib.start(argv + [str(ms), go], stdout=subprocess.PIPE, text=True, env=dict(os.environ, **env))
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
    right = sum(s.count for s, i in found if is_legal(s.stack, i + 1, leaf))
    for s, i in [f for f in found if not is_legal(f[0].stack, f[1] + 1, leaf)][:3]:
        lib.note("%s: %s" % (label, " < ".join(s.stack[i:i + 26] + s.stack[-2:])))
    lib.ok(all_ and right >= 0.99 * all_, "%s: %d of %d stacks in Leaves.%s have its callers" % (label, right, all_, leaf))


def judge_lines(label, leaf, found, marks):
    """Each frame stands at its call, and the leaf on its only line. Who called says which leaf is the right one."""
    all_ = there = confused = 0
    for s, i in found:
        where = [marks[leaf]] + [marks[mark] for _, mark in chain_at(s.stack, i + 1, leaf)]
        have = [(f[4], lines) for f, lines in zip(s.frames[i:], where)]
        all_ += s.count
        there += s.count * (len(have) == len(where) and all(line in lines for line, lines in have))
        confused += s.count * any(line and line not in lines for line, lines in have[:2])
    lib.ok(all_ and there >= 0.99 * all_, "%s: %d of %d stacks in Leaves.%s have their lines" % (label, there, all_, leaf))
    lib.ok(confused <= 0.001 * all_, "%s: %d of them have lines of other functions" % (label, confused))


def judge_calls(label, samples, marks):
    """Frames that are made and taken down all the time: each caller is the one that calls, and where it does."""
    all_ = legal = there = 0
    for s in samples:
        at = next((i for i, n in enumerate(s.stack) if n in CALLS[:3]), None)
        if at is None:
            continue
        chain = CALLS[CALLS.index(s.stack[at]):]
        is_right = goes_on(s.stack, at, chain) and is_whole(s.stack)
        all_ += s.count
        legal += s.count * is_right
        if not is_right:
            lib.note("%s: %s" % (label, " < ".join(s.stack[:6] + s.stack[-2:])))
        where = [marks[m] for m in CALLED_AT[-len(chain) + 1:]] if marks else []
        there += s.count * all(f[4] in lines for f, lines in zip(s.frames[at + 1:], where))
    lib.ok(all_ and legal >= 0.99 * all_, "%s: %d of %d stacks of small functions are legal" % (label, legal, all_))
    lib.ok(not marks or there >= 0.99 * all_, "%s: %d of them are at their calls" % (label, there))


def is_odd_call(stack, chain):
    """A handler lies behind what faulted: the chain is that of the outer frames."""
    own = [n for n in stack if n in chain]
    if HIJACKED in stack:
        return goes_on(chain, chain.index(own[0]), own)
    return is_whole(stack) and (own[-3:] == chain or own == chain[1:])


def judge_odd_calls(label, samples):
    for what, chain in ODD_CALLS.items():
        of = [s for s in samples if set(chain[:2]) & set(s.stack)]
        wrong = [s for s in of if not is_odd_call(s.stack, chain)]
        for s in wrong[:3]:
            lib.note("%s: %s" % (label, " < ".join(s.stack)))
        hijacked = [s for s in of if HIJACKED in s.stack]
        all_, n, ended = (sum(s.count for s in x) for x in (of, wrong, hijacked))
        lib.ok(all_ > 20 and n <= 0.01 * all_, "%s: %d of %d stacks of what %s lack callers" % (label, n, all_, what))
        lib.ok(ended <= 0.01 * all_, "%s: %d of them end at a hijacked return" % (label, ended))


def judge_framework(label, samples):
    """The framework's methods are named, and of their assembly; those that sort are called by those that sort."""
    all_ = named = sorts = 0
    strange = collections.Counter()
    for s in samples:
        at = next((i for i, n in enumerate(s.stack) if n == "Known.Program.Framework(long)"), None)
        if at is None or goes_on(s.stack, at + 1, ["Known.Program.Warm(long)"]):
            continue
        all_ += s.count
        named += s.count * (not any(UNNAMED.search(n) for n in s.stack) and goes_on(s.stack, at + 1, [TIMED]))
        inner = [f for f in s.frames[:at] if f[1] == "dotnet" and f[0].startswith("System.")]
        is_sort = any(SORTS.match(f[0]) for f in inner)
        sorts += s.count * (is_sort and all(f[5] == "System.Private.CoreLib.dll" for f in inner))
        strange.update({f[0]: s.count for f in inner if (PRINTS if is_sort else SORTED).match(f[0])})
    lib.ok(all_ > 20 and named >= 0.97 * all_, "%s: %d of %d stacks in the framework are named" % (label, named, all_))
    lib.ok(sorts > 0.1 * all_, "%s: %d of %d of them sort, by System.Private.CoreLib.dll" % (label, sorts, all_))
    lib.ok(strange.total() <= 0.001 * all_, "%s: none of them is of both: %s" % (label, strange.most_common(5)))


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
    judge_calls(label, samples, marks)
    judge_odd_calls(label, samples)
    judge_framework(label, samples)
    # Five throws, and Six changes threads, besides.
    known_program.check_shares(label, counts, {k: took[k] for k in CHAINS if k not in ("Five", "Six")})


def judge_other_build(label, samples):
    """Names are the assembly's, and lines there are none: those of the other build could be wrong."""
    frames = [(f, s.count) for s in samples for f in s.frames if f[0].startswith("Known.")]
    all_ = sum(n for _, n in frames)
    lined = sum(n for f, n in frames if f[4] or f[5] != "truth.dll")
    lib.ok(all_ > 20 and not lined, "%s: %d of %d frames have lines" % (label, lined, all_))


def judge_line_files(last, labels):
    """Of each program its file counts at least once; the framework has none."""
    files = last["quality"]["interpreted"]["decoders"]["line_files"]
    beside = sum("PDB" in label for label in labels) // 2
    lib.ok(files["read"] >= beside and files["other_build"] >= beside,
           "%d PDBs beside programs were read, and as many of other builds refused: %s" % (beside, files))
    lib.ok(not any(files[k] for k in ("broken", "refused", "too_large", "too_many")), "no other one is amiss")


def compile_program(symbols):
    """The program, and the lines of its marks: Mono's compiler knows no portable PDBs."""
    program = os.path.join(lib.scratch(), "truth.dll")
    try:
        dotnet_runtime.compile_with_roslyn(SOURCE, program, symbols)
    except MISSING as e:
        lib.skip("lines of .NET", "there is no compiler that writes them: %s" % e)
        dotnet_runtime.compile_with_mono(SOURCE, program)
        return program, None
    return program, lines_of_marks(symbols)


def besides(version, make):
    """The program with its PDB in a file beside it, then with that of another build, of a source with a line more at its top."""
    directory, later = lib.scratch(), lib.scratch()
    with open(SOURCE) as old, open(later + "/truth.cs", "w") as new:
        new.write("\n" + old.read())
    for source, where in ((SOURCE, directory), (later + "/truth.cs", later)):
        dotnet_runtime.compile_with_roslyn(source, where + "/truth.dll", symbols_of(version), where + "/truth.pdb")
    for label, pdb, ms in ((" with a PDB beside it", directory, MS), (OTHER_BUILD, later, MS // 8)):
        beside = lib.scratch()
        argv = make(directory + "/truth.dll", beside)
        shutil.copy(pdb + "/truth.pdb", beside)
        yield ".NET " + version + label, argv, {}, lines_of_marks(symbols_of(version)), ms


def symbols_of(version):
    return "TRIMMED" if version == "10" else "WHOLE"


def lines_of_marks(symbols):
    """Which lines each mark stands for."""
    lines = known_program.mark_lines(SOURCE, "//")
    marks = {mark: {line} for mark, line in lines.items()}
    marks["within"] = set(range(lines["from"], lines["to"] + 1))
    return dict(marks, later=marks["rest"]) if symbols == "TRIMMED" else marks


def commands():
    """Label, command, environment and marks of each program to run."""
    for version, make in dotnet_runtime.RUNTIMES.items():
        program, marks = compile_program(symbols_of(version))
        try:
            argv = make(program, lib.scratch())
        except MISSING as e:
            lib.skip("stacks of .NET " + version, "its runtime is not to be had: %s" % e)
            continue
        for mode, env in MODES.items() if dotnet_runtime.ALL else list(MODES.items())[:1]:
            yield ".NET " + version + mode, argv, env, marks, MS
        if marks:
            yield from besides(version, make)
        if version == "9":
            argv = dotnet_runtime.by_file_of_directory(program, lib.scratch())
            yield ".NET 9 in one file, without tiers", argv, MODES[" without tiers"], marks, MS


def main():
    lib.need(platform.machine() == "x86_64", "stacks of .NET", "its code is read on x86-64 alone")
    lib.need(shutil.which("mcs"), "stacks of .NET", "there is no compiler of C# (mono-mcs)")
    all_ = list(commands())
    lib.need(all_, "stacks of .NET", "there is no runtime")
    d = lib.Otprofd(hz=HZ, profile={"sample_attributes": "process.pid"}, targets={"include": ["exe:dotnet", "exe:azmcp"]})
    ran = [(label, *run(d, label, argv, env, ms), marks) for label, argv, env, marks, ms in all_]
    last = d.stop()
    by_pid = known_program.samples_by_pid(d)
    for label, pid, took, marks in ran:
        if label.endswith(OTHER_BUILD):
            judge_other_build(label, by_pid[pid])
        else:
            judge(label, by_pid[pid], took, marks)
    judge_line_files(last, [label for label, *_ in ran])
    lib.check_ledger(last, "the ledger balances", stopped=True)


main()
lib.finish()

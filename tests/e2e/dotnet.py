# SPDX-License-Identifier: Apache-2.0
"""A program of .NET whose functions differ only by name and know how long they ran: names, callers and shares of code of
the JIT compiler, in each of its tiers, and of the framework, which was compiled before. DOTNET=all: .NET 9 and 10 too."""
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
SOURCE = os.path.join(lib.TOP, "tests", "programs", "dotnet", "truth.cs")
MODES = {"": {}, " without tiers": {"DOTNET_TieredCompilation": "0"}, " without profiles": {"DOTNET_TieredPGO": "0"}}
TIMED = r"Known.Program.Timed(string, long, Func<long, long>)"
LAMBDA = r"Known\.Program\.(<Main>c__AnonStorey\d+\.)?<(Main)?>(m__\d+|b__\w+)\(long\)"
# From the leaf out; what a string does not match in full, it is as a text.
CHAINS = {
    "One": ["Known.Program.Deep(int, long)"] * 21 + [LAMBDA, TIMED],
    "Two": [LAMBDA, TIMED],
    "Three": ["Known.Virtual.Run(long)", TIMED],
    "Four": ["Known.Generic<TKey, TValue>.Nested.Call<TOther>(TKey, List<TOther>, long)",
             "Known.Generic<TKey, TValue>.Run(TValue)", LAMBDA, TIMED],
    "Five": ["Known.Program.Caught(long)"],
    "Six": [r"Known\.Program\.<Later>c__async0\.MoveNext\(\)"],
    "Seven": [LAMBDA, TIMED],
}
CALLS = ["Known.Program.Tiny(long, long)", "Known.Program.Small(object[], long, long)", "Known.Program.Calls(long)", TIMED]
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


def judge(label, samples, took):
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
    judge_calls(label, samples)
    judge_framework(label, samples)
    # Five throws, and Six changes threads, besides.
    plain = [k for k in CHAINS if k not in ("Five", "Six")]
    there, time = sum(counts.get(k, 0) for k in plain), sum(took[k] for k in plain)
    off = max(abs(counts.get(k, 0) / max(there, 1) - took[k] / time) for k in plain)
    lib.ok(total > 0.2 * MS * len(CHAINS) / 1000 * HZ and off < 0.05 + 1.5 / max(there, 1) ** 0.5,
           "%s: leaves have the shares of their time (%.1f points off) %s" % (label, 100 * off, counts))


def commands(program):
    """Label, command and environment of each program to run."""
    for version, make in dotnet_runtime.RUNTIMES.items():
        try:
            argv = make(program, lib.scratch())
        except (dotnet_runtime.Unavailable, OSError, ValueError, LookupError, struct.error, tarfile.TarError,
                zipfile.BadZipFile) as e:
            lib.skip("stacks of .NET " + version, "its runtime is not to be had: %s" % e)
            continue
        for mode, env in MODES.items() if dotnet_runtime.ALL else list(MODES.items())[:1]:
            yield ".NET " + version + mode, argv, env


def main():
    lib.need(platform.machine() == "x86_64", "stacks of .NET", "its code is read on x86-64 alone")
    lib.need(shutil.which("mcs"), "stacks of .NET", "there is no compiler of C# (mono-mcs)")
    program = os.path.join(lib.scratch(), "truth.dll")
    subprocess.run(["mcs", "-optimize", SOURCE, "-out:" + program], check=True)
    all_ = list(commands(program))
    lib.need(all_, "stacks of .NET", "there is no runtime")
    d = lib.Otprofd(hz=HZ, profile={"sample_attributes": "process.pid"}, targets={"include": ["exe:dotnet", "exe:azmcp"]})
    ran = [(label, *run(d, label, argv, env)) for label, argv, env in all_]
    last = d.stop()
    by_pid = known_program.samples_by_pid(d)
    for label, pid, took in ran:
        judge(label, by_pid[pid], took)
    lib.check_ledger(last, "the ledger balances", stopped=True)


main()
lib.finish()

# SPDX-License-Identifier: Apache-2.0
"""A Lua program whose functions differ only by name and know how long they ran, in LuaJIT's interpreter and as its traces,
and in Lua 5.1 to 5.4: names, lines, callers and shares. LUA=long runs longer; LUAJITS and LUAS name further programs luajit
and lua, of other versions."""
import collections
import glob
import os
import platform
import re
import shutil
import struct
import subprocess

import known_program
import lib

HZ = lib.rate(499)
SECONDS = 30 if os.environ.get("LUA") == "long" else 2
PROGRAMS = os.path.join(lib.TOP, "tests", "programs", "lua")
SOURCE = os.path.join(PROGRAMS, "truth.lua")
OUTSIDE = ["timed", "turns", "main chunk"]
CHAINS = {  # from the leaf out, without what is native; None: a function that nothing names
    "one": ["leaf_one"] + ["deep"] * 21 + OUTSIDE,
    "two": ["leaf_two", None, "caught"] + OUTSIDE,
    "three": ["leaf_three"] + OUTSIDE,
    "four": ["leaf_four", "body"] + OUTSIDE,
    "five": ["leaf_five", None, "replaced"] + OUTSIDE,
}
CALLS = {  # the lines from the leaf out, by their marks
    "one": ["one", "bottom"] + ["deeper"] * 20,
    "two": ["two", "protected"],
    "four": ["four", "coroutine"],
    "five": ["five", "callback"],
}
# Of calls.lua: other ways to be called; where a C function called, * stands for its native frames, which may be the
# interpreter's own where LuaJIT runs.
WAYS = {
    "sort": ["work", "leaf_sort", None, "*", "sorted"],
    "index": ["work", "leaf_index", "__index", "indexed"],
    "iterate": ["work", "leaf_iterate", None, "iterated"],
    "nested": ["work", "leaf_nested", "inner", "*", "outer", "*"],
    "across": ["work", "leaf_across", "within", "guarded", "*", "across"],
    "again": ["work", "leaf_again"] + ["recurse", "*"] * 5 + ["recurse"],
}
# A program of a library of Lua that was compiled as C++, whose headers need not be here.
HOST = """
void *luaL_newstate(void);
void luaL_openlibs(void *);
int luaL_loadfilex(void *, const char *, const char *);
int lua_pcallk(void *, int, int, int, long, void *);
void lua_createtable(void *, int, int);
void lua_rawseti(void *, int, %(index)s);
void lua_setglobal(void *, const char *);
const char *lua_pushstring(void *, const char *);

int main(int argc, char **argv)
{
	void *l = luaL_newstate();

	luaL_openlibs(l);
	lua_createtable(l, 0, 0);
	lua_pushstring(l, argv[2]);
	lua_rawseti(l, -2, 1);
	lua_setglobal(l, "arg");
	return luaL_loadfilex(l, argv[1], 0) || lua_pcallk(l, 0, 0, 0, 0, 0);
}
"""
START = 0.5 # seconds in which the process is too young for a decoder, or has no walk yet


def run(argv, source, leaves, seconds):
    """Its process, and how many microseconds each leaf took."""
    p = lib.start(argv + [source, str(seconds)], stdout=subprocess.PIPE, text=True)
    text, _ = p.communicate(timeout=SECONDS * 60) # it counts its CPU time
    took = {k: int(v) for k, v in re.findall(r"(?m)^(\w+) (\d+)$", text)}
    ran = p.returncode == 0 and set(took) >= leaves
    lib.ok(ran, "%s runs %s (%s)" % (" ".join(argv), os.path.basename(source), p.returncode))
    return p.pid, took if ran else {}


def root_of(program):
    """What its outermost function is called, which no symbol names where it is stripped."""
    with open(program, "rb") as f:
        entry = struct.unpack_from("<Q", f.read(64), 24)[0]
    return ("_start", "%s+0x%x" % (os.path.basename(os.path.realpath(program)), entry))


def lua(sample):
    return [f for f in sample.frames if f[1] in ("luajit", "lua")]


def fits(names, chain):
    """Tail calls leave no frame of their callers: closure and made return by one."""
    return len(names) == len(chain) and all(
        re.fullmatch(r"function <(truth|calls)\.lua:\d+>", n) if want is None else n == want for n, want in zip(names, chain))


def judge_leaf(label, root, leaf, samples, lines):
    """Of the samples in a leaf: how many have its callers up to the program's root, and their lines."""
    all_ = whole = there = 0
    for s in samples:
        frames = lua(s)
        all_ += s.count
        whole += s.count * (fits([f[0] for f in frames], CHAINS[leaf]) and s.stack[-1] in root)
        want = [lines[m] for m in CALLS.get(leaf, [leaf])]
        have = [f[4] for f in frames[:len(want)]]
        # The instruction that ends a loop's turn is on the line of the loop's head.
        there += s.count * (have[:1] in ([want[0]], [want[0] - 1]) and have[1:] == want[1:])
    lib.ok(all_ and whole >= 0.98 * all_, "%s: %d of %d stacks in leaf_%s have its callers" % (label, whole, all_, leaf))
    lib.ok(all_ and there >= 0.97 * all_, "%s: %d of %d stacks in leaf_%s have their lines" % (label, there, all_, leaf))


def judge(label, root, samples, took):
    lines = known_program.mark_lines(SOURCE, "--")
    leaves, strange = collections.defaultdict(list), collections.Counter()
    all_ = sum(s.count for s in samples)
    for s in samples:
        names = [f[0] for f in lua(s)]
        m = re.fullmatch(r"leaf_(\w+)", names[0]) if names else None
        if m:
            leaves[m[1]].append(s)
        for reason in ("[cut", "do not fit"):
            strange[reason] += s.count * any(reason in n for n in s.stack)
        strange["bare"] += s.count * (not names)
        strange["unknown"] += s.count * any(n in names for n in ("[LuaJIT function]", "[Lua function]"))
    counts = {k: sum(s.count for s in v) for k, v in leaves.items()}
    lib.note("%s: %d samples, %d in leaves, %s" % (label, all_, sum(counts.values()), dict(strange)))
    if took.keys() != CHAINS.keys():
        return
    for leaf in CHAINS:
        judge_leaf(label, root, leaf, leaves[leaf], lines)
    at_start = START * HZ + 0.01 * all_
    lib.ok(max(strange.values()) <= at_start, "%s: but for its start, stacks are whole and named: %s" % (label, dict(strange)))
    known_program.check_shares(label, counts, took)
    time = sum(took.values())
    due = time / 1e6 * HZ
    lib.ok(abs(all_ - due) <= 0.2 * due + 4 * due ** 0.5, "%s: %d samples of %.1f s, expected %d" % (label, all_, time / 1e6, due))


def way_fits(sample, root, way):
    """Whether the sample's frames of Lua are these, and where * is, native ones lie between them (of PUC-Rio's, not LuaJIT's)."""
    at = [i for i, f in enumerate(sample.frames) if f[1] in ("luajit", "lua")]
    if not fits([sample.frames[i][0] for i in at], [n for n in way if n != "*"] + OUTSIDE):
        return False
    gaps, frames = [i for i, n in enumerate(way) if n == "*"], [f[1] for f in sample.frames]
    return "luajit" in frames or all(
        at[g - k] - at[g - k - 1] > 1 for k, g in enumerate(gaps)) and sample.stack[-1] in root


def judge_ways(label, root, samples, took):
    """Of the samples in each leaf of calls.lua, how many have the way to it; and no strange ones."""
    strange, cut = sum(s.count for s in samples if not lua(s)), 0
    for leaf in took:
        mine = [s for s in samples if "leaf_" + leaf in [f[0] for f in lua(s)]]
        all_, whole = sum(s.count for s in mine), sum(s.count for s in mine if way_fits(s, root, WAYS[leaf]))
        cut += sum(s.count for s in mine if any(r in n for n in s.stack for r in ("[cut", "do not fit", "not copied")))
        lib.ok(all_ and whole >= 0.98 * all_, "%s: %d of %d stacks in leaf_%s have its callers" % (label, whole, all_, leaf))
    all_ = sum(s.count for s in samples)
    lib.ok(strange <= START * HZ + 0.01 * all_, "%s: %d of %d stacks without Lua" % (label, strange, all_))
    lib.ok(cut <= 0.01 * all_, "%s: %d of %d stacks are cut or do not fit" % (label, cut, all_))


def programs():
    """How to start each interpreter that is here."""
    found = []
    for luajit in [shutil.which("luajit")] + os.environ.get("LUAJITS", "").split():
        if luajit:
            found += [[luajit, "-joff"], [luajit]]
        else:
            lib.skip("stacks of LuaJIT", "there is no luajit")
    for version in ("5.4", "5.3", "5.1", "5.2"):
        found += [[p] for p in [shutil.which("lua" + version)] if p]
        if not shutil.which("lua" + version):
            lib.skip("stacks of Lua " + version, "there is no lua" + version)
    return found + [[p] for p in os.environ.get("LUAS", "").split()]


def hosts():
    """Programs of the libraries compiled as C++ that are here."""
    found, where = [], lib.scratch()
    for library in sorted(glob.glob("/usr/lib/*/liblua5.[234]-c++.so.0")) if shutil.which("gcc") else []:
        path = os.path.join(where, os.path.basename(library).split(".so")[0])
        subprocess.run(["gcc", "-O1", "-x", "c", "-", "-o", path, "-x", "none", library], check=True, text=True,
                       input=HOST % {"index": "int" if "5.2" in library else "long long"})
        found.append([path])
    if not found:
        lib.skip("stacks of Lua compiled as C++", "there is no library of it, or no gcc")
    return found


def judge_cxx(label, root, samples):
    """No walk sees a coroutine that lua_resume's own copy of a function has entered: it shows what its callers are."""
    lines = known_program.mark_lines(SOURCE, "--")
    for leaf in sorted(CHAINS.keys() - {"four"}):
        judge_leaf(label, root, leaf, [s for s in samples if "leaf_" + leaf in [f[0] for f in lua(s)]], lines)
    resumed = [s for s in samples if "lua_resume" in s.stack and lua(s)] # at the start there are none
    inside = sum(s.count for s in resumed if any(f[1] == "lua" for f in s.frames[:s.stack.index("lua_resume")]))
    outside = sum(s.count for s in resumed if [f[0] for f in lua(s)] == OUTSIDE)
    all_ = sum(s.count for s in resumed)
    lib.ok(all_ >= 0.1 * sum(s.count for s in samples) and not inside,
           "%s: %d of %d stacks in a coroutine have callers of it as frames in it" % (label, inside, all_))
    lib.ok(outside >= 0.98 * all_, "%s: %d of %d have its callers beyond it" % (label, outside, all_))


def main():
    lib.need(platform.machine() == "x86_64", "stacks of Lua", "Lua's frames are read on x86-64 alone")
    found, compiled = programs(), hosts()
    if lib.SOURCE == "perf":
        lib.skip("stacks of Lua by perf", "perf does not walk interpreters")
        return
    d = lib.Otprofd(hz=HZ, profile={"sample_attributes": "process.pid"})
    ran = [(argv, *run(argv, SOURCE, set(CHAINS), SECONDS)) for argv in found]
    ways = [(argv, *run(argv, os.path.join(PROGRAMS, "calls.lua"), set(WAYS) - {"across"}, SECONDS / 2)) for argv in found
            if "luajit" not in argv[0]]
    cxx = [(argv, *run(argv, SOURCE, set(CHAINS), SECONDS)) for argv in compiled]
    last = d.stop()
    by_pid = known_program.samples_by_pid(d)
    for argv, pid, took in ran:
        judge(" ".join(argv), root_of(argv[0]), by_pid[pid], took)
    for argv, pid, took in ways:
        judge_ways(argv[0], root_of(argv[0]), by_pid[pid], took)
    for argv, pid, _ in cxx:
        judge_cxx(os.path.basename(argv[0]), root_of(argv[0]), by_pid[pid])
    lib.check_ledger(last, "the ledger balances", stopped=True)


main()
lib.finish()

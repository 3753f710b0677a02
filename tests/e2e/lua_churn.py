# SPDX-License-Identifier: Apache-2.0
"""Functions of Lua and traces of LuaJIT that are made, flushed, dropped and collected all the time, so that others lie where they
lay. No stack may have the name of another one; what cannot be known has none, and that is counted. LUA=long and MODES, an
expression, say which are run, SECONDS for how long; churn_lib.py says how many samples."""
import os
import platform
import re
import shutil
import subprocess

import churn_lib
import lib

HZ = lib.rate(997)
LONG = os.environ.get("LUA") == "long" or churn_lib.SAMPLES
SECONDS = int(os.environ.get("SECONDS", 12 if LONG else 3))
MODES = os.environ.get("MODES", "")
SOURCE = os.path.join(lib.TOP, "tests", "programs", "lua", "churn.lua")
# Command, milliseconds that a function lives, the highest share of stacks that are not known. Short: the first two.
RUNS = {
    "LuaJIT": (["luajit"], 1000, 0.01),
    "Lua 5.4": (["lua5.4"], 1000, 0.01),
    "LuaJIT of 100 ms": (["luajit"], 100, 0.1),
    "LuaJIT's interpreter": (["luajit", "-joff"], 1000, 0.01),
    "Lua 5.1": (["lua5.1"], 1000, 0.01),
    "LuaJIT's interpreter, of 100 ms": (["luajit", "-joff"], 100, 0.01),
    "Lua 5.4 of 100 ms": (["lua5.4"], 100, 0.01),
    "Lua 5.1 of 100 ms": (["lua5.1"], 100, 0.01),
}
START = 1.0  # seconds until Lua is known
UNKNOWN = re.compile(r"\[(LuaJIT|Lua) function\]|\[anon\]|\[cut: (?!inside exec).*|.*do not fit.*")


def judge(sample):
    """Function N and its leaf have their number in their names or that of their chunk; so does the thread, with LuaJIT."""
    frames = [f for f in sample.frames if f[1] in ("luajit", "lua")]
    leaves = {m[1] for m in [re.fullmatch(r"leaf_(\d+)", f[0]) for f in frames] if m}
    made = leaves | {m[1] for m in [re.fullmatch(r"made_(\d+)", f[5]) for f in frames] if m}
    thread = re.fullmatch(r"f_(\d+)", sample.attributes.get("thread.name", ""))
    if made and len(made | ({thread[1]} if thread else set())) > 1:
        return churn_lib.WRONG, "%s: %s" % (thread and thread[0], [(f[0], f[5]) for f in frames])
    unknown = next((n for n in sample.stack if UNKNOWN.fullmatch(n)), None)
    if unknown:
        return churn_lib.UNKNOWN, unknown
    return (churn_lib.RIGHT, "") if made else (churn_lib.ELSEWHERE, sample.stack[0])


def begin(command, life):
    """One for each CPU, if they run for long."""
    return [lib.start(command + [SOURCE, str(SECONDS), str(life)], stdout=subprocess.DEVNULL)
            for _ in range(os.cpu_count() if churn_lib.SAMPLES else 1)]


def main():
    lib.need(platform.machine() == "x86_64", "stacks of Lua's functions that come and go", "Lua's frames are read on x86-64 alone")
    lib.need(lib.SOURCE != "perf", "stacks of Lua's functions that come and go by perf", "perf does not walk interpreters")
    chosen = {k: v for k, v in (RUNS if LONG or MODES else dict(list(RUNS.items())[:2])).items() if re.search(MODES, k)}
    programs = sorted({"exe:" + os.path.basename(os.path.realpath(p)) for p in map(shutil.which, ("luajit", "lua5.4", "lua5.1")) if p})
    lib.need(programs, "stacks of Lua's functions that come and go", "there is no Lua")
    churn = churn_lib.Churn(lib.Otprofd(hz=HZ, profile={"sample_attributes": "process.pid thread.name"},
                                        targets={"include": programs}))
    for label, (command, life, highest) in chosen.items():
        if shutil.which(command[0]):
            churn.run(label, lambda c=command, l=life: begin(c, l), SECONDS, judge, highest + (0 if churn_lib.SAMPLES else START / SECONDS))
        else:
            lib.skip(label, "there is no %s" % command[0])
    churn.stop()


main()
lib.finish()

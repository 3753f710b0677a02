# SPDX-License-Identifier: Apache-2.0
"""Functions of JavaScript and modules of WebAssembly that are made, optimized, deoptimized, dropped and collected all the time,
so that others lie where they lay. No stack may have the name of another one; what cannot be known has none, and that is counted.
javascript_lib.py says which programs of node are tried; JAVASCRIPT=all runs every mode, and longer; MODES, if it is set, is an
expression for those that are run, SECONDS for how long; churn_lib.py says how many samples."""
import functools
import os
import platform
import re

import churn_lib
import lib
from javascript_lib import ALL, CUT, UNKNOWN, nodes, start, tells_heaps

HZ = lib.rate(997)
SECONDS = int(os.environ.get("SECONDS", 12 if ALL else 3))
MODES = os.environ.get("MODES", "")
LONG = ALL or MODES or churn_lib.SAMPLES
# Program, options, milliseconds that a function lives (0: for some calls), how many workers there are (0: the main
# thread works) and how many that do nothing; the highest share of stacks that are not known.
RUNS = {
    "functions": ("churn.js", [], (1000, 0), 0.01),
    "modules of an instant": ("wasm_churn.js", [], (0, 0), 0.3),
    "functions of an instant": ("churn.js", [], (0, 0), 0.05),
    "functions of 100 ms": ("churn.js", [], (100, 0), 0.05),
    "baseline": ("churn.js", ["--always-sparkplug"], (1000, 0), 0.01),
    "jitless": ("churn.js", ["--jitless"], (1000, 0), 0.01),
    "modules": ("wasm_churn.js", [], (1000, 0), 0.01),
    "modules of 100 ms": ("wasm_churn.js", [], (100, 0), 0.05),
    "workers": ("churn.js", [], (1000, 2), 0.01),
    "workers far from node": ("churn.js", [], (1000, 2, 6), 0.01),
}
START = 1.0  # seconds until V8 is known
MADE = re.compile(r"(leaf|outer)_\d+")
CALLERS = {"churn.js": re.compile(r"\(anonymous\);run;(brief|turn);work;"),
           "wasm_churn.js": re.compile(r"run;(brief|turn);")}


def has_callers(program, names):
    """Whether the callers of what was made are there, not one more or less: a leaf's is its function."""
    names = [n for n in names if not n.startswith("[")] # wrappers that V8 makes
    made = [n for n in names if MADE.fullmatch(n)]
    at = names.index(made[0])
    outer = names[at:][made[0].startswith("leaf"):]
    return len(made) <= 2 and outer and outer[0].startswith("outer") and CALLERS[program].match(";".join(outer[1:]))


def judge(program, sample):
    """Function N calls its own leaf, whose name ends in N; so does that of the thread."""
    names = [f[0] for f in sample.frames if f[1] == "v8js"]
    made = [n for n in names if MADE.fullmatch(n)]
    thread = re.fullmatch(r"f_(\d+)", sample.attributes.get("thread.name", ""))
    numbers = {n.split("_")[1] for n in made} | ({thread[1]} if thread else set())
    if made and (len(numbers) > 1 or len(made) != len(set(made))):
        return churn_lib.WRONG, "%s: %s" % (thread and thread[0], ";".join(made))
    unknown = next((n for n in sample.stack if n in UNKNOWN or CUT.match(n)), None)
    if unknown:
        return churn_lib.UNKNOWN, unknown
    if made and not has_callers(program, names):
        return churn_lib.WRONG, "%s: %s" % (thread and thread[0], ";".join(sample.stack))
    return (churn_lib.RIGHT, "") if made else (churn_lib.ELSEWHERE, sample.stack[0])


def begin(node, program, options, how):
    """One for each CPU, if they run for long."""
    return [start(node, options, program, SECONDS, *map(str, how)) for _ in range(os.cpu_count() if churn_lib.SAMPLES else 1)]


def main():
    lib.need(platform.machine() == "x86_64", "stacks of JavaScript", "V8's code is read on x86-64 alone")
    found = [n for n in nodes() if tells_heaps(n, "churn")]
    if not found:
        return
    churn = churn_lib.Churn(lib.Otprofd(hz=HZ, profile={"sample_attributes": "process.pid thread.name"},
                                        targets={"include": sorted({"exe:" + n.name for n in found})}))
    for node in found:
        for name, (program, options, how, highest) in (RUNS if LONG else dict(list(RUNS.items())[:2])).items():
            if re.search(MODES, name):
                highest = min(0.95, highest + (0 if churn_lib.SAMPLES else START / SECONDS))
                churn.run("%s %s" % (node.label, name), lambda n=node, p=program, o=options, h=how: begin(n, p, o, h), SECONDS,
                          functools.partial(judge, program), highest)
    churn.stop()


main()
lib.finish()

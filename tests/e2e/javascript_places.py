# SPDX-License-Identifier: Apache-2.0
"""Where functions of JavaScript are: each call is in the line, and at the column if there is one, where V8's own stack of the
same process has it; and functions whose names and places V8 keeps in another way than others'. javascript_lib.py says which
programs of node are tried; JAVASCRIPT=all runs for longer."""
import collections
import os
import platform
import subprocess

import known_program
import lib
from javascript_lib import ALL, UNKNOWN, nodes, takes

HZ = lib.rate(499)
SECONDS = 8 if ALL else 2
MODES = {
    "optimized": [],
    "interpreted": ["--jitless", "--no-enable-lazy-source-positions"],
}
# Program: the function that it runs in, and the line where that begins.
FUNCTIONS = {
    "module.mjs": ("(anonymous)", 1),
    "locals.js": ("bundle", 1),
}
# With what tools of coverage set (c8, and others by the inspector), V8 keeps something else where a function's script was.
COVERAGE = {"NODE_V8_COVERAGE": lib.scratch()}


def run(node, options, program, environment=None):
    """Its process, and what it wrote."""
    command = node.command(*options, node.place(os.path.join(known_program.WHERE, program)), str(SECONDS))
    p = lib.start(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                  env=dict(os.environ, **(environment or {})))
    text, _ = p.communicate(timeout=SECONDS * 8)
    lib.ok(p.returncode == 0, "%s %s ends well (%s)" % (program, options, p.returncode))
    return p.pid, text


def calls_of(text):
    """Of callee and caller: (line, column) of each call."""
    calls = collections.defaultdict(set)
    for callee, caller, place in map(str.split, text.splitlines()):
        calls[callee, caller].add(tuple(map(int, place.split(":"))))
    return calls


def judge_calls(label, samples, text):
    calls = calls_of(text)
    met, wrong, columns, all_ = collections.defaultdict(set), collections.Counter(), 0, 0
    for s in samples:
        for callee, f in zip(s.frames, s.frames[1:]):
            places = calls.get((callee[0], f[0]))
            if not places or f[1] != "v8js" or not f[4]:
                continue
            all_ += s.count
            columns += s.count * bool(f.column)
            here = {(line, column) for line, column in places if line == f[4] and f.column in (0, column)}
            met[callee[0], f[0]] |= here
            if not here:
                wrong["%s in %s at %d:%d" % (callee[0], f[0], f[4], f.column)] += s.count
    missing = {k: v - met[k] for k, v in calls.items() if v - met[k]}
    lib.ok(all_ > SECONDS * HZ / 4 and not wrong, "%s: %d calls, %d of them with a column, are where V8 has them: %s" % (
        label, all_, columns, wrong.most_common(5)))
    lib.ok(not missing, "%s: each of the calls is met: %s" % (label, missing))
    return columns


def judge_function(label, samples, program):
    name, start = FUNCTIONS[program]
    all_ = sum(s.count for s in samples)
    found = sum(s.count for s in samples
                if any((f[0], f.start, os.path.basename(f[5])) == (name, start, program) for f in s.frames))
    unknown = sum(s.count for s in samples if any(n in UNKNOWN for n in s.stack))
    # Until the runtime is known, and the program has begun.
    lib.ok(found > SECONDS * HZ / 4 and unknown <= 0.5 * HZ + 0.01 * all_, "%s: %d of %d stacks have %s, %d are not known" % (
        label, found, all_, name, unknown))


def main():
    lib.need(platform.machine() == "x86_64", "places of JavaScript", "V8's code is read on x86-64 alone")
    found = nodes()
    taken = [(n, m, o) for n in found for m, o in MODES.items() if takes(n, *o)]
    if not taken:
        return
    d = lib.Otprofd(hz=HZ, profile={"sample_attributes": "process.pid"},
                    targets={"include": sorted({"exe:" + n.name for n in found})})
    ran = [("%s %s" % (n.label, m), m, *run(n, o, "places.js")) for n, m, o in taken]
    ran += [("%s coverage" % n.label, "coverage", *run(n, [], "places.js", COVERAGE)) for n in found]
    functions = [("%s %s" % (n.label, p), p, run(n, [], p)[0]) for n in found for p in FUNCTIONS]
    last = d.stop()
    by_pid = known_program.samples_by_pid(d)
    for label, mode, pid, text in ran:
        columns = judge_calls(label, by_pid[pid], text)
        lib.ok(columns or mode != "optimized", "%s: %d calls have a column" % (label, columns))
    for label, program, pid in functions:
        judge_function(label, by_pid[pid], program)
    lib.check_ledger(last, "the ledger balances", stopped=True)


main()
lib.finish()

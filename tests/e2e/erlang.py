# SPDX-License-Identifier: Apache-2.0
"""An Erlang program whose functions differ only by name and know how long they ran: names, lines, callers and shares of
what BEAM's JIT compiler made. ERLANG=long runs longer; ERLS names further programs erl, of other versions, whose
directory has an erlc."""
import collections
import os
import platform
import re
import shutil
import subprocess

import known_program
import lib

HZ = lib.rate(499)
SECONDS = 30 if os.environ.get("ERLANG") == "long" else 5
SOURCE = os.path.join(lib.TOP, "tests", "programs", "erlang", "truth.erl")
DEEP = ["truth:deep/2"] * 21
CHAINS = {  # from the leaf out, up to what every process of Erlang begins with
    "one": ["truth:leaf_one/2"] + DEEP + ["truth:timed/3", "truth:turns/2"],
    "two": ["truth:leaf_two/2", "truth:'-comprehension/1-lc$^0/1-0-'/1"],
    "three": ["truth:leaf_three/2", "truth:caught/1", "truth:timed/3", "truth:turns/2"],
    "four": ["truth:leaf_four/2", "truth:'-other_process/1-fun-0-'/2"],
}
BIF = ["truth:timed/3", "truth:turns/2"]
TIMED = set(CHAINS) | {"five"}


def mark_lines():
    """The line of each mark in the source."""
    with open(SOURCE) as f:
        return {m[1]: n for n, text in enumerate(f, 1) for m in [re.search(r"%% (\w+)$", text)] if m}


def run(erl, directory):
    """Its process, and how many microseconds each leaf took."""
    erlc = os.path.join(os.path.dirname(erl), "erlc")
    subprocess.run([erlc, "-o", directory, SOURCE], check=True)
    env = dict(os.environ, ERL_CRASH_DUMP=os.path.join(directory, "dump"))
    p = lib.start([erl, "-noshell", "-pa", directory, "-run", "truth", "main", str(SECONDS)], stdout=subprocess.PIPE, text=True,
                  env=env)
    text, _ = p.communicate(timeout=SECONDS * 8)
    took = dict(re.findall(r"(?m)^(\w+) (\d+)$", text))
    lib.ok(p.returncode == 0 and took.keys() == TIMED, "%s runs the program (%s)" % (erl, p.returncode))
    return p.pid, {k: int(v) for k, v in took.items()}


def judge_leaf(label, leaf, samples, lines):
    """Of the samples in a leaf: how many have its callers, and how many its line."""
    all_ = sum(s.count for s in samples)
    whole = sum(s.count for s in samples
                if s.stack[:len(CHAINS[leaf])] == CHAINS[leaf] and not any("[cut" in n for n in s.stack))
    there = sum(s.count for s in samples if s.frames[0][4] in (lines[leaf], lines[leaf] - 1))
    lib.ok(all_ and whole >= 0.99 * all_, "%s: %d of %d stacks in leaf_%s have its callers" % (label, whole, all_, leaf))
    lib.ok(all_ and there >= 0.99 * all_, "%s: %d of %d samples in leaf_%s have its line" % (label, there, all_, leaf))


def judge_callers(label, samples, lines):
    """Each frame of the recursion stands at its call, the innermost at that of the fun."""
    right = collections.Counter()
    for s in samples:
        at = [f[4] for f in s.frames if f[0] == "truth:deep/2"]
        right[at == [lines["bottom"]] + [lines["deeper"]] * 20] += s.count
    lib.ok(right[True] and right[True] >= 0.99 * sum(right.values()), "%s: %d of %d recursions have the lines of their calls" % (
        label, right[True], sum(right.values())))


def judge_bifs(label, samples):
    """C code that an Erlang function called: the stack goes on in the process' own."""
    all_ = whole = 0
    for s in samples:
        if any("phash2" in f[0] for f in s.frames if f[1] == "native"):
            all_ += s.count
            erlang = [n for n in s.stack if n.startswith("truth:")]
            whole += s.count * (erlang[-3:-1] == BIF and erlang[0] == "truth:bifs/2" and not any("[cut" in n for n in s.stack))
    # Stacks of the time before the walk was set are cut.
    lib.ok(all_ > 10 and all_ - whole <= 0.05 * HZ + 0.02 * all_, "%s: %d of %d stacks in a function in C have its callers" % (label, whole, all_))


def judge(label, samples, took):
    lines, leaves, cut, all_ = mark_lines(), collections.defaultdict(list), collections.Counter(), 0
    for s in samples:
        all_ += s.count
        cut.update({n: s.count for n in s.stack if "[cut" in n})
        m = re.fullmatch(r"truth:leaf_(\w+)/2", s.stack[0])
        if m:
            leaves[m[1]].append(s)
    counts = {k: sum(s.count for s in v) for k, v in leaves.items()}
    lib.note("%s: %d samples, %d in leaves, cut: %s" % (label, all_, sum(counts.values()), dict(cut)))
    if took.keys() != TIMED:
        return
    for leaf in CHAINS:
        judge_leaf(label, leaf, leaves[leaf], lines)
    judge_bifs(label, samples)
    judge_callers(label, leaves["one"], lines)
    total, time = sum(counts.values()), sum(took[k] for k in CHAINS)
    off = max(abs(counts.get(k, 0) / max(total, 1) - took[k] / time) for k in CHAINS)
    lib.ok(total > 0.2 * SECONDS * HZ and off < 0.05 + 1.5 / total ** 0.5,
           "%s: leaves have the shares of their time (%.1f points off) %s" % (label, 100 * off, counts))


def main():
    lib.need(platform.machine() == "x86_64", "stacks of Erlang", "BEAM's code is read on x86-64 alone")
    erls = [p for p in [shutil.which("erl")] + os.environ.get("ERLS", "").split() if p]
    lib.need(erls, "stacks of Erlang", "there is no erl")
    d = lib.Otprofd(hz=HZ, profile={"sample_attributes": "process.pid"})
    ran = [(erl, *run(erl, lib.scratch())) for erl in erls]
    last = d.stop()
    by_pid = known_program.samples_by_pid(d)
    for label, pid, took in ran:
        judge(label, by_pid[pid], took)
    lib.check_ledger(last, "the ledger balances", stopped=True)


main()
lib.finish()

# SPDX-License-Identifier: Apache-2.0
"""An Erlang program whose functions differ only by name and know how much they ran: names, lines, callers and shares of
what BEAM's JIT compiler made; one whose processes do, by their labels; and one whose frames begin on old return
addresses. Each also with the emulator's frame pointers, as performance engineers start it.
ERLANG=long runs longer; ERLANG=all: every version that is in a root of CHROOTS too; another value: those of them
that match it, as "sid$". With any of these, also a program that loads and purges modules, for SECONDS of CPU time."""
import collections
import glob
import os
import platform
import re
import shutil
import subprocess

import known_program
import lib

HZ = lib.rate(499)
MATRIX = bool(os.environ.get("ERLANG"))
SECONDS = int(os.environ.get("SECONDS", 30 if os.environ.get("ERLANG") == "long" else 5))
PROGRAMS = os.path.join(lib.TOP, "tests", "programs", "erlang")
SOURCE = os.path.join(PROGRAMS, "truth.erl")
DEEP = ["truth:deep/2"] * 21
CHAINS = {  # from the leaf out, up to what every process of Erlang begins with
    "one": ["truth:leaf_one/2"] + DEEP + ["truth:counted/4", "truth:turns/2"],
    "two": ["truth:leaf_two/2", "truth:'-comprehension/1-lc$^0/1-0-'/1"],
    "three": ["truth:leaf_three/2", "truth:caught/1", "truth:counted/4", "truth:turns/2"],
    "four": ["truth:leaf_four/2", "truth:'-other_process/1-fun-0-'/2"],
}
# Samples of the first moment, whose code the decoder told of too late.
EARLY = max(8, 0.02 * HZ)
BIF = ["truth:counted/4", "truth:turns/2"]
COUNTED = set(CHAINS) | {"five"}
# Turns of a module's loop, and which share of stacks may lack a name: code that lives for 10 ms is gone when it is read.
LIVES = {"a second": (400000000, 0.01), "100 ms": (40000000, None), "10 ms": (3000000, None)}
FRAMED = {  # who calls whom in framed.erl
    "framed:same/1": {"framed:framed/1", "framed:down/2"},
    "framed:framed/1": {"framed:loop/2"},
    "framed:down/2": {"framed:down/2", "framed:loop/2"},
    "framed:loop/2": {"framed:turns/1"},
}
BINARIES = {  # likewise, in binaries.erl
    "binaries:inner/1": {"binaries:outer/1"},
    "binaries:flat/1": {"binaries:both/3"},
    "binaries:outer/1": {"binaries:shallow/3"},
    "binaries:shallow/3": {"binaries:loop/4"},
    "binaries:both/3": {"binaries:loop/4"},
    "binaries:loop/4": {"binaries:turns/4"},
}
TRACED = ["traced:leaf/2", "traced:traced/2", "traced:middle/2", "traced:top/1", "traced:turns/1"]
DIRTY = ["erts_dirty_process_main", "prim_file:read_file/1", "dirty:reads/1", "dirty:turns/2"]
TRACES = ("return", "time")
FRAME_POINTERS = ("+JPperf", "true")
FRAME_POINTERS_SINCE = 13  # ERTS of OTP 25
TERMS = {"terms:%s/2" % n for n in ("same", "less", "equal", "stored", "unequal", "both", "matched", "hashed", "got")}
TERMS_CALLERS = ["terms:deep/2"] * 9 + ["terms:run/2", "terms:turns/3"]
LABEL = "process.context.label.erlang.process"
PROCESSES = {  # by a function that only this process runs
    "named:registered_leaf/2": "the_server",
    "named:first_leaf/2": "first_name",
    "named:second_leaf/2": "second_name",
    "named:plain_leaf/2": "named:plain/1",
    "named:fun_leaf/2": "erlang:apply/2",
    "named:begun_leaf/2": "named:begun/1",
    "named:server_leaf/2": "named:init/1",
    "named:crowded_leaf/2": "named:init/1",
    "named:collect/2": "named:init/1",
}


def versions():
    """(label, root) of each Erlang to be tried; root "": the host's."""
    wanted = os.environ.get("ERLANG", "")
    found = [("erlang", "")] if shutil.which("erl") else []
    if wanted in ("", "long"):
        return found
    for root in sorted(glob.glob(os.environ.get("CHROOTS", "/var/lib/otprof-tests/chroots") + "/*/")):
        if os.path.exists(root + "usr/bin/erlc"):
            found.append(("erlang in " + os.path.basename(root.rstrip("/")), root))
    return [f for f in found if wanted == "all" or re.search(wanted, f[0])]


def has_frame_pointers(root):
    erts = glob.glob(root + "/usr/lib/erlang/erts-*")
    return bool(erts) and int(re.search(r"erts-(\d+)", erts[0])[1]) >= FRAME_POINTERS_SINCE


class Erlang:
    """A version, and how it is started."""

    def __init__(self, label, root, flags=()):
        self.label, self.root, self.flags = label, root, flags


def ways():
    """Each version, once with frame pointers if it can have them."""
    found = versions()
    return [Erlang(*f) for f in found] + [
        Erlang(label + " with frame pointers", root, FRAME_POINTERS) for label, root in found if has_frame_pointers(root)]


def remove_perf_files(root, pid):
    for path in glob.glob("%s/tmp/perf-%d.map" % (root, pid)) + glob.glob("%s/tmp/jit-%d.dump" % (root, pid)):
        os.unlink(path)


def run_program(erlang, name, seconds=SECONDS, *options):
    """Compiles and runs it: its process, and what it printed."""
    root = erlang.root
    directory = lib.scratch()
    inner, enter = directory, []
    if root:
        inner, enter = os.path.join("/tmp", os.path.basename(directory)), ["chroot", root]
        directory = root + inner[1:]
        os.mkdir(directory)
        lib.at_end(shutil.rmtree, directory, True)
    shutil.copy(os.path.join(PROGRAMS, name + ".erl"), directory)
    env = dict(os.environ, ERL_CRASH_DUMP=os.path.join(inner, "dump"), HOME=inner, LC_ALL="C.UTF-8")
    subprocess.run(enter + ["erlc", "-o", inner, os.path.join(inner, name + ".erl")], check=True, env=env)
    p = lib.start(enter + ["erl", *erlang.flags, "-noshell", "-pa", inner, "-run", name, "main", str(seconds), *options],
                  stdout=subprocess.PIPE, text=True, env=env)
    text, _ = p.communicate(timeout=seconds * 60)
    remove_perf_files(root, p.pid)
    return p, text


def run(erlang):
    """Its process, and how many turns each leaf ran."""
    p, text = run_program(erlang, "truth")
    ran = dict(re.findall(r"(?m)^(\w+) (\d+)$", text))
    lib.ok(p.returncode == 0 and ran.keys() == COUNTED, "%s runs the program (%s)" % (erlang.label, p.returncode))
    return p.pid, {k: int(v) for k, v in ran.items()}


def run_named(erlang):
    p, _ = run_program(erlang, "named", min(SECONDS, 2))
    lib.ok(p.returncode == 0, "%s runs processes with names" % erlang.label)
    return p.pid


def run_framed(erlang):
    p, _ = run_program(erlang, "framed", min(SECONDS, 2))
    lib.ok(p.returncode == 0, "%s runs frames on return addresses" % erlang.label)
    return p.pid


def run_binaries(erlang):
    p, _ = run_program(erlang, "binaries", min(SECONDS, 2))
    lib.ok(p.returncode == 0, "%s runs what makes binaries" % erlang.label)
    return p.pid


def run_traced(erlang):
    """A process for each of TRACES."""
    pids = {}
    for kind in TRACES:
        p, _ = run_program(erlang, "traced", 1, kind)
        lib.ok(p.returncode == 0, "%s runs what is traced by %s" % (erlang.label, kind))
        pids[kind] = p.pid
    return pids


def run_dirty(erlang):
    p, _ = run_program(erlang, "dirty", min(SECONDS, 2))
    lib.ok(p.returncode == 0, "%s runs what a dirty scheduler reads" % erlang.label)
    return p.pid


def run_terms(erlang):
    p, _ = run_program(erlang, "terms", min(SECONDS, 3))
    lib.ok(p.returncode == 0, "%s runs comparisons of terms" % erlang.label)
    return p.pid


def run_churn(erlang):
    """A process for each of LIVES."""
    pids = {}
    for life, (turns, _) in LIVES.items():
        p, text = run_program(erlang, "churn", SECONDS, str(turns))
        lib.ok(p.returncode == 0, "%s loads and purges modules that live for %s: %s" % (erlang.label, life, text.splitlines()[-1:]))
        pids[life] = p.pid
    return pids


def judge_leaf(label, leaf, samples, lines):
    """Of the samples in a leaf: how many have its callers, and how many its line."""
    all_ = sum(s.count for s in samples)
    whole = sum(s.count for s in samples
                if s.stack[:len(CHAINS[leaf])] == CHAINS[leaf] and not any("[cut" in n for n in s.stack))
    there = sum(s.count for s in samples if s.frames[0][4] in (lines[leaf], lines[leaf] - 1))
    lib.ok(whole and all_ - whole <= 0.01 * all_ + EARLY, "%s: %d of %d stacks in leaf_%s have its callers" % (label, whole, all_, leaf))
    lib.ok(all_ and there >= 0.99 * all_, "%s: %d of %d samples in leaf_%s have its line" % (label, there, all_, leaf))


def judge_callers(label, samples, lines):
    """Each frame of the recursion stands at its call, the innermost at that of the fun."""
    right = collections.Counter()
    for s in samples:
        at = [f[4] for f in s.frames if f[0] == "truth:deep/2"]
        right[at == [lines["bottom"]] + [lines["deeper"]] * 20] += s.count
    lib.ok(right[True] and right[False] <= 0.01 * right[True] + EARLY, "%s: %d of %d recursions have the lines of their calls" % (
        label, right[True], sum(right.values())))


def entries_to_c(s):
    """The functions in C that Erlang's code called."""
    return [s.frames[i - 1][0] for i in range(1, len(s.frames)) if s.frames[i][1] == "beam" and s.frames[i - 1][1] == "native"]


def judge_bifs(label, samples):
    """C code that an Erlang function called: the stack goes on in the process' own. Not every build has names for C code:
    it is what truth:bifs/2 calls most."""
    called = collections.Counter()
    for s in samples:
        if "truth:bifs/2" in s.stack:
            called.update({n: s.count for n in entries_to_c(s)})
    name = called.most_common(1)[0][0] if called else None
    all_ = whole = 0
    for s in samples:
        if name in entries_to_c(s):
            all_ += s.count
            erlang = [n for n in s.stack if n.startswith("truth:")]
            whole += s.count * (erlang[-3:-1] == BIF and erlang[0] == "truth:bifs/2" and not any("[cut" in n for n in s.stack))
    # Stacks of the time before the walk was set are cut.
    lib.ok(all_ > 10 and all_ - whole <= 0.05 * HZ + 0.02 * all_, "%s: %d of %d stacks in a function in C (%s) have its callers" % (
        label, whole, all_, name))


def judge_named(label, samples):
    """A sample has the name of its process, as it was then."""
    right, wrong, bare = (collections.Counter() for _ in range(3))
    for s in samples:
        of = next((n for n in s.stack if n in PROCESSES), None)
        if not of:
            continue
        name = s.attributes.get(LABEL)
        if name is None:
            bare[of] += s.count
        elif name == PROCESSES[of]:
            right[of] += s.count
        else:
            wrong[of, name] += s.count
    lib.ok(not wrong and right.keys() == PROCESSES.keys(), "%s: samples have the names of their processes %s, wrong: %s" % (
        label, dict(right), dict(wrong)))
    all_ = right.total() + bare.total()
    lib.ok(all_ and bare.total() <= 0.01 * all_ + EARLY, "%s: %d of %d samples have no name of a process %s" % (
        label, bare.total(), all_, dict(bare)))


def judge(label, samples, ran):
    lines, leaves = known_program.mark_lines(SOURCE, "%%"), collections.defaultdict(list)
    cut, all_ = collections.Counter(), 0
    for s in samples:
        all_ += s.count
        cut.update({n: s.count for n in s.stack if "[cut" in n})
        m = re.fullmatch(r"truth:leaf_(\w+)/2", s.stack[0])
        if m:
            leaves[m[1]].append(s)
    counts = {k: sum(s.count for s in v) for k, v in leaves.items()}
    lib.note("%s: %d samples, %d in leaves, cut: %s" % (label, all_, sum(counts.values()), dict(cut)))
    if ran.keys() != COUNTED:
        return
    for leaf in CHAINS:
        judge_leaf(label, leaf, leaves[leaf], lines)
    judge_bifs(label, samples)
    judge_callers(label, leaves["one"], lines)
    known_program.check_shares(label, counts, {k: ran[k] for k in CHAINS})


def judge_framed(label, samples):
    """New words of a frame still hold return addresses of calls that are over: these are nobody's callers."""
    all_ = whole = 0
    wrong = collections.Counter()
    for s in samples:
        if s.stack[0] not in FRAMED:
            continue
        all_ += s.count
        whole += s.count * ("framed:turns/1" in s.stack)
        wrong.update({(n, by): s.count for n, by in zip(s.stack, s.stack[1:])
                      if n in FRAMED and by.startswith("framed:") and by not in FRAMED[n]})
    lib.ok(all_ > 50 and not wrong, "%s: in %d stacks each function has a caller that calls it, wrong: %s" % (label, all_, dict(wrong)))
    lib.ok(all_ - whole <= 0.01 * all_ + EARLY, "%s: %d of %d stacks of frames on return addresses are whole" % (label, whole, all_))


def judge_binaries(label, samples):
    """C code that makes a binary was called by who makes it, and that by its own caller."""
    right, wrong, cut = collections.Counter(), collections.Counter(), 0
    for s in samples:
        made = [n for n in s.stack if n in ("binaries:inner/1", "binaries:flat/1")]
        if not made or "native" not in s.types[:s.stack.index(made[0])]:
            continue
        edges = [(n, by) for n, by in zip(s.stack, s.stack[1:]) if n in BINARIES and by.startswith("binaries:")]
        wrong.update({e: s.count for e in edges if e[1] not in BINARIES[e[0]]})
        right[made[0]] += s.count
        cut += s.count * any("[cut" in n for n in s.stack)
    lib.ok(len(right) == 2 and not wrong, "%s: who makes binaries has a caller that calls it %s, wrong: %s" % (
        label, dict(right), dict(wrong)))
    lib.ok(cut <= 0.02 * right.total() + EARLY, "%s: %d of %d stacks that make binaries are cut" % (label, cut, right.total()))


def judge_traced(label, samples):
    """Each function is there once, whatever it returns to besides."""
    right, wrong = 0, collections.Counter()
    for s in samples:
        if s.stack[0] != TRACED[0]:
            continue
        chain = [n for n in s.stack if n.startswith("traced:")]
        if chain[:len(TRACED)] == TRACED and not any("[cut" in n for n in s.stack):
            right += s.count
        else:
            wrong[" < ".join(s.stack[:6])] += s.count
    lib.ok(right and wrong.total() <= 0.01 * right + EARLY, "%s: %d of %d stacks have what is traced once, not: %s" % (
        label, right, right + wrong.total(), dict(wrong.most_common(3))))


def judge_dirty(label, samples):
    """A dirty scheduler runs a function in C for a process, whose functions have called it."""
    whole, other = 0, collections.Counter()
    for s in samples:
        if "erts_call_dirty_nif" not in s.stack:
            continue
        beam = [n for n, k in zip(s.stack, s.types) if k == "beam"]
        if beam[:4] == DIRTY and not any("[cut" in n for n in s.stack):
            whole += s.count
        elif DIRTY[2] in beam or any("[cut" in n for n in s.stack):
            other[" < ".join(s.stack[-6:])] += s.count
    lib.ok(whole > 50 and other.total() <= 0.02 * whole + EARLY, "%s: %d of %d stacks of a dirty scheduler have their callers, not: %s" % (
        label, whole, whole + other.total(), dict(other.most_common(3))))


def judge_terms(label, samples):
    """Of the process that has a name, once the walk is set: whoever compares large terms is called at the end of the recursion.
    What leads to it is rarely in C code itself, but for the clock's."""
    right, wrong = collections.Counter(), collections.Counter()
    for s in samples:
        at = [i for i, k in enumerate(s.types) if k == "beam"]
        if not at or "native" not in s.types[:at[0]] or s.attributes.get(LABEL) != "terms":
            continue
        beam, cut = [s.stack[i] for i in at if not s.stack[i].startswith("[")], any("[cut" in n for n in s.stack)
        if not cut and beam[:1] in ([], ["terms:cpu_ms/0"]):
            continue
        if not cut and beam[0] in TERMS and beam[1:len(TERMS_CALLERS) + 1] == TERMS_CALLERS:
            right[beam[0]] += s.count
        else:
            wrong[" < ".join(s.stack[:6])] += s.count
    all_ = (right + wrong).total()
    lib.ok(right.keys() == TERMS and wrong.total() <= 0.01 * all_ + 3, "%s: %d of %d stacks in C code that compares have their callers %s, not: %s" % (
        label, right.total(), all_, dict(right), dict(wrong.most_common(3))))


def judge_churn(label, highest, samples):
    """Where a module was, another one is soon: what runs under run_a is of its modules, or it has no name."""
    all_ = unknown = 0
    wrong = collections.Counter()
    for s in samples:
        caller = [n for n in s.stack if re.fullmatch(r"churn:run_[ab]/2", n)]
        if not caller or s.types[0] != "beam" and not s.stack[0].startswith(("memfd:", "[anon]")):
            continue
        family = caller[0][len("churn:run_")]
        inner = s.stack[:s.stack.index(caller[0])]
        all_ += s.count
        unknown += s.count * any(not re.fullmatch(r"[ab]\d+:\w+/\d", n) for n in inner)
        wrong.update({n: s.count for n in inner if re.match(r"[ab]\d+:", n) and not re.fullmatch(r"(%s\d+):(top/1|\1_leaf/2)" % family, n)})
    lib.ok(all_ > (50 if highest else 0) and not wrong, "%s: %d stacks of modules that come and go, wrong names: %s" % (label, all_, dict(wrong)))
    text = "%s: %d of %d have a frame without name" % (label, unknown, all_)
    if highest is None:
        lib.note(text)
    else:
        lib.ok(unknown <= highest * all_ + EARLY, text)


def main():
    lib.need(platform.machine() == "x86_64", "stacks of Erlang", "BEAM's code is read on x86-64 alone")
    found = ways()
    lib.need(found, "stacks of Erlang", "there is no erl")
    d = lib.Otprofd(hz=HZ, profile={"sample_attributes": "process.pid process.context.label"})
    programs = [(e.label, *run(e), run_named(e), run_framed(e), run_binaries(e), run_traced(e), run_dirty(e), run_terms(e), MATRIX and run_churn(e)) for e in found]
    last = d.stop()
    by_pid = known_program.samples_by_pid(d)
    for label, pid, ran, named, framed, binaries, traced, dirty, terms, churn in programs:
        judge(label, by_pid[pid], ran)
        judge_named(label, by_pid[named])
        judge_framed(label, by_pid[framed])
        judge_binaries(label, by_pid[binaries])
        for kind, pid_of in traced.items():
            judge_traced("%s, traced by %s" % (label, kind), by_pid[pid_of])
        judge_dirty(label, by_pid[dirty])
        judge_terms(label, by_pid[terms])
        for life, churned in (churn or {}).items():
            judge_churn("%s, modules of %s" % (label, life), LIVES[life][1], by_pid[churned])
    lib.check_ledger(last, "the ledger balances", stopped=True)


main()
lib.finish()

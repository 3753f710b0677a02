# SPDX-License-Identifier: Apache-2.0
"""Go programs that know their CPU shares: each stack whole from the leaf to the
goroutine's end, with inlined calls and lines, in files with and without
symbols; and while the thread is on another stack, in C code, the vDSO and the
runtime, also as that enlarges the stack, and in the race detector. GO_TOOLS names further go commands, of other versions; GOLANG=all builds
them in all ways, GOLANG=away runs the latter alone."""
import json
import math
import os
import shutil
import subprocess

import golang_lib
import lib

HZ = lib.rate(997)
SECONDS = 4
PARTS = {"main.workHalf": "half", "main.workThird": "third", "main.workFifth": "fifth"}
OUTER = ["main.rounds"] + ["main.descend"] * 20 + ["main.worker", "runtime.goexit"]
INNER = {
    "main.workHalf": (["main.spin"], []),
    "main.workThird": (["main.mix"], []),
    "main.workFifth": (["main.workFifth.func1", "main.apply"], ["main.apply"], []),
}
VARIANTS = {
    "stripped": ["-ldflags", golang_lib.STRIP],
    "plain": [],
    "external-pie": ["-buildmode=pie", "-ldflags", golang_lib.STRIP + " -linkmode=external"],
    "trimpath": ["-trimpath", "-ldflags", golang_lib.STRIP],
    "pie": ["-buildmode=pie", "-ldflags", golang_lib.STRIP],
}
# Of away.go: where the thread is, what leads there from the work, and who calls that.
AWAY = {"main.workC": "c", "main.workTime": "time", "main.workAlloc": "alloc"}
AWAY_OUTER = ["main.timed", "main.rounds"] + ["main.descend"] * 10 + ["main.worker", "runtime.goexit"]
AWAY_BY = {"runtime.asmcgocall": "main.workC", "time.now": "main.workTime", "runtime.systemstack": "main.workAlloc"}
# Who calls what leaves the goroutine's stack; systemstack's callers are the runtime's own.
AWAY_CALLERS = {"runtime.asmcgocall": "runtime.cgocall", "runtime.cgocall": "main._Cfunc_in_c",
                "main._Cfunc_in_c": "main.workC"}
AWAY_VARIANTS = {
    "away-stripped": ["-trimpath", "-ldflags", golang_lib.STRIP],
    "away-pie": ["-buildmode=pie", "-ldflags", golang_lib.STRIP],
    "away-static": ["-ldflags", golang_lib.STRIP + " -linkmode=external -extldflags=-static"],
}
# Where a goroutine that waits for the collector ends, on its thread: what called them is abandoned there.
PARKED = ("runtime.mcall", "runtime.morestack")
PARKED_MAX = 0.05
NR_AWAY = len(AWAY_VARIANTS) if golang_lib.WHICH in ("all", "away") and not lib.BRIEF else 1
ONLY_AWAY = golang_lib.WHICH == "away"
NR_VARIANTS = 1 if lib.BRIEF else len(VARIANTS) if golang_lib.WHICH == "all" else 3


def whole(names):
    """The frames that are there, not one more or less; None: not in the work itself (the clock is read there too)."""
    part = next((n for n in names if n in PARTS), None)
    if not part:
        return None
    names = golang_lib.plain(names)
    at = names.index(part)
    outer = [n for n in names[at + 1:] if n != "main.timed"]
    return names[:at] in INNER[part] and outer == OUTER


def check(name, truth, samples):
    total = sum(truth[p] for p in PARTS.values())
    in_work = [(s, *lib.user_part(s)) for s in samples if any(n in PARTS for n in lib.user_part(s)[0])]
    count = sum(s.count for s, _, _ in in_work)
    broken = [(names[:4], names[-3:], marker) for _, names, marker in in_work if marker or not whole(names)]
    bad = sum(s.count for s, names, marker in in_work if marker or not whole(names))
    lib.ok(count > 0.9 * total / 1e9 * HZ, "%s: %d samples of %.0f are in the work" % (name, count, total / 1e9 * HZ))
    lib.ok(bad <= 0.005 * count, "%s: %d of %d stacks are not whole, frame by frame %s" % (name, bad, count, broken[:2]))
    cut = sum(s.count for s in samples if lib.user_part(s)[1])
    every = sum(s.count for s in samples)
    lib.ok(cut <= 0.01 * every, "%s: %d of all %d stacks are cut %s" % (
        name, cut, every, {lib.user_part(s)[1] for s in samples if lib.user_part(s)[1]}))
    creators = {names[-1] for _, names, _ in in_work if names[-1].startswith("created by ")}
    lib.ok(creators <= {"created by main.main"}, "%s: no goroutine of the work has another creator %s" % (name, creators))
    for part, key in PARTS.items():
        want = truth[key] / total
        got = sum(s.count for s, names, _ in in_work if part in names) / max(count, 1)
        sigma = math.sqrt(want * (1 - want) / max(count, 1))
        lib.ok(abs(got - want) <= 3 * sigma + 0.005, "%s: %s has %.2f %% of the samples, %.2f %% of the CPU time" % (
            name, part, 100 * got, 100 * want))


def run(name, tool, flags):
    work = lib.scratch()
    path = os.path.join(work, "shares-" + name)
    if not golang_lib.build(tool, name, flags, path, "shares.go", "external" in name):
        return
    d = lib.Otprofd(hz=HZ, interval="5s") # names wait for two of them: the index is made first, on a busy host too
    p = lib.start([path, str(SECONDS)], stdout=subprocess.PIPE, text=True)
    truth = json.loads(p.communicate(timeout=120)[0])
    d.stop()
    samples = [s for s in lib.samples(d.files) if lib.executable(s) == os.path.basename(path)]
    check(name, truth, samples)


def legal(names, outer):
    """Whether the work's callers are there, not one more or less."""
    at = next(i for i, n in enumerate(names) if n in AWAY)
    calls = list(zip(names[:at], names[1:at + 1]))
    # On the runtime's own stack, cgo is called by what asks for threads.
    own = "runtime.systemstack" in names[:at]
    right = all(own or AWAY_CALLERS.get(n, caller) == caller for n, caller in calls)
    skipped = any(n == "runtime.systemstack" and caller.startswith("main.") for n, caller in calls)
    return names[at + 1:] == outer and right and not skipped


def check_away(name, truth, samples, outer):
    total = sum(truth.values())
    # While it waits for its line, it becomes known how deep its stack is.
    parts = [(n, part) for n, part in ((s.count, lib.user_part(s)) for s in samples) if "main.wait" not in part[0]]
    stacks = [(n, golang_lib.plain(names), marker) for n, (names, marker) in parts]
    every = sum(n for n, _, _ in stacks)
    cut = [(n, names, marker) for n, names, marker in stacks if marker]
    lib.ok(sum(n for n, _, _ in cut) <= 0.01 * every, "%s: %d of all %d stacks are cut %s" % (
        name, sum(n for n, _, _ in cut), every, [(n, names[:3], names[-1:], m) for n, names, m in cut][:4]))
    work = [(n, names) for n, names, marker in stacks if not marker and any(f in AWAY for f in names)]
    count = sum(n for n, _ in work)
    lib.ok(count > 0.8 * total / 1e9 * HZ, "%s: %d samples of %.0f are in the work" % (name, count, total / 1e9 * HZ))
    bad = [(n, names) for n, names in work if not legal(names, outer)]
    lib.ok(sum(n for n, _ in bad) <= 0.005 * count, "%s: the callers of %d of %d are not its own %s" % (
        name, sum(n for n, _ in bad), count, bad[:1]))
    for by, caller in AWAY_BY.items():
        through = sum(n for n, names in work if by in names and caller in names[names.index(by):])
        lib.ok(through > 0.01 * count, "%s: %d stacks lead from %s back to %s" % (name, through, by, caller))
    parked = sum(n for n, names, marker in stacks if not marker and names[-1:] and names[-1] in PARKED) / max(count, 1)
    parked = min(parked, PARKED_MAX)
    for part, key in AWAY.items():
        want = truth[key] / total
        got = sum(n for n, names in work if part in names) / max(count, 1)
        within = 3 * math.sqrt(want * (1 - want) / max(count, 1)) + 0.01
        waits = parked if part == "main.workAlloc" else 0
        lib.ok(want - within - waits <= got <= want + within, "%s: %s has %.2f %% of the samples, %.2f %% waits, %.2f %% of the "
               "CPU time" % (name, part, 100 * got, 100 * waits, 100 * want))


def run_away(name, tool, flags, deep=False):
    path = os.path.join(lib.scratch(), name)
    if not golang_lib.build(tool, name, flags, path, "away.go", True):
        return
    # So often, its large frame takes more than may be copied by default.
    d = lib.Otprofd(hz=HZ, interval="5s", sampler={"stack_rate": "1G"})
    truth, samples = golang_lib.after_walked(d, [path, str(SECONDS)] + ["deep"] * deep, name)
    outer = [n.replace("descend", "descendDeep") for n in AWAY_OUTER] if deep else AWAY_OUTER
    check_away(name, truth, samples, outer)


def has_records(tool):
    """Whether the frames of what it builds have records, to which the runtime keeps the first frame pointer."""
    numbers = golang_lib.version(tool)[2:].split(".")
    return numbers[0] == "1" and numbers[1].isdigit() and int(numbers[1]) >= 21


def run_steady(name, tool, flags, source, cgo=False):
    """Of a program that does the same all the time: the stacks, and their markers, from when its goroutines are known on."""
    path = os.path.join(lib.scratch(), name)
    if not golang_lib.build(tool, name, flags, path, source, cgo):
        return []
    d = lib.Otprofd(hz=HZ, interval="1s")
    p = lib.start([path, str(SECONDS + 8)], stdout=subprocess.DEVNULL)
    lib.ok(lib.wait_for(lambda: golang_lib.is_walked(d, p.pid), 60, 0.5), "%s: where its goroutines are is known" % name)
    before = set(lib.profile_files(d.files))
    lib.wait_for(lambda: set(lib.profile_files(d.files)) - before, 15)
    before = set(lib.profile_files(d.files))
    lib.ok(p.wait(60) == 0, "%s has ended" % name)
    d.stop()
    samples = [s for f in lib.profile_files(d.files) if f not in before for s in lib.Request(lib.read(f)).samples()]
    parts = [(s.count, *lib.user_part(s)) for s in samples if lib.executable(s) == os.path.basename(path)]
    of_main = {names[-1] for _, names, _ in parts if "runtime.main" in names}
    lib.ok(not any(n.startswith("created by ") for n in of_main), "%s: nobody created the main goroutine %s" % (name, of_main))
    return [(n, golang_lib.plain(names), marker) for n, names, marker in parts]


def run_grow(name, tool):
    """A stack that grows is copied by the runtime, on the thread's own: on behalf of the function that needs it."""
    stacks = run_steady(name, tool, ["-ldflags", golang_lib.STRIP], "grow.go")
    grown = [(n, names) for n, names, _ in stacks if "runtime.newstack" in names and "runtime.copystack" in names]
    count = sum(n for n, _ in grown)
    lost = [(n, names) for n, names in grown if names[-2:] != ["main.grow", "runtime.goexit"]]
    lib.ok(count > 50, "%s: %d samples are in a stack's growth" % (name, count))
    lib.ok(sum(n for n, _ in lost) <= 0.02 * count, "%s: %d of them do not lead to what needs the stack %s" % (
        name, sum(n for n, _ in lost), lost[:2]))


def run_race(name, tool):
    """The race detector's C code runs on the thread's own stack, and nothing but a register leads back."""
    stacks = run_steady(name, tool, ["-race"], "shares.go", True)
    called = [(n, names) for n, names, _ in stacks if "racecall" in names[1:]]
    count = sum(n for n, _ in called)
    lost = [(n, names) for n, names in called if names[-1] != "runtime.goexit"]
    lib.ok(count > 50, "%s: %d samples are in the race detector" % (name, count))
    lib.ok(sum(n for n, _ in lost) <= 0.01 * count, "%s: %d of them do not lead to the goroutine's end %s" % (
        name, sum(n for n, _ in lost), lost[:2]))
    cut = sum(n for n, _, marker in stacks if marker)
    lib.ok(cut <= 0.01 * sum(n for n, _, _ in stacks), "%s: %d of all stacks are cut" % (name, cut))


tools = golang_lib.tools()
lib.need(tools, "stacks of Go programs", "no go command is installed")
for go in tools:
    for variant, options in [] if ONLY_AWAY else list(VARIANTS.items())[:NR_VARIANTS]:
        run("%s-%s" % (golang_lib.version(go), variant), go, options)
    for variant, options in list(AWAY_VARIANTS.items())[:NR_AWAY] if shutil.which("gcc") else []:
        run_away("%s-%s" % (golang_lib.version(go), variant), go, options)
    if shutil.which("gcc") and has_records(go):
        run_away("%s-away-deep" % golang_lib.version(go), go, AWAY_VARIANTS["away-stripped"], True)
    if not ONLY_AWAY:
        run_grow("%s-grow" % golang_lib.version(go), go)
    if not ONLY_AWAY and not lib.BRIEF and shutil.which("gcc"):
        run_race("%s-race" % golang_lib.version(go), go)
if not shutil.which("gcc"):
    lib.skip("stacks of Go programs in C code", "no C compiler is installed")
lib.finish()

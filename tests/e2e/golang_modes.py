# SPDX-License-Identifier: Apache-2.0
"""Go in each build mode: a program, a plugin, an archive and a library of a C program, stripped or not; Go calls C,
which calls Go, which works in Go and in C. Each stack is whole from the leaf to the goroutine's end; that of a C
program's thread which calls Go ends there too, below the function that C calls. GO_TOOLS names further go commands, of
other versions; GOLANG=all builds in all modes with each."""
import math
import os
import shutil
import subprocess

import golang_lib
import lib

HZ = lib.rate(997)
SECONDS = 3 if lib.BRIEF else 4
PARTS = {"workGo": "go", "workC": "c"}
# The frames that are the test's own; others (the runtime's, cgo's, libc's) may be between them.
INNER = ["timed", "rounds", "goInner"]
OUTER = ["descend"] * 10
OWN = set(PARTS) | set(INNER) | set(OUTER) | {"spin", "worker", "Run", "Enter", "main", "wait"}
STRIPPED = ["-ldflags", golang_lib.STRIP]
# Mode: how the Go code is built, what ends its name.
MODES = {
    "library": (["-buildmode=c-shared"] + STRIPPED, ".so"),
    "plugin": (["-buildmode=plugin"] + STRIPPED, ".so"),
    "archive": (["-buildmode=c-archive"], ".a"),
    "archive-stripped": (["-buildmode=c-archive"] + STRIPPED, ".a"),
    "program": (STRIPPED, ""),
    "program-pie": (["-buildmode=pie", "-trimpath"] + STRIPPED, ""),
    "program-symbols": ([], ""),
    "library-symbols": (["-buildmode=c-shared", "-trimpath"], ".so"),
    "plugin-symbols": (["-buildmode=plugin", "-trimpath"], ".so"),
}
NR_SHORT = 2


def compile_host(name, path, made):
    """A C program with a library or an archive of Go's code."""
    argv = ["gcc", "-O1", "-fno-optimize-sibling-calls", "-o", path, os.path.join(golang_lib.SOURCES, "host.c"), made,
            "-lpthread", "-Wl,-rpath," + os.path.dirname(made)] + (["-s"] if "stripped" in name else [])
    p = subprocess.run(argv, capture_output=True, text=True)
    return lib.ok(p.returncode == 0, "%s: its host is linked %s" % (name, p.stderr[-200:]))


def make(name, tool, mode, work):
    """The command line of the program; None: it cannot be built."""
    flags, suffix = MODES[mode]
    path = os.path.join(work, name.replace(".", "-"))
    made = path + "-lib" + suffix if suffix else path
    if not golang_lib.build(tool, name, flags, made, "modes.go", True):
        return None
    if mode.startswith("plugin"):
        # Both halves of a plugin's program must agree in how they were built.
        trim = [f for f in flags if f == "-trimpath"]
        return [path, made, str(SECONDS)] if golang_lib.build(tool, name + "'s loader", trim + STRIPPED, path, "loader.go",
                                                             True) else None
    if suffix and not compile_host(name, path, made):
        return None
    return [path, str(SECONDS)]


def own(names):
    """Its own functions, without their package's name: a plugin's has a name that is made up."""
    last = [n.rsplit(".", 1)[-1] for n in golang_lib.plain(names) if "._C" not in n]
    return [n for n in last if n in OWN]


def legal(names, mode):
    """Whether these are the frames that led there, not one more or less, to the goroutine's end."""
    ours = own(names)
    at = next(i for i, n in enumerate(ours) if n in PARTS)
    if ours[:at] not in ([], ["spin"]) or ours[:at] and ours[at] != "workGo":
        return False
    callers = [n for n in ours[at + 1:] if n not in ("worker", "Enter", "main")]
    # cgo's wrapper of an exported function has its name too.
    callers = [n for i, n in enumerate(callers) if not (n == "goInner" and i and callers[i - 1] == "goInner")]
    if callers != INNER + OUTER:
        return False
    first = "Enter" if mode.startswith(("library", "archive")) else "worker"
    return first in ours[at:] and golang_lib.plain(names)[-1] == "runtime.goexit"


def check(name, mode, truth, samples):
    total = sum(truth.values())
    stacks = [(s.count, *lib.user_part(s)) for s in samples]
    every = sum(n for n, _, _ in stacks)
    cut = [(n, names[:3], names[-2:], marker) for n, names, marker in stacks if marker]
    lib.ok(sum(n for n, _, _, _ in cut) <= 0.01 * every, "%s: %d of all %d stacks are cut %s" % (
        name, sum(n for n, _, _, _ in cut), every, cut[:3]))
    work = [(n, names) for n, names, marker in stacks if not marker and set(own(names)) & set(PARTS)]
    count = sum(n for n, _ in work)
    lib.ok(count > 0.9 * total / 1e9 * HZ, "%s: %d samples of %.0f are in the work" % (name, count, total / 1e9 * HZ))
    bad = [(n, names) for n, names in work if not legal(names, mode)]
    lib.ok(sum(n for n, _ in bad) <= 0.005 * count, "%s: the frames of %d of %d are not its own %s" % (
        name, sum(n for n, _ in bad), count, bad[:1]))
    for part, key in PARTS.items():
        want = truth[key] / total
        got = sum(n for n, names in work if part in own(names)) / max(count, 1)
        sigma = math.sqrt(want * (1 - want) / max(count, 1))
        lib.ok(abs(got - want) <= 3 * sigma + 0.01, "%s: %s has %.2f %% of the samples, %.2f %% of the CPU time" % (
            name, part, 100 * got, 100 * want))


def run(name, tool, mode):
    argv = make(name, tool, mode, lib.scratch())
    if not argv:
        return
    d = lib.Otprofd(hz=HZ, interval="2s")
    truth, samples = golang_lib.after_walked(d, argv, name)
    check(name, mode, truth, samples)


lib.need(golang_lib.tools(), "stacks of Go's build modes", "no go command is installed")
lib.need(shutil.which("gcc"), "stacks of Go's build modes", "no C compiler is installed")
ALL = golang_lib.WHICH == "all"
NAMED = os.environ.get("GO_MODES", "").split()
for go in golang_lib.tools():
    for m in NAMED or (list(MODES) if ALL else list(MODES)[:1 if lib.BRIEF else NR_SHORT]):
        run("%s-%s" % (golang_lib.version(go), m), go, m)
lib.finish()

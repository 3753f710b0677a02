# SPDX-License-Identifier: Apache-2.0
"""Go programs that know their CPU shares: each stack whole from the leaf to the
goroutine's end, with inlined calls and lines, in files with and without
symbols. GO_TOOLS names further go commands, of other versions."""
import json
import math
import os
import shutil
import subprocess

import lib

HZ = lib.rate(997)
SECONDS = 4
SOURCE = os.path.join(lib.TOP, "tests", "programs", "golang", "shares.go")
PARTS = {"main.workHalf": "half", "main.workThird": "third", "main.workFifth": "fifth"}
OUTER = ["main.rounds"] + ["main.descend"] * 20 + ["main.worker", "runtime.goexit"]
INNER = {
    "main.workHalf": (["main.spin"], []),
    "main.workThird": (["main.mix"], []),
    "main.workFifth": (["main.workFifth.func1", "main.apply"], ["main.apply"], []),
}
STRIP = "-s -w"
VARIANTS = {
    "stripped": ["-ldflags", STRIP],
    "plain": [],
    "external-pie": ["-buildmode=pie", "-ldflags", STRIP + " -linkmode=external"],
    "trimpath": ["-trimpath", "-ldflags", STRIP],
    "pie": ["-buildmode=pie", "-ldflags", STRIP],
}
NR_VARIANTS = 1 if lib.BRIEF else len(VARIANTS) if os.environ.get("GOLANG") == "all" else 3


def build(tool, name, flags, to):
    # Off: Go's own settings of the user who runs the test, its network, its modules.
    env = dict(os.environ, GOENV="off", GOFLAGS="", GOTOOLCHAIN="local", GO111MODULE="off", GOPROXY="off",
               GOCACHE=os.path.join(lib.BUILD, "gocache"), CGO_ENABLED="1" if "external" in name else "0")
    p = subprocess.run([tool, "build"] + flags + ["-o", to, SOURCE], env=env, capture_output=True, text=True)
    return lib.ok(p.returncode == 0, "%s is built %s" % (name, p.stderr[-200:]))


def whole(names):
    """The frames that are there, not one more or less; None: not in the work itself (the clock is read there too)."""
    part = next((n for n in names if n in PARTS), None)
    if not part:
        return None
    names = [n[:-5] if n.endswith(".abi0") else n for n in names] # of the symbol table
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
    # The runtime preempts by signals, whose handler is on a stack of its own: the goroutine's is not copied then.
    lib.ok(bad <= 0.005 * count, "%s: %d of %d stacks are not whole, frame by frame %s" % (name, bad, count, broken[:2]))
    cut = sum(s.count for s in samples if lib.user_part(s)[1])
    every = sum(s.count for s in samples)
    lib.ok(cut <= 0.01 * every, "%s: %d of all %d stacks are cut %s" % (
        name, cut, every, {lib.user_part(s)[1] for s in samples if lib.user_part(s)[1]}))
    for part, key in PARTS.items():
        want = truth[key] / total
        got = sum(s.count for s, names, _ in in_work if part in names) / max(count, 1)
        sigma = math.sqrt(want * (1 - want) / max(count, 1))
        lib.ok(abs(got - want) <= 3 * sigma + 0.005, "%s: %s has %.2f %% of the samples, %.2f %% of the CPU time" % (
            name, part, 100 * got, 100 * want))


def run(name, tool, flags):
    work = lib.scratch()
    path = os.path.join(work, "shares-" + name)
    if not build(tool, name, flags, path):
        return
    d = lib.Otprofd(hz=HZ, interval="5s") # names wait for two of them: the index is made first, on a busy host too
    p = lib.start([path, str(SECONDS)], stdout=subprocess.PIPE, text=True)
    truth = json.loads(p.communicate(timeout=60)[0])
    d.stop()
    samples = [s for s in lib.samples(d.files) if lib.executable(s) == os.path.basename(path)]
    check(name, truth, samples)


def version(tool):
    words = subprocess.run([tool, "version"], env=dict(os.environ, GOTOOLCHAIN="local", GOENV="off", GOFLAGS=""),
                           capture_output=True, text=True).stdout.split()
    return words[2] if len(words) > 2 else "unknown"


tools = [t for t in [shutil.which("go")] + os.environ.get("GO_TOOLS", "").split() if t]
lib.need(tools, "stacks of Go programs", "no go command is installed")
for go in tools:
    for variant, options in list(VARIANTS.items())[:NR_VARIANTS]:
        run("%s-%s" % (version(go), variant), go, options)
lib.finish()

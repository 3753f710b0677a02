# SPDX-License-Identifier: Apache-2.0
"""Goroutines by their creators and labels: each stack ends in who created its goroutine, and each sample has the labels
that its goroutine had at that moment, though they are made and collected all the time. GO_TOOLS names further go
commands, of other versions; GOLANG=all runs them stripped, -trimpath and as PIE too."""
import collections
import os

import golang_lib
import lib

HZ = lib.rate(997)
SECONDS = 3
ENOUGH = 300 # of 6000 or so: what counts is that all of them are right
PREFIX = "process.context.label."
WORK = {"main.workEven": ("even", "main.spawnFirst"), "main.workOdd": ("odd", "main.spawnSecond")}
LONG = "a value of more bytes than are kept of one, which therefore end"
ROUNDS_MAX = 64 # values of a key, in one process
VARIANTS = {
    "stripped": ["-trimpath", "-ldflags", golang_lib.STRIP],
    "plain": [],
    "pie": ["-buildmode=pie", "-ldflags", golang_lib.STRIP],
}
NR_VARIANTS = len(VARIANTS) if golang_lib.WHICH == "all" and not lib.BRIEF else 1


def labels_of(sample):
    return {k[len(PREFIX):]: v for k, v in sample.attributes.items() if k.startswith(PREFIX)}


def share(samples, is_it):
    return sum(s.count for s in samples if is_it(s)), sum(s.count for s in samples)


def check(name, truth, samples):
    """Of what ran after the line: earlier samples may have waited for names."""
    seen = [(s, *lib.user_part(s)) for s in samples]
    work = [(s, names, marker, next(n for n in names if n in WORK)) for s, names, marker in seen
            if "main.rounds" in names and any(n in WORK for n in names)]
    count = sum(s.count for s, _, _, _ in work)
    lib.ok(count >= ENOUGH, "%s: %d samples of %.0f are in the work" % (name, count, sum(truth.values()) / 1e9 * HZ))
    begun = [(s, names, part) for s, names, _, part in work if "created by " in names[-1]]
    wrong = {names[-1] for _, names, part in begun if names[-1] != "created by " + WORK[part][1]}
    lib.ok(not wrong, "%s: every creator is the right one %s" % (name, wrong))
    lib.ok(all(names[-2].startswith("runtime.goexit") for _, names, _ in begun), "%s: it is who goexit was called for" % name)
    got = sum(s.count for s, _, _ in begun)
    rest = collections.Counter()
    for s, names, marker, _ in work:
        rest[names[-1], marker] += 0 if "created by " in names[-1] else s.count
    lib.ok(got >= 0.99 * count, "%s: %d of %d stacks end in the goroutine's creator %s" % (
        name, got, count, rest.most_common(3)))
    mixed = [(part, labels_of(s)) for s, _, _, part in work if labels_of(s).get("which", WORK[part][0]) != WORK[part][0]]
    lib.ok(not mixed, "%s: no sample has the other goroutine's label, or one that is no more %s" % (name, mixed[:2]))
    labelled = sum(s.count for s, _, _, part in work if labels_of(s).get("which") == WORK[part][0])
    lib.ok(labelled >= 0.99 * count, "%s: %d of %d samples have their label" % (name, labelled, count))
    cut = {labels_of(s).get("long") for s, _, _, _ in work} - {None}
    lib.ok(cut == {LONG}, "%s: a long value is cut %s" % (name, cut))
    values = {labels_of(s).get("round") for s, _, _, _ in work} - {None}
    lib.ok(0 < len(values) <= ROUNDS_MAX, "%s: %d values of a key that has ever new ones" % (name, len(values)))
    other = {k for s, _, _, _ in work for k in labels_of(s)} - {"which", "round", "long"}
    lib.ok(not other, "%s: no other label %s" % (name, other))


def run(name, tool, flags):
    path = os.path.join(lib.scratch(), name.replace(".", "-"))
    if not golang_lib.build(tool, name, flags, path, "labels.go"):
        return
    d = lib.Otprofd(hz=HZ, interval="5s")
    truth, samples = golang_lib.after_walked(d, [path, str(SECONDS)], name)
    check(name, truth, samples)


tools = golang_lib.tools()
lib.need(tools, "labels of goroutines", "no go command is installed")
for go in tools:
    for variant, options in list(VARIANTS.items())[:NR_VARIANTS]:
        run("%s-%s" % (golang_lib.version(go), variant), go, options)
lib.finish()

# SPDX-License-Identifier: Apache-2.0
"""JavaScript programs that know their calls, lines and shares, in each tier of node and Deno, one of them through WebAssembly,
one through an addon: every stack must be legal in every frame and whole; functions that differ only by name are told apart, also
where they are inlined into one function. javascript_lib.py says which programs of node are tried; JAVASCRIPT=all runs every
mode, and longer."""
import collections
import os
import platform
import re

import known_program
import lib
from javascript_lib import ALL, CUT, UNKNOWN, denos, nodes, start, takes, tells_heaps

HZ = lib.rate(199)
SECONDS = 12 if ALL else 3
MODES = {
    "interpreted": ["--no-opt", "--no-sparkplug", "--no-enable-lazy-source-positions"],
    "baseline": ["--no-opt", "--always-sparkplug"],
    "optimized": [],
    "maglev": ["--maglev", "--max-optimized-bytecode-size=0"],
    "jitless": ["--jitless"],
    "far": ["--no-short-builtin-calls"],
    "copies interpreted": ["--interpreted-frames-native-stack", "--no-opt", "--no-sparkplug",
                           "--no-enable-lazy-source-positions"],
}
WASM_MODES = {"wasm": [], "wasm baseline": ["--no-wasm-tier-up"], "wasm optimized": ["--no-liftoff"]}
LEAF = re.compile(r"(remainder|float|array|shallow|calls|field|wasm)_\d")
WRAPPER = re.compile(r"\[(js-to-wasm wrapper|wasm-to-js wrapper|wasm jump table)\]")


def javascript_frame(f):
    if f[1] == "v8js" and not WRAPPER.fullmatch(f[0]):
        return "%s %s:%d;" % (f[0], os.path.basename(f[5]), f[4] or f.start)
    return "*%s;" % f[0] if f[0].startswith("addon_") else ""


def javascript_frames(sample):
    """The frames of JavaScript from the outermost, as the checker reads them: where V8 has no lines, the function's first."""
    return "".join(javascript_frame(f) for f in reversed(sample.frames))


def judge_columns(label, samples):
    """A place in the program's text is where a word, or something that is written with signs, begins."""
    with open(os.path.join(known_program.WHERE, "node.js"), encoding="utf-8") as f:
        text = [""] + f.read().splitlines()
    found, wrong = 0, collections.Counter()
    for s in samples:
        for f in s.frames:
            if f[1] == "v8js" and f[5].endswith("/node.js") and f.column:
                found += s.count
                if not text[f[4]][f.column - 1:f.column].strip():
                    wrong["%d:%d" % (f[4], f.column)] += s.count
    lib.ok(found > 0.5 * sum(s.count for s in samples) and not wrong, "%s: %d frames have a column, in their line: %s" % (
        label, found, dict(wrong)))


def judge(label, samples, program="node"):
    lines, cut, unknown, all_, lineless = [], collections.Counter(), 0, 0, 0
    for s in samples:
        all_ += s.count
        lineless += s.count * any(f[1] == "v8js" and f[5].endswith(program + ".js") and not f[4] for f in s.frames)
        for name in s.stack:
            if CUT.match(name):
                cut[name] += s.count
        text = javascript_frames(s)
        if any(name in UNKNOWN for name in s.stack):
            unknown += s.count
        elif program + ".js" in text:
            lines += [text + " done 0"] * s.count
    known_program.check(label, lines, program + ".truth", "--slack", "6")
    lib.ok(sum(cut.values()) <= 0.01 * all_, "%s: %d of %d stacks are cut: %s" % (label, sum(cut.values()), all_, dict(cut)))
    if label.endswith("interpreted"):
        lib.ok(lineless <= 0.01 * all_, "%s: %d of %d stacks have frames without a line" % (label, lineless, all_))
    # Until the runtime is known; and code that was compiled a moment ago.
    lib.ok(unknown <= 0.5 * HZ + 0.01 * all_, "%s: %d of %d stacks have code that is not known" % (label, unknown, all_))


def judge_leaves(label, samples):
    """While function SHAPE_N runs, the thread has its name: no other one's may be there, nor only that of their caller."""
    found, wrong = collections.Counter(), collections.Counter()
    for s in samples:
        thread = s.attributes.get("thread.name", "")
        names = [f[0] for f in s.frames if f[1] == "v8js"]
        leaf = next((n for n in names if LEAF.fullmatch(n)), None)
        if not LEAF.fullmatch(thread) or UNKNOWN[0] in names or "[anon]" in s.stack:
            continue
        if leaf and leaf != thread:
            wrong["%s for %s" % (leaf, thread)] += s.count
        # Otherwise it is code of V8 or the kernel that the caller runs.
        elif leaf or (s.frames and s.frames[0][1] == "v8js"):
            found[bool(leaf)] += s.count
    told = found[True] + found[False]
    lib.note("%s: of %d samples in functions with a name, %d have it, %d only their caller's" % (
        label, sum(s.count for s in samples), found[True], found[False]))
    lib.ok(sum(wrong.values()) <= 0.001 * told, "%s: %d samples have a neighbour's name: %s" % (
        label, sum(wrong.values()), dict(wrong)))
    lib.ok(found[True] >= 0.9 * told and found[True] > 10, "%s: most have the function's own" % label)


def run(node, options, program, *arguments):
    p = start(node, options, program, SECONDS, *arguments)
    p.wait(SECONDS * 8)
    lib.ok(p.returncode == 0, "%s ends well with %s (%s)" % (program, options, p.returncode))
    return p.pid


def main():
    lib.need(platform.machine() == "x86_64", "stacks of JavaScript", "V8's code is read on x86-64 alone")
    found, of_deno = nodes(), denos()
    if not found + of_deno:
        return
    named = os.environ.get("JAVASCRIPT_MODES", ",".join(list(MODES)[:len(MODES) if ALL else 3]))
    modes = {m: MODES[m] for m in named.split(",")}
    for node in found + of_deno:
        for options in list(modes.values()) + list(WASM_MODES.values()):
            takes(node, *options)
    d = lib.Otprofd(hz=HZ, profile={"sample_attributes": "process.pid thread.name"},
                    targets={"include": sorted({"exe:" + n.name for n in found + of_deno})})
    with_wasm = [n for n in found if tells_heaps(n, "WebAssembly")]

    def each(program, modes, *files, of=found):
        return [("%s %s" % (node.label, mode), run(node, options, program, *map(node.place, files)))
                for node in of for mode, options in modes.items() if takes(node, *options)]

    def chosen(modes):
        return modes if ALL else dict(list(modes.items())[:1])
    ran = each("node.js", modes) + each("node.js", {m: modes[m] for m in modes if m != "jitless"}, of=of_deno)
    wasm = each("wasm.js", chosen(WASM_MODES), of=with_wasm)
    addon = each("addon.js", chosen({"addon": [], "addon jitless": ["--jitless"]}), os.path.join(lib.PROGRAMS, "addon.node"))
    leaves = each("leaves.js", {"leaves " + m: o for m, o in modes.items() if ALL or m == "optimized"})
    last = d.stop()
    by_pid = known_program.samples_by_pid(d)
    for program, labels in (("node", ran), ("wasm", wasm), ("addon", addon)):
        for label, pid in labels:
            judge(label, by_pid[pid], program)
            if label.endswith(" optimized") and program == "node":
                judge_columns(label, by_pid[pid])
    for label, pid in leaves:
        judge_leaves(label, by_pid[pid])
    lib.check_ledger(last, "the ledger balances", stopped=True)
    decoders = last["quality"]["interpreted"]["decoders"]
    lib.ok(decoders["started"] >= len(ran) and not decoders["died"], "decoders read what they are asked for: %s" % decoders)


main()
lib.finish()

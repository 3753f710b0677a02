# SPDX-License-Identifier: Apache-2.0
"""Programs that know what their stacks look like, function by function and line
by line (tests/programs/truth), as many compilers, linkers and packagers make
them. All variants run at once under one daemon; of every sample, inlined calls,
functions, files and lines must be what the source says.

TRUTH=all takes all variants, TRUTH="gcc O0,dwz" those."""
import os
import re
import signal
import subprocess
import time

import lib
import truth_variants as variants

HZ = 997
# CPU time of each, and how long some run before that, by whose samples the indexes are asked for.
SECONDS, WARM = float(os.environ.get("TRUTH_SECONDS", "0.5")), 0.8
BATCH = 8


class Source:
    """What the marks in a language's files say."""

    def __init__(self, paths):
        self.own, self.calls = {}, {}
        for path in paths:
            self.read(path)

    def read(self, path):
        open_functions, file = [], os.path.basename(path)
        with open(path) as f:
            lines = list(enumerate(f, 1))
        for number, line in lines:
            indent = len(line) - len(line.lstrip())
            if open_functions and line.strip().startswith("}") and indent <= open_functions[-1][1]:
                # Its end: gcc -O0 puts a no-op of this line behind an inlined body, where some processors take samples.
                self.own[open_functions.pop()[0]].add((file, number))
            m = re.search(r"// (truth:|burn|calls) ?(.*)$", line)
            if not m:
                continue
            if m.group(1) == "truth:":
                open_functions.append((m.group(2), indent))
                self.own.setdefault(m.group(2), set()).add((file, number)) # its entry
                continue
            function, at = open_functions[-1][0], (file, number)
            self.own[function].add(at)
            if m.group(1) == "calls":
                self.calls.setdefault((function, m.group(2)), set()).add(at)

    def library(self, name):
        """The marked name of a library's function, which may call others, and goes by several."""
        return next((c for _, c in self.calls if c not in self.own and c == name.lstrip("_").replace("vdso_", "")), None)

    def from_library(self, frames):
        """Without what a library's function calls."""
        at = next((i for i, f in enumerate(frames[:5]) if f[0] in self.own), 0)
        at -= 1 if at and self.library(frames[at - 1][0]) else 0
        return [(self.library(frames[at][0]) or frames[at][0], frames[at][1])] + frames[at + 1:]

    def wrong(self, frames, lines):
        """What is wrong with a stack from its leaf to main; None: nothing."""
        frames = self.from_library(frames)
        name, at = frames[0]
        if self.library(name):
            frames = frames if lines else frames[1:] # its caller may be inlined
        else:
            if name not in self.own:
                return "leaf %s" % name
            if lines and at not in self.own[name]:
                return "%s at %s:%d" % (name, *at)
        for (callee, _), (caller, at) in zip(frames, frames[1:]):
            if (caller, callee) not in self.calls:
                return "%s < %s" % (callee, caller)
            if lines and at not in self.calls[caller, callee]:
                return "%s < %s at %s:%d" % (callee, caller, *at)
        return None


def plain_name(name):
    """Without arguments, template arguments, return type; the compilers' words for a lambda made one."""
    name = name.replace("(anonymous namespace)", "@anonymous@").replace("operator()", "@call@")
    name = re.sub(r"\{lambda\([^{}]*\)#\d+\}|\$_\d+|'lambda\d*'", "{lambda}", name)
    name = re.sub(r"\{closure#\d+\}", "{{closure}}", name)
    name = re.sub(r"__(anon|func)_\d+$", "", name) # Zig's instances of a generic function
    if not name.startswith("<"):
        while re.search(r"<[^<>]*>", name):
            name = re.sub(r"(::)?<[^<>]*>", "", name)
    while re.search(r"\([^()]*\)", name):
        name = re.sub(r"\([^()]*\)( const)?", "", name)
    if not name.startswith("<"):
        name = name.split(" ")[-1]
    return name.replace("@anonymous@", "(anonymous namespace)").replace("@call@", "operator()")


class Request(lib.Request):
    """Frames as (name, type, source file, line)."""

    def location(self, i):
        if i not in self.frames_of:
            at = self.d.locations[i]
            kind = self.attributes(at.attributes).get("profile.frame.type", "")
            self.frames_of[i] = []
            for x in at.lines:
                f = self.d.functions[x.function]
                self.frames_of[i].append((self.text(f.name), kind, os.path.basename(self.text(f.filename)), x.line))
        return self.frames_of[i]


class Tally:
    def __init__(self, variant, source):
        self.variant, self.source = variant, source
        self.total = self.right = self.outside = 0
        self.bad, self.seen, self.by_chain = {}, {}, {}

    def sample(self, frames, count):
        """frames: of the program, leaf first, (plain name, (file, line)); False for a marker."""
        names = [f[0] for f in frames]
        main = next((i for i, n in enumerate(names) if n in ("main", "truth::main")), None)
        if not any(n in self.source.own for n in names) and not any(n.startswith("truth+0x") for n in names):
            self.outside += count # the loader's, and what comes before main
            return
        self.total += count
        frames = frames[:main + 1] if main is not None else frames
        wrong = "no main: " + " < ".join(names[:6]) if main is None else self.source.wrong(frames, self.variant.lines)
        if wrong:
            self.bad[wrong] = self.bad.get(wrong, 0) + count
            return
        self.right += count
        for callee, caller in zip(frames, frames[1:]):
            edge = caller[0], callee[0], caller[1] if self.variant.lines else None
            self.seen[edge] = self.seen.get(edge, 0) + count
        for n in set(names):
            self.by_chain[n] = self.by_chain.get(n, 0) + count

    def unseen(self):
        """Calls that the source has and no sample had."""
        if self.variant.lines:
            edges = {(*edge, at) for edge, places in self.source.calls.items() for at in places if self.lasts(edge[1])}
        else:
            edges = set()
        return ["%s < %s:%d" % (e[1], e[0], e[2][1]) for e in edges if not self.seen.get(e)]

    def lasts(self, function):
        """It burns, or calls what burns."""
        calls = [c for f, c in self.source.calls if f == function]
        return function in self.source.own and (not calls or any(c == function or self.lasts(c) for c in calls))

    def share_error(self, told):
        """How far the share of a chain is from what the program itself measured."""
        whole = sum(told.values()) or 1
        return max((abs(self.by_chain.get(n, 0) / max(self.right, 1) - t / whole), n) for n, t in told.items())

    def check(self, told):
        name = self.variant.name
        worst = sorted(self.bad.items(), key=lambda i: -i[1])[:4]
        lib.ok(self.total > 300 * SECONDS and self.total - self.right <= max(2, 0.001 * self.total) and self.outside <= 0.02 * self.total,
               "%s: %d of %d samples are what the source says, %d are of no function of it%s" % (
                   name, self.right, self.total, self.outside, "".join("; %d x %s" % (n, k) for k, n in worst)))
        unseen, (error, where) = self.unseen(), self.share_error(told)
        lib.ok(not unseen, "%s: every call of the source was seen %s" % (name, "; ".join(unseen)))
        # Without inlined calls the shares of what is inlined are its callers'.
        lib.ok(error < 0.08 or not self.variant.lines, "%s: shares are the program's own to %.1f points (%s)" % (name, 100 * error, where))


def chosen():
    want = os.environ.get("TRUTH", "")
    names = want.split(",")
    return [v for v in variants.ALL if want == "all" or v.name in names or not want and v.brief]


def run_all(built, seconds):
    """Each one's process, ended, with what it printed."""
    started = [(v, lib.start([v.program, str(seconds)], stdout=subprocess.PIPE, text=True)) for v in built]
    return [(v, p, p.communicate(timeout=120)[0]) for v, p in started]


def index_all(d, built):
    """A few at a time, as they are asked for; each stays while its files are looked for, without CPU time."""
    for i in range(0, len(built), BATCH):
        batch = [lib.start([v.program, "60"], stdout=subprocess.DEVNULL) for v in built[i:i + BATCH]]
        time.sleep(WARM)
        for p in batch:
            p.send_signal(signal.SIGSTOP)
        # From one file to the next there is a moment without an indexer, and some time before the first.
        end, calm = time.monotonic() + 20, 0
        while calm < 12 and time.monotonic() < end:
            calm = 0 if indexing(d) else calm + 1
            time.sleep(0.15)
        for p in batch:
            lib.end(p)


def indexing(d):
    args = subprocess.run(["ps", "-o", "args=", "--ppid", str(d.pid)], capture_output=True, text=True).stdout
    return "indexer" in args


def told_by(output):
    pairs = (line.rsplit(" ", 1) for line in output.splitlines())
    return {name: float(t) for name, t in pairs}


def main():
    top = lib.scratch("otprof-truth-")
    debug_dir = os.path.join(top, "debug")
    os.mkdir(debug_dir)
    began = time.monotonic()
    built = []
    for v in variants.build(chosen(), top, debug_dir):
        if v.missing:
            lib.skip(v.name, v.missing)
        elif v.broken:
            lib.ok(False, "%s: it is built; %s" % (v.name, v.broken))
        else:
            built.append(v)
    lib.note("building took %.1f s" % (time.monotonic() - began))
    d = lib.Otprofd(hz=HZ, profile={"sample_attributes": "process.pid"}, symbols={"debug_dirs": debug_dir},
                    # Indexes are made one at a time: those of other programs would come between.
                    targets={"include": "exe:truth"})
    for _ in range(2): # on a busy host not all are asked for the first time
        index_all(d, built)
    lib.note("indexes were there after %.1f s" % (time.monotonic() - began))
    runs = run_all(built, SECONDS)
    lib.note("samples were taken after %.1f s" % (time.monotonic() - began))
    last = d.stop()
    sources = {language: Source([os.path.join(variants.SOURCES, f) for f in files + ["truth.h"] * language.startswith("c")])
               for language, files in variants.FILES.items()}
    tallies = {p.pid: (Tally(v, sources[v.language]), told_by(out)) for v, p, out in runs}
    for path in lib.profile_files(d.files):
        for s in Request(lib.read(path)).samples():
            tally = tallies.get(s.attributes.get("process.pid"))
            frames = [(plain_name(f[0]), (f[2], f[3])) for f in s.frames if f[1] != "kernel" and not lib.is_marker(f[0])]
            if tally and frames:
                tally[0].sample(frames, s.count)
    total = sum(t.total for t, _ in tallies.values())
    right = sum(t.right for t, _ in tallies.values())
    for t, told in tallies.values():
        t.check(told)
    lib.ok(right >= 0.999 * total, "all variants: %d of %d samples (%.3f %%) are what the source says" % (
        right, total, 100 * right / max(total, 1)))
    lib.check_ledger(last, "truth programs", stopped=True)


main()
lib.finish()

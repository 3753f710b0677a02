#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds stacks of an interpreted program against the truth about it.

usage: interpreted_check.py TRUTH [--slack PERCENT] < stacks

Stacks come one a line, as tests/tools/interpreted.c prints them: frames from the outermost, each with its flags
(^ entry, * native, - hidden), "name file:line" and a semicolon; then how the walk ended, and its frames.

The truth, one statement a line:
  function ID FIRST-LAST PATTERN    a function with its lines; PATTERN matches "name file" as a whole
  native ID PATTERN                 a native function: PATTERN matches its name, and it has no line
  root ID...                        what may be outermost
  call CALLER LINES CALLEE...       LINES: "3,7-9", or "-" for a native caller
  leaf ID WEIGHT                    as innermost frame, in proportion to the weights of other leaves
  also ID PATTERN                   another pattern of a function, as for another version
  startup PATTERN                   "name file" of frames that exist only while the program starts or ends
A sample is whole if its walk ended with the list, begins with a root, and every call in it is one of these, on a line
of the call. Samples with a frame of the start are not judged, but at most 10 % of all may be such. Prints "whole N of M",
what was wrong, and the shares of leaves. Exit 1: fewer than 99 % are whole, too many are of the start, or a share is off
by more than the error of sampling and the slack.
"""
import argparse
import collections
import math
import re
import sys


class Function:
    def __init__(self, name, first, last, pattern):
        self.name, self.first, self.last = name, first, last
        self.patterns = [re.compile(pattern)]

    def is_native(self):
        return self.last is None

    def fits(self, frame):
        if not any(p.fullmatch(frame.text) for p in self.patterns):
            return False
        return self.is_native() or self.first <= frame.line <= self.last


class Frame:
    """One frame of a line; name is what it shows, text is without the line."""

    def __init__(self, text):
        match = re.match(r"[\^*-]*", text)
        self.flags, self.shown = match.group(), text[match.end():]
        head, colon, line = self.shown.rpartition(":")
        known = colon and line.isdigit()
        self.text, self.line = (head.strip(), int(line)) if known else (self.shown, 0)


def lines_of(text):
    lines = set()
    for part in text.split(",") if text != "-" else []:
        first, _, last = part.partition("-")
        lines.update(range(int(first), int(last or first) + 1))
    return lines


class Truth:
    def __init__(self, path):
        self.functions, self.roots, self.calls, self.leaves = {}, set(), collections.defaultdict(set), {}
        self.startup = []
        with open(path, encoding="utf-8") as file:
            for line in file:
                words = line.split()
                if words and not words[0].startswith("#"):
                    getattr(self, "add_" + words[0])(words[1:], line)
        for caller, callee in self.calls:
            if not {caller, callee} <= self.functions.keys():
                sys.exit(f"{path}: {caller} or {callee} is no function")

    def add_function(self, words, line):
        first, _, last = words[1].partition("-")
        self.functions[words[0]] = Function(words[0], int(first), int(last or first), line.split(None, 3)[3].strip())

    def add_native(self, words, line):
        self.functions[words[0]] = Function(words[0], None, None, line.split(None, 2)[2].strip())

    def add_also(self, words, line):
        self.functions[words[0]].patterns.append(re.compile(line.split(None, 2)[2].strip()))

    def add_root(self, words, _):
        self.roots.update(words)

    def add_call(self, words, _):
        for callee in words[2:]:
            self.calls[words[0], callee] |= lines_of(words[1])

    def add_leaf(self, words, _):
        self.leaves[words[0]] = float(words[1])

    def add_startup(self, _, line):
        self.startup.append(re.compile(line.split(None, 1)[1].strip()))

    def is_startup(self, frames):
        return any(p.fullmatch(f.text) for p in self.startup for f in frames)

    def of(self, frame):
        return [f for f in self.functions.values() if f.fits(frame)]

    def allows(self, caller, function, callee):
        lines = self.calls.get((function.name, callee.name))
        return lines is not None and (function.is_native() or caller.line in lines)


def fault_of(truth, frames, end):
    """None for a whole sample, else what is wrong; and the innermost function."""
    if end != "done":
        return f"walk: {end}", None
    if not frames:
        return "no frames", None
    before = None
    for frame in frames:
        candidates = truth.of(frame)
        if not candidates:
            return f"unknown frame: {frame.shown}", None
        if before is None:
            possible = [f for f in candidates if f.name in truth.roots]
        else:
            possible = [f for f in candidates for b in before[1] if truth.allows(before[0], b, f)]
        if not possible:
            return f"call: {before[0].shown if before else 'root'} -> {frame.text}", None
        before = frame, possible
    return None, before[1][0].name


def read_samples(file):
    for line in file:
        if line.startswith("#") or not line.strip():
            continue
        *stack, tail = line.rstrip("\n").split(";")
        frames = [Frame(text) for text in stack]
        yield [f for f in frames if f.shown or "-" not in f.flags], tail.split()[0]


def check_leaves(truth, leaves, slack):
    """Whether the shares of the leaves are right, within four standard deviations and the slack."""
    weight, total, good = sum(truth.leaves.values()), sum(leaves[name] for name in truth.leaves), True
    for name, part in truth.leaves.items() if total else []:
        want, have = part / weight, leaves[name] / total
        margin = 4 * math.sqrt(want * (1 - want) / total) + slack / 100
        good &= abs(have - want) <= margin
        print(f"leaf {name}: {100 * have:.1f} %, expected {100 * want:.1f} +- {100 * margin:.1f}")
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("truth")
    parser.add_argument("--slack", type=float, default=3)
    options = parser.parse_args()
    truth, faults, leaves = Truth(options.truth), collections.Counter(), collections.Counter()
    whole = total = startup = 0
    for frames, end in read_samples(sys.stdin):
        if truth.is_startup(frames):
            startup += 1
            continue
        fault, leaf = fault_of(truth, frames, end)
        total += 1
        whole += fault is None
        if fault:
            faults[fault] += 1
        else:
            leaves[leaf] += 1
    print(f"whole {whole} of {total}, and {startup} while the program starts or ends")
    for fault, count in faults.most_common(20):
        print(f"wrong {count}: {fault}")
    good = check_leaves(truth, leaves, options.slack)
    return 0 if total and whole >= 0.99 * total and startup <= 0.1 * (total + startup) and good else 1


if __name__ == "__main__":
    sys.exit(main())

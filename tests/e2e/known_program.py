# SPDX-License-Identifier: Apache-2.0
"""Programs that know their calls, lines and shares (tests/programs/interpreted), and how their stacks are held against that."""
import collections
import os
import re
import subprocess
import sys

import lib

WHERE = os.path.join(lib.TOP, "tests", "programs", "interpreted")
CHECK = os.path.join(lib.TOP, "tests", "lib", "interpreted_check.py")


def run_check(lines, truth, *options):
    return subprocess.run([sys.executable, "-B", CHECK, os.path.join(WHERE, truth), *options],
                          input="\n".join(lines) + "\n", capture_output=True, text=True)


def check(label, lines, truth, *options):
    """Each line a stack, as the checker reads it: legal in every frame, and leaves with their shares."""
    r = run_check(lines, truth, *options)
    for line in r.stdout.splitlines():
        lib.note("%s: %s" % (label, line))
    lib.ok(r.returncode == 0 and lines, "%s: %d stacks are legal, and leaves have their shares%s" % (
        label, len(lines), "" if r.returncode == 0 else ": " + r.stderr[-200:]))


def mark_lines(source, comment):
    """The line of each mark in a source: "COMMENT MARK" at its end."""
    with open(source, encoding="utf-8") as f:
        return {m[1]: n for n, text in enumerate(f, 1) for m in [re.search(re.escape(comment) + r" (\w+)$", text)] if m}


def check_shares(label, counts, work):
    """Samples of each leaf against how much it ran, in any unit of CPU time."""
    total, all_work = sum(counts.get(k, 0) for k in work), sum(work.values())
    off = max(abs(counts.get(k, 0) / max(total, 1) - work[k] / max(all_work, 1)) for k in work)
    lib.ok(total > 100 and off < 0.05 + 1.5 / total ** 0.5,
           "%s: leaves have the shares of their work (%.1f points off) %s" % (label, 100 * off, dict(counts)))


def samples_by_pid(d):
    """Of a daemon whose samples have the attribute process.pid."""
    found = collections.defaultdict(list)
    for s in lib.samples(d.files):
        found[s.attributes.get("process.pid")].append(s)
    return found

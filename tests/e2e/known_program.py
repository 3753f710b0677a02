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
# language: frame type, file, loops that are to be folded away
LANGUAGES = {
    "python": ("cpython", "python.py", r"_PyEval_EvalFrameDefault.*"),
    "ruby": ("ruby", "ruby.rb", r"(vm_exec_core|rb_vm_exec|vm_exec).*"),
    "php": ("php", "php.php", r"execute_ex.*"),
    "perl": ("perl", "perl.pl", r"Perl_runops_(standard|debug).*"),
}


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


def frames_of(sample, kind):
    """The frames of the runtime from the outermost, as the checker reads them."""
    frames = []
    for name, type_, _, _, line, source in sample.frames:
        if type_ == kind:
            frames.append("%s %s:%d;" % (name, os.path.basename(source), line))
    return "".join(reversed(frames))


def judge(label, language, samples, hz, truth=None):
    """Frames are held against the truth; the rest is about mixed stacks. Returns how many samples there are."""
    kind, _, loop = LANGUAGES[language]
    lines, loops, bare, cut, misfit, all_ = [], 0, 0, 0, 0, 0
    for s in samples:
        all_ += s.count
        text = frames_of(s, kind)
        if not text:
            bare += s.count
            continue
        loops += s.count * any(re.fullmatch(loop, n) for n in s.stack)
        cut += s.count * any(n.startswith("[cut: ") for n in s.stack)
        misfit += s.count * any("do not fit" in n for n in s.stack)
        lines += [text + " done 0"] * s.count
    check(label, lines, truth or language + ".truth")
    # Those of the first quarter of a second, and until a decoder has attached: others want the CPU as well.
    lib.ok(bare <= hz, "%s: %d of %d samples have no interpreted frame: %.2f s" % (label, bare, all_, bare / hz))
    lib.ok(loops <= 0.01 * all_, "%s: %d of %d stacks still have the loop" % (label, loops, all_))
    lib.ok(misfit <= 0.01 * all_, "%s: %d of %d stacks do not fit" % (label, misfit, all_))
    lib.ok(cut <= max(3, 0.01 * all_), "%s: %d of %d native stacks are cut" % (label, cut, all_))
    return all_


def samples_by_pid(d):
    """Of a daemon whose samples have the attribute process.pid."""
    found = collections.defaultdict(list)
    for s in lib.samples(d.files):
        found[s.attributes.get("process.pid")].append(s)
    return found

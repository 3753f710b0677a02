# SPDX-License-Identifier: Apache-2.0
"""Java classes that come and go: code and methods of one lie where those of another lay before. No stack may have
another class' name; what cannot be known has none, and that is counted. hotspot_lib.py says which JDKs are tried;
HOTSPOT=all tries every mode, for minutes; MODES, if it is set, is an expression for those that are, SECONDS for how long."""
import collections
import os
import re
import subprocess

import hotspot_lib
import known_program
import lib

HZ = lib.rate(997)
SECONDS = int(os.environ.get("SECONDS", 60 if hotspot_lib.ALL else 6))
MODES = os.environ.get("MODES", "")
CLASSES = 16
CLASS = """public class K%(n)d implements java.util.function.IntUnaryOperator {
	static int one%(n)d(int x) { for (int i = 0; i < 3000; i++) x = (x * 31 + i) %% 1000003; return x; }
	static int two%(n)d(int x) { for (int i = 0; i < 9; i++) x = one%(n)d(x + i); return x; }
	public int applyAsInt(int x) { return two%(n)d(x) + one%(n)d(x); }
}
"""
# Milliseconds that a class lives, classes until a collection: the highest share of stacks that are not known.
EXTREME, REALISTIC = (40, 8, 0.7), (1500, 4, 0.01)
RUNS = {
    "realistic": ([], REALISTIC),
    "extreme": ([], EXTREME),
    "interpreted": (["-Xint"], EXTREME),
    "C1": (["-XX:TieredStopAtLevel=1"], EXTREME),
    "C2": (["-XX:-TieredCompilation"], EXTREME),
    "without counters": (["-XX:-UsePerfData"], EXTREME),
    "serial": (["-XX:+UseSerialGC"], EXTREME),
    "parallel": (["-XX:+UseParallelGC"], EXTREME),
    "Z": (["-XX:+UseZGC"], EXTREME),
    "Shenandoah": (["-XX:+UseShenandoahGC"], EXTREME),
}
UNKNOWN = re.compile(r"\[anon\]|\[Java function\]|\[cut: .*")
OF_CLASS = re.compile(r"K(\d+)\.(?:(?:one|two)(\d+)|applyAsInt|<init>)\(")


def compile_classes(to):
    for n in range(CLASSES):
        with open(os.path.join(to, "K%d.java" % n), "w", encoding="utf-8") as f:
            f.write(CLASS % {"n": n})
    sources = [os.path.join(to, "K%d.java" % n) for n in range(CLASSES)]
    p = subprocess.run(["javac", "--release", "8", "-g", "-d", to] + sources, capture_output=True, text=True)
    lib.ok(p.returncode == 0, "the classes are compiled %s" % p.stderr[-200:].replace("\n", " "))


def classes_of(name):
    m = OF_CLASS.match(name)
    return {int(x) for x in m.groups() if x} if m else set()


def judge(label, samples, highest):
    right, wrong, unknown = 0, collections.Counter(), collections.Counter()
    for s in samples:
        thread = re.fullmatch(r"k(\d+)", s.attributes.get("thread.name", ""))
        if not thread:
            continue
        found = set().union(*map(classes_of, s.stack))
        if found - {int(thread[1])}:
            wrong["%s: %s" % (thread[0], [n for n in s.stack if classes_of(n)])] += s.count
        elif any(map(UNKNOWN.match, s.stack)):
            unknown[next(n for n in s.stack if UNKNOWN.match(n))] += s.count
        elif found:
            right += s.count
    all_ = right + unknown.total() + sum(wrong.values())
    lib.ok(right and not wrong, "%s: none of %d stacks has another class' name, %d do: %s" % (
        label, all_, sum(wrong.values()), wrong.most_common(3)))
    lib.ok(unknown.total() <= highest * all_, "%s: %d of %d stacks (%.2f %%) are not known, at most %.0f %%: %s" % (
        label, unknown.total(), all_, 100.0 * unknown.total() / max(all_, 1), 100 * highest, dict(unknown)))


def main():
    found = hotspot_lib.homes()
    lib.need(found, "stacks of Java classes that come and go", "there is no JDK")
    classes = hotspot_lib.compile_program("Churn.java")
    lib.need(classes, "stacks of Java classes that come and go", "there is no javac")
    of_classes = lib.scratch()
    compile_classes(of_classes)
    runs = [(java, name) for java in found for name in (RUNS if MODES or hotspot_lib.ALL else list(RUNS)[:1])
            if re.search(MODES, name) and java.has(RUNS[name][0])]
    d = lib.Otprofd(hz=HZ, profile={"sample_attributes": "process.pid thread.name"})
    ran = []
    for java, name in runs:
        options, (life, every, highest) = RUNS[name]
        # Beside others a reading may come too late for the classes of a second; what it names must be right all the same.
        highest = highest if hotspot_lib.ALL else max(highest, 0.05)
        arguments = [str(SECONDS), of_classes, str(life), str(every)]
        p = lib.start(java.command(options + ["-cp", classes, "Churn"] + arguments), stdout=subprocess.DEVNULL)
        p.wait(SECONDS * 6)
        lib.ok(p.returncode == 0, "%s %s ends well (%s)" % (java.label, name, p.returncode))
        ran.append((p.pid, "%s %s" % (java.label, name), highest))
    last = d.stop()
    by_pid = known_program.samples_by_pid(d)
    for pid, label, highest in ran:
        judge(label, by_pid[pid], highest)
    lib.check_ledger(last, "the ledger balances", stopped=True)
    decoders = last["quality"]["interpreted"]["decoders"]
    lib.ok(not decoders["died"], "decoders read what they are asked for: %s" % decoders)


main()
lib.finish()

# SPDX-License-Identifier: Apache-2.0
"""Java classes that come and go: code and methods of one lie where those of another lay before. No stack may have another
class' name; what cannot be known has none, and that is counted. HOTSPOT=all tries every JDK (as hotspot.py) and every
mode, for 100,000 samples each."""
import collections
import os
import re
import subprocess

import hotspot_lib
import lib

LONG = os.environ.get("HOTSPOT") == "all"
HZ = lib.rate(997)
SECONDS = 60 if LONG else 6
CLASSES = 16
CLASS = """public class K%(n)d implements java.util.function.IntUnaryOperator {
	static int one%(n)d(int x) { for (int i = 0; i < 3000; i++) x = (x * 31 + i) %% 1000003; return x; }
	static int two%(n)d(int x) { for (int i = 0; i < 9; i++) x = one%(n)d(x + i); return x; }
	public int applyAsInt(int x) { return two%(n)d(x) + one%(n)d(x); }
}
"""
# Milliseconds that a class lives, classes until a collection: the highest share of stacks that are not known.
EXTREME, REALISTIC = (40, 8, 0.2), (1500, 4, 0.01)
RUNS = {
    "extreme": ([], EXTREME),
    "realistic": ([], REALISTIC),
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
    p = subprocess.run(["javac", "--release", "8", "-g", "-d", to] + [os.path.join(to, "K%d.java" % n) for n in range(CLASSES)],
                       capture_output=True, text=True)
    lib.ok(p.returncode == 0, "the classes are compiled %s" % p.stderr[-200:].replace("\n", " "))


def classes_of(name):
    m = OF_CLASS.match(name)
    return {int(x) for x in m.groups() if x} if m else set()


def judge(label, samples, highest):
    right, wrong, unknown = 0, collections.Counter(), 0
    for s in samples:
        thread = re.fullmatch(r"k(\d+)", s.attributes.get("thread.name", ""))
        if not thread:
            continue
        found = set().union(*map(classes_of, s.stack))
        if found - {int(thread[1])}:
            wrong["%s: %s" % (thread[0], [n for n in s.stack if classes_of(n)])] += s.count
        elif any(UNKNOWN.match(n) for n in s.stack):
            unknown += s.count
        elif found:
            right += s.count
    all_ = right + unknown + sum(wrong.values())
    lib.ok(right and not wrong, "%s: none of %d stacks has another class' name, %d do: %s" % (
        label, all_, sum(wrong.values()), wrong.most_common(3)))
    lib.ok(unknown <= highest * all_, "%s: %d of %d stacks (%.2f %%) are not known, at most %.0f %%" % (
        label, unknown, all_, 100.0 * unknown / max(all_, 1), 100 * highest))


def has(home, options):
    return subprocess.run([os.path.join(home, "bin", "java")] + options + ["-version"], capture_output=True).returncode == 0


def main():
    found = hotspot_lib.homes()
    lib.need(found, "stacks of Java classes that come and go", "there is no JDK")
    classes = hotspot_lib.compile_program("Churn.java")
    lib.need(classes, "stacks of Java classes that come and go", "there is no javac")
    of_classes = lib.scratch()
    compile_classes(of_classes)
    runs = [(label, home, name) for label, home in found for name in (RUNS if LONG else list(RUNS)[:1])
            if has(home, RUNS[name][0])]
    runs = [r for r in runs if re.search(os.environ.get("CHURN", ""), "%s %s" % (r[0], r[2]))]
    d = lib.Otprofd(hz=HZ, profile={"sample_attributes": "process.pid thread.name"})
    ran = []
    for label, home, name in runs:
        options, (life, every, highest) = RUNS[name]
        p = lib.start([os.path.join(home, "bin", "java")] + options +
                      ["-cp", classes, "Churn", str(SECONDS), of_classes, str(life), str(every)], stdout=subprocess.DEVNULL)
        p.wait(SECONDS * 6)
        lib.ok(p.returncode == 0, "%s %s ends well (%s)" % (label, name, p.returncode))
        ran.append((p.pid, "%s %s" % (label, name), highest))
    last = d.stop()
    by_pid = collections.defaultdict(list)
    for s in lib.samples(d.files):
        by_pid[s.attributes.get("process.pid")].append(s)
    for pid, label, highest in ran:
        judge(label, by_pid[pid], highest)
    lib.check_ledger(last, "the ledger balances", stopped=True)
    decoders = last["quality"]["interpreted"]["decoders"]
    lib.ok(not decoders["died"], "decoders read what they are asked for: %s" % decoders)


main()
lib.finish()

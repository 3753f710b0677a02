# SPDX-License-Identifier: Apache-2.0
"""Java classes that come and go: code and methods of one lie where those of another lay before. No stack may have
another class' name; what cannot be known has none, and that is counted. hotspot_lib.py says which JDKs are tried;
HOTSPOT=all tries every mode, for minutes; MODES, if it is set, is an expression for those that are, SECONDS for how long;
churn_lib.py says how many samples."""
import glob
import os
import re
import subprocess
import zipfile

import churn_lib
import hotspot_lib
import lib

HZ = lib.rate(997)
SECONDS = int(os.environ.get("SECONDS", 30 if hotspot_lib.ALL else 6))
MODES = os.environ.get("MODES", "")
CLASSES = 16
# Until the class Other is loaded, compiled code takes it that there is no other method next than Step's: it is deoptimised then.
CLASS = """public class K%(n)d implements java.util.function.IntUnaryOperator {
	static class Step%(n)d { int next(int x, int i) { return (x * 31 + i) %% 1000003; } }
	static class Other%(n)d extends Step%(n)d { int next(int x, int i) { return (x * 37 + i) %% 1000003; } }
	Step%(n)d step = new Step%(n)d();
	int calls;
	static int one%(n)d(int x) { for (int i = 0; i < 3000; i++) x = (x * 31 + i) %% 1000003; return x; }
	static int two%(n)d(int x) { for (int i = 0; i < 9; i++) x = one%(n)d(x + i); return x; }
	int three%(n)d(int x) { for (int i = 0; i < 3000; i++) x = step.next(x, i); return x; }
	public int applyAsInt(int x) {
		if (++calls == 100)
			step = new Other%(n)d();
		return two%(n)d(x) + one%(n)d(x) + three%(n)d(x);
	}
}
"""
# Milliseconds that a class lives, classes until a collection: the highest share of stacks that are not known.
EXTREME, SHORT, REALISTIC = (40, 8, 0.7), (100, 4, 0.7), (1500, 4, 0.01)
KEPT = (400, 1, 0.7, "keep")
# The program Redefined in place of Churn: how long a class runs until it is redefined, and the rest likewise.
REDEFINED = {
    "redefined": ([], (150, 2, 0.7)),
    "redefined, interpreted": (["-Xint"], (150, 2, 0.7)),
}
RUNS = {
    "realistic": ([], REALISTIC),
    "extreme": ([], EXTREME),
    "short": ([], SHORT),
    # Classes stay, but not the code that is compiled anew.
    "kept": ([], KEPT),
    "interpreted": (["-Xint"], EXTREME),
    "C1": (["-XX:TieredStopAtLevel=1"], EXTREME),
    "C2": (["-XX:-TieredCompilation"], EXTREME),
    "without counters": (["-XX:-UsePerfData"], EXTREME),
    "serial": (["-XX:+UseSerialGC"], EXTREME),
    "parallel": (["-XX:+UseParallelGC"], EXTREME),
    "Z": (["-XX:+UseZGC"], EXTREME),
    "Shenandoah": (["-XX:+UseShenandoahGC"], EXTREME),
    # Code is flushed for want of room, besides.
    "small cache": (["-XX:ReservedCodeCacheSize=3m", "-XX:-SegmentedCodeCache"], REALISTIC),
}
UNKNOWN = re.compile(r"\[anon\]|\[Java function\]|\[cut: .*")
OF_CLASS = re.compile(r"K(\d+)(?:\$(?:Step|Other)(\d+))?\.(?:(?:one|two|three)(\d+)|applyAsInt|next|<init>)\(")


def compile_classes(to):
    for n in range(CLASSES):
        with open(os.path.join(to, "K%d.java" % n), "w", encoding="utf-8") as f:
            f.write(CLASS % {"n": n})
    sources = [os.path.join(to, "K%d.java" % n) for n in range(CLASSES)]
    p = subprocess.run(["javac", "--release", "8", "-g", "-d", to] + sources, capture_output=True, text=True)
    lib.ok(p.returncode == 0, "the classes are compiled %s" % p.stderr[-200:].replace("\n", " "))


def make_agent(classes):
    """The programs' classes as a jar that java takes for an agent."""
    path = os.path.join(classes, "redefined.jar")
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\nPremain-Class: Redefined\nCan-Redefine-Classes: true\n")
        for path_of in glob.glob(os.path.join(classes, "*.class")):
            z.write(path_of, os.path.basename(path_of))
    return path


def classes_of(name):
    m = OF_CLASS.match(name)
    return {int(x) for x in m.groups() if x} if m else set()


def judge(sample):
    """A thread has the name of the class whose code it runs."""
    thread = re.fullmatch(r"k(\d+)", sample.attributes.get("thread.name", ""))
    if not thread:
        return churn_lib.ELSEWHERE, "between"
    found = set().union(*map(classes_of, sample.stack))
    if found - {int(thread[1])}:
        return churn_lib.WRONG, "%s: %s" % (thread[0], [n for n in sample.stack if classes_of(n)])
    if any(map(UNKNOWN.match, sample.stack)):
        return churn_lib.UNKNOWN, next(n for n in sample.stack if UNKNOWN.match(n))
    return (churn_lib.RIGHT, "") if found else (churn_lib.ELSEWHERE, sample.stack[0])


def main():
    found = hotspot_lib.homes()
    lib.need(found, "stacks of Java classes that come and go", "there is no JDK")
    classes = hotspot_lib.compile_program("Churn.java", "Redefined.java")
    lib.need(classes, "stacks of Java classes that come and go", "there is no javac")
    agent = make_agent(classes)
    of_classes = lib.scratch()
    compile_classes(of_classes)
    usual = [next(iter(RUNS)), next(iter(REDEFINED))]
    every_run = RUNS | REDEFINED
    runs = [(java, name) for java in found for name in (every_run if MODES or hotspot_lib.ALL else usual)
            if re.search(MODES, name) and java.has(every_run[name][0])]
    churn = churn_lib.Churn(lib.Otprofd(hz=HZ, profile={"sample_attributes": "process.pid thread.name"}, targets={"include": ["exe:java"]}))
    for java, name in runs:
        options, (life, every, highest, *keep) = every_run[name]
        program = ["-javaagent:" + agent, "-cp", agent, "Redefined"] if name in REDEFINED else ["-cp", classes, "Churn"]
        argv = java.command(options + program + [str(SECONDS), of_classes, str(life), str(every)] + keep)
        # Beside others a reading may come too late for the classes of a second; what it names must be right all the same.
        churn.run("%s %s" % (java.label, name), lambda a=argv: [lib.start(a, stdout=subprocess.DEVNULL)], SECONDS, judge,
                  highest if hotspot_lib.ALL else max(highest, 0.05))
    churn.stop()


main()
lib.finish()

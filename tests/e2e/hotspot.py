# SPDX-License-Identifier: Apache-2.0
"""A Java program that knows its calls, lines and shares, interpreted and compiled by each compiler: every stack must be
legal in every frame and whole, from the thread's start on. hotspot_lib.py says which JDKs are tried; MODES, if it is
set, is an expression for those of their modes that are."""
import collections
import os
import re
import resource
import subprocess

import hotspot_lib
import known_program
import lib

HZ = lib.rate(199)
SECONDS = 6
MODES = {
    "tiered": [],
    "interpreted": ["-Xint"],
    "C1": ["-XX:TieredStopAtLevel=1"],
    "C2": ["-XX:-TieredCompilation"],
    "serial": ["-XX:+UseSerialGC"],
    "unsegmented": ["-XX:-SegmentedCodeCache", "-XX:+PreserveFramePointer"],
    "uncompressed": ["-XX:-UseCompressedOops", "-XX:-UseCompressedClassPointers"],
    "compact headers": ["-XX:+UnlockExperimentalVMOptions", "-XX:+UseCompactObjectHeaders"],
    "parallel": ["-XX:+UseParallelGC"],
    "Z": ["-XX:+UseZGC"],
    "Shenandoah": ["-XX:+UseShenandoahGC"],
    "without counters": ["-XX:-UsePerfData"],
}
# Where the optimizing compiler leaves polls out of counted loops, what they were inlined into is known, without a line.
NO_POLLS = r" (serial|parallel)$|java-8-\S* (?!(interpreted|C1)$)"
NO_LINE = re.compile(r":0;$")
# The only loop in recurse is that of three, which its last line calls; without it three has no share.
IN_RECURSE = re.compile(r"(Java\.recurse\(int, int\) Java\.java):0;$")
THREE_IN_IT = r"\1:30;Java.three(int) Java.java:23;"
STUB = re.compile(r"\[(?!Java function).*")
ROOT = re.compile(r"start_thread|(__)?clone3?|libc\.so\.6\+0x.*") # another system's libc has no debug information here
WRONG = re.compile(r"\[(Java function|cut: ).*")


def java_frames(sample):
    """The frames of Java from the outermost, as the checker reads them; stubs stand for themselves."""
    frames = []
    for name, type_, _, _, line, source in sample.frames:
        if type_ == "jvm" and not STUB.match(name):
            frames.append("%s %s:%d;" % (name, os.path.basename(source), line))
    return "".join(reversed(frames))


def judge(label, samples, cpu):
    lines, no_java, wrong, all_, outside, unknown, no_line, left_out = [], 0, collections.Counter(), 0, 0, 0, 0, 0
    for s in samples:
        all_ += s.count
        text = java_frames(s)
        for name in s.stack:
            if WRONG.match(name):
                wrong[name] += s.count
        if "[anon]" in s.stack:
            unknown += s.count
            continue
        if "Java." not in text:
            no_java += s.count
            continue
        if NO_LINE.search(text) and (re.search(NO_POLLS, label)):
            no_line += s.count
            text = IN_RECURSE.sub(THREE_IN_IT, text)
            if NO_LINE.search(text):
                left_out += s.count
                continue
        names = lib.user_part(s)[0]
        outside += s.count * (not any(map(ROOT.fullmatch, names[-3:])))
        lines += [text + " done 0"] * s.count
    known_program.check(label, lines, "java.truth", "--slack", "5")
    lib.ok(sum(wrong.values()) <= 0.01 * all_, "%s: %d of %d stacks are cut, or have a function that is unknown: %s" % (
        label, sum(wrong.values()), all_, dict(wrong)))
    lib.ok(outside <= 0.01 * all_, "%s: %d of %d stacks do not begin where threads do" % (label, outside, len(lines)))
    lib.ok(no_line <= 0.15 * all_, "%s: %d of %d stacks are in a loop without a poll, in code that others are inlined into: its "
           "method is known, its line is not" % (label, no_line, all_))
    # Until its code is known; and code that was compiled a moment ago.
    lib.ok(unknown <= 0.5 * HZ + 0.05 * all_, "%s: %d of %d stacks have code that is not known" % (label, unknown, all_))
    # The virtual machine's own threads: compilers and collectors.
    lib.ok(len(lines) + left_out >= 0.7 * all_ - unknown, "%s: %d of %d stacks are the program's, %d others have no Java" % (
        label, len(lines), all_, no_java))
    want = cpu * HZ
    lib.ok(abs(all_ - want) <= 0.2 * want + 4 * want ** 0.5, "%s: %d samples of %.2f s of CPU time, expected %d" % (
        label, all_, cpu, want))


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(java, classes, options):
    """Its pid, and the CPU time that it took."""
    before = cpu_of_children()
    p = lib.start(java.command(options + ["-cp", classes, "Java", str(SECONDS)]), stdout=subprocess.DEVNULL)
    p.wait(SECONDS * 6)
    lib.ok(p.returncode == 0, "the program ends well with %s (%s)" % (options, p.returncode))
    return p.pid, cpu_of_children() - before


def main():
    found = hotspot_lib.homes()
    lib.need(found, "stacks of Java programs", "there is no JDK")
    classes = hotspot_lib.compile_program("Java.java")
    lib.need(classes, "stacks of Java programs", "there is no javac")
    modes = dict(list(MODES.items())[:2]) if lib.BRIEF else MODES if hotspot_lib.ALL else dict(list(MODES.items())[:6])
    modes = {k: v for k, v in modes.items() if re.search(os.environ.get("MODES", ""), k)}
    d = lib.Otprofd(hz=HZ, profile={"sample_attributes": "process.pid"})
    ran = [("%s %s" % (java.label, mode),) + run(java, classes, options)
           for java in found for mode, options in modes.items() if java.has(options)]
    last = d.stop()
    by_pid = known_program.samples_by_pid(d)
    for label, pid, cpu in ran:
        judge(label, by_pid[pid], cpu)
    lib.check_ledger(last, "the ledger balances", stopped=True)
    decoders = last["quality"]["interpreted"]["decoders"]
    lib.ok(decoders["started"] >= len(ran) and not decoders["died"], "decoders read what they are asked for: %s" % decoders)


main()
lib.finish()

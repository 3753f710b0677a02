# SPDX-License-Identifier: Apache-2.0
"""Code that is not the usual: written by the program itself, and 32 bits wide. Names
of the former may come from a perf map, the process' own user's alone."""
import os
import platform
import shutil
import subprocess
import time

import bystander
import lib

lib.need(platform.machine() == "x86_64", "unusual code", "written for x86-64")

HZ = 499
COMPAT = """
__attribute__((noinline)) static void spin32(void) { for (volatile unsigned i = 0; i < 300000000u; i++); }
void _start(void) { spin32(); __asm__ volatile("int $0x80" :: "a"(1), "b"(0)); for (;;); }
"""


def build_compat(where):
    path = os.path.join(where, "compat")
    argv = ["gcc", "-m32", "-O1", "-nostdlib", "-static", "-fno-pie", "-no-pie", "-x", "c", "-o", path, "-"]
    return path if subprocess.run(argv, input=COMPAT, text=True, capture_output=True).returncode == 0 else None


def check_caller(samples, caller):
    stacks = [(lib.user_part(s), s.count) for s in samples if lib.service(s) == "generated"]
    mine = [(names, marker, n) for (names, marker), n in stacks if caller in names]
    count = sum(n for _, _, n in mine)
    whole = sum(n for names, marker, n in mine if not marker and names[-1] == "_start")
    lib.ok(count > 0.25 * 3 * HZ / 3, "%s: %d samples" % (caller, count))
    lib.ok(count and whole >= 0.99 * count, "%s: %d of %d end at _start" % (caller, whole, count))


# As nobody, at addresses that do not change: a map of all mapped memory, and the program by another name.
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "unshare", "-Urm", "setarch", "-R", "sh", "-ec"]
OWN = "cat {map} >/tmp/perf-$$.map; exec {program} 1"
BOUND = ": >/tmp/perf-$$.map; mount --bind {map} /tmp/perf-$$.map; exec {program} 1"


def run_with_map(work, name, script):
    """A process of nobody whose perf map is its own file, or root's mounted over it."""
    program, names = os.path.join(work, name), os.path.join(work, name + ".map")
    shutil.copy(os.path.join(lib.PROGRAMS, "generated"), program)
    with open(names, "w") as f:
        f.write("7fff00000000 ffffffff named_by_%s\n" % name)
    os.chmod(names, 0o644)
    p = lib.start(NOBODY + [script.format(map=names, program=program)])
    path = "/tmp/perf-%d.map" % p.pid
    p.wait(60)
    if os.path.exists(path):
        os.unlink(path)


def check_named(samples, name, wanted):
    mine = [(lib.user_part(s)[0], s.count) for s in samples if lib.service(s) == name]
    count = sum(n for _, n in mine)
    named = sum(n for names, n in mine if "named_by_" + name in names)
    lib.ok(count > 100 and (named > 0.3 * count if wanted else named == 0), "%s: %d of %d samples are named by the perf map" % (
        name, named, count))


FORGE = """
printf '0 7fffffffffff forged\n' >{work}/all.map
rm -f /tmp/perf-{pid}.map
{how} {work}/all.map /tmp/perf-{pid}.map
"""


def forge_map(work, pid, how):
    """A perf map of nobody's for another's process."""
    script = FORGE.format(work=work, pid=pid, how=how)
    subprocess.run(NOBODY[:4] + ["sh", "-ec", script], check=True)
    lib.at_end(os.unlink, "/tmp/perf-%d.map" % pid)


def others_go_on():
    """Maps for their processes, as a file and as a link; root's file mounted over the map of the attacker's own process."""
    work = lib.scratch()
    os.chmod(work, 0o777)
    sink = lib.Sink()
    d = lib.Otprofd(hz=199, exporters={"sink": {"endpoint": sink.url}}, profile=bystander.PROFILE)
    others = bystander.Bystanders("perf maps", d, sink, 199)
    forge_map(work, others.early.pid, "cp")
    names = os.path.join(work, "root.map")
    with open(names, "w") as f:
        f.write("7fff00000000 ffffffff forged\n")
    attacker = lib.start(NOBODY + [BOUND.format(map=names, program=os.path.join(lib.PROGRAMS, "generated")) + "0"])
    others.attack_began()
    forge_map(work, others.late.pid, "ln -s")
    others.judge(8)
    samples = [s for _, some in bystander.requests(sink) for s in some]
    lib.ok(any(lib.service(s) == "generated" for s in samples), "perf maps: the attacker's program runs too")
    lib.ok(not any("forged" in s.stack for s in samples), "perf maps: no name of a forged one is anywhere")
    lib.end(attacker)
    if os.path.exists("/tmp/perf-%d.map" % attacker.pid):
        os.unlink("/tmp/perf-%d.map" % attacker.pid)


compat = build_compat(lib.scratch())
work = lib.scratch()
os.chmod(work, 0o755)
spaces = subprocess.run(NOBODY + ["mount --bind /etc/passwd /etc/group"], capture_output=True).returncode == 0
d = lib.Otprofd(hz=HZ)
time.sleep(1)
subprocess.run([os.path.join(lib.PROGRAMS, "generated"), "3"], check=True)
if compat:
    subprocess.run([compat], check=True)
if spaces:
    run_with_map(work, "own", OWN)
    run_with_map(work, "bound", BOUND)
time.sleep(1.5)
last = d.stop()
samples = lib.samples(d.files)
for name in ("from_memory", "from_moved", "from_memfd"):
    check_caller(samples, name)
if compat:
    mine = [(lib.user_part(s), s.count) for s in samples if lib.service(s) == "compat"]
    count = sum(n for _, n in mine)
    known = sum(n for part, n in mine if part == (["spin32"], "[cut: 32-bit code]"))
    lib.ok(count and known >= 0.95 * count, "32-bit code is named where it runs, and says why no further (%d of %d)" % (
        known, count))
else:
    lib.skip("32-bit code", "gcc -m32 does not work here")
if spaces:
    check_named(samples, "own", True)
    check_named(samples, "bound", False)
    others_go_on()
else:
    lib.skip("perf maps of others", "nobody may have no user namespace here")
lib.check_ledger(last, "code", stopped=True)
lib.finish()

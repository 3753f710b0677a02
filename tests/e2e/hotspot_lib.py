# SPDX-License-Identifier: Apache-2.0
"""What the tests of Java share: the JDKs that there are, and how a program is compiled and run.

JAVA_HOMES names further JDKs beside the one in PATH, divided by spaces; as ROOT:HOME one that needs the libraries of
another system, whose root ROOT is: it sees this system's /tmp and /proc, and HOME has to lie there. With HOTSPOT=all,
all JDKs below /usr/lib/jvm are tried."""
import glob
import os
import re
import shutil
import subprocess

import known_program
import lib

ALL = os.environ.get("HOTSPOT") == "all"
ENTER = 'mount --bind /tmp "$0/tmp" && mount --bind /proc "$0/proc" && exec chroot "$0" "$@"'


class Java:
    def __init__(self, where):
        self.root, _, self.home = where.rpartition(":")
        self.label = "/".join(self.home.split("/")[-1:] if not self.root else
                              [os.path.basename(self.root), os.path.basename(self.home)])

    def exists(self):
        return any(glob.glob(os.path.join(self.home, p, "server/libjvm.so")) for p in ("lib", "lib/*", "jre/lib/*"))

    def command(self, arguments):
        java = next(p for p in (os.path.join(self.home, d, "bin/java") for d in ("jre", "")) if os.path.exists(p))
        enter = ["unshare", "-m", "sh", "-c", ENTER, self.root] if self.root else []
        return enter + [java] + arguments

    def has(self, options):
        """Whether it knows these options."""
        return subprocess.run(self.command(options + ["-version"]), capture_output=True).returncode == 0


def homes(everywhere=ALL):
    """Each JDK to be tried."""
    found = []
    java = shutil.which("java")
    if java:
        found.append(os.path.dirname(os.path.dirname(os.path.realpath(java))))
    found += os.environ.get("JAVA_HOMES", "").split()
    if everywhere:
        found += [os.path.realpath(p) for p in sorted(glob.glob("/usr/lib/jvm/*")) if not os.path.islink(p)]
    return [j for j in map(Java, dict.fromkeys(found)) if j.exists()]


def chosen(modes, usual):
    """Of modes by name, with their options: all with HOTSPOT=all, else those that match usual; MODES goes before both."""
    return {k: v for k, v in modes.items() if re.search(os.environ.get("MODES", "" if ALL else usual), k)}


def run(d, javas, modes, classes, main, seconds, *more):
    """Runs a program of each JDK in each mode that it knows, one after the other, then stops the daemon, whose samples
    have the attribute process.pid. Each run's label and samples."""
    ran = []
    for java, (mode, options) in ((j, m) for j in javas for m in modes.items()):
        label = "%s %s" % (java.label, mode)
        if not java.has(options):
            lib.skip(label, "this JDK does not know %s" % " ".join(options))
            continue
        p = lib.start(java.command(options + ["-cp", classes, main, str(seconds), *more]), stdout=subprocess.DEVNULL)
        p.wait(seconds * 6)
        lib.ok(p.returncode == 0, "%s: %s ends well (%s)" % (label, main, p.returncode))
        ran.append((label, p.pid))
    d.stop()
    by_pid = known_program.samples_by_pid(d)
    return [(label, by_pid[pid]) for label, pid in ran]


def too_busy(label, known):
    """Whether hardly a stack is known because the machine has too much else to do; says so. hotspot.py judges that itself."""
    load = os.getloadavg()[0]
    if known >= 50 or load < 4 * os.cpu_count():
        return False
    lib.skip(label, "%d stacks are known, at a load of %.0f on %d CPUs" % (known, load, os.cpu_count()))
    return True


def compile_program(*sources):
    """Their classes for 8 and later; None: there is no compiler."""
    compiler = shutil.which("javac")
    if not compiler:
        return None
    to = lib.scratch()
    p = subprocess.run([compiler, "--release", "8", "-g", "-d", to] + [os.path.join(known_program.WHERE, s) for s in sources],
                       capture_output=True, text=True)
    return to if lib.ok(p.returncode == 0, "the program is compiled %s" % p.stderr[-200:].replace("\n", " ")) else None


def run_program(source, what, modes, hz, seconds, *more):
    """Compiles it, and runs it with each JDK in the usual mode, or in those that are wanted: each run's label and samples, which
    have the attributes process.pid and thread.name. what: of the test, where it cannot run."""
    found = homes()
    lib.need(found, what, "there is no JDK")
    classes = compile_program(source + ".java")
    lib.need(classes, what, "there is no javac")
    d = lib.Otprofd(hz=hz, profile={"sample_attributes": "process.pid thread.name"})
    return run(d, found, chosen(modes, "^tiered"), classes, source, seconds, *more)

# SPDX-License-Identifier: Apache-2.0
"""A user who makes up debug files and programs for a build-id that others run
changes the names of nobody else's functions: debug files in a root of the
user's own, a program of the user's own below the same path, a program whose
process is gone. The host's debug files, and those of a container for its own
programs, are used on."""
import json
import os
import re
import subprocess
import time

import bystander
import lib

HZ = 199
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
APART = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec"]
SOURCE = """
#include <stdlib.h>
#include <time.h>
volatile unsigned long sum;
__attribute__((noinline)) void NAME(void) { for (int i = 0; i < 10000000; i++) sum += i; }
int main(int argc, char **argv) { for (time_t end = time(NULL) + atoi(argv[1]); time(NULL) < end;) NAME(); return 0; }
"""


def run(*argv, **kw):
    return subprocess.run(argv, check=True, capture_output=True, text=True, **kw).stdout


class Program:
    """Stripped, of a build-id of its own; debug files that name its one function as they like."""

    def __init__(self, work, name, build_id=None):
        self.name = name
        self.id = build_id or os.urandom(20).hex()
        self.dir = os.path.join(work, name)
        os.mkdir(self.dir)
        self.path = os.path.join(self.dir, name)
        self.build("genuine", self.path)
        run("strip", self.path)

    def build(self, function, path):
        run("gcc", "-O1", "-g", "-static", "-DNAME=" + function, "-Wl,--build-id=0x" + self.id, "-x", "c", "-", "-o", path, input=SOURCE)

    def debug_file(self, function, where):
        """As a debug directory holds it."""
        directory = os.path.join(where, ".build-id", self.id[:2])
        os.makedirs(directory)
        path = os.path.join(directory, self.id[2:] + ".debug")
        self.build(function, path + ".whole")
        run("objcopy", "--only-keep-debug", path + ".whole", path)
        os.remove(path + ".whole")
        return path

    def runs(self, seconds, *prefix, path=None):
        return lib.start([*prefix, path or self.path, str(seconds)], stdout=subprocess.DEVNULL)


def names(d, process):
    """The functions of a process."""
    return {n for s in lib.samples(d.files) if s.attributes.get("process.pid") == process.pid for n in lib.user_part(s)[0]}


def has_index(d, process, path):
    p = subprocess.run([lib.OTPROF, "explain", "--json", "--runtime-dir", d.runtime, str(process.pid)], capture_output=True, text=True)
    files = json.loads(p.stdout)["process"].get("files", []) if p.returncode == 0 else []
    return any(f["path"] == path and f.get("names", {}).get("index") == "ready" for f in files)


def settle(d, process, path):
    """Until its names are what they stay, and two more profiles have them."""
    lib.wait_for(lambda: has_index(d, process, path), 40, 0.3)
    time.sleep(2.5)


def daemon(work, **exporter):
    exporters = {"files": {"endpoint": "file://FILES"}}
    return lib.Otprofd(hz=HZ, exporters=dict(exporters, sink=exporter) if exporter else exporters, profile=bystander.PROFILE,
                       symbols={"cache_dir": os.path.join(work, "cache"), "debug_dirs": os.path.join(work, "debug")})


def hide(work, source, then):
    """A root in which source lies over the debug directory."""
    return 'mount -t tmpfs none %s/debug && cp -r %s/. %s/debug && exec %s' % (work, source, work, then)


def forged_debug_directory(work):
    p = Program(work, "victim")
    p.debug_file("forged", os.path.join(work, "forgery"))
    d = daemon(work)
    attacker = lib.start(NOBODY + APART + [hide(work, work + "/forgery", p.path + " 100")])
    settle(d, attacker, p.path)
    victim = p.runs(100)
    settle(d, victim, p.path)
    lib.end(attacker)
    d.stop()
    lib.ok(names(d, attacker) and names(d, victim), "a user with a debug directory of its own runs what others run")
    lib.ok("forged" not in names(d, victim), "the others' names are not that user's %s" % sorted(names(d, victim)))
    d = daemon(work)
    settle(d, victim, p.path)
    d.stop()
    lib.ok(names(d, victim) and "forged" not in names(d, victim), "nor are they after a restart, from the indexes kept")
    lib.end(victim)


def hosts_debug_file(work):
    """It names the functions of whoever runs the program, from one index."""
    p = Program(work, "shared")
    p.debug_file("forged", os.path.join(work, "forgery-of-shared"))
    p.debug_file("genuine", os.path.join(work, "debug"))
    d = daemon(work)
    both = [lib.start(NOBODY + APART + [hide(work, work + "/forgery-of-shared", p.path + " 60")]), p.runs(60)]
    lib.ok(all(lib.wait_for(lambda: "genuine" in names(d, x), 40) for x in both), "the host's debug file names functions for all who run its program")
    d.stop()
    cache = os.path.join(work, "cache")
    indexes = [f for f in os.listdir(cache) if b"genuine" in lib.read(os.path.join(cache, f))]
    lib.ok(len(indexes) == 1, "and its index is one for all %s" % indexes)
    lib.ok(not any("forged" in names(d, x) for x in both), "a forged one beside it does not")
    for x in both:
        lib.end(x)


def forged_program(work):
    """A program of the user's own, below the path and with the build-id of one that others run."""
    p = Program(work, "wanted")
    forgery = os.path.join(work, "forged-program")
    p.build("forged", forgery)
    d = daemon(work)
    attacker = lib.start(NOBODY + APART + ["mount -t tmpfs none %s && cp %s %s && exec %s 60" % (
        p.dir, forgery, p.path, p.path)])
    lib.wait_for(lambda: any(n == "forged" or n.startswith(p.name + "+") for n in names(d, attacker)), 40)
    victim = p.runs(60)
    settle(d, victim, p.path)
    d.stop()
    lib.ok(names(d, attacker) and names(d, victim), "a user runs a program of its own below another's path, of the same build-id")
    lib.ok("forged" not in names(d, victim), "the other has its own names %s" % sorted(names(d, victim)))
    lib.end(attacker)
    lib.end(victim)


def containers_debug_file(work):
    """A container's own program, debug file and root, which the host does not see."""
    p = Program(work, "contained")
    p.debug_file("inner", os.path.join(work, "inner"))
    root = os.path.join(work, "root")
    os.mkdir(root)
    d = daemon(work)
    inside = lib.start(["unshare", "--mount", "sh", "-ec", """
        mount -t tmpfs none {root} && mkdir -p {root}{work} && cp {path} {root}/contained && cp -r {work}/inner {root}{work}/debug
        exec chroot {root} /contained 60""".format(root=root, work=work, path=p.path)])
    lib.ok(lib.wait_for(lambda: "inner" in names(d, inside), 40), "a container's debug file names the functions of its program")
    d.stop()
    lib.end(inside)


def build_id(name):
    notes = run("readelf", "-n", os.path.join(lib.PROGRAMS, name))
    return re.search("Build ID: ([0-9a-f]{40})", notes).group(1)


def forge_all(work, others, name, program):
    """A program and a debug file that claim another's build-id, where the other's program and debug files are."""
    p = Program(work, name, build_id(program))
    p.build("forged", os.path.join(work, "forged-" + name))
    p.debug_file("forged", os.path.join(work, "forgery-of-" + name))
    return lib.start(NOBODY + APART + [hide(work, "%s/forgery-of-%s" % (work, name), "sh -ec '%s'" % (
        "mount -t tmpfs none {0} && cp {1} {0}/{2} && exec {0}/{2} 60".format(others, work + "/forged-" + name, name)))])


def runs_forgery(d, attacker):
    return any(s.attributes.get("process.pid") == attacker.pid and lib.service(s) in ("early", "late") for s in lib.samples(d.files))


def others_go_on(work):
    """What others run is forged in all ways at a time, for one of them before it has ever run."""
    sink = lib.Sink()
    d = daemon(work, endpoint=sink.url)
    others = bystander.Bystanders("forged names", d, sink, HZ)
    attackers = [forge_all(work, others.work, name, program) for name, program in (
        ("early", "shares"), ("late", "shares-static-pie"))]
    lib.wait_for(lambda: all(runs_forgery(d, a) for a in attackers), 10)
    others.attack_began()
    others.judge(8)
    lib.ok(all(runs_forgery(d, a) for a in attackers), "forged names: the forger's programs run all the time")
    lib.ok(not any("forged" in names(d, p) for p in (others.early, others.late)), "forged names: none is a bystander's")
    for a in attackers:
        lib.end(a)


work = lib.scratch()
os.mkdir(os.path.join(work, "debug"))
probe = subprocess.run(NOBODY + APART + ["mount -t tmpfs none %s/debug" % work], capture_output=True, text=True)
lib.need(probe.returncode == 0, "forged names", "an ordinary user has no user namespaces here: " + probe.stderr.strip()[-200:])
forged_debug_directory(work)
hosts_debug_file(work)
forged_program(work)
containers_debug_file(work)
others_go_on(work)
lib.finish()

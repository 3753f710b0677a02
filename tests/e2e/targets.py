# SPDX-License-Identifier: Apache-2.0
"""Each kind of [targets] selects what it names and nothing else: unit,
container, cgroup (patterns, both versions), exe, user, pid; exclusion wins;
cgroups and processes that come later are followed; and the same choices on
the command line of otprof record."""
import json
import os
import shutil
import signal
import subprocess
import time

import lib

ID = "0123456789abcdef" * 4


def mounts(kind):
    with open("/proc/mounts") as f:
        return [line.split() for line in f if line.split()[2] == kind]


def make(path):
    os.makedirs(path, exist_ok=True)
    made.append(path)
    return path


def remove_all():
    for path in reversed(made):
        lib.wait_for(lambda p=path: not os.path.exists(p) or not gone(p), 3)


def gone(path):
    try:
        os.rmdir(path)
    except OSError as e:
        return e


made = []
v2 = mounts("cgroup2")
lib.need(v2, "selection by target", "there is no cgroup2 hierarchy")
root = os.path.join(v2[0][1], "otprof-targets-%d" % os.getpid())
make(root)
# Registered before any process is: those are ended first.
lib.at_end(remove_all)
copies = lib.scratch()


def named(name):
    """The same program under a name of its own."""
    path = os.path.join(copies, name)
    if not os.path.exists(path):
        subprocess.run(["cp", os.path.join(lib.PROGRAMS, "kernelio"), path], check=True)
    return path


def begun(p, name):
    """Not the shell any more that moved it."""
    lib.wait_for(lambda: lib.alive(p.pid) and lib.read("/proc/%d/comm" % p.pid).decode().strip() == name, 10, 0.01)
    return p


def run_in(cgroup, name, seconds=60):
    return begun(lib.start(["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', cgroup, named(name), str(seconds)],
                           stdout=subprocess.DEVNULL), name)


def run(name, seconds=60, user=None):
    kw = {"user": user, "group": user} if user is not None else {}
    return begun(lib.start([named(name), str(seconds)], stdout=subprocess.DEVNULL, **kw), name)


def counts(d):
    seen = {}
    for s in lib.samples(d.files):
        seen[lib.executable(s)] = seen.get(lib.executable(s), 0) + s.count
    return {k: v for k, v in seen.items() if k != "sh"}


def case(what, targets, early, late, expected):
    """early and late make processes, before and after the daemon's start; expected: who is to be seen."""
    running = [fn() for fn in early]
    d = lib.Otprofd(hz=199, targets=targets)
    running += [fn() for fn in late]
    time.sleep(2)
    # On a busy machine a process may not get its turn at once.
    lib.wait_for(lambda: set(counts(d)) >= set(expected), 10, 0.5)
    for p in running:
        lib.end(p)
    last = d.stop()
    seen = counts(d)
    lib.ok(set(seen) == set(expected), "%s: %s" % (what, seen if set(seen) != set(expected) else " ".join(sorted(seen))))
    lib.check_ledger(last, what, stopped=True)
    return d


unit = os.path.join(root, "a.slice", "otp-web.service")
other_unit = os.path.join(root, "a.slice", "otp-db.service")
late_unit = os.path.join(root, "b.slice", "otp-late.service")
make(os.path.dirname(unit)), make(unit), make(other_unit), make(os.path.dirname(late_unit))

docker = make(os.path.join(root, "docker-%s.scope" % ID))
machine = make(os.path.join(root, "machine-web\\x2d1.scope"))
below = os.path.relpath(root, v2[0][1])
case("unit: and container:, by name, pattern and beginning of the id, also those that come later",
     {"include": ["unit:otp-web unit:otp-l*.service", "container:0123456789", "container:web-1"]},
     [lambda: run_in(unit, "web"), lambda: run_in(other_unit, "db"), lambda: run_in(docker, "in-docker"), lambda: run("free")],
     [lambda: run_in(make(os.path.join(unit, "worker")), "web-child"), lambda: run_in(make(late_unit), "late"),
      lambda: run_in(machine, "in-machine")], ["web", "web-child", "late", "in-docker", "in-machine"])

# Names that a runtime keeps, below directories of root's.
def container_id(n):
    return ("%x" % n * 8 + "%08x" % os.getpid()) * 4


DOCKER, CRI, OUT = container_id(1), container_id(2), container_id(3)
STORES = {DOCKER: ("/var/lib/docker/containers", "config.v2.json", {"Name": "/otp-front", "State": {"Pid": 1}}),
          CRI: ("/run/containerd/io.containerd.runtime.v2.task/k8s.io", "config.json",
                {"annotations": {"io.kubernetes.cri.container-name": "otp-back"}}),
          OUT: ("/var/lib/docker/containers", "config.v2.json", {"Name": "/otp-out"})}
named_containers = {}


def first_missing(path):
    while not os.path.exists(os.path.dirname(path)):
        path = os.path.dirname(path)
    return path


def keep_name(id):
    """The runtime's file, then the cgroup: in this order runtimes make them."""
    if id not in named_containers:
        store, name, content = STORES[id]
        path = os.path.join(store, id)
        lib.at_end(shutil.rmtree, first_missing(path), True)
        os.makedirs(path)
        with open(os.path.join(path, name), "w") as f:
            json.dump(content, f)
        named_containers[id] = make(os.path.join(root, "docker-%s.scope" % id))
    return named_containers[id]


keep_name(DOCKER), keep_name(OUT)
d = case("container: by the name that Docker and a CRI runtime keep, also one that begins later",
         {"include": ["container:otp-front", "container:otp-b*"]},
         [lambda: run_in(keep_name(DOCKER), "front"), lambda: run_in(keep_name(OUT), "out"), lambda: run("free")],
         [lambda: run_in(keep_name(CRI), "back")], ["front", "back"])
case("container: by name, excluded", {"include": "cgroup:/%s" % below, "exclude": "container:otp-out"},
     [lambda: run_in(keep_name(DOCKER), "front"), lambda: run_in(keep_name(OUT), "out")], [], ["front"])
of = {(lib.executable(s), s.resource.get("container.id"), s.resource.get("container.name")) for s in lib.samples(d.files)}
of = {found for found in of if found[0] in ("front", "back")}
lib.ok(of == {("front", DOCKER, "otp-front"), ("back", CRI, "otp-back")},
       "a workload has its container's name as attribute: %s" % sorted(of, key=str))

# A name that no line asked for before the reload.
running = [run_in(keep_name(DOCKER), "front"), run_in(keep_name(OUT), "out")]
d = lib.Otprofd(hz=199, targets={"include": "cgroup:/%s" % below})
lib.ok(lib.wait_for(lambda: set(counts(d)) >= {"front", "out"}, 20, 0.5), "before the reload both containers are seen")
with open(d.conf) as f:
    text = f.read()
with open(d.conf, "w") as f:
    f.write(text.replace("[targets]", "[targets]\nexclude = container:otp-out"))
os.kill(d.pid, signal.SIGHUP)
lib.ok(lib.wait_for(lambda: "is in force" in d.log_text(), 20), "a line that excludes a container by name comes into force")
before = set(lib.profile_files(d.files))
lib.wait_for(lambda: len(lib.profile_files(d.files)) >= len(before) + 4, 20)
later = sorted(set(lib.profile_files(d.files)) - before)[1:]  # what was closed by the reload may be written after it
seen = {lib.executable(s) for path in later for s in lib.samples_of(lib.read(path))}
lib.ok("front" in seen and "out" not in seen, "after it the other one alone is seen: %s" % sorted(seen))
for p in running:
    lib.end(p)
d.stop()

v1 = [m[1] for m in mounts("cgroup") if "pids" in m[3] or "cpuacct" in m[3]]
old = inner = None
if v1:
    old = make(os.path.join(v1[0], "otprof-targets-%d" % os.getpid()))
    make(os.path.join(old, "docker"))
    inner = make(os.path.join(old, "docker", ID))
else:
    lib.skip("cgroups of version 1", "there is no such hierarchy")
case("cgroup: with a pattern, less one below it, and of version 1",
     {"include": ["cgroup:/%s/*.slice" % below, "cgroup:/otprof-targets-%d/docker" % os.getpid()],
      "exclude": "cgroup:/%s/a.slice/*-db*" % below},
     [lambda: run_in(unit, "web"), lambda: run_in(other_unit, "db"), lambda: run("free")] +
     ([lambda: run_in(inner, "old")] if v1 else []),
     [lambda: run_in(late_unit, "late")] + ([lambda: run_in(inner, "old-late"), lambda: run_in(old, "no")] if v1 else []),
     ["web", "late"] + (["old", "old-late"] if v1 else []))
case("exe:, by name and by path, also when it begins later; container: of version 1",
     {"include": ["exe:web", "exe:%s/d?" % copies, "container:" + ID[:12]]},
     [lambda: run("web"), lambda: run("free")],
     [lambda: run("db"), lambda: run("late")] + ([lambda: run_in(inner, "old")] if v1 else []),
     ["web", "db"] + (["old"] if v1 else []))
case("exclusion wins: an exe: in a cgroup, a cgroup that holds an exe:",
     {"include": ["cgroup:/%s/a.slice" % below, "exe:late", "exe:one"], "exclude": ["exe:db", "cgroup:/%s/b.slice" % below]},
     [lambda: run_in(other_unit, "db"), lambda: run_in(unit, "web"), lambda: run_in(late_unit, "late")],
     [lambda: run_in(late_unit, "late"), lambda: run("one")], ["web", "one"])
os.chmod(copies, 0o755)
case("user:, by number and by name", {"include": ["user:12345", "user:daemon"]},
     [lambda: run("web", user=12345), lambda: run("free")], [lambda: run("db", user=1), lambda: run("late", user=2)], ["web", "db"])

# A child that is forked and goes on with the same program, one that begins another, and their parent's pid.
tree = ["sh", "-c", '"$0" 60 & exec "$1" 60', named("leaf"), named("trunk")]
early = lib.start(tree, stdout=subprocess.DEVNULL)
lib.wait_for(lambda: subprocess.run(["pgrep", "-P", str(early.pid)], capture_output=True).stdout, 5)
children = [int(p) for p in subprocess.run(["pgrep", "-P", str(early.pid)], capture_output=True, text=True).stdout.split()]
lib.at_end(subprocess.run, ["kill", "-9"] + [str(p) for p in children])
case("pid: with what it started, less one", {"include": "pid:%d" % early.pid, "exclude": "exe:leaf"},
     [lambda: early], [lambda: run("free")], ["trunk"])
subprocess.run(["kill", "-9"] + [str(p) for p in children], capture_output=True)

# The command line.
keep = [run_in(unit, "web"), run_in(other_unit, "db"), run("exe-one"), run("user-one", user=12345), run_in(docker, "in-docker"), run("free")]
out = os.path.join(lib.scratch(), "r.collapsed")
p = subprocess.run([lib.OTPROF, "record", "-d", "4", "-F", "199", "-o", out, "--unit", "otp-web", "--container", ID[:8],
                    "--cgroup", "/%s/a.slice/otp-db*" % below, "--exe", "exe-one", "--user", "12345"],
                   capture_output=True, text=True, timeout=60)
lib.ok(p.returncode == 0, "otprof record takes the same choices %s" % p.stderr.strip()[-300:])
with open(out) as f:
    services = {line.partition(";")[0] for line in f}  # functions are called free, too
for name in ("otp-web", "otp-db", "exe-one", "user-one", "in-docker"):
    lib.ok(name in services, "record: %s is in it" % name)
lib.ok("free" not in services, "record: what was not chosen is not")
for argv, said in ((["--unit", "a b"], "invalid"), (["--user", "-x"], "invalid"), (["--exe", "a/b"], "invalid")):
    p = subprocess.run([lib.OTPROF, "record", "-o", out] + argv, capture_output=True, text=True)
    lib.ok(p.returncode == 125 and said in p.stderr, "record refuses %s" % " ".join(argv))
p = subprocess.run([lib.OTPROF, "record", "-d", "100ms", "-o", out, "--container", "name-of-a-runtime"],
                   capture_output=True, text=True, timeout=60)
lib.ok(p.returncode == 0 and "cannot be checked" in p.stderr and "no process of" not in p.stderr,
       "record does not know whether a container of a name runs where containers run: %s" % p.stderr.splitlines()[:1])
for p in keep:
    lib.end(p)
lib.finish()

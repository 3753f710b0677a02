# SPDX-License-Identifier: Apache-2.0
"""With one cgroup selected, everything else stays off the ring: also a program
that forks a thousand short processes."""
import os
import subprocess
import time

import lib


def cgroup2():
    with open("/proc/mounts") as f:
        found = next((line.split()[1] for line in f if line.split()[2] == "cgroup2"), None)
    if found:
        return found
    path = lib.scratch()
    if subprocess.run(["mount", "-t", "cgroup2", "none", path], capture_output=True).returncode:
        return None
    lib.at_end(subprocess.run, ["umount", path])
    return path


def remove(path):
    lib.wait_for(lambda: not os.path.exists(path) or not _try(path), 3)


def _try(path):
    try:
        os.rmdir(path)
    except OSError as e:
        return e


def put(d):
    """By the module's own account where nobody else may read it."""
    if lib.SOURCE == "kmod":
        s = d.status()
        return sum(c["put"] for c in s["cpus"]), s["skipped"]["not_selected"]
    k = lib.kernel_counters(d.pid)
    return k["put"], k["not_selected"]


root = cgroup2()
lib.need(root, "selection by cgroup", "there is no cgroup2 hierarchy")
name = "otprof-e2e-%d" % os.getpid()
group = os.path.join(root, name)
os.mkdir(group)
lib.at_end(remove, group)

HZ = lib.rate(997)
d = lib.Otprofd(hz=HZ, targets={"include": "cgroup:/" + name})
time.sleep(1)
before = put(d)
storm = lib.program("forkstorm", "-n", 500, 2, stdout=subprocess.PIPE, text=True)
other = lib.program("shares", 2, stdout=subprocess.DEVNULL)
made = storm.communicate()[0]
other.wait()
time.sleep(0.5)
after = put(d)
lib.ok(after[0] == before[0], "unselected processes put no record on the ring (%d; storm %s)" % (after[0] - before[0], made.strip()))
lib.ok(after[1] > before[1] + HZ, "they are counted as not selected (%d)" % (after[1] - before[1]))

# In the group itself, and in one below it that appears later.
inner = os.path.join(group, "inner")
os.mkdir(inner)
lib.at_end(remove, inner)
for where, program, args in ((group, "short", [500]), (inner, "kernelio", [0.5])):
    subprocess.run(["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', where,
                    os.path.join(lib.PROGRAMS, program)] + [str(a) for a in args], check=True)
time.sleep(1.5)
last = d.stop()
seen = {}
for s in lib.samples(d.files):
    seen[lib.executable(s)] = seen.get(lib.executable(s), 0) + s.count
lib.ok(seen.get("short", 0) > 0.4 * HZ, "the selected cgroup is sampled (%s)" % seen)
lib.ok(seen.get("kernelio", 0) > 0.4 * HZ, "so is a cgroup below it")
strangers = {k: v for k, v in seen.items() if k not in ("short", "kernelio", "sh")}
lib.ok(not strangers, "and nothing else %s" % (strangers or ""))
lib.ok(last["skipped"]["not_selected"] >= after[1], "status shows what was not selected (%d)" % last["skipped"]["not_selected"])
lib.check_ledger(last, "selection", stopped=True)
lib.finish()

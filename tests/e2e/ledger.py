# SPDX-License-Identifier: Apache-2.0
"""The ledger is exact: against the kernel's own counters, against the samples
counted at the destination, when the ring overflows, when workers are killed
at random moments, and nothing stays behind when the monitor is killed.
KILLS sets how many times workers are killed (default 16, brief 4)."""
import glob
import os
import random
import signal
import time

import lib

KILLS = int(os.environ.get("KILLS", "4" if lib.BRIEF else "16"))


def sandwich(d, what):
    """Counters grow while they are read, so the kernel's lie between two of ours."""
    if lib.SOURCE == "kmod":
        lib.skip("%s: taken is the kernel's" % what, lib.NO_COUNTERS)
        return
    first = d.status()["ledger"]
    kernel = lib.kernel_counters(d.pid)
    second = d.status()["ledger"]
    if not lib.ok(kernel is not None, "%s: the sampler's counters can be read past otprofd" % what):
        return
    lib.ok(first["taken"] <= kernel["taken"] <= second["taken"],
           "%s: taken is the kernel's (%d <= %d <= %d)" % (what, first["taken"], kernel["taken"], second["taken"]))
    lib.ok(kernel["taken"] == kernel["put"] + kernel["lost"], "%s: taken = put + lost in the kernel" % what)
    lib.ok(kernel["ticks"] == kernel["taken"] + sum(kernel[k] for k in lib.SKIP_FIELDS),
           "%s: ticks = taken + skipped in the kernel" % what)


def at_destination(d):
    return sum(s.count for s in lib.samples(d.files))


def load():
    return [lib.program("shares", 600, stdout=lib.subprocess.DEVNULL), lib.program("kernelio", 600),
            lib.program("depth", 400, 600, 200, stdout=lib.subprocess.DEVNULL)]


def plain():
    d = lib.Otprofd(hz=499)
    time.sleep(3)
    sandwich(d, "plain")
    for _ in range(50):
        wrong = lib.imbalance(d.status())
        if wrong:
            break
        time.sleep(0.02)
    lib.ok(not wrong, "plain: it balances at any of 50 moments %s" % wrong)
    last = d.stop()
    lib.check_ledger(last, "plain", stopped=True)
    lib.ok(0 < at_destination(d) == last["ledger"]["exported"]["files"], "plain: the files hold what was exported")


def two_destinations():
    """One of them refuses everything: the equation holds for each by itself."""
    sink = lib.Sink(status=400)
    d = lib.Otprofd(hz=499, exporters={"bad": {"endpoint": sink.url}, "good": {"endpoint": "file://FILES"}})
    time.sleep(3)
    last = d.stop()
    lib.check_ledger(last, "two destinations", stopped=True)
    dest = last["ledger"]["destinations"]
    lib.ok(dest["bad"]["lost"].get("rejected", 0) > 0 and not dest["bad"]["exported"],
           "two destinations: what one refuses is lost there (rejected %s)" % dest["bad"]["lost"].get("rejected"))
    lib.ok(dest["good"]["exported"] > 0 and not dest["good"]["lost"].get("rejected"),
           "two destinations: and not at the other")
    lib.ok(0 < at_destination(d) == dest["good"]["exported"], "two destinations: the files hold what was exported")


def overflow():
    """The smallest ring, the highest rate, and an engine that is stopped for a while."""
    d = lib.Otprofd(hz=4999, sampler={"ring_size": "64K", "stack_bytes": "32K"})
    time.sleep(1)
    engine = d.worker("engine")
    os.kill(engine, signal.SIGSTOP)
    time.sleep(1)
    os.kill(engine, signal.SIGCONT)
    time.sleep(2)
    sandwich(d, "overflow")
    last = d.stop()
    lost = last["ledger"]["lost"].get("ring_full", 0)
    lib.ok(lost > 0, "overflow: the ring was full (%d samples)" % lost)
    lib.check_ledger(last, "overflow", stopped=True)
    lib.ok(0 < at_destination(d) == last["ledger"]["exported"]["files"], "overflow: the files hold what was exported")


def kills():
    seed = int(os.environ.get("SEED", time.time_ns() % 100000))
    chance = random.Random(seed)
    d = lib.Otprofd(hz=997, interval="200ms")
    lib.wait_for(lambda: d.status()["ledger"]["taken"], 20)
    killed, wrong = {"engine": 0, "net": 0}, ""
    deadline = time.monotonic() + 20 + 3 * KILLS
    while sum(killed.values()) < KILLS and time.monotonic() < deadline and d.process.poll() is None:
        time.sleep(chance.uniform(0.05, 0.6 if KILLS < 50 else 2.5))
        role = chance.choice(("engine", "net"))
        pid = d.worker(role)
        if not pid or not lib.alive(pid):
            continue
        os.kill(pid, signal.SIGKILL)
        killed[role] += 1
        status = d.status()
        wrong = wrong or (status and lib.imbalance(status))
    if not lib.ok(d.process.poll() is None, "kills: the monitor outlives them"):
        lib.note(d.log_text()[-3000:])
        return
    lib.ok(sum(killed.values()) == KILLS, "kills: %(engine)d of the engine, %(net)d of net" % killed + ", %d wanted" % KILLS)
    lib.ok(not wrong, "kills: it balances right after each (seed %d) %s" % (seed, wrong))
    back = lib.wait_for(lambda: all(w["pid"] and lib.alive(w["pid"]) for w in d.status()["workers"].values()), 40, 0.2)
    lib.ok(back, "kills: the workers came back")
    before = d.status()["ledger"]["exported"]["files"]
    lib.ok(lib.wait_for(lambda: d.status()["ledger"]["exported"]["files"] > before, 10, 0.2), "kills: samples arrive again")
    sandwich(d, "kills")
    last = d.stop()
    lib.check_ledger(last, "kills", stopped=True)
    counted, dest = at_destination(d), last["ledger"]["destinations"]["files"]
    lib.ok(dest["exported"] <= counted <= dest["exported"] + dest["unconfirmed"],
           "kills: the files hold what was exported, and perhaps what is unconfirmed (%d <= %d <= %d)" %
           (dest["exported"], counted, dest["exported"] + dest["unconfirmed"]))
    share = sum(dest["lost"].values()) / max(last["ledger"]["taken"], 1)
    lib.note("kills: %.2f %% of the samples were lost to %d kills: %s" %
             (100 * share, KILLS, {k: v for k, v in dest["lost"].items() if v}))


def one_fault(role):
    """With all CPUs busy: what one fault costs, in intervals' worth of samples."""
    hz, interval = 97, 2
    d = lib.Otprofd(hz=hz, interval="%ds" % interval)
    time.sleep(3 * interval)
    os.kill(d.worker(role), signal.SIGKILL)
    time.sleep(3 * interval)
    last = d.stop()
    dest = last["ledger"]["destinations"]["files"]
    gone = dest["unconfirmed"] + sum(dest["lost"].values())
    most = hz * interval * os.cpu_count()
    lib.ok(gone <= 1.1 * most, "one fault of the %s costs at most an interval (%d of %d samples, an interval has %d)" % (
        role, gone, last["ledger"]["taken"], most))
    lib.check_ledger(last, "one fault of the " + role, stopped=True)


def stopped_while_dead(roles, again=False):
    """A stop finds workers dead, in their longest pause: what lies on the ring still arrives."""
    what = "stop with a dead " + " and ".join(roles)
    d = lib.Otprofd(hz=499, interval="500ms")
    lib.wait_for(lambda: d.status()["ledger"]["taken"], 20)
    time.sleep(1)
    for _ in range(5 if again else 1): # each death makes the pause longer
        for role in roles:
            pid = lib.wait_for(lambda: d.worker(role), 5, 0.02)
            if pid:
                os.kill(pid, signal.SIGKILL)
        lib.wait_for(lambda: not any(d.worker(r) for r in roles), 5, 0.005)
    time.sleep(1 if again else 0)
    before = d.status()
    began = time.monotonic()
    last = d.stop()
    took = time.monotonic() - began
    dest = last["ledger"]["destinations"]["files"]
    lib.check_ledger(last, what, stopped=True)
    lib.ok(took < 15, "%s: it took %.1f s" % (what, took))
    was = before["ledger"]["destinations"]["files"]
    lost = {k: n - was["lost"][k] for k, n in dest["lost"].items() if n > was["lost"][k]}
    # Very deep stacks may fill the ring while nobody reads it: that is no loss of the stop. Nor is the
    # batch that the last engine died in: its successor says so when it begins, if that is at the stop.
    ring = before["ledger"]["places"]["ring"]
    batch = lost.get("engine_died", 0)
    lib.ok(not set(lost) - {"ring_full", "engine_died"} and batch <= ring / 4 and
           dest["exported"] - was["exported"] + batch >= max(ring, 1),
           "%s: nothing is lost by it (%d were on the ring, %d exported since) %s" % (
               what, ring, dest["exported"] - was["exported"], lost or ""))


def mounts(directory):
    """What the host's own table has below it."""
    with open("/proc/self/mountinfo") as f:
        return [line for line in f if directory in line]


def perf_events(pids):
    """Which of these processes hold perf events."""
    held = set()
    for pid in pids:
        for path in glob.glob("/proc/%d/fd/*" % pid):
            try:
                if "perf_event" in os.readlink(path):
                    held.add(pid)
            except OSError:
                pass
    return held


def monitor_killed():
    d = lib.Otprofd(hz=97)
    time.sleep(1)
    programs, maps = lib.fdinfo(d.pid, "prog_id"), lib.fdinfo(d.pid, "map_id")
    lib.ok(not mounts(d.dir), "monitor killed: the host never saw its mounts")
    status = d.status()
    workers = [w["pid"] for w in status["workers"].values()]
    children = descendants(d.pid)
    if lib.SOURCE == "bpf":
        lib.ok(programs and not lib.programs_left(programs) ^ programs,
               "monitor killed: bpftool saw its %d programs" % len(programs))
    events = perf_events({d.pid} | children)
    os.kill(d.pid, signal.SIGKILL)
    d.process.wait()
    gone = lib.wait_for(lambda: not any(lib.alive(p) for p in set(workers) | children), 5)
    lib.ok(gone, "monitor killed: the workers end by themselves")
    if lib.SOURCE == "bpf":
        lib.ok(lib.wait_for(lambda: not lib.programs_left(programs), 5), "monitor killed: no BPF program stays")
        left = lib.wait_for(lambda: not [i for i in maps if lib.bpftool("map", "show", "id", str(i))], 5)
        lib.ok(maps and left, "monitor killed: none of its %d BPF maps stays" % len(maps))
    elif lib.SOURCE == "kmod":
        lib.ok(lib.wait_for(lambda: module_users() == 0, 5), "monitor killed: nobody uses the module")
    lib.ok(events and not perf_events({d.pid} | children), "monitor killed: nobody holds its perf events")
    lib.ok(not mounts(d.dir), "monitor killed: no mount stays")
    d.start()
    lib.ok(d.status()["pid"] == d.pid, "monitor killed: a new one starts in the same directory")
    lib.check_ledger(d.stop(), "after the monitor was killed", stopped=True)


def module_users():
    with open("/sys/module/otprof/refcnt") as f:
        return int(f.read())


def descendants(pid):
    out = set()
    for path in glob.glob("/proc/%d/task/*/children" % pid):
        try:
            with open(path) as f:
                children = {int(c) for c in f.read().split()}
        except OSError:
            continue
        for child in children:
            out |= {child} | descendants(child)
    return out


running = load()
plain()
overflow()
if not lib.BRIEF:
    two_destinations()
    one_fault("engine")
    one_fault("net")
    stopped_while_dead(["engine"])
    stopped_while_dead(["engine"], again=True)
    stopped_while_dead(["net"])
    stopped_while_dead(["net", "engine"], again=True)
kills()
monitor_killed()
for p in running:
    lib.end(p)
lib.finish()

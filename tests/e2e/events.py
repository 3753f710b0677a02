# SPDX-License-Identifier: Apache-2.0
"""Other origins than the CPU clock: perf's events, alone and beside it, in every format."""
import math
import os
import re
import subprocess
import time
import xml.etree.ElementTree

import lib
import pprof

# few() makes so many events, many() three times as many. No sample is to be lost here, so where a sample stands for few
# events they come slowly. perf's sampler copies 100 times what ours does, and from every process of the host.
PERF = lib.SOURCE == "perf"
COUNT, SPIN_US = (4000, 50) if PERF or lib.SLOW else (20000, 0)
# Odd: every second switch is the idle task's, which an even period would hit always or never.
PERIOD = 47
DENSE, DENSE_COUNT, DENSE_SPIN_US = (PERIOD, 4000, 100) if PERF or lib.SLOW else (1, 4000, 100)
# Page faults a second of the rest of the host from which perf's buffers may be full of its samples.
CROWD = 20000
work = lib.scratch()


def record(name, events, *args, what="faults", count=COUNT, spin_us=SPIN_US):
    """Records the program; what the kernel counted in few() and many(), the file, what was said."""
    path = os.path.join(work, name)
    argv = [lib.OTPROF, "record", "-q", "--sampler", lib.SOURCE, "-e", events, "-o", path] + list(args)
    p = subprocess.run(argv + ["--", os.path.join(lib.PROGRAMS, "events"), what, str(count), str(spin_us)],
                       capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    truth = re.search(r"few (\d+) many (\d+)", p.stdout)
    if p.returncode or not truth:
        lib.note("%s: %s %s" % (" ".join(argv), p.returncode, (p.stdout + p.stderr)[-800:]))
        raise SystemExit("events: no recording")
    return [int(n) for n in truth.groups()], path, p.stderr


def close(value, truth, period):
    """All of them; or four standard deviations of sampling every period-th."""
    return abs(value - truth) <= (4 * math.sqrt(truth * period) if period > 1 else 0.01 * truth)


def values(path, name):
    """The values of a type by function of the program; those of stacks that do not begin in _start; all."""
    few = many = cut = total = 0
    for s in [s for s in lib.samples_of(lib.read(path)) if s.type == name]:
        total += s.value
        few += s.value if "few" in s.stack else 0
        many += s.value if "many" in s.stack else 0
        if ("few" in s.stack or "many" in s.stack) and ("main" not in s.stack or any(map(lib.is_marker, s.stack))):
            cut += s.value
    return few, many, cut, total


def page_faults():
    return int(re.search(r"^pgfault (\d+)", open("/proc/vmstat").read(), re.M).group(1))


def none_lost(label, said, others):
    """Samples of other programs share the buffers of perf's sampler, which it filters when it reads them."""
    fact = "%s: every sample that was taken was read" % label
    if PERF and "ring_full" in said and others > CROWD:
        return lib.skip(fact, "the rest of the host made %d page faults a second: %s" % (others, said.strip()))
    return lib.ok("warning" not in said, fact + (said and ": " + said.strip()))


def counted(event, name, what, period):
    slow = {"count": DENSE_COUNT, "spin_us": DENSE_SPIN_US} if period == DENSE else {}
    faults, began = page_faults(), time.monotonic()
    truth, path, said = record("one.otlp", event, "-c", str(period), what=what, **slow)
    others = (page_faults() - faults - sum(truth)) / (time.monotonic() - began)
    few, many, cut, total = values(path, name)
    label = "%s -c %d" % (event, period)
    lib.ok(close(few, truth[0], period) and close(many, truth[1], period),
           "%s: values are the events: %d of %d in few, %d of %d in many" % (label, few, truth[0], many, truth[1]))
    lib.ok(cut == 0, "%s: stacks are whole (%d events in cut ones)" % (label, cut))
    none_lost(label, said, others)
    bad = lib.breaches(lib.read(path))
    lib.ok(not bad, "%s: the data model holds%s" % (label, ": %s" % bad[:2] if bad else ""))
    lib.ok({s.type for s in lib.samples_of(lib.read(path))} == {name}, "%s: no other profile is sent" % label)


def formats():
    truth, path, _ = record("two.pb.gz", "cpu-clock,page-faults", "-c", str(PERIOD), "-F", "499")
    types, samples = pprof.read(path)
    few = sum(v.get("page_faults", 0) for names, v in samples if "few" in names)
    lib.ok(types.get("page_faults") == "count" and types.get("cpu") == "nanoseconds" and close(few, truth[0], PERIOD),
           "pprof has both types: %s; %d page faults of %d in few" % (types, few, truth[0]))
    truth, path, _ = record("two.svg", "cpu-clock,page-faults", "-c", str(PERIOD))
    texts = [open(os.path.join(work, n)).read() for n in ("two.svg", "two.page_faults.svg")]
    lib.ok(all(xml.etree.ElementTree.fromstring(t).tag.endswith("svg") for t in texts) and "page_faults" in texts[1] and
           "page_faults" not in texts[0], "each type has a flame graph of its own, in its unit")


def separate(d):
    """One daemon, three origins: each equation by itself, each profile of its type."""
    p = lib.program("shares", 2, stdout=subprocess.DEVNULL)
    for what in ("faults", "switches"):
        lib.program("events", what, str(COUNT), str(SPIN_US), stdout=subprocess.DEVNULL).wait()
    p.wait()
    page = subprocess.run([lib.OTPROF, "status", "--runtime-dir", d.runtime], capture_output=True, text=True).stdout
    lib.ok(all(re.search(r"%s +[\d,]+ +[\d,]+ +[\d,]+ %s" % t, page) for t in (
        ("cpu-clock", "samples"), ("page-faults", "page_faults"), ("context-switches", "context_switches"))),
        "otprof status has a line for each origin")
    last = d.stop()
    lib.check_ledger(last, "three origins", stopped=True)
    samples = lib.samples(d.files)
    origins = last["ledger"]["origins"]
    lib.ok(set(origins) == {"cpu-clock", "page-faults", "context-switches"}, "the ledger has the three: %s" % sorted(origins))
    for name, o in origins.items():
        value = sum(s.value for s in samples if s.type == o["type"])
        exported, lost = o["exported"]["files"], sum(o["lost"].values())
        wanted = exported if name == "cpu-clock" else o["value"]
        lib.ok(o["balanced"] and o["taken"] == exported + lost + o["in_flight"] + o["unconfirmed"]["files"],
               "%s: its own equation holds: %d taken, %d exported, %d lost" % (name, o["taken"], exported, lost))
        lib.ok(value == wanted if not lost else value <= wanted, "%s: the profiles hold %d of %d" % (name, value, wanted))
    lib.ok(sum(o["taken"] for o in origins.values()) == last["ledger"]["taken"], "the sum of the three is the whole")
    bad = lib.breaches([lib.read(f) for f in lib.profile_files(d.files)])
    lib.ok(not bad, "requests of three origins keep the data model%s" % (": %s" % bad[:2] if bad else ""))


def refused(event, wanted, *args):
    p = subprocess.run([lib.OTPROF, "record", "-q", "--sampler", lib.SOURCE, "-e", event, "-d", "100ms", "-o",
                        os.path.join(work, "no.svg"), *args], capture_output=True, text=True, timeout=60)
    lib.ok(p.returncode != 0 and wanted in p.stderr, "-e %s is refused in words: %s" % (" ".join((event,) + args), p.stderr.strip()[:200]))


def has_hardware_events():
    return any(os.path.exists("/sys/bus/event_source/devices/" + n) for n in ("cpu", "cpu_core", "armv8_pmuv3_0"))


for event, name, what in (("page-faults", "page_faults", "faults"), ("context-switches", "context_switches", "switches")):
    counted(event, name, what, DENSE)
    if not lib.BRIEF:
        counted(event, name, what, PERIOD)
formats()
separate(lib.Otprofd(hz=lib.rate(199), sampler={"events": "cpu-clock, page-faults/period=%d/, context-switches/period=7/" % PERIOD}))
refused("no-such-event", "no-such-event")
refused("cpu-clock", "-F", "-c", "1000")
refused("page-faults/period=5/", "rate of its own", "-c", "1000")
if has_hardware_events():
    lib.skip("hardware events are refused where the machine has none", "this machine has them")
else:
    refused("cycles", "cycles")
lib.finish()

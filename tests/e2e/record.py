# SPDX-License-Identifier: Apache-2.0
"""otprof record, beside a running daemon and without one, into each format."""
import gzip
import os
import shutil
import subprocess
import time
import xml.etree.ElementTree

import lib

SHARES = os.path.join(lib.PROGRAMS, "shares")
HZ = lib.rate(499)
work = lib.scratch()


def record(name, *args, command=None, timeout=60):
    path = os.path.join(work, name)
    argv = [lib.OTPROF, "record", "--sampler", lib.SOURCE, "-F", str(HZ), "-o", path] + list(args) + (["--"] + command if command else [])
    p = subprocess.run(argv, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
    data = b""
    if os.path.exists(path):
        with open(path, "rb") as f:
            data = f.read()
    if p.returncode:
        lib.note("%s: %s %s" % (" ".join(argv), p.returncode, p.stderr[-500:]))
    return p, data


def is_flame_graph(data):
    root = xml.etree.ElementTree.fromstring(data)
    text = data.decode()
    return root.tag.endswith("svg") and "descend" in text and "work_half" in text and "<script" in text


def collapsed_samples(data):
    """Lines "root;...;leaf count"; how many samples have descend 20 times below main."""
    total = whole = 0
    for line in data.decode().splitlines():
        stack, count = line.rsplit(" ", 1)
        total += int(count)
        if stack.count("descend") == 20 and stack.index("main") < stack.index("descend"):
            whole += int(count)
    return total, whole


def collapsed(where):
    p, data = record("all.collapsed", command=[SHARES, "2"])
    total, whole = collapsed_samples(data)
    lib.ok((0.6 if lib.SLOW else 0.85) * 2 * HZ <= total <= 1.15 * 2 * HZ + 50,
           "%s: a command of 2 s at %d Hz has %d samples" % (where, HZ, total))
    # Under emulation a good part of it is the loader.
    lib.ok(whole >= (0.7 if lib.SLOW else 0.98) * total, "%s: its stacks are whole (%d of %d)" % (where, whole, total))


def each_format(where):
    collapsed(where)
    if lib.BRIEF:
        return
    p, data = record("all.svg", "-d", "2", command=[SHARES, "2"])
    lib.ok(p.returncode == 0 and data and is_flame_graph(data), "%s: .svg is a flame graph with script and names" % where)
    lib.ok(p.stderr.strip() or p.stdout.strip(), "%s: it shows progress" % where)
    p, data = record("all.pb.gz", command=[SHARES, "1"])
    raw = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else b""
    lib.ok(b"work_half" in raw and b"cpu" in raw and b"nanoseconds" in raw, "%s: .pb.gz is a pprof with names" % where)
    p, data = record("all.otlp", command=[SHARES, "1"])
    lib.ok(data and not lib.breaches(data), "%s: .otlp keeps the data model %s" % (where, lib.breaches(data)[:3] if data else ""))


def by_pid(where):
    p = lib.program("shares", 30, stdout=subprocess.DEVNULL)
    other = lib.program("kernelio", 30)
    time.sleep(0.5)
    _, data = record("pid.collapsed", "-d", "2", "-p", str(p.pid))
    lib.ok(b"work_half" in data and b"io_loop" not in data, "%s: -p takes that process only" % where)
    lib.end(p)
    lib.end(other)


def failing(where):
    p, _ = record("x.unknown", "-d", "1")
    lib.ok(p.returncode != 0 and "unknown" in p.stderr + p.stdout, "%s: an unknown format is refused: %s" % (where, p.stderr.strip()[:150]))
    p = subprocess.run([lib.OTPROF, "record", "-d", "100ms", "--user", "nobody-of-that-name"], capture_output=True, text=True)
    lib.ok(p.returncode == 125 and "no user" in p.stderr, "%s: a user who is not there is refused: %s" % (
        where, p.stderr.splitlines()[:1]))
    for kind, value, what in (("unit", "no-unit-of-that-name", "unit"), ("exe", "no-program-of-that-name", "program"),
                              ("exe", "/no/program", "program"), ("user", "3999999999", "user")):
        p, data = record("none.collapsed", "--%s" % kind, value)
        lib.ok(p.returncode == 125 and "no %s '%s'" % (what, value) in p.stderr and not data,
               "%s: a %s that does not exist is refused at once: %s" % (where, what, p.stderr.splitlines()[:1]))
    idle = os.path.join(work, "shares-not-running")
    shutil.copy(SHARES, idle)
    p, data = record("idle.collapsed", "-d", "100ms", "--exe", idle)
    lib.ok(p.returncode == 0 and "waiting for one" in p.stderr and data is not None,
           "%s: a program that exists and does not run is waited for: %s" % (where, p.stderr.splitlines()[:1]))
    p, data = record("beside.collapsed", "--exe", idle, command=[SHARES, "0.5"])
    lib.ok(p.returncode == 0 and "waiting for one" not in p.stderr,
           "%s: and is not waited for longer than a command runs: %s" % (where, p.stderr.splitlines()[:1]))
    p, data = record("later.collapsed", "--exe", "no-program-of-that-name", command=[SHARES, "0.5"])
    lib.ok(p.returncode == 0 and b"work_half" in (data or b""), "%s: a command may start what does not exist yet" % where)
    p, _ = record("exit.collapsed", command=["sh", "-c", "exit 7"])
    lib.ok(p.returncode in (0, 7), "%s: a command that fails is recorded all the same (%d)" % (where, p.returncode))


each_format("without a daemon")
by_pid("without a daemon")
if not lib.BRIEF:
    failing("without a daemon")
d = lib.Otprofd(hz=97)
before = d.status()["ledger"]["exported"]["files"]
each_format("beside a daemon")
by_pid("beside a daemon")
time.sleep(1.5)
after = d.status()
lib.ok(after["ledger"]["exported"]["files"] > before and after["workers"]["engine"]["restarts"] == 0,
       "the daemon went on (%d more samples)" % (after["ledger"]["exported"]["files"] - before))
text = subprocess.run([lib.OTPROF, "status", "--runtime-dir", d.runtime], capture_output=True, text=True)
lib.ok(text.returncode == 0 and "taken" in text.stdout.lower(), "otprof status prints the ledger")
json_text = subprocess.run([lib.OTPROF, "status", "--json", "--runtime-dir", d.runtime], capture_output=True, text=True)
lib.ok(json_text.returncode == 0 and lib.json.loads(json_text.stdout)["ledger"]["taken"] > 0, "otprof status --json is JSON")
lib.check_ledger(d.stop(), "record", stopped=True)
lib.finish()

# SPDX-License-Identifier: Apache-2.0
"""The table of sizes: what a host of 256 CPUs sends at 97 Hz, 24,832 samples a
second, goes through the engine in real time without a loss, within the ring
and the memory that the table in otprofd(8) names, and the manual's table is
what the program computes."""
import json
import os
import re
import subprocess
import time

import lib
import workloads

CPUS, HZ = 256, 97
SECONDS = int(os.environ.get("SIZING_SECONDS", "12"))
MANUAL = os.path.join(lib.TOP, "packaging", "man", "otprofd.8")


def capture(path):
    """Some seconds of this host with real programs at work."""
    d = lib.Otprofd(hz=997, sampler={"ring_size": "64M"}, extra_args=["--capture", path])
    load = [p for tools, begin, _, _ in workloads.ALL.values() if workloads.have(*tools) for p in begin(6)]
    if not load:
        load = [lib.program("shares", stdout=subprocess.DEVNULL)]
    time.sleep(6)
    workloads.end_all(load)
    d.stop()
    return d.conf


def paced():
    path = os.path.join(lib.scratch(), "capture")
    conf = capture(path)
    p = subprocess.run([os.path.join(lib.BUILD, "bench_replay"), conf, path, "0", str(CPUS), str(HZ), str(SECONDS)],
                       capture_output=True, text=True, timeout=SECONDS + 120)
    if not lib.ok(p.returncode == 0, "the capture is replayed at %d samples/s %s" % (CPUS * HZ, p.stderr[-200:])):
        return
    r = json.loads(p.stdout)
    lib.note("%s" % r)
    rate = r["samples"] / SECONDS
    lib.ok(rate >= CPUS * HZ * 0.99, "%d samples a second went through in real time, with %.0f %% of one core" % (
        rate, r["cpu_percent"]))
    lib.ok(r["lost"] == 0, "none was lost")
    lib.ok(r["backlog_bytes"] < r["ring_bytes"], "at most %.1f MiB waited (%.0f ms late, %d bytes a record): the ring has %d MiB" % (
        r["backlog_bytes"] / (1 << 20), r["late_ms"], r["record_bytes"], r["ring_bytes"] >> 20))
    rest = r["table_bytes"] - r["ring_bytes"]
    lib.ok(r["engine_bytes"] < rest, "the engine took %.1f MiB; the table has %.1f MiB beside the ring" % (
        r["engine_bytes"] / (1 << 20), rest / (1 << 20)))


def table():
    """Rows of figures: CPUs, rate, ring, side-band of a CPU, memory."""
    p = subprocess.run([lib.OTPROF, "doctor", "--sizes"], capture_output=True, text=True)
    computed = [line.split() for line in p.stdout.splitlines() if re.match(r" *\d", line)]
    lib.ok(p.returncode == 0 and len(computed) >= 8 and computed[-1][0] == str(CPUS), "otprof doctor --sizes has a row for each (%d)" % len(computed))
    with open(MANUAL) as f:
        written = [re.findall(r"[\d.]+", line) for line in f if re.match(r"\d+\t", line)]
    lib.ok(written == computed, "the table in otprofd(8) is what is computed%s" % (
        "" if written == computed else ": %s" % [r for r in computed if r not in written][:3]))


def main():
    table()
    paced()
    lib.finish()


main()

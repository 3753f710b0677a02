# SPDX-License-Identifier: Apache-2.0
"""Requests as a receiver gets them over HTTP: no breach of the data model, in
order, times right, and as many samples as the ledger says."""
import os
import time

import lib


def machine_id():
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        if os.path.exists(path):
            with open(path) as f:
                text = f.read().strip()
            if len(text) == 32:
                return text
    return None


sink = lib.Sink()
d = lib.Otprofd(hz=97, exporters={"sink": {"endpoint": sink.url}})
began = time.time_ns()
for args in (("shares", 4), ("kernelio", 4), ("short", 50), ("depth", 200, 2, 200)):
    lib.program(*args, stdout=lib.subprocess.DEVNULL)
time.sleep(6)
if lib.SLOW:
    lib.wait_for(lambda: len(sink.requests()) >= 5, 60, 1)
counters_before = d.status()["ledger"]["taken"]
kernel = lib.kernel_counters(d.pid)
counters_after = d.status()["ledger"]["taken"]
last = d.stop()
ended = time.time_ns()

requests = sink.requests()
lib.ok(len(requests) >= 5, "a request arrives every second (%d in 6 s)" % len(requests))
breaches = lib.breaches(requests, hz=97)
lib.ok(not breaches, "an independent reader finds no breach of the data model %s" % breaches[:5])

previous_end = 0
in_order = in_time = right_length = True
for r in requests:
    for p in lib.profiles(r):
        in_order &= p.time_unix_nano >= previous_end
        in_time &= began - 2 * 10**9 <= p.time_unix_nano and p.time_unix_nano + p.duration_nano <= ended + 10**9
        right_length &= 0 < p.duration_nano < 3 * 10**9
    previous_end = max(p.time_unix_nano + p.duration_nano for p in lib.profiles(r))
lib.ok(in_order, "requests come in the order of their intervals")
lib.ok(in_time, "their times lie within the run")
lib.ok(right_length, "their durations are about the interval")
lib.ok(all(e["headers"].get("content-encoding") == "gzip" for e in sink.log()), "they come compressed")

total = sum(s.count for r in requests for s in lib.samples_of(r))
exported = last["ledger"]["exported"]["sink"]
lib.ok(total and total == exported, "samples counted at the sink are those exported (%d, %d)" % (total, exported))
if lib.SOURCE == "kmod":
    lib.skip("taken is what the kernel's own counters say", lib.NO_COUNTERS)
else:
    lib.ok(counters_before <= kernel["taken"] <= counters_after and kernel["taken"] == kernel["put"] + kernel["lost"],
           "taken is what the sampler's own counters say (%d <= %d <= %d)" % (
               counters_before, kernel["taken"], counters_after))
lib.check_ledger(last, "model", stopped=True)
resources = {lib.service(s) for r in requests for s in lib.samples_of(r)}
lib.ok({"shares", "kernelio"} <= resources, "workloads carry the names that a person would give them")
lib.ok(all(s.resource.get("host.name") and s.resource.get("os.type") == "linux"
           for r in requests for s in lib.samples_of(r)), "every resource says host.name and os.type")
lib.ok({s.resource.get("host.id") for r in requests for s in lib.samples_of(r)} == {machine_id()},
       "and host.id, which is the machine's")
lib.finish()

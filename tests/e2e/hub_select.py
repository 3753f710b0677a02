# SPDX-License-Identifier: Apache-2.0
"""A selection for a while: by the command line and by the hub's API, within
what the configuration selects, shown as long as it lasts, and no longer."""
import http.client
import json
import os
import shutil
import signal
import subprocess
import time

import lib
from hub_client import Hub

PORT = lib.free_port()
HZ = lib.rate(97)
bin_dir = lib.scratch()
NAMES = ["busy_one", "busy_two", "busy_out"]
for name in NAMES:
    shutil.copy(os.path.join(lib.PROGRAMS, "shares"), os.path.join(bin_dir, name))
programs = [lib.start([os.path.join(bin_dir, name), "600"], stdout=subprocess.DEVNULL) for name in NAMES]
HUB = {"listen": "127.0.0.1:%d" % PORT, "selection": "yes"}
d = lib.Otprofd(hz=HZ, hub=HUB, targets={"exclude": "exe:busy_out"})
hub = Hub(d)


def otprof(*args):
    return subprocess.run([lib.OTPROF, args[0], "--runtime-dir=" + d.runtime] + list(args[1:]), capture_output=True,
                          text=True, timeout=60, stdin=subprocess.DEVNULL)


def ask(method, path, body=None):
    """Status and what the API has answered."""
    form = (None, None) if body is None else (json.dumps(body), {"Content-Type": "application/json"})
    status, _, text = hub.ask(method, "/api/v1" + path, *form)
    return status, json.loads(text)


def selection():
    return d.status()["selection"]


def since(start_ns, end_ns=None):
    """Samples by program of the profiles that began after a moment, and their period."""
    seen, periods = {}, set()
    for path in lib.profile_files(d.files):
        if int(os.path.basename(path).split("-")[1]) * 10**6 < start_ns:
            continue # written before: reading all of them again takes long on a busy host
        try:
            data = lib.read(path)
        except FileNotFoundError:
            continue
        for sample in lib.samples_of(data):
            p = sample.profile
            if p.time_unix_nano < start_ns or (end_ns and p.time_unix_nano > end_ns):
                continue
            periods.add(p.period)
            seen[lib.executable(sample)] = seen.get(lib.executable(sample), 0) + sample.count
    return seen, periods


def busy(*names):
    """What is sampled from now on, once these programs are: however busy the host is, they run at some time."""
    time.sleep(2.5) # the interval in which the selection changed is over
    start = time.time_ns()
    lib.wait_for(lambda: all(since(start)[0].get(n, 0) >= LEAST for n in names), 40, 0.5)
    return since(start)


LEAST = 15
seen, _ = busy("busy_one", "busy_two")
lib.ok(seen.get("busy_one", 0) >= LEAST and seen.get("busy_two", 0) >= LEAST, "without a selection both are sampled %s" % {
    n: seen.get(n) for n in NAMES})
lib.ok(not selection()["on"] and "all that" in otprof("select").stdout, "and none is shown")

# By the command line, at another rate.
p = otprof("select", "exe:busy_one", "--rate=%d" % (HZ // 2), "--for=10m")
lib.ok(p.returncode == 0 and "only exe:busy_one" in p.stdout, "otprof select says what is sampled now: %s" % p.stdout.strip())
lib.ok(lib.wait_for(lambda: selection()["on"] and d.status()["sampler"]["rate_hz"] == HZ // 2, 10), "status shows it, and the rate")
seen, periods = busy("busy_one")
lib.ok(seen.get("busy_one", 0) >= LEAST and set(seen) == {"busy_one"}, "only that one is sampled %s" % seen)
lib.ok(all(abs(p - 1e9 / (HZ // 2)) < 1e9 / HZ / 4 for p in periods), "profiles state the rate %s" % sorted(periods))
page = subprocess.run([lib.OTPROF, "status", "--runtime-dir=" + d.runtime], capture_output=True, text=True).stdout
lib.ok("only exe:busy_one" in page and "until" in page, "the status page says until when")
status, s = ask("GET", "/selection")
lib.ok(status == 200 and s["on"] and s["targets"] == ["exe:busy_one"] and s["possible"] and s["by"].startswith("uid 0"),
       "so does the API, with who asked for it: %s" % s.get("by"))

# A reload keeps it; what the configuration excludes stays out.
os.kill(d.pid, signal.SIGHUP)
lib.ok(lib.wait_for(lambda: "read again" in d.log_text(), 20) and selection()["on"], "a reload keeps it")
p = otprof("select", "exe:busy_out", "exe:busy_two", "--for=10m")
seen, _ = busy("busy_two")
lib.ok(p.returncode == 0 and seen.get("busy_two", 0) >= LEAST and set(seen) == {"busy_two"},
       "a selection does not bring back what [targets] excludes %s" % seen)
lib.ok(d.status()["sampler"]["rate_hz"] == HZ, "the rate is the configuration's again")

# By the API: by the target that a workload has.
p = otprof("select", "--end")
lib.ok(p.returncode == 0 and lib.wait_for(lambda: not selection()["on"], 10), "otprof select --end ends it")
w = lib.wait_for(lambda: next((w for w in ask("GET", "/workloads")[1]["workloads"] if w["name"] == "busy_one"), None), 30, 0.5)
lib.ok(w and w["target"] == "exe:busy_one", "a workload of this host says how to select it: %s" % (w and w["target"]))
status, s = ask("PUT", "/selection", {"targets": [w["target"]], "seconds": 8, "stack_bytes": 16384})
lib.ok(status == 202 and lib.wait_for(lambda: selection()["on"], 10) and selection()["by"] == "the hub",
       "the API selects, where [hub] selection allows it (%d)" % status)
status, s = ask("PUT", "/selection", {"targets": ["exe:busy_two"]})
lib.ok(lib.wait_for(lambda: ask("GET", "/selection")[1]["refused"] or ask("GET", "/selection")[1]["targets"] == ["exe:busy_two"], 5),
       "requests that follow each other at once are refused, or obeyed: %s" % ask("GET", "/selection")[1]["refused"])
for body, what in (({"targets": ["pid:1"]}, "a pid"), ({"targets": ["exe:a b"]}, "two words"), ({}, "nothing"),
                   ({"targets": ["exe:a"], "seconds": 86401}, "more than a day"), ({"frequency_hz": 0}, "no rate"),
                   ({"targets": "exe:a"}, "no list"), ({"targets": ["exe:a"] * 17}, "too many targets")):
    status, s = ask("PUT", "/selection", body)
    lib.ok(status == 422, "%s is refused: %s" % (what, s.get("error", {}).get("message")))

# By its time.
time.sleep(1.2)
otprof("select", "exe:busy_one", "--for=3s")
lib.ok(lib.wait_for(lambda: selection()["on"], 10) and lib.wait_for(lambda: not selection()["on"], 10), "it ends by itself")
lib.ok("its time is over" in d.log_text(), "and the log says so")
seen, _ = busy("busy_one", "busy_two")
lib.ok(seen.get("busy_one", 0) >= LEAST and seen.get("busy_two", 0) >= LEAST, "then both are sampled again %s" % {
    n: seen.get(n) for n in NAMES})
lib.ok("busy_out" not in since(0)[0], "what is excluded was never sampled")

# Who may not.
lib.ok(otprof("select", "pid:1").returncode == 1 and otprof("select", "nonsense:1").returncode == 1 and
       otprof("select", "--rate=5000").returncode == 2, "what is no selection is an error")
r = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", lib.OTPROF, "select", "--end",
                    "--runtime-dir=" + d.runtime], capture_output=True, text=True)
lib.ok(r.returncode == 1 and "ermission" in r.stderr, "another user may not select: %s" % r.stderr.strip().splitlines()[:1])
with open(d.conf) as f:
    text = f.read().replace("selection = yes", "selection = no")
with open(d.conf, "w") as f:
    f.write(text)
os.kill(d.pid, signal.SIGHUP)


def refusal():
    try:
        return ask("PUT", "/selection", {"targets": ["exe:busy_one"]})
    except (OSError, http.client.HTTPException):
        return 0, {}


lib.ok(lib.wait_for(lambda: refusal()[0] == 403, 20, 0.5), "without [hub] selection the API refuses: %s" %
       refusal()[1].get("error", {}).get("message"))
lib.ok(not selection()["on"], "and nothing is selected")

last = d.stop()
lib.check_ledger(last, "selections", stopped=True)
lost = {k: n for k, n in last["ledger"]["destinations"]["files"]["lost"].items() if n}
lib.ok(not any(k in lost for k in ("engine_died", "net_died", "no_exporter")), "no sample was lost for it %s" % lost)

# An include list as well: both have to match.
d = lib.Otprofd(hz=HZ, targets={"include": "exe:busy_one exe:busy_out"})
p = otprof("select", "exe:busy_two", "exe:busy_out", "--for=10m")
seen, _ = busy("busy_out")
lib.ok(p.returncode == 0 and seen.get("busy_out", 0) >= LEAST and set(seen) == {"busy_out"},
       "a selection narrows what [targets] includes %s" % seen)
lib.check_ledger(d.stop(), "a selection within [targets]", stopped=True)
lib.finish()

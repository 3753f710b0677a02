# SPDX-License-Identifier: Apache-2.0
"""The hub beside the sampler: workloads, slots, trees that agree with otprof
convert, events, and two daemons of which one shows what the other samples."""
import gzip
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import time

import lib
from hub_client import Hub

PORT = lib.free_port()


def tree_functions(tree):
    """{name: [self, total]} of a Tree; a stack counts once for a function."""
    sums, path = {}, []
    n, f = tree["nodes"], tree["functions"]
    for depth, function, value in zip(n["depth"], n["function"], n["self"]):
        del path[depth:]
        path.append(tree["strings"][f["name"][function]])
        if value and depth:
            sums.setdefault(path[-1], [0, 0])[0] += value
            for name in set(path[1:]):
                sums.setdefault(name, [0, 0])[1] += value
    return sums


def collapsed_functions(text, service=None):
    """The same of collapsed stacks; service: only its stacks, without it."""
    sums = {}
    for line in text.splitlines():
        stack, value = re.match(r"(.*) (\d+)$", line).groups()
        frames = stack.split(";")
        if service is not None:
            if frames[0] != service:
                continue
            frames = frames[1:]
        sums.setdefault(frames[-1], [0, 0])[0] += int(value)
        for name in set(frames):
            sums.setdefault(name, [0, 0])[1] += int(value)
    return sums


def convert(*files):
    out = os.path.join(lib.scratch(), "all.collapsed")
    p = subprocess.run([lib.OTPROF, "convert", "-o", out] + list(files), capture_output=True, text=True, timeout=60,
                       stdin=subprocess.DEVNULL)
    return open(out).read() if p.returncode == 0 else p.stderr


def otprof(d, *args):
    verb = list(args[:1]) + ["--runtime-dir=" + d.runtime] + list(args[1:])
    return subprocess.run([lib.OTPROF] + verb, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)


def files_between(d, start_ms, end_ms):
    """Files of the destination whose profiles lie in a range."""
    found = []
    for path in lib.profile_files(d.files):
        try:
            heads = lib.profiles(lib.read(path))
        except FileNotFoundError: # a write that took too long is taken back
            continue
        if heads and all(start_ms <= p.time_unix_nano // 10**6 and
                         (p.time_unix_nano + p.duration_nano) // 10**6 <= end_ms for p in heads):
            found.append(path)
    return found


def agree(hub, d, name):
    w = hub.workload(name)
    tree = hub.get("/workloads/%s/tree" % w["id"])
    files = lib.wait_for(lambda: files_between(d, tree["from_ms"], tree["to_ms"]), 10)
    mine, theirs = tree_functions(tree), collapsed_functions(convert(*files), w["service"])
    lib.ok(tree["value"] > 50 and sum(s for s, _ in mine.values()) == tree["value"],
           "%s: the tree has %d samples" % (name, tree["value"]))
    differing = {n for n in set(mine) | set(theirs) if mine.get(n) != theirs.get(n)}
    lib.ok(not differing and len(mine) > 3, "%s: self and total of %d functions are those of otprof convert %s" %
           (name, len(mine), {n: (mine.get(n), theirs.get(n)) for n in sorted(differing)[:3]}))
    return w, tree


def snapshots(hub, w, tree):
    window = "from=%d&to=%d" % (tree["from_ms"], tree["to_ms"])
    got = {}
    for name in ("otlp", "collapsed", "pprof", "speedscope", "svg"):
        status, headers, body = hub.ask("GET", "/api/v1/workloads/%s/snapshot?format=%s&%s" % (w["id"], name, window))
        lib.ok(status == 200 and "attachment" in headers["Content-Disposition"], "a snapshot as %s (%d bytes)" % (name, len(body)))
        got[name] = body
    expected = tree_functions(tree)
    lib.ok(collapsed_functions(got["collapsed"].decode()) == expected, "the collapsed snapshot has the tree's figures")
    path = os.path.join(lib.scratch(), "snapshot.otlp")
    with open(path, "wb") as f:
        f.write(got["otlp"])
    wrong = lib.breaches(got["otlp"])
    lib.ok(not wrong, "the OTLP snapshot is a sound request %s" % wrong[:2])
    lib.ok(collapsed_functions(convert(path), w["service"]) == expected, "otprof convert reads the tree's figures from it")
    lib.ok(gzip.decompress(got["pprof"])[:1] == b"\x0a", "the pprof snapshot is a gzipped profile")
    s = json.loads(got["speedscope"])
    profile = s["profiles"][0]
    lib.ok(sum(profile["weights"]) == tree["value"] * tree["type"]["period"] and
           len(profile["samples"]) == len(profile["weights"]), "speedscope's weights are the samples' time")


def events(hub, w, seconds):
    """Events of a stream, by name, as lists of data."""
    c = http.client.HTTPConnection(hub.address, timeout=seconds + 5)
    c.request("GET", "/api/v1/events?workload=" + w["id"], headers={"Authorization": "Bearer " + hub.token})
    r, got, end, name = c.getresponse(), {}, time.monotonic() + seconds, ""
    while time.monotonic() < end:
        line = r.readline().decode().rstrip("\n")
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            got.setdefault(name, []).append(json.loads(line[6:]))
    c.close()
    return got


def live(hub, w):
    got = events(hub, w, 5)
    increments = got.get("increment", [])
    lib.ok(len(increments) >= 3 and len(got.get("workloads", [])) >= 3, "a stream has an increment an interval (%d)" %
           len(increments))
    first, last = increments[0], increments[-1]
    range_ = hub.get("/workloads/%s/tree?from=%d&to=%d" % (w["id"], first["from_ms"], last["to_ms"]))
    lib.ok(range_["value"] == sum(i["value"] for i in increments), "increments add up to the tree of their range (%d)" %
           range_["value"])
    ids = dict(zip(range_["nodes"]["id"], zip(range_["nodes"]["depth"], (range_["strings"][range_["functions"]["name"][f]]
                                                                        for f in range_["nodes"]["function"]))))
    same = all(ids.get(i) == (depth, inc["strings"][inc["functions"]["name"][f]]) for inc in increments
               for i, depth, f in zip(inc["nodes"]["id"], inc["nodes"]["depth"], inc["nodes"]["function"]))
    lib.ok(same, "ids of nodes are the same in all answers of a generation")


def slots(hub, w):
    other = hub.workload("otprofd")
    status, _, body = hub.ask("PATCH", "/api/v1/limits", '{"max_slots":1}', {"Content-Type": "application/json"})
    lib.ok(status == 200 and json.loads(body)["max_slots"] == 1, "limits change at once")
    status, _, body = hub.ask("PUT", "/api/v1/workloads/%s/slot" % other["id"])
    lib.ok(status == 201 and json.loads(body)["evicted"]["workload"] == w["id"], "a slot too many evicts the other one, and says so")
    status, _, body = hub.ask("GET", "/api/v1/workloads/%s/tree" % w["id"])
    lib.ok(status == 410 and json.loads(body)["error"]["gone"]["reason"] == "evicted", "who asks for it is told why it went")
    hub.ask("PATCH", "/api/v1/limits", '{"max_slots":24,"slot_ttl_seconds":5,"cleanup_interval_seconds":1}',
            {"Content-Type": "application/json"})
    gone = lib.wait_for(lambda: [g for g in hub.get("/slots")["gone"] if g["reason"] == "expired"], 20, 0.5)
    lib.ok(gone and gone[0]["workload"] == other["id"], "a slot that nobody asks for is closed")
    hub.ask("PATCH", "/api/v1/limits", '{"slot_ttl_seconds":120}', {"Content-Type": "application/json"})
    c = hub.get("/status")["counts"]
    lib.ok(c["taken"] == c["kept"] + c["folded"] + c["evicted"] + c["refused"] and c["evicted"] > 0,
           "taken = kept + folded + evicted + refused: %s" % c)


def command_line(hub, d):
    p = otprof(d, "ui", "--print")
    lib.ok(p.stdout == "http://%s/#token=%s\n" % (hub.address, hub.token), "otprof ui prints the address with the token")
    p = otprof(d, "workloads")
    lib.ok(p.returncode == 0 and " shares\n" in p.stdout, "otprof workloads lists the program")
    p = otprof(d, "enable", "shares")
    lib.ok(p.returncode == 0 and hub.workload("shares")["slot"], "otprof enable opens its slot")
    lib.wait_for(lambda: hub.workload("shares")["slot"]["state"] == "live", 15)
    p = otprof(d, "top", "--once", "shares")
    lib.ok(p.returncode == 0 and "work_fifth" in p.stdout, "otprof top shows its functions")
    p = otprof(d, "disable", "shares")
    lib.ok(p.returncode == 0 and not hub.workload("shares")["slot"], "otprof disable closes it")
    lib.ok(otprof(d, "enable", "no-such").returncode == 1, "an unknown workload is an error")


def killed(hub, d):
    """What is shown is not what is delivered."""
    pid = d.worker("hub")
    os.kill(pid, signal.SIGKILL)
    lib.ok(lib.wait_for(lambda: d.worker("hub") not in (0, pid), 20), "a hub that is killed comes back")
    lib.ok(lib.wait_for(lambda: answers(hub) and hub.workload("shares"), 30, 0.5), "and sees the workloads again")


def answers(hub):
    try:
        return hub.get("/status")
    except OSError:
        return None


def remote(hub):
    """Another daemon exports to this one's hub, as if it were another host's."""
    headers = os.path.join(lib.scratch(), "headers")
    with open(headers, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
        f.write("Authorization: Bearer %s\n" % hub.token)
    second = lib.Otprofd(hz=97, exporters={"hub": {"endpoint": "http://" + hub.address, "headers_file": headers}},
                         resource={"host.name": "elsewhere"})
    w = lib.wait_for(lambda: hub.workload("shares", "elsewhere"), 30, 0.5)
    lib.ok(w, "a hub shows what another otprofd exports to it")
    if w:
        hub.ask("PUT", "/api/v1/workloads/%s/slot" % w["id"])
        tree = lib.wait_for(lambda: (t := hub.get("/workloads/%s/tree" % w["id"])) and t["value"] and t, 15, 0.5)
        lib.ok(tree and "work_fifth" in tree["strings"], "with its functions by name")
    status = second.stop()
    lib.check_ledger(status, "the exporting daemon", stopped=True)
    lib.ok(not any(status["ledger"]["destinations"]["hub"]["lost"].values()), "the hub took every request")


d = lib.Otprofd(hz=197, hub={"listen": "127.0.0.1:%d" % PORT, "receive": "yes"})
hub = Hub(d)
shares = lib.program("shares", 100, stdout=subprocess.DEVNULL)
python = lib.start([shutil.which("python3"), "-c", "def f(n):\n  return n < 2 or f(n - 1) + f(n - 2)\nwhile True: f(20)"])
lib.ok(hub.ask("GET", "/api/v1/workloads", token=False)[0] == 401, "a request without the token is refused")
began = time.monotonic()
w = lib.wait_for(lambda: hub.workload("shares"), 20, 0.2)
lib.ok(w and time.monotonic() - began < 10, "a workload is listed within 10 s (%.1f)" % (time.monotonic() - began))


def interpreters():
    return [x["name"] for x in hub.get("/workloads")["workloads"]
            if (x["executable"] or "").startswith("python") and x["cpus"] > 0.1]


names = ["shares"] + (lib.wait_for(interpreters, 20, 0.5) or ["python3"])[:1]
for name in names:
    lib.ok(hub.ask("PUT", "/api/v1/workloads/%s/slot" % hub.workload(name)["id"])[0] == 201, "%s: its slot is opened" % name)
lib.wait_for(lambda: all(hub.workload(n)["slot"]["counts"]["kept"] > 60 for n in names), 40, 0.5)
agree(hub, d, names[1])
w, tree = agree(hub, d, "shares")
lib.ok(w["languages"] == ["native"] and 0 < w["cpus"] <= os.cpu_count(), "its language and CPU share: %s %.2f" % (
    w["languages"], w["cpus"]))
snapshots(hub, w, tree)
live(hub, w)
slots(hub, w)
command_line(hub, d)
remote(hub)
killed(hub, d)
status = d.stop()
lib.check_ledger(status, "hub", stopped=True)
lost = status["ledger"]["destinations"]["files"]["lost"]
lib.ok(not any(lost.get(why, 0) for why in ("engine_died", "net_died", "no_exporter", "queue_full")),
       "no sample was lost for the hub's sake: %s" % {k: n for k, n in lost.items() if n})
lib.ok(not os.path.exists(os.path.join(d.runtime, "hub.token")), "the token is gone with the daemon")
lib.finish()

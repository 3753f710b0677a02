# SPDX-License-Identifier: Apache-2.0
"""A real Collector, made of its public Go modules, receives a known program's
profiles over gRPC and over HTTP by the configuration in packaging/examples:
what it writes is what the file destination holds, sample by sample.
COLLECTOR=build makes the Collector where there is none yet: some minutes."""
import collections
import http.client
import json
import os
import re
import shutil
import subprocess
import time
import urllib.request

import lib

VERSION = "v0.159.0"
GO = (1, 25)
MANIFEST = os.path.join(lib.TOP, "tests", "collector", "manifest.yaml")
EXAMPLE = os.path.join(lib.TOP, "packaging", "examples", "otel-collector.yaml")
PLACE = os.path.join(lib.BUILD, "collector")
BINARY = os.path.join(PLACE, "otelcol-" + VERSION)
WHAT = "a real Collector"

# Merged with the example: ports that are free, and a file in place of Pyroscope.
# The same, to a hub with a token.
TO_HUB = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:0"}, http: {endpoint: "127.0.0.1:0"}}}}
exporters:
  otlp_http/hub: {profiles_endpoint: "http://%s/v1development/profiles", headers: {Authorization: "Bearer %s"}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {profiles: {receivers: [otlp], exporters: [debug, otlp_http/hub]}}
"""
MERGED = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:0"}, http: {endpoint: "127.0.0.1:0"}}}}
exporters: {file: {path: "%s", flush_interval: 100ms}, file/metrics: {path: "%s", flush_interval: 100ms}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    profiles: {receivers: [otlp], exporters: [debug, file]}
    metrics: {receivers: [otlp], exporters: [file/metrics]}
"""


def go_version():
    try:
        said = subprocess.run(["go", "version"], capture_output=True, text=True).stdout
    except OSError:
        return None
    found = re.search(r"go(\d+)\.(\d+)", said)
    return found and (int(found[1]), int(found[2]))


def build():
    """otelcol, or the reason why there is none."""
    os.makedirs(PLACE, exist_ok=True)
    with open(MANIFEST) as f:
        text = f.read().replace("dist:\n", "dist:\n  output_path: %s\n" % os.path.join(PLACE, "src"))
    with open(os.path.join(PLACE, "manifest.yaml"), "w") as f:
        f.write(text)
    p = subprocess.run(["go", "run", "go.opentelemetry.io/collector/cmd/builder@" + VERSION, "--config", f.name],
                       cwd=PLACE, env=dict(os.environ, GOTOOLCHAIN="local"), capture_output=True, text=True)
    if p.returncode:
        return "its modules cannot be had: " + p.stderr.strip()[-200:]
    shutil.copy(os.path.join(PLACE, "src", "otelcol"), BINARY + ".new")
    os.rename(BINARY + ".new", BINARY)
    return None


def have_collector():
    if not os.path.exists(BINARY):
        lib.need(os.environ.get("COLLECTOR") == "build", WHAT, "none is built; make check-full builds one")
        lib.need((go_version() or (0, 0)) >= GO, WHAT, "Go %d.%d or later is not installed" % GO)
        why = build()
        lib.need(not why, WHAT, why)


def lines_of(path):
    with open(path) as f:
        return [json.loads(line) for line in f if line.endswith("\n")]


class Collector:
    def __init__(self, config=None):
        self.dir = lib.scratch()
        self.out = os.path.join(self.dir, "got.jsonl")
        self.metrics = os.path.join(self.dir, "metrics.jsonl")
        self.log = os.path.join(self.dir, "log")
        merged = os.path.join(self.dir, "merged.yaml")
        with open(merged, "w") as f:
            f.write(config or MERGED % (self.out, self.metrics))
        with open(self.log, "w") as log:
            self.process = lib.start([BINARY, "--config", EXAMPLE, "--config", merged,
                                      "--feature-gates=service.profilesSupport"], stdout=log, stderr=log)
        ready = lib.wait_for(lambda: "Everything is ready" in self.said() or self.process.poll() is not None, 30)
        lib.ok(ready and self.process.poll() is None, "the Collector starts with the example")
        self.grpc, self.http = self.port("GRPC"), self.port("HTTP")

    def said(self):
        with open(self.log) as f:
            return f.read()

    def port(self, server):
        found = re.search(r"Starting %s server.*?127\.0\.0\.1:(\d+)" % server, self.said())
        return int(found[1]) if found else 0

    def stop(self):
        lib.end(self.process, 15)
        return lines_of(self.out)


# Both sides as plain tuples: the Collector's JSON has references in place of some texts.

class Written:
    def __init__(self, request):
        self.request, self.d = request, request["dictionary"]
        self.text = lambda i: self.d["stringTable"][i]

    def value(self, v):
        if "stringValueStrindex" in v:
            return self.text(v["stringValueStrindex"])
        return int(v["intValue"]) if "intValue" in v else v.get("stringValue", "")

    def attribute(self, a):
        return a.get("key") or self.text(a["keyStrindex"]), self.value(a.get("value", {}))

    def attributes(self, indices):
        return dict(self.attribute(self.d["attributeTable"][i]) for i in indices)

    def location(self, i):
        at = self.d["locationTable"][i]
        kind = self.attributes(at.get("attributeIndices", [])).get("profile.frame.type", "")
        for line in at.get("lines", []):
            f = self.d["functionTable"][line["functionIndex"]]
            yield (self.text(f.get("nameStrindex", 0)), kind, int(at.get("address", 0)), int(line.get("line", 0)),
                   self.text(f.get("filenameStrindex", 0)))

    def stack(self, i):
        return tuple(f for x in self.d["stackTable"][i].get("locationIndices", []) for f in self.location(x))

    def samples(self):
        for r in self.request["resourceProfiles"]:
            resource = dict(self.attribute(a) for a in r["resource"]["attributes"])
            for scope in r["scopeProfiles"]:
                for p in scope["profiles"]:
                    for s in p["samples"]:
                        yield plain(resource, self.text(p["sampleType"]["typeStrindex"]), p["timeUnixNano"],
                                    p["durationNano"], p.get("period", 0), self.stack(s["stackIndex"]),
                                    self.attributes(s.get("attributeIndices", [])), s["values"][0])


def plain(resource, kind, began, duration, period, stack, attributes, value):
    return (tuple(sorted((k, str(v)) for k, v in resource.items() if isinstance(v, str) and v)), kind, int(began),
            int(duration), int(period), stack, tuple(sorted((k, str(v)) for k, v in attributes.items())), int(value))


def held(data):
    for s in lib.samples_of(data):
        p = s.profile
        frames = tuple((name, kind, address, line, source) for name, kind, address, _, line, source in s.frames)
        yield plain(s.resource, s.type, p.time_unix_nano, p.duration_nano, p.period, frames, s.attributes, s.count)


def file_bodies(d):
    return [lib.read(path) for path in sorted(lib.profile_files(d.files))]


# --- otprof's own metrics -----------------------------------------------------------------

def on_page(port):
    """{(name, labels): value} of the page for Prometheus, and the kind of each name."""
    with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % port) as f:
        text = f.read().decode()
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)", text, re.M))
    found = re.findall(r"^(\w+)(?:\{(.*)\})? (\S+)$", text, re.M)
    return {(n, tuple(sorted(re.findall(r'(\w+)="([^"]*)"', labels)))): float(v) for n, labels, v in found}, kinds


def in_metrics(request):
    """The same of what a MetricsService got; a kind is counter only for sums that are cumulative and monotonic."""
    values, kinds = {}, {}
    for scope in (s for r in request["resourceMetrics"] for s in r["scopeMetrics"]):
        for m in scope["metrics"]:
            data = m.get("sum") or m["gauge"]
            grows = "sum" in m and data.get("isMonotonic") and data.get("aggregationTemporality") == 2
            kinds[m["name"]] = "counter" if grows else "gauge"
            for p in data["dataPoints"]:
                labels = tuple(sorted((a["key"], a["value"]["stringValue"]) for a in p.get("attributes", [])))
                values[m["name"], labels] = float(p["asInt"] if "asInt" in p else p["asDouble"])
    return values, kinds


def compare_metrics(protocol, collector, port):
    """One request between two looks at the page: the same names, labels and kinds, and no counter out of their range."""
    lib.wait_for(lambda: os.path.exists(collector.metrics) and len(lines_of(collector.metrics)) > 2, 30)
    before, kinds = on_page(port)
    had = len(lines_of(collector.metrics)) + 1 # one may be under way
    lib.wait_for(lambda: len(lines_of(collector.metrics)) > had, 30)
    after, _ = on_page(port)
    got, got_kinds = in_metrics(lines_of(collector.metrics)[had])
    # Workloads come and go with the load, and a way that stacks are cut has a line once there is one.
    steady = lambda names: {n for n in names if not n[0].startswith(("otprof_workload_", "otprof_stacks_cut_"))}
    differ = steady(got) ^ (steady(before) | steady(after))
    lib.ok(len(got) > 50 and not differ, "%s: a MetricsService gets each line of the page (%d) %s" % (protocol, len(got), sorted(differ)[:5]))
    wrong = {n for n in got_kinds if kinds.get(n, got_kinds[n]) != got_kinds[n]}
    lib.ok(not wrong and "counter" in got_kinds.values(), "%s: counters are cumulative sums, gauges are gauges %s" % (protocol, sorted(wrong)[:5]))
    wrong = {n for n in steady(got) & set(before) & set(after) if kinds[n[0]] == "counter" and not before[n] <= got[n] <= after[n]}
    lib.ok(not wrong and any(after[n] > before[n] for n in before if n in after),
           "%s: and their values lie between two looks at the page %s" % (protocol, sorted(wrong)[:5]))


def compare(protocol, port_of, compression="gzip", metrics=False):
    collector, port = Collector(), lib.free_port()
    busy = lib.program("shares", 600, stdout=subprocess.DEVNULL)
    d = lib.Otprofd(hz=97, interval="500ms", exporters={
        "files": {"endpoint": "file://FILES"},
        "collector": {"endpoint": "http://127.0.0.1:%d" % port_of(collector), "protocol": protocol, "compression": compression,
                      "metrics": "yes" if metrics else "no"}}, metrics={"listen": "127.0.0.1:%d" % port, "interval": "1s"})
    time.sleep(4)
    what = protocol + ("" if compression == "gzip" else " in " + compression)
    if metrics:
        compare_metrics(protocol, collector, port)
    last = d.stop()
    lib.end(busy)
    lib.check_ledger(last, what, stopped=True)
    got, bodies = collector.stop(), file_bodies(d)
    dest = last["ledger"]["destinations"]["collector"]
    lib.ok(dest["compression"] == compression and not dest["zstd_refused"], "%s: the Collector takes %s" % (what, compression))
    lib.ok(dest["exported"] == last["ledger"]["destinations"]["files"]["exported"] > 0 and len(got) == len(bodies),
           "%s: %d requests, %d samples, are exported and written" % (what, len(got), dest["exported"]))
    wrong = [i for i, (a, b) in enumerate(zip(got, bodies))
             if collections.Counter(Written(a).samples()) != collections.Counter(held(b))]
    lib.ok(not wrong, "%s: each request's samples are the same: names, lines, values, attributes, resource %s" % (
        what, wrong or ""))
    mine = [s for a in got for s in Written(a).samples() if dict(s[0]).get("service.name") == "shares"]
    names = {frame[0] for s in mine for frame in s[5]}
    lib.ok({"work_half", "work_third", "work_fifth", "main"} <= names, "%s: the known program has its names (%d samples)" % (
        what, sum(s[-1] for s in mine)))


def get(address, token, path, method="GET"):
    c = http.client.HTTPConnection(address, timeout=20)
    c.request(method, "/api/v1" + path, headers={"Authorization": "Bearer " + token})
    r = c.getresponse()
    text = r.read()
    c.close()
    return json.loads(text) if r.status in (200, 201) and text else {}


def to_a_hub():
    """One otprofd samples, a Collector passes on, another otprofd without a sampler shows."""
    address = "127.0.0.1:%d" % lib.free_port()
    viewer = lib.Otprofd(daemon=False, hub={"listen": address, "receive": "yes"}, sampler={"mode": "none"})
    with open(viewer.log, "ab") as log:
        viewer.process = lib.start(viewer.argv, stdout=log, stderr=log)
    token_file = os.path.join(viewer.runtime, "hub.token")
    lib.wait_for(lambda: os.path.exists(token_file) and (viewer.status() or {}).get("hub", {}).get("ready"), 30)
    with open(token_file) as f:
        token = f.read().split()[1]
    collector = Collector(TO_HUB % (address, token))
    busy = lib.program("shares", 600, stdout=subprocess.DEVNULL)
    d = lib.Otprofd(hz=97, interval="1s", exporters={"collector": {"endpoint": "http://127.0.0.1:%d" % collector.http}},
                    resource={"host.name": "node-3"})
    w = lib.wait_for(lambda: next((w for w in get(address, token, "/workloads").get("workloads", [])
                                   if w["name"] == "shares" and w["host"] == "node-3"), None), 60, 0.5)
    lib.ok(w, "a viewer shows what a Collector passes on")
    if w:
        get(address, token, "/workloads/%s/slot" % w["id"], "PUT")
        tree = lib.wait_for(lambda: (t := get(address, token, "/workloads/%s/tree" % w["id"])).get("value") and t, 60, 0.5)
        lib.ok(tree and {"work_half", "main"} <= set(tree["strings"]), "with the names of its functions")
    last = d.stop()
    lib.end(busy)
    lib.end(collector.process, 15)
    lib.end(viewer.process, 15)
    lib.check_ledger(last, "through a Collector to a hub", stopped=True)


have_collector()
compare("grpc", lambda c: c.grpc, metrics=True)
compare("http", lambda c: c.http, metrics=True)
compare("grpc", lambda c: c.grpc, "zstd")
compare("http", lambda c: c.http, "zstd")
to_a_hub()
lib.finish()

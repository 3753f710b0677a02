# SPDX-License-Identifier: Apache-2.0
"""otprof's own metrics over OTLP: what arrives has the names, labels and, at the end, the values of the page that
Prometheus gets, and a resource of otprof's own; a receiver without metrics costs no profile."""
import gzip
import http.server
import os
import re
import subprocess
import threading
import time
import urllib.request

import lib
import otlp_check

bodies, paths = [], []


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
        paths.append((self.path, self.headers.get("X-Scope")))
        if self.path == "/v1/metrics":
            bodies.append(body)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


def fields(data, number):
    return [v for n, _, v in otlp_check.fields(data) if n == number]


def attributes(data, number):
    pairs = ((fields(a, 1)[0], fields(fields(a, 2)[0], 1)[0]) for a in fields(data, number))
    return {bytes(k).decode(): bytes(v).decode() for k, v in pairs}


def points(body):
    """{(name, labels)} of a request, and its resource."""
    out = set()
    resource_metrics = fields(memoryview(body), 1)[0]
    for metric in fields(fields(resource_metrics, 2)[0], 2):
        name = bytes(fields(metric, 1)[0]).decode()
        for data in fields(metric, 5) + fields(metric, 7):
            for point in fields(data, 1):
                out.add((name, tuple(sorted(attributes(point, 7).items()))))
    return out, attributes(fields(resource_metrics, 1)[0], 1)


def on_page(text):
    lines = (line.split(" ")[0] for line in text.splitlines() if not line.startswith("#"))
    return {(re.match(r"\w+", line)[0], tuple(sorted(re.findall(r'(\w+)="([^"]*)"', line)))) for line in lines}


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
lib.at_end(server.shutdown)
url = "http://127.0.0.1:%d" % server.server_address[1]
plain = lib.Sink()
port = 9473
d = lib.Otprofd(hz=97, metrics={"listen": "127.0.0.1:%d" % port, "interval": "1s"}, resource={"team": "blue"}, exporters={
    "a": {"endpoint": url, "metrics": "yes", "headers": "X-Scope: t"}, "b": {"endpoint": plain.url, "metrics": "yes"}})
busy = lib.program("shares", 60, stdout=subprocess.DEVNULL)
lib.ok(lib.wait_for(lambda: len(bodies) >= 3, 20, 0.2), "metrics arrive every second (%d)" % len(bodies))
with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % port) as f:
    page = on_page(f.read().decode())
time.sleep(2.5)
sent, resource = points(bodies[-1])
# Workloads come and go with the load, and a way that stacks are cut has a line once there is one.
differ = {p for p in sent ^ page if not p[0].startswith(("otprof_workload_", "otprof_stacks_cut_"))}
lib.ok(len(sent) > 50 and not differ, "they are those of the page (%d of them) %s" % (len(sent), sorted(differ)[:5]))
lib.ok(resource.get("service.name") == "otprof" and resource.get("service.version") and
       resource.get("host.name") == os.uname().nodename and resource.get("team") == "blue" and resource.get("host.arch"),
       "their resource is otprof's own: %s" % resource)
lib.ok({p for p, _ in paths} == {"/v1/metrics", "/v1development/profiles"} and {h for _, h in paths} == {"t"},
       "with the exporter's headers, beside its profiles")
last = d.stop()
lib.end(busy)
lib.ok(last["ledger"]["destinations"]["b"]["exported"] == last["ledger"]["destinations"]["a"]["exported"] > 0 and
       len(re.findall("exporter b: metrics are not delivered", d.log_text())) == 1,
       "a receiver that takes none costs a line and no profile")
lib.check_ledger(last, "beside metrics", stopped=True)
lib.finish()

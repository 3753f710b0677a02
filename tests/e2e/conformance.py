# SPDX-License-Identifier: Apache-2.0
"""What a real Pyroscope would make of our requests, by a model of its rules
(tests/lib/pyroscope.py): nothing refused, nothing lost behind a 200, no frame
without a name, as many series as the presets say; and our books beside a server
that answers as Pyroscope and the Collector were seen to answer."""
import copy
import gzip
import http.server
import re
import subprocess
import threading
import time

import lib
import otlp_check
import pyroscope

X = "application/x-protobuf"
PLAIN = {"content-type": X}
ATTRIBUTES = "process.executable.name process.pid thread.name thread.id cpu.logical_number process.context.label"


class Server:
    """Takes requests for a Store, which has them once settled, but refuses zstd at once; script: for each of the first ones the answer's status
    and body, and how many of its profiles are stored (None: all)."""

    def __init__(self, script=()):
        self.store, self.script, self.heads, self.taken, self.refused = pyroscope.Store(), list(script), [], [], 0
        self.lock = threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *args):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, answer = outer.answer(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
                self.send_response(status)
                self.send_header("Content-Type", X)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        lib.at_end(self.server.shutdown)

    def answer(self, path, headers, body):
        with self.lock:
            if headers.get("content-encoding") == "zstd":
                self.refused += 1
                return 400, b"unsupported encoding"
            self.heads.append((path, headers))
            if path != pyroscope.PATH:
                return 404, b""
            status, answer, kept = self.script.pop(0) if self.script else (200, b"", None)
            self.taken.append((body, headers, kept))
            return status, answer

    def settle(self):
        """At the end: a model in Python is slower than the store that it stands for."""
        for body, headers, kept in self.taken:
            self.store.push(body, headers, kept)
        self.taken = []
        return self.store


# --- the model itself: each of its rules has a request that breaks it -------------------

def changed(request, change):
    m = otlp_check.decode("Request", memoryview(request))
    change(m, m.resource_profiles[0].scope_profiles[0].profiles[0])
    return pyroscope.encode(m)


def reference(m, p):
    for r in m.resource_profiles:
        for a in r.resource.attributes:
            a.key, a.key_strindex = "", 1


def many_labels(m, p):
    a = m.resource_profiles[0].resource.attributes
    for i in range(40):
        a.append(copy.deepcopy(a[0]))
        a[-1].key = "label.%d" % i


def set_of(obj, **values):
    for k, v in values.items():
        setattr(obj, k, v)


# What is changed, and the answer; nothing is stored of the profile that it is in, or of all.
WRONG = {
    "stack index": (500, lambda m, p: set_of(p.samples[0], stack=10**6)),
    "location index": (500, lambda m, p: set_of(m.dictionary.stacks[p.samples[0].stack], locations=[10**6])),
    "function index": (500, lambda m, p: [set_of(x, function=10**6) for at in m.dictionary.locations for x in at.lines]),
    "mapping index": (500, lambda m, p: [set_of(at, mapping=10**6) for at in m.dictionary.locations]),
    "string index": (500, lambda m, p: [set_of(f, name=10**6) for f in m.dictionary.functions]),
    "link index": (500, lambda m, p: set_of(p.samples[0], link=9)),
    "empty mapping_table": (500, lambda m, p: set_of(m.dictionary, mappings=[])),
    "no dictionary": (500, lambda m, p: set_of(m, dictionary=None)),
    "no resource_profiles": (500, lambda m, p: set_of(m, resource_profiles=[])),
    "no sample_type": (500, lambda m, p: set_of(p, sample_type=None)),
    "two values": (500, lambda m, p: set_of(p.samples[0], values=[1, 1])),
    "no value": (500, lambda m, p: set_of(p.samples[0], values=[])),
    "no period": (400, lambda m, p: set_of(p, period=0)),
    "a type with a dash": (400, lambda m, p: (m.dictionary.strings.append("page-faults"),
                                              set_of(p.sample_type, type=len(m.dictionary.strings) - 1))),
    "an hour old": (400, lambda m, p: set_of(p, time_unix_nano=time.time_ns() - 3700 * 10**9)),
    "in the future": (400, lambda m, p: set_of(p, time_unix_nano=time.time_ns() + 700 * 10**9)),
    "forty labels": (400, many_labels),
    "a long label": (400, lambda m, p: set_of(m.resource_profiles[0].resource.attributes[0].value, string_value="x" * 3000)),
    "no UTF-8": (400, lambda m, p: m.dictionary.strings.append("\udcff")),
}
# What a 200 hides.
SILENT = {
    "attribute index": lambda m, p: set_of(p.samples[0], attributes=[10**6]),
    "value 0": lambda m, p: set_of(p.samples[0], values=[0]),
    "empty stack": lambda m, p: set_of(p.samples[0], stack=0),
    "no line and no address": lambda m, p: [set_of(at, lines=[], address=0) for at in m.dictionary.locations],
    "1001 frames": lambda m, p: set_of(m.dictionary.stacks[p.samples[0].stack],
                                       locations=m.dictionary.stacks[p.samples[0].stack].locations[:1] * 1001),
}


def model(request):
    """The model refuses and loses what Pyroscope was seen to refuse and to lose."""
    good = pyroscope.Store()
    lib.ok(good.push(request, PLAIN)[0] == 200 and not good.silent, "model: our request is stored whole")
    lib.ok(pyroscope.encode(otlp_check.decode("Request", memoryview(request))) is not None and
           good.push(changed(request, lambda m, p: None), PLAIN)[0] == 200, "model: and so is one that was decoded and written again")
    for what, (status, change) in WRONG.items():
        store = pyroscope.Store()
        got = store.push(changed(request, change), PLAIN)[0]
        lib.ok(got == status and (status != 500 or not store.series), "model: %s is answered with %d (%d)" % (what, status, got))
    for what, change in SILENT.items():
        store = pyroscope.Store()
        got = store.push(changed(request, change), PLAIN)[0]
        lib.ok(got == 200 and store.silent, "model: %s is lost behind a 200 (%d %s)" % (what, got, store.silent[:1]))
    store = pyroscope.Store()
    store.push(changed(request, reference), PLAIN)
    lib.ok(all(v.startswith("unknown_service") for v in store.values("service_name")), "model: references give unknown_service")
    for headers, status in (({"content-type": X + "; charset=utf-8"}, 415), ({"content-type": "Application/X-Protobuf"}, 415),
                            ({}, 415), (dict(PLAIN, **{"content-encoding": "zstd"}), 400),
                            (dict(PLAIN, **{"content-encoding": "gzip"}), 400)):
        got = pyroscope.Store().push(request, headers)[0]
        lib.ok(got == status, "model: %s is answered with %d" % (headers, status))
    store = pyroscope.Store()
    lib.ok(store.push(gzip.compress(request), dict(PLAIN, **{"content-encoding": "gzip"}))[0] == 200, "model: gzip is expanded")


# --- our requests ----------------------------------------------------------------------------

def conforms(server, what):
    store = server.settle()
    lib.ok(store.requests and set(store.requests) == {200}, "%s: every request is stored (%d of %d; %s)" % (
        what, store.requests.count(200), len(store.requests), getattr(store, "why", "")))
    lib.ok(not store.silent, "%s: nothing is lost behind a 200 %s" % (what, store.silent[:2]))
    lib.ok(not store.unseen and not any("" in stack for s in store.series.values() for stack in s),
           "%s: every frame has a name" % what)
    lib.ok(not any(v.startswith("unknown_service") for v in store.values("service_name")), "%s: every service has its name" % what)
    most = max((len(labels) - 2 for labels in store.series), default=0)
    lib.ok(0 < len(store.series) and most <= 25, "%s: at most 25 labels besides the service's (%d)" % (what, most))
    head = server.heads[0][1]
    lib.ok(head.get("content-type") == X and head.get("content-encoding") in (None, "gzip"), "%s: type and encoding are those taken" % what)


def presets():
    """One daemon, four destinations: what each preset does to the series, and that none loses a sample."""
    servers = {name: Server() for name in ("plain", "zstd", "otlp", "pyroscope", "minimal", "slow")}
    exporters = {name: {"endpoint": s.url, "profile": name, "timeout": "60s"} for name, s in servers.items() if name not in ("plain", "zstd", "slow")}
    exporters["plain"] = {"endpoint": servers["plain"].url, "compression": "none", "timeout": "60s"}
    exporters["zstd"] = {"endpoint": servers["zstd"].url, "compression": "zstd", "timeout": "60s"}
    exporters["slow"] = {"endpoint": servers["slow"].url, "profile": "pyroscope", "interval": "3s", "timeout": "60s"}
    d = lib.Otprofd(hz=97, exporters=exporters, profile={"sample_attributes": ATTRIBUTES},
                    resource={"deployment.environment.name": "test"})
    busy = [lib.program("shares", 60, stdout=subprocess.DEVNULL) for _ in range(3)] + [lib.program("kernelio", 60)]
    time.sleep(8)
    last = d.stop()
    for p in busy:
        lib.end(p)
    lib.check_ledger(last, "presets", stopped=True)
    dest, period = last["ledger"]["destinations"], 10**9 / 97
    for name, s in servers.items():
        conforms(s, name)
        lib.ok(dest[name]["exported"] > 0 and abs(s.store.weight() / period - dest[name]["exported"]) < 1 + dest[name]["exported"] / 1000,
               "%s: the store has the weight that was exported (%d, %d samples)" % (name, s.store.weight() / period, dest[name]["exported"]))
    lib.ok(len({dest[n]["exported"] for n in servers}) == 1, "presets: every destination has every sample")
    lib.ok(servers["zstd"].refused == 1 and len(re.findall("exporter zstd: does not take zstd", d.log_text())) == 1 and
           dest["zstd"]["zstd_refused"] and dest["zstd"]["compression"] == "gzip" and not dest["zstd"]["last_error"],
           "presets: zstd is refused once, in a line and in the status; all is sent in gzip (%d)" % servers["zstd"].refused)
    count = {n: len(s.store.series) for n, s in servers.items()}
    lib.ok(count["plain"] == count["otlp"] > count["pyroscope"] > 0, "presets: pyroscope makes fewer series than otlp %s" % count)
    lib.ok(count["minimal"] == len(servers["minimal"].store.values("service_name")) <= count["pyroscope"],
           "presets: minimal makes one series a service (%d)" % count["minimal"])
    lib.ok(count["slow"] == count["pyroscope"], "presets: a longer interval makes the same series")
    lib.ok(len(servers["slow"].store.requests) * 2 < len(servers["pyroscope"].store.requests),
           "presets: and fewer requests (%d, %d)" % (len(servers["slow"].store.requests), len(servers["pyroscope"].store.requests)))
    kept = {k for labels in servers["pyroscope"].store.series for k, _ in labels}
    lib.ok("process.pid" not in kept and "thread.id" not in kept and "host.id" not in kept and
           {"host.name", "deployment.environment.name", "process.executable.name"} <= kept, "presets: pyroscope keeps %s" % sorted(kept))
    everything = {k for labels in servers["otlp"].store.series for k, _ in labels}
    lib.ok({"process.pid", "thread.id", "host.name"} <= everything, "presets: otlp keeps them all")
    stacks = [collections_of(s.store) for s in servers.values()]
    lib.ok(all(s == stacks[0] for s in stacks), "presets: the graphs of all are the same")
    wire = {n: sum(int(h["content-length"]) for _, h in s.heads) / max(dest[n]["exported"], 1) for n, s in servers.items()}
    lib.note("presets: bytes a sample on the wire: %s" % {n: round(v, 1) for n, v in wire.items()})


def collections_of(store):
    """Weight of each stack by service, whatever its other labels are."""
    out = {}
    for labels, stacks in store.series.items():
        service = dict(labels)["service_name"]
        for stack, n in stacks.items():
            out[service, stack] = out.get((service, stack), 0) + n
    return out


def answers():
    """A server that answers as both were seen to: partial success that is empty, half a request and 429, nothing at all."""
    scripts = {
        "collector": [(200, b"\x0a\x00", None)] * 100,
        # Half of the first request is stored, and 429: it is sent again, whole.
        "limited": [(429, b"", 1)],
        # 200, and nothing kept: no answer says so.
        "forgets": [(200, b"", 0)] * 100,
        # A partial success that refuses everything, with a message.
        "rejects": [(200, b"\x0a\x06\x08\xff\x7f\x12\x01x", 0)] * 100,
    }
    servers = {name: Server(script) for name, script in scripts.items()}
    d = lib.Otprofd(hz=97, exporters={n: {"endpoint": s.url, "retry_initial": "200ms", "retry_max": "400ms", "timeout": "60s"} for n, s in servers.items()})
    busy = [lib.program("shares", 60, stdout=subprocess.DEVNULL), lib.program("kernelio", 60)]
    time.sleep(5)
    last = d.stop()
    for p in busy:
        lib.end(p)
    lib.check_ledger(last, "answers", stopped=True)
    dest, period = last["ledger"]["destinations"], 10**9 / 97
    have = {n: round(s.settle().weight() / period) for n, s in servers.items()}
    lib.ok(dest["collector"]["exported"] == have["collector"] > 0 and not dest["collector"]["unconfirmed"],
           "answers: an empty partial success is a success")
    lib.ok("remark" not in d.log_text(), "answers: and needs no remark")
    first = servers["limited"].store.requests
    lib.ok(first[0] == 429 and set(first[1:]) == {200}, "answers: 429 is tried again (%s)" % first[:4])
    lib.ok(have["limited"] > dest["limited"]["exported"] > 0,
           "answers: what a 429 had stored is stored twice: %d of %d" % (have["limited"], dest["limited"]["exported"]))
    lib.ok(dest["forgets"]["exported"] > 0 == have["forgets"], "answers: what a 200 hides is exported in the books")
    lib.ok(dest["rejects"]["lost"].get("rejected", 0) > 0 == dest["rejects"]["exported"],
           "answers: what a partial success refuses whole is lost (%s)" % dest["rejects"]["lost"])


def one_request():
    d = lib.Otprofd(hz=199)
    busy = [lib.program("shares", 60, stdout=subprocess.DEVNULL)]
    time.sleep(3)
    d.stop()
    lib.end(busy[0])
    return max((lib.read(f) for f in lib.profile_files(d.files)), key=len)


model(one_request())
presets()
answers()
lib.finish()

# SPDX-License-Identifier: Apache-2.0
"""Clients of the hub that mean harm or know no better: names of others, other
sites, wrong tokens, malformed and compressed bodies, connections that say
nothing and streams that read nothing. The right answers, bounded memory, and
profiling goes on."""
import gzip
import http.client
import json
import os
import socket
import time

import lib

with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    PORT = s.getsockname()[1]
PATH = "/v1development/profiles"
PROTOBUF, JSON = {"Content-Type": "application/x-protobuf"}, {"Content-Type": "application/json"}
d = lib.Otprofd(hz=97, hub={"listen": "127.0.0.1:%d" % PORT, "receive": "yes", "receive_max_size": "1M", "token": "yes"})
with open(os.path.join(d.runtime, "hub.token")) as f:
    TOKEN = f.read().split()[1]


def ask(method, path, body=None, headers=None, token=TOKEN):
    c = http.client.HTTPConnection("127.0.0.1", PORT, timeout=20)
    h = {"Authorization": "Bearer " + token} if token else {}
    h.update(headers or {})
    try:
        c.request(method, path, body, h)
        r = c.getresponse()
        return r.status, r.headers, r.read()
    finally:
        c.close()


def is_status(expected, what, *args, **kw):
    status, headers, body = ask(*args, **kw)
    lib.ok(status == expected, "%s: %d (%d)" % (what, expected, status))
    return headers, body


def raw(text):
    """The status of a request that no client library would send."""
    with socket.create_connection(("127.0.0.1", PORT), 20) as s:
        s.sendall(text.encode())
        s.settimeout(20)
        try:
            answer = s.recv(4096).decode(errors="replace")
        except OSError:
            return 0
    return int(answer.split()[1]) if answer.startswith("HTTP/") else 0


def memory():
    """KiB of the hub's own pages."""
    try:
        with open("/proc/%d/status" % d.worker("hub")) as f:
            return next(int(line.split()[1]) for line in f if line.startswith("RssAnon"))
    except OSError:
        return 0


def guard():
    is_status(401, "no token", "GET", "/api/v1/status", token=None)
    is_status(401, "a wrong one", "GET", "/api/v1/status", token="0" * 48)
    is_status(401, "half of it", "GET", "/api/v1/status", token=TOKEN[:24])
    is_status(401, "profiles without it", "POST", PATH, b"", PROTOBUF, token=None)
    for host in ("evil.example", "evil.example:%d" % PORT, "127.0.0.1.evil.example", "localhost:x", ""):
        is_status(421, "Host %r" % host, "GET", "/api/v1/status", headers={"Host": host})
    for host in ("localhost:%d" % PORT, "127.0.0.1", "[::1]:8080"):
        is_status(200, "Host %r" % host, "GET", "/api/v1/status", headers={"Host": host})
    for site in ("cross-site", "same-site", "nonsense"):
        is_status(403, "data asked for by %s" % site, "GET", "/api/v1/workloads", headers={"Sec-Fetch-Site": site})
    is_status(403, "a change by another origin", "PATCH", "/api/v1/limits", "{}", {"Origin": "http://evil.example", **JSON})
    is_status(200, "a change by the page", "PATCH", "/api/v1/limits", "{}", {"Origin": "http://127.0.0.1:%d" % PORT, **JSON})
    headers, _ = is_status(200, "headers", "GET", "/api/v1/status")
    lib.ok("default-src 'none'" in headers["Content-Security-Policy"] and "unsafe" not in headers["Content-Security-Policy"] and
           headers["X-Content-Type-Options"] == "nosniff" and not headers["Access-Control-Allow-Origin"], "answers allow nothing inline")
    two = "Host: localhost\r\nAuthorization: Bearer %s\r\n" % TOKEN
    lib.ok(raw("GET /api/v1/status HTTP/1.1\r\n%sHost: localhost\r\n\r\n" % two) == 400, "two names are refused")
    lib.ok(raw("PATCH /api/v1/limits HTTP/1.1\r\n%sContent-Length: 2\r\nContent-Length: 9\r\n\r\n{}" % two) == 400,
           "two lengths are refused")
    lib.ok(raw("PATCH /api/v1/limits HTTP/1.1\r\n%sContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}" % two) == 400,
           "a length and chunks are refused")
    lib.ok(raw("GET /api/v1/status HTTP/1.1\r\nX: %s\r\n\r\n" % ("x" * 100000)) in (0, 400, 413, 431), "long headers are refused")


def api():
    for path, expected in (("/api/v1/nothing", 404), ("/nothing", 404), ("/api/v1/workloads/xyz", 422),
                           ("/api/v1/workloads/" + "0" * 16, 404), ("/api/v1/workloads/" + "f" * 16 + "/tree", 404),
                           ("/../../etc/passwd", 404), ("/%2e%2e/etc/passwd", 404)):
        is_status(expected, path, "GET", path)
    headers, body = is_status(405, "a method that a path lacks", "POST", "/api/v1/limits", "{}", JSON)
    lib.ok("PATCH" in headers["Allow"] and json.loads(body)["error"]["reason"] == "method", "and it names those that it has")
    is_status(415, "limits that are no JSON", "PATCH", "/api/v1/limits", "{}", {"Content-Type": "text/plain"})
    for body in ("", "[", "[]", "{\"max_slots\":1,\"max_slots\":2}"):
        is_status(400, "limits %r" % body, "PATCH", "/api/v1/limits", body, JSON)
    for body in ('{"max_slots":0}', '{"max_slots":"1"}', '{"max_slots":1.5}', '{"slot_max_bytes":1e99}', '{"other":1}',
                 '{"max_slots":9223372036854775807}'):
        is_status(422, "limits %s" % body, "PATCH", "/api/v1/limits", body, JSON)
    is_status(413, "a large body", "PATCH", "/api/v1/limits", "{}" + " " * 100000, JSON)


def receiver():
    headers, body = is_status(200, "an empty request", "POST", PATH, b"", PROTOBUF)
    lib.ok(body == b"" and headers["Content-Type"] == "application/x-protobuf", "is answered by an empty message")
    headers, body = is_status(200, "the same in JSON", "POST", PATH, b"{}", JSON)
    lib.ok(body == b"{}" and headers["Content-Type"] == "application/json", "is answered in JSON")
    is_status(400, "bytes that are no request", "POST", PATH, b"\xff" * 100, PROTOBUF)
    headers, body = is_status(400, "text that is no JSON", "POST", PATH, b"{", JSON)
    lib.ok(json.loads(body)["code"] == 3, "the error is a Status of RPC")
    is_status(415, "another type", "POST", PATH, b"", {"Content-Type": "text/html"})
    is_status(415, "another encoding", "POST", PATH, b"", {"Content-Encoding": "br", **PROTOBUF})
    is_status(400, "gzip that is none", "POST", PATH, b"abc", {"Content-Encoding": "gzip", **PROTOBUF})
    is_status(413, "more than the limit", "POST", PATH, b"\0" * (2 << 20), PROTOBUF)
    bomb = gzip.compress(b"\0" * (256 << 20), 9)
    is_status(413, "a bomb of %d KiB" % (len(bomb) >> 10), "POST", PATH, bomb, {"Content-Encoding": "gzip", **PROTOBUF})
    profile = lib.wait_for(lambda: lib.profile_files(d.files), 20)
    request = lib.read(profile[0])
    headers, body = is_status(200, "a real request, compressed", "POST", PATH, gzip.compress(request), {"Content-Encoding": "gzip", **PROTOBUF})
    lib.ok(body == b"", "is taken whole")
    nobody = {"resourceProfiles": [{"scopeProfiles": [{"profiles": [{"samples": [{"stackIndex": 7, "values": ["1"]}]}]}]}],
              "dictionary": {"stringTable": [""]}, "unknownField": {"a": [1]}}
    headers, body = is_status(200, "an index out of range", "POST", PATH, json.dumps(nobody), JSON)
    lib.ok(json.loads(body).get("partialSuccess", {}).get("rejectedProfiles") == 1, "is a partial success: %s" % body[:120])
    text = {"resourceProfiles": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "of json"}}]},
                                  "scopeProfiles": [{"profiles": [{"profileId": "00" * 16, "sampleType": {"typeStrindex": 1, "unitStrindex": 2},
                                                                   "samples": [{"stackIndex": 1, "timestampsUnixNano": ["1", "2", "3"]}]}]}]}],
            "dictionary": {"stringTable": ["", "samples", "count", "main", "app"],
                           "functionTable": [{}, {"nameStrindex": 3}], "locationTable": [{}, {"lines": [{"functionIndex": 1}]}],
                           "stackTable": [{}, {"locationIndices": [1]}]}}
    is_status(200, "a request in JSON", "POST", PATH, json.dumps(text), JSON)
    names = [w["name"] for w in json.loads(ask("GET", "/api/v1/workloads")[2])["workloads"]]
    lib.ok("of json" in names, "its workload is listed")


def crowds():
    """More connections than there may be, streams that read nothing, bytes now and then."""
    before = memory()
    idle = []
    for _ in range(1000):
        try:
            idle.append(socket.create_connection(("127.0.0.1", PORT), 2))
        except OSError:
            break
    is_status(200, "with %d connections that say nothing" % len(idle), "GET", "/api/v1/status")
    for s in idle[::10]:
        try:
            s.sendall(b"GET /")
        except OSError:
            pass
    is_status(200, "and some that say a little", "GET", "/api/v1/status")
    for s in idle:
        s.close()
    streams, statuses = [], []
    for _ in range(20):
        c = http.client.HTTPConnection("127.0.0.1", PORT, timeout=20)
        c.request("GET", "/api/v1/events", headers={"Authorization": "Bearer " + TOKEN})
        r = c.getresponse()
        streams.append((c, r))
        statuses.append(r.status)
    lib.ok(statuses.count(200) == 16 and statuses.count(503) == 4, "16 streams, and a refusal for each more")
    is_status(200, "while streams are open", "GET", "/api/v1/status")
    busy = cpu_of_hub()
    time.sleep(4)
    busy = (cpu_of_hub() - busy) / 4
    lib.ok(busy < 0.05, "streams that wait take no CPU time (%.3f of a CPU)" % busy)
    for c, _ in streams:
        c.close()
    lib.ok(lib.wait_for(lambda: ask("GET", "/api/v1/events?workload=zz")[0] == 422, 5), "events of a malformed id are refused")
    grown = memory() - before
    lib.ok(grown < 32 << 10, "its memory stays bounded (%d KiB more)" % grown)


def cpu_of_hub():
    with open("/proc/%d/stat" % d.worker("hub")) as f:
        words = f.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


pid = d.worker("hub")
guard()
api()
receiver()
crowds()
lib.ok(d.worker("hub") == pid, "the hub is still the same process")
status = d.stop()
lib.check_ledger(status, "hostile clients", stopped=True)
lost = {k: n for k, n in status["ledger"]["destinations"]["files"]["lost"].items() if n}
lib.ok(status["ledger"]["taken"] > 0 and not any(why in lost for why in ("engine_died", "net_died", "no_exporter", "queue_full")),
       "profiling went on %s" % lost)
lib.finish()

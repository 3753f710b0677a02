# SPDX-License-Identifier: Apache-2.0
"""Clients of the hub that mean harm or know no better: names of others, other
sites, wrong tokens, malformed and compressed bodies, connections that say
nothing and streams that read nothing. The right answers, bounded memory, and
profiling goes on."""
import gzip
import http.client
import json
import os
import resource
import socket
import time

import lib
from hub_client import Hub

PORT = lib.free_port()
PATH = "/v1development/profiles"
PROTOBUF, JSON = {"Content-Type": "application/x-protobuf"}, {"Content-Type": "application/json"}
d = lib.Otprofd(hz=97, hub={"listen": "127.0.0.1:%d" % PORT, "receive": "yes", "receive_max_size": "1M", "token": "yes"})
hub = Hub(d)


def is_status(expected, what, *args, **kw):
    status, headers, body = hub.ask(*args, **kw)
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
    is_status(401, "half of it", "GET", "/api/v1/status", token=hub.token[:24])
    is_status(401, "profiles without it", "POST", PATH, b"", PROTOBUF, token=None)
    for host in ("evil.example", "evil.example:%d" % PORT, "127.0.0.1.evil.example", "localhost:x", ""):
        is_status(421, "Host %r" % host, "GET", "/api/v1/status", headers={"Host": host})
    rebound = {"Host": "evil.example:%d" % PORT, "Origin": "http://evil.example:%d" % PORT, "Sec-Fetch-Site": "same-origin"}
    is_status(421, "a name that was bound to this address, as its page sees it", "GET", "/api/v1/workloads", headers=rebound)
    is_status(421, "a change by it", "PATCH", "/api/v1/limits", "{}", {**rebound, **JSON})
    is_status(421, "the page's own files by it", "GET", "/", headers=rebound, token=None)
    for host in ("localhost:%d" % PORT, "127.0.0.1", "[::1]:8080"):
        is_status(200, "Host %r" % host, "GET", "/api/v1/status", headers={"Host": host})
    for site in ("cross-site", "same-site", "nonsense"):
        is_status(403, "data asked for by %s" % site, "GET", "/api/v1/workloads", headers={"Sec-Fetch-Site": site})
    is_status(403, "a change by another origin", "PATCH", "/api/v1/limits", "{}", {"Origin": "http://evil.example", **JSON})
    is_status(200, "a change by the page", "PATCH", "/api/v1/limits", "{}", {"Origin": "http://127.0.0.1:%d" % PORT, **JSON})
    headers, _ = is_status(200, "headers", "GET", "/api/v1/status")
    lib.ok("default-src 'none'" in headers["Content-Security-Policy"] and "unsafe" not in headers["Content-Security-Policy"] and
           headers["X-Content-Type-Options"] == "nosniff" and not headers["Access-Control-Allow-Origin"], "answers allow nothing inline")
    two = "Host: localhost\r\nAuthorization: Bearer %s\r\n" % hub.token
    lib.ok(raw("GET /api/v1/status HTTP/1.1\r\n%sHost: localhost\r\n\r\n" % two) == 400, "two names are refused")
    lib.ok(raw("PATCH /api/v1/limits HTTP/1.1\r\n%sContent-Length: 2\r\nContent-Length: 9\r\n\r\n{}" % two) == 400,
           "two lengths are refused")
    lib.ok(raw("PATCH /api/v1/limits HTTP/1.1\r\n%sContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}" % two) == 400,
           "a length and chunks are refused")
    lib.ok(raw("PATCH /api/v1/limits HTTP/1.1\r\n%sContent-Length: 2, 9\r\n\r\n{}" % two) == 400, "so are two in one line")
    lib.ok(raw("PATCH /api/v1/limits HTTP/1.1\r\n%sContent-Length: -2\r\n\r\n{}" % two) == 400, "and one below nothing")
    lib.ok(raw("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") in (0, 400, 505), "HTTP/2 is refused")
    lib.ok(raw("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n") in (0, 400), "so is TLS")
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
    is_status(400, "limits of many levels", "PATCH", "/api/v1/limits", "[" * 500 + "]" * 500, JSON)
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
    before = memory()
    is_status(413, "a bomb of %d KiB" % (len(bomb) >> 10), "POST", PATH, bomb, {"Content-Encoding": "gzip", **PROTOBUF})
    is_status(413, "a bomb in JSON", "POST", PATH, gzip.compress(b'{"a":"' + b" " * (64 << 20) + b'"}', 9),
              {"Content-Encoding": "gzip", **JSON})
    is_status(400, "JSON of many levels", "POST", PATH, b"[" * 500000, JSON)
    is_status(400, "JSON that nests a value deeply", "POST", PATH, b'{"a":' * 100000 + b"1" + b"}" * 100000, JSON)
    is_status(400, "a message in itself, many times", "POST", PATH, nested(3000), PROTOBUF)
    lib.ok(memory() - before < 16 << 10, "they leave no memory behind (%d KiB more)" % (memory() - before))
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
    names = [w["name"] for w in json.loads(hub.ask("GET", "/api/v1/workloads")[2])["workloads"]]
    lib.ok("of json" in names, "its workload is listed")


def nested(levels):
    """resource_profiles, its resource, an attribute, and its value: an array of an array of..."""
    message = b""
    for _ in range(levels):
        message = field(5, field(1, message)) # AnyValue.array_value, ArrayValue.values
    return field(2, field(1, field(1, field(2, message)) + b""))[:1 << 19] + b"\xff"


def field(number, data):
    size, length = len(data), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


def many_connections(wanted):
    """As many as this process may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted + 200, max(hard, wanted + 200)))
    except (ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    idle = []
    for _ in range(wanted):
        try:
            s = socket.socket()
        except OSError as e:
            lib.note("after %d connections: %s" % (len(idle), e))
            break
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", PORT))
        idle.append(s)
    lib.wait_for(lambda: sum(is_connected(s) for s in idle) == len(idle), 20, 1)
    return [s for s in idle if is_connected(s) or s.close()]


def is_connected(s):
    """Also if the other end has hung up since."""
    state = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    return state not in (2, 7) # SYN_SENT; CLOSE, as after a refusal


def slow_requests():
    """Requests whose bytes arrive one by one, answers and streams that nobody reads."""
    before = memory()
    request = ("GET /api/v1/workloads HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n" % hub.token).encode()
    slow = [socket.create_connection(("127.0.0.1", PORT), 5) for _ in range(20)]
    deaf = [socket.create_connection(("127.0.0.1", PORT), 5) for _ in range(20)]
    w = json.loads(hub.ask("GET", "/api/v1/workloads")[2])["workloads"][0]["id"]
    hub.ask("PUT", "/api/v1/workloads/%s/slot" % w)
    unread = [socket.create_connection(("127.0.0.1", PORT), 5) for _ in range(8)]
    for s in deaf:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(0.2)
        try:
            s.sendall(request * 200)
        except OSError:
            pass
    for s in unread:
        s.sendall(request.replace(b"/api/v1/workloads ", b"/api/v1/events?workload=%s " % w.encode()))
    began, closed = time.monotonic(), 0
    while time.monotonic() - began < 35 and closed < len(slow):
        closed = sum(not trickles(s, request[int(time.monotonic() - began)]) for s in slow)
        time.sleep(1)
    lib.ok(closed == len(slow), "requests of a byte a second are hung up on, after %d s" % (time.monotonic() - began))
    is_status(200, "with answers and streams that nobody reads", "GET", "/api/v1/status")
    grown = memory() - before
    lib.ok(grown < 16 << 10, "they cost little memory (%d KiB)" % grown)
    for s in slow + deaf + unread:
        s.close()


def trickles(s, byte):
    try:
        s.send(bytes([byte]))
        s.setblocking(False)
        return s.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def crowds():
    """More connections than there may be, streams that read nothing, bytes now and then."""
    before = memory()
    idle = many_connections(10000)
    lib.ok(len(idle) >= 1000, "%d of 10000 connections were made" % len(idle))
    is_status(200, "with %d connections that say nothing" % len(idle), "GET", "/api/v1/status")
    lib.ok(memory() - before < 16 << 10, "they take little memory (%d KiB)" % (memory() - before))
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
        c.request("GET", "/api/v1/events", headers={"Authorization": "Bearer " + hub.token})
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
    lib.ok(lib.wait_for(lambda: hub.ask("GET", "/api/v1/events?workload=zz")[0] == 422, 5), "events of a malformed id are refused")
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
slow_requests()
crowds()
lib.ok(d.worker("hub") == pid, "the hub is still the same process")
status = d.stop()
lib.check_ledger(status, "hostile clients", stopped=True)
lost = {k: n for k, n in status["ledger"]["destinations"]["files"]["lost"].items() if n}
lib.ok(status["ledger"]["taken"] > 0 and not any(why in lost for why in ("engine_died", "net_died", "no_exporter", "queue_full")),
       "profiling went on %s" % lost)
lib.finish()

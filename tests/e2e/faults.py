# SPDX-License-Identifier: Apache-2.0
"""Receivers that misbehave in every way that we know of, over HTTP and gRPC: for
each the ledger balances at any time, requests end as they must, and net's memory
stays as it is however often it happens. FAULTS=full: a minute of each."""
import email.utils
import os
import subprocess
import sys
import time

import lib

sys.path.insert(0, os.path.join(lib.TOP, "tests", "lib"))
import fault_server as faulty  # noqa: E402

SECONDS = 60 if os.environ.get("FAULTS") == "full" else int(os.environ.get("FAULT_SECONDS", "7"))
WARM_UP = (10, 25) # requests that each server has had, or seconds: by then everything has happened once
GROWTH_MAX = 2 << 20 # bytes; the queues hold less than half of it together
work = lib.scratch()

# --- HTTP ---

# Every status that is a final answer, and those that a server may invent.
STATUSES = [s for s in range(200, 600) if s not in (304,)] + [600, 799, 999]
RETRY_AFTER = ["0", "1", " 1 ", "-1", "1.5", "soon", "", "99999999999999999999", "0x10", email.utils.formatdate(0, usegmt=True),
               "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
# ExportProfilesServiceResponse: partial_success { rejected_profiles, error_message }
PARTIAL = [b"\x0a\x00", b"\x0a\x02\x08\x01", b"\x0a\x05\x08\xff\xff\xff\x07", b"\x0a\x05\x12\x03odd", b"\x0a\x07\x08\x01\x12\x03odd"]
TYPES = ["text/html", "application/json", "application/x-protobuf; charset=utf-8", "", "\x01"]


def every_status(peer, n):
    return peer.answer(STATUSES[n * 7 % len(STATUSES)], b"\x0a\x00" if n % 3 else b"\x08\x03\x12\x04text")


def drips(peer, n):
    """A byte at a time, for longer than the timeout."""
    for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n":
        peer.send(bytes([byte]))
        time.sleep(0.1)
    return False


def half(peer, n):
    whole = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 100\r\n\r\n" + bytes(20)
    peer.send(whole[:n * 13 % len(whole)])
    return False


def resets(peer, n):
    if n % 3 == 0:
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Len")
    return peer.reset()


def partial(peer, n):
    return peer.answer(200, PARTIAL[n % len(PARTIAL)])


def retry_after(peer, n):
    if n % 2:
        return peer.answer(200)
    return peer.answer((429, 503)[n // 2 % 2], b"later", ["Retry-After: " + RETRY_AFTER[n // 2 % len(RETRY_AFTER)]])


def wrong_type(peer, n):
    return peer.answer((200, 400)[n % 2], b"<html>\xff\0" * 40, content_type=TYPES[n // 2 % len(TYPES)])


def too_long(peer, n):
    """Answers over the limit: a body, a chunked one without end, headers without end."""
    if n % 3 == 0:
        return peer.answer(200, bytes(5 << 20))
    if n % 3 == 1:
        peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(4000):
            peer.send(b"1000\r\n" + bytes(4096) + b"\r\n")
        return False
    peer.send(b"HTTP/1.1 200 OK\r\n")
    for i in range(4000):
        peer.send(b"X-%d: %s\r\n" % (i, b"y" * 1000))
    return False


# --- gRPC ---

def retry_info(payload):
    import base64
    any_ = b"\x0a\x28type.googleapis.com/google.rpc.RetryInfo" + bytes([0x12, len(payload)]) + payload
    status = b"\x08\x0e\x1a" + bytes([len(any_)]) + any_
    return base64.b64encode(status).decode().rstrip("=")


RETRY_INFO = [retry_info(p) for p in (b"", b"\x0a\x00", b"\x0a\x04\x10\x80\xad\x04", b"\x0a\x02\x08\x01", b"\x0a\x0b\x08" + b"\xff" * 9 + b"\1",
                                      b"\x0a\x0b\x08" + b"\x80" * 9 + b"\1", b"\x0a\x05")] + ["!", "AAAA", ""]
CODES = list(range(17)) + [17, 99, 4294967296]


def every_code(peer, n):
    return peer.answer(CODES[n % len(CODES)], more=[("grpc-message", "what%20%zz%")])


def grpc_retry_info(peer, n):
    if n % 2:
        return peer.answer()
    return peer.answer((8, 14)[n // 2 % 2], more=[("grpc-status-details-bin", RETRY_INFO[n // 2 % len(RETRY_INFO)])])


def grpc_partial(peer, n):
    return peer.answer(0, PARTIAL[n % len(PARTIAL)])


def goes_away(peer, n):
    """GOAWAY before, in the middle of, or after an answer, for this stream or none."""
    away = (peer.stream if n % 2 else 0).to_bytes(4, "big") + (0, 11)[n // 2 % 2].to_bytes(4, "big") + b"enough"
    if n % 3 == 1:
        peer.begin_answer()
    if n % 3 == 2:
        peer.answer()
    peer.frame(faulty.GOAWAY, 0, 0, away)
    return False


def stream_resets(peer, n):
    if n % 2:
        peer.begin_answer()
    peer.frame(faulty.RST_STREAM, 0, peer.stream, (0, 2, 5, 7, 8, 11)[n % 6].to_bytes(4, "big"))
    return True


def no_grpc(peer, n):
    """Answers that are HTTP, and no gRPC; or gRPC that breaks its own rules."""
    kind = n % 7
    if kind == 0:
        peer.headers([(":status", "503"), ("content-type", "text/plain")], last=True)
    elif kind == 1:
        peer.headers([(":status", "200"), ("content-type", "text/html")], last=True)
    elif kind == 2:
        peer.begin_answer()
        peer.message(last=True) # no trailers
    elif kind == 3:
        peer.begin_answer(more=[("grpc-encoding", "gzip")])
        peer.message(b"no gzip", compressed=1)
        peer.trailers(0)
    elif kind == 4:
        peer.begin_answer()
        peer.data(b"\0\xff\xff\xff\xff1234") # longer than what follows
        peer.trailers(0)
    elif kind == 5:
        peer.begin_answer()
        peer.message()
        peer.message()
        peer.trailers("zero")
    else:
        peer.frame(9, 0, peer.stream, b"x") # CONTINUATION of nothing
        return False
    return True


def grpc_half(peer, n):
    if n % 3 == 0:
        peer.begin_answer()
    if n % 3 == 1:
        peer.send(b"\0\0\x20\1\4")
    return peer.reset() if n % 2 else False


def grpc_too_long(peer, n):
    peer.begin_answer(more=[("grpc-encoding", "gzip")] if n % 2 else ())
    if n % 2:
        bomb = faulty.gzip_bomb(40 << 20)
        peer.send(b"")
        body = (1).to_bytes(1, "big") + len(bomb).to_bytes(4, "big") + bomb
    else:
        body = bytes(1) + (8 << 20).to_bytes(4, "big") + bytes(1 << 20)
    for at in range(0, len(body), 16384):
        peer.data(body[at:at + 16384])
    return peer.trailers(0)


# --- the rounds ---

def certificate(name, *args):
    cert, key = (os.path.join(work, name + end) for end in (".pem", ".key"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-subj", "/CN=" + name]
                   + list(args), check=True, capture_output=True)
    return cert, key


def expired_certificate():
    """x509 alone takes a time in the past: openssl req does not."""
    request, (cert, key) = os.path.join(work, "old.csr"), (os.path.join(work, "old" + end) for end in (".pem", ".key"))
    extension = os.path.join(work, "old.ext")
    with open(extension, "w") as f:
        f.write("subjectAltName=IP:127.0.0.1\n")
    subprocess.run(["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", request, "-subj", "/CN=old"],
                   check=True, capture_output=True)
    subprocess.run(["openssl", "x509", "-req", "-in", request, "-signkey", key, "-out", cert, "-days", "-1", "-extfile", extension],
                   check=True, capture_output=True)
    return cert, key


def proxy_refuses(peer, n):
    return peer.answer((407, 502, 403, 200)[n % 4], b"no", ["Proxy-Authenticate: Basic realm=x"])


# name: (server, keys, fields of its ledger that have to count, fields that must not)
def http_round():
    def one(fault, some, none=()):
        return faulty.Server(fault), {}, some, none
    return {"every_status": one(every_status, ["exported", "rejected"]),
            "drips": one(drips, ["unconfirmed"], ["exported"]),
            "half": one(half, ["exported", "repeated"]),
            "resets": one(resets, ["exported", "repeated"]), # a third begins with "200 OK"
            "partial": one(partial, ["exported", "unconfirmed", "rejected"]),
            "retry_after": one(retry_after, ["exported"]),
            "wrong_type": one(wrong_type, ["exported", "rejected"]),
            "too_long": one(too_long, ["exported"])}


def grpc_round():
    def one(fault, some, none=()):
        return faulty.Server(fault, faulty.Http2), {"protocol": "grpc"}, some, none
    return {"every_code": one(every_code, ["exported", "rejected"]),
            "retry_info": one(grpc_retry_info, ["exported"]),
            "partial": one(grpc_partial, ["exported", "unconfirmed", "rejected"]),
            "goes_away": one(goes_away, []),
            "stream_resets": one(stream_resets, [], ["exported"]),
            "no_grpc": one(no_grpc, [], []),
            "half": one(grpc_half, ["unconfirmed"], ["exported"]),
            "too_long": one(grpc_too_long, [], [])}


def tls_round():
    good = certificate("good", "-days", "2", "-addext", "subjectAltName=IP:127.0.0.1")
    other = certificate("other", "-days", "2", "-addext", "subjectAltName=DNS:elsewhere")
    old = expired_certificate()
    def answers(peer, n):
        return peer.answer(200)
    def one(cert, some, none=(), **keys):
        return faulty.Server(answers, cert=cert), keys, some, none
    never = ["exported", "unconfirmed"]
    plain = faulty.Server(answers)
    mute = faulty.Server(lambda peer, n: False)
    return {"good": one(good, ["exported"], tls_ca_file=good[0]),
            "unknown": one(good, ["retry_expired"], never),
            "wrong_name": one(other, ["retry_expired"], never, tls_ca_file=other[0]),
            "expired": one(old, ["retry_expired"], never, tls_ca_file=old[0]),
            "no_tls": (plain, {"endpoint": plain.url.replace("http", "https")}, ["retry_expired"], never),
            "tls_only": one(good, ["unconfirmed"], ["exported"], endpoint="plain"),
            "mute": (mute, {}, ["unconfirmed"], ["exported"]),
            "nobody": (mute, {"endpoint": "https://127.0.0.1:1"}, ["retry_expired"], never)}


def proxy_round():
    proxy = faulty.Server(proxy_refuses)
    os.environ["http_proxy"] = os.environ["https_proxy"] = proxy.url
    return {"http": (proxy, {"endpoint": "http://198.51.100.1:4318"}, ["rejected"], []),
            "tunnel": (proxy, {"endpoint": "https://198.51.100.1:4318"}, ["retry_expired"], ["unconfirmed"]),
            "grpc": (proxy, {"endpoint": "http://198.51.100.1:4317", "protocol": "grpc"}, ["retry_expired"], ["exported"])}


def memory_now(pid):
    with open("/proc/%d/status" % pid) as f:
        kib = {line.split(":")[0]: line.split()[1] for line in f if line.startswith(("VmData:", "RssAnon:"))}
    return {k: int(v) << 10 for k, v in kib.items()}


def memory_of(pid):
    """Of net: its private writable memory, as the limit counts it, and what of it is resident, bytes: code that runs for
    the first time is not counted. The least of a second: an answer that is being unpacked has its memory for a moment."""
    least = memory_now(pid)
    for _ in range(20):
        time.sleep(0.05)
        least = {k: min(v, least[k]) for k, v in memory_now(pid).items()}
    return least


def field_of(dest, name):
    return dest[name] if name in dest else dest["lost"].get(name, 0)


def exporter_of(server, keys):
    keys = dict(keys)
    if keys.get("endpoint") == "plain":
        keys["endpoint"] = server.url.replace("https", "http")
    return {"endpoint": server.url, "timeout": "1s", "retry_initial": "50ms", "retry_max": "100ms", "retry_max_elapsed": "1s",
            "queue_size": "128K", **keys}


def check_fault(name, dest, server, some, none):
    shown = {k: dest[k] for k in ("exported", "unconfirmed", "retries")}
    shown.update({k: v for k, v in dest["lost"].items() if v})
    wrong = ["no " + f for f in some if not field_of(dest, f)] + [f for f in none if field_of(dest, f)]
    lib.ok(not wrong, "%s: requests end as they must%s (%s, %d requests)" % (name, wrong and ": " + ", ".join(wrong) or "", shown,
                                                                               server.requests))


def seen_enough(server, began):
    """A server whose certificate nobody accepts never sees a request."""
    return server.requests >= WARM_UP[0] or (not server.requests and time.monotonic() - began > 5)


def round_of(title, faults):
    d = lib.Otprofd(hz=97, interval="100ms", exporters={name: exporter_of(f[0], f[1]) for name, f in faults.items()})
    began = time.monotonic()
    lib.wait_for(lambda: all(seen_enough(f[0], began) for f in faults.values()), WARM_UP[1])
    net, before = d.worker("net"), memory_of(d.worker("net"))
    wrong, until = [], time.monotonic() + SECONDS
    while time.monotonic() < until:
        time.sleep(0.5)
        wrong += [w for w in [lib.imbalance(d.status())] if w]
    lib.ok(not wrong, "%s: the ledger balances at any time%s" % (title, wrong and ": " + wrong[0] or ""))
    lib.ok(d.worker("net") == net, "%s: net lives" % title)
    after = memory_of(net)
    for kind in before:
        lib.ok(after[kind] - before[kind] <= GROWTH_MAX, "%s: net's memory stays (%s, from %d to %d KiB)" % (
            title, kind, before[kind] >> 10, after[kind] >> 10))
    last = d.stop()
    lib.check_ledger(last, title, stopped=True)
    for name, (server, _, some, none) in faults.items():
        check_fault("%s, %s" % (title, name), last["ledger"]["destinations"][name], server, some, none)
        server.stop()


busy = lib.program("shares", 3600, stdout=subprocess.DEVNULL)
for title, faults in (("HTTP", http_round), ("gRPC", grpc_round), ("TLS", tls_round), ("proxy", proxy_round)):
    if not os.environ.get("ONLY") or os.environ["ONLY"] == title:
        round_of(title, faults())
lib.end(busy)
lib.finish()

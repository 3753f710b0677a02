# SPDX-License-Identifier: Apache-2.0
"""OTLP over gRPC, from the daemon in its sandbox to a receiver on gRPC's own
library: what arrives is what the files hold, in plain text, with TLS and a
client's certificate, through a proxy; what the receiver refuses is counted."""
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import threading
import time

import lib

SINK = os.path.join(lib.TOP, "tests", "lib", "grpc_sink.py")
PYTHON = "/usr/bin/python3" # Debian's, which has Debian's library
lib.need(subprocess.run([PYTHON, "-I", "-c", "import grpc"], capture_output=True).returncode == 0,
         "OTLP over gRPC", "Debian's python3-grpcio is not installed")

work = lib.scratch()
busy = lib.program("shares", 600, stdout=subprocess.DEVNULL)


def certificate(name, *args):
    cert, key = (os.path.join(work, name + end) for end in (".pem", ".key"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2",
                    "-subj", "/CN=" + name] + list(args), check=True, capture_output=True)
    return cert, key


class GrpcSink:
    def __init__(self, name, *args):
        self.dir = os.path.join(work, name)
        process = lib.start([PYTHON, SINK, self.dir] + [str(a) for a in args], stdout=subprocess.PIPE, text=True,
                            env=dict(os.environ, GRPC_VERBOSITY="NONE"))
        self.port = int(process.stdout.readline())
        self.url = "http%s://127.0.0.1:%d" % ("s" if "--cert" in args else "", self.port)

    def log(self):
        try:
            with open(os.path.join(self.dir, "requests.jsonl")) as f:
                return [json.loads(line) for line in f if line.endswith("\n")]
        except FileNotFoundError:
            return []

    def bodies(self):
        return lib.receiver.read_bodies(self.dir)


class Proxy:
    """Of HTTP, for CONNECT alone."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.asked = []
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            part = client.recv(1)
            if not part:
                return
            head += part
        method, target, _ = head.split(b"\r\n")[0].decode().split()
        self.asked.append((method, target))
        if method != "CONNECT":
            client.sendall(b"HTTP/1.1 405 Only CONNECT\r\nContent-Length: 0\r\n\r\n")
            return
        server = socket.create_connection((target.split(":")[0], int(target.split(":")[1])))
        client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        other = {client: server, server: client}
        while True:
            for sock in select.select([client, server], [], [])[0]:
                data = sock.recv(65536)
                if not data:
                    client.close()
                    server.close()
                    return
                other[sock].sendall(data)


def exporter(url, **more):
    return {"endpoint": url, "protocol": "grpc", "retry_initial": "100ms", "retry_max": "200ms",
            "retry_max_elapsed": "20s", **more}


def file_bodies(d):
    bodies = []
    for path in sorted(lib.profile_files(d.files)):
        with open(path, "rb") as f:
            bodies.append(f.read())
    return bodies


def delivers():
    """Byte for byte what the file destination has, in the same order."""
    cert, key = certificate("server", "-addext", "subjectAltName=IP:127.0.0.1")
    own, own_key = certificate("client")
    plain = GrpcSink("plain")
    secure = GrpcSink("secure", "--cert", cert, "--key", key, "--client-ca", own)
    busy_one = GrpcSink("busy", "--code", 8, "--times", 2, "--message", "slow%down", "--wait", 1)
    strict = GrpcSink("strict", "--code", 3, "--message", "no such thing")
    d = lib.Otprofd(hz=97, interval="500ms", exporters={
        "files": {"endpoint": "file://FILES"}, "plain": exporter(plain.url),
        "secure": exporter(secure.url, tls_ca_file=cert, tls_cert_file=own, tls_key_file=own_key),
        "busy": exporter("http://127.0.0.1:%d" % busy_one.port, compression="none"),
        "strict": exporter(strict.url), "untrusted": exporter(secure.url, retry_max_elapsed="1s")})
    time.sleep(6)
    untrusted = d.status()["ledger"]["destinations"]["untrusted"]
    last = d.stop()
    lib.check_ledger(last, "gRPC", stopped=True)
    dest = last["ledger"]["destinations"]
    bodies = file_bodies(d)
    for name, sink in (("plain", plain), ("secure", secure), ("busy", busy_one)):
        lib.ok(bodies and sink.bodies() == bodies and dest[name]["exported"] == dest["files"]["exported"],
               "%s: %d requests arrive as they were, in order" % (name, len(bodies)))
    headers = plain.log()[0]["headers"]
    lib.ok(headers["user-agent"].startswith("otprof/") and 0 < plain.log()[0]["left"] <= 5,
           "the receiver sees who calls, and the deadline (%.1f s)" % plain.log()[0]["left"])
    lib.ok(all(int(one["headers"]["content-length"]) < one["bytes"] for one in plain.log() if one["bytes"] > 2000),
           "requests are compressed on the wire")
    peers = {one["peer"] for one in secure.log()}
    lib.ok(len(peers) == 1, "calls with TLS share a connection: %s" % peers)
    times = [one["time"] for one in busy_one.log()]
    lib.ok(dest["busy"]["retries"] == 2 and times[2] - times[0] >= 2, "RESOURCE_EXHAUSTED with a RetryInfo is tried again after it")
    lib.ok(dest["strict"]["lost"].get("rejected", 0) == dest["files"]["exported"],
           "INVALID_ARGUMENT is a counted loss, of all samples")
    lib.ok("gRPC INVALID_ARGUMENT: no such thing" in d.log_text(), "and the log has the receiver's words")
    lib.ok(not untrusted["exported"] and "certificate" in d.log_text(), "an unknown certificate is not trusted: " + untrusted.get("last_error", ""))


def through_a_proxy():
    sink, proxy = GrpcSink("behind"), Proxy()
    os.environ["http_proxy"] = proxy.url
    os.environ["no_proxy"] = ""
    d = lib.Otprofd(hz=97, interval="500ms", exporters={"files": {"endpoint": "file://FILES"}, "behind": exporter(sink.url)})
    del os.environ["http_proxy"]
    time.sleep(3)
    last = d.stop()
    lib.check_ledger(last, "proxy", stopped=True)
    lib.ok(sink.bodies() and sink.bodies() == file_bodies(d), "through a proxy: all %d requests arrive" % len(sink.bodies()))
    lib.ok(set(proxy.asked) == {("CONNECT", "127.0.0.1:%d" % sink.port)}, "through a proxy: by tunnels alone")


NGINX = """
daemon off;
pid %(dir)s/nginx.pid;
error_log %(dir)s/error.log;
events {}
http {
  access_log %(dir)s/access.log;
  client_body_temp_path %(dir)s/body;
  server {
    listen 127.0.0.1:%(port)d ssl http2;
    ssl_certificate %(cert)s;
    ssl_certificate_key %(key)s;
    location /opentelemetry. { grpc_pass grpc://127.0.0.1:%(grpc)d; }
    location /v1development/ { proxy_pass %(http)s; }
  }
}
"""


def one_port():
    """Both protocols at one port with TLS: a connection of HTTP/1.1 is never used for a call, nor the other way round."""
    if not shutil.which("nginx"):
        lib.skip("both protocols at one port", "nginx is not installed")
        return
    cert, key = certificate("one", "-addext", "subjectAltName=IP:127.0.0.1")
    sink, http_sink, place = GrpcSink("one"), lib.Sink(), lib.scratch()
    names = {"dir": place, "port": lib.free_port(), "cert": cert, "key": key, "grpc": sink.port, "http": http_sink.url}
    conf = os.path.join(place, "nginx.conf")
    with open(conf, "w") as f:
        f.write(NGINX % names)
    server = lib.start(["nginx", "-p", place, "-c", conf], stderr=subprocess.DEVNULL)
    url = "https://127.0.0.1:%d" % names["port"]
    d = lib.Otprofd(hz=97, interval="500ms", exporters={
        "files": {"endpoint": "file://FILES"}, "http": dict(exporter(url, tls_ca_file=cert), protocol="http"),
        "grpc": exporter(url, tls_ca_file=cert)})
    time.sleep(4)
    last = d.stop()
    lib.end(server, signal.SIGTERM)
    lib.check_ledger(last, "one port", stopped=True)
    dest, bodies = last["ledger"]["destinations"], file_bodies(d)
    lib.ok(bodies and sink.bodies() == bodies == http_sink.requests(), "one port: all %d requests arrive, each way" % len(bodies))
    lib.ok(not dest["http"]["retries"] and not dest["grpc"]["retries"], "one port: at the first try")


delivers()
through_a_proxy()
one_port()
lib.end(busy)
lib.finish()

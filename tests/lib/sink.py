#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An OTLP/HTTP receiver that stores what it gets and can be told to misbehave.

    sink.py DIR [--port N] [options]     prints its port, runs until a signal

Every request that it accepts becomes DIR/NNNNNN.otlp (body, decompressed, in
the order of arrival; written under another name and renamed). Every request,
accepted or not, becomes one line of JSON in DIR/requests.jsonl: time, path,
headers (names in lower case), bytes on the wire and decompressed, what was
answered ("status", or 0 where it hung up) and the name of the stored file.

How it answers is one dictionary; options set it at start, a control file
(--control, JSON) replaces it whenever that file changes, a program that
imports this module sets Sink.behave:

    status       answer with this code (200)
    times        ... for so many requests, then as if there were no behaviour
    store        keep the body; by default where the answer is 200 or none
    delay        seconds before the answer
    drop         read all, then hang up without an answer
    retry_after  header of the answer, seconds or HTTP-date
    body         hexadecimal bytes of the answer
    body_type    its Content-Type (application/x-protobuf)
"""

import argparse
import gzip
import http.server
import json
import os
import signal
import ssl
import sys
import threading
import time

PATH = "/v1development/profiles"
BODY_MAX = 256 << 20


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # A head and a small body in one packet each: the next request must not wait for an acknowledgement.
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def do_GET(self):
        self.reply(405, {})

    def do_POST(self):
        sink = self.server.sink
        wire = self.read_body()
        if wire is None:
            self.close_connection = True
            return
        behave = sink.next_behaviour()
        problem, body = self.check(wire)
        status = problem or (0 if behave.get("drop") else behave.get("status", 200))
        store = body is not None and not problem and behave.get("store", status in (0, 200))
        sink.record(self, wire, body, status, store)
        if behave.get("delay"):
            sink.stopping.wait(behave["delay"])
        if status == 0:
            self.close_connection = True
            return
        self.reply(status, behave)

    def read_body(self):
        length = self.headers.get("Content-Length")
        if length is not None and length.isdigit() and int(length) <= BODY_MAX:
            body = self.rfile.read(int(length))
            return body if len(body) == int(length) else None
        return None

    def check(self, wire):
        """What a real receiver refuses: (status or None, decompressed body or None)."""
        if self.path != PATH:
            return 404, None
        if self.headers.get("Content-Type") != "application/x-protobuf":
            return 415, None
        encoding = self.headers.get("Content-Encoding")
        if encoding is None:
            return None, wire
        if encoding != "gzip":
            return 400, None
        try:
            return None, gzip.decompress(wire)
        except (OSError, EOFError, ValueError):
            return 400, None

    def reply(self, status, behave):
        body = bytes.fromhex(behave.get("body", ""))
        try:
            self.send_response(status)
            self.send_header("Content-Type", behave.get("body_type", "application/x-protobuf"))
            self.send_header("Content-Length", str(len(body)))
            if "retry_after" in behave:
                self.send_header("Retry-After", str(behave["retry_after"]))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        # A client that was killed in the middle is part of the tests.
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class Sink:
    """In a process of its own by main(), or in a thread of the importing program."""

    def __init__(self, directory, port=0, host="127.0.0.1", behave=None, control=None, cert=None, key=None):
        self.directory = directory
        self.behave = dict(behave or {})
        self.control = control
        self.control_seen = None
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        os.makedirs(directory, exist_ok=True)
        self.count = sum(name.endswith(".otlp") for name in os.listdir(directory))
        self.server = Server((host, port), Handler)
        self.server.sink = self
        if cert:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(cert, key)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.url = "%s://%s:%d" % ("https" if cert else "http", host, self.port)
        self.log_path = os.path.join(directory, "requests.jsonl")

    def start(self):
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()
        return self

    def stop(self):
        self.stopping.set()
        self.server.shutdown()
        self.server.server_close()

    def load_control(self):
        try:
            stat = os.stat(self.control)
            seen = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if seen != self.control_seen:
                with open(self.control) as f:
                    self.behave = json.load(f)
                self.control_seen = seen
        except (OSError, ValueError):
            pass  # not there, or half written: as before

    def next_behaviour(self):
        with self.lock:
            if self.control:
                self.load_control()
            behave = self.behave
            if "times" in behave:
                if behave["times"] <= 0:
                    return {}
                behave["times"] -= 1
            return behave

    def record(self, handler, wire, body, status, store):
        with self.lock:
            entry = {
                "time": time.time(),
                "path": handler.path,
                "headers": {k.lower(): v for k, v in handler.headers.items()},
                "wire_bytes": len(wire),
                "bytes": len(body) if body is not None else None,
                "status": status,
                "stored": None,
            }
            if store:
                self.count += 1
                entry["stored"] = "%06d.otlp" % self.count
                self.write(entry["stored"], body)
            with open(self.log_path, "a") as f:
                f.write(json.dumps(entry) + "\n")

    def write(self, name, body):
        path = os.path.join(self.directory, name)
        with open(path + ".tmp", "wb") as f:
            f.write(body)
        os.rename(path + ".tmp", path)

    def log(self):
        """All requests so far, as in the log."""
        return read_log(self.directory)

    def bodies(self):
        """All stored bodies, in order."""
        return read_bodies(self.directory)


def read_log(directory):
    try:
        with open(os.path.join(directory, "requests.jsonl")) as f:
            return [json.loads(line) for line in f if line.endswith("\n")]
    except FileNotFoundError:
        return []


def read_bodies(directory):
    bodies = []
    for name in sorted(os.listdir(directory)):
        if name.endswith(".otlp"):
            with open(os.path.join(directory, name), "rb") as f:
                bodies.append(f.read())
    return bodies


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("directory", metavar="DIR")
    p.add_argument("--host", default="127.0.0.1")
    p.add_argument("--port", type=int, default=0, help="0: any free one")
    p.add_argument("--control", metavar="FILE")
    p.add_argument("--cert", metavar="PEM", help="serve https")
    p.add_argument("--key", metavar="PEM")
    p.add_argument("--status", type=int)
    p.add_argument("--times", type=int)
    p.add_argument("--delay", type=float)
    p.add_argument("--drop", action="store_const", const=True)
    p.add_argument("--store", action=argparse.BooleanOptionalAction)
    p.add_argument("--retry-after")
    p.add_argument("--body")
    p.add_argument("--body-type")
    return p.parse_args()


def main():
    a = parse_arguments()
    keys = ("status", "times", "delay", "drop", "store", "retry_after", "body", "body_type")
    behave = {k: getattr(a, k) for k in keys if getattr(a, k) is not None}
    sink = Sink(a.directory, a.port, a.host, behave, a.control, a.cert, a.key)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    print(sink.port, flush=True)
    sink.server.serve_forever(0.05)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Receivers of OTLP on loopback that misbehave by script: HTTP/1.1 and the part
of HTTP/2 that gRPC needs, on plain sockets, because a library would not do what
they do. For tests; imported.

A fault is a function (peer, n): n counts the requests that were read whole,
from 0; it answers and returns whether the connection goes on. Each server
keeps the number of its requests."""

import gzip
import socket
import ssl
import struct
import threading

BODY_MAX = 64 << 20


class Ended(Exception):
    """The other side has closed."""


class Peer:
    def __init__(self, sock):
        self.sock = sock
        self.buffer = b""

    def fill(self):
        part = self.sock.recv(65536)
        if not part:
            raise Ended
        self.buffer += part

    def take(self, n):
        while len(self.buffer) < n:
            self.fill()
        taken, self.buffer = self.buffer[:n], self.buffer[n:]
        return taken

    def send(self, data):
        self.sock.sendall(data)

    def reset(self):
        """A TCP reset in place of an orderly end."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False


class Http(Peer):
    def read_request(self):
        while b"\r\n\r\n" not in self.buffer:
            self.fill()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        length = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        self.take(min(int(length[0].split(b":")[1]), BODY_MAX) if length else 0)

    def answer(self, status, body=b"", headers=(), content_type="application/x-protobuf"):
        lines = ["HTTP/1.1 %d X" % status, "Content-Length: %d" % len(body)] + list(headers)
        if content_type:
            lines.append("Content-Type: " + content_type)
        if status == 204:
            del lines[1]
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        return True


# Of HTTP/2: RFC 9113.
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4


def header(name, value):
    """A literal header field without indexing (RFC 7541), for lengths below 127."""
    name, value = name.encode(), value.encode()
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


class Http2(Peer):
    def __init__(self, sock):
        super().__init__(sock)
        self.begun = False
        self.stream = 0

    def frame(self, kind, flags, stream, payload=b""):
        self.send(struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload)

    def read_frame(self):
        head = self.take(9)
        return head[3], head[4], struct.unpack(">I", head[5:])[0] & 0x7fffffff, self.take(int.from_bytes(head[:3], "big"))

    def begin(self):
        self.take(24) # the preface
        self.frame(SETTINGS, 0, 0)
        self.begun = True

    def read_request(self):
        """Until a stream ends; flow control is opened as far as is needed."""
        if not self.begun:
            self.begin()
        while True:
            kind, flags, stream, payload = self.read_frame()
            if kind == SETTINGS and not flags & ACK:
                self.frame(SETTINGS, ACK, 0)
            elif kind == PING and not flags & ACK:
                self.frame(PING, ACK, 0, payload)
            elif kind == DATA and payload:
                for where in (0, stream):
                    self.frame(WINDOW_UPDATE, 0, where, struct.pack(">I", len(payload)))
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                self.stream = stream
                return

    def headers(self, fields, last=False):
        self.frame(HEADERS, END_HEADERS | (END_STREAM if last else 0), self.stream, b"".join(header(k, v) for k, v in fields))

    def begin_answer(self, status="200", content_type="application/grpc", more=()):
        self.headers([(":status", status), ("content-type", content_type)] + list(more))

    def message(self, data=b"", compressed=0, last=False):
        self.data(struct.pack(">BI", compressed, len(data)) + data, last)

    def data(self, data, last=False):
        self.frame(DATA, END_STREAM if last else 0, self.stream, data)

    def trailers(self, code, more=()):
        self.headers([("grpc-status", str(code))] + list(more), last=True)
        return True

    def answer(self, code=0, data=b"", more=()):
        self.begin_answer()
        if not code:
            self.message(data)
        return self.trailers(code, more)


class Server:
    """fault: see above. cert: a pair of files, for TLS."""

    def __init__(self, fault, peer=Http, cert=None):
        self.fault, self.peer = fault, peer
        self.requests = 0
        self.lock = threading.Lock()
        self.context = None
        if cert:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*cert)
            self.context.set_alpn_protocols(["h2", "http/1.1"])
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = "%s://127.0.0.1:%d" % ("https" if cert else "http", self.listener.getsockname()[1])
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                sock = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def next(self):
        with self.lock:
            self.requests += 1
            return self.requests - 1

    def serve(self, sock):
        try:
            with sock:
                sock.settimeout(30)
                peer = self.peer(self.context.wrap_socket(sock, server_side=True) if self.context else sock)
                peer.read_request()
                while self.fault(peer, self.next()):
                    peer.read_request()
                peer.sock.close()
        except (OSError, Ended, ValueError):
            pass # what a client does to such a server is part of the tests

    def stop(self):
        self.listener.close()


def gzip_bomb(size):
    return gzip.compress(bytes(size))

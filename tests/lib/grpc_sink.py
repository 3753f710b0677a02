#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An OTLP/gRPC receiver on gRPC's own library, that stores what it gets.

    grpc_sink.py DIR [--port N] [--cert PEM --key PEM [--client-ca PEM]]

prints its port and runs until a signal. Every request becomes DIR/NNNNNN.otlp
and a line of JSON in DIR/requests.jsonl: time, peer, headers (names in lower
case), bytes, code of the answer. The library is Debian's python3-grpcio, so
the interpreter is Debian's as well.

    --code N        answer with this code of gRPC (0)
    --times N       ... so many times, then with 0
    --message TEXT  of the answer
    --wait SECONDS  a RetryInfo of the answer
"""

import argparse
import concurrent.futures
import json
import os
import signal
import sys
import threading
import time

import grpc

METHOD = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
CODES = {code.value[0]: code for code in grpc.StatusCode}


def field(number, data):
    return bytes([number << 3 | 2, len(data)]) + data


def retry_info(code, message, seconds):
    """google.rpc.Status with a RetryInfo, for waits below 128 s."""
    info = field(1, b"type.googleapis.com/google.rpc.RetryInfo") + field(2, field(1, bytes([8, seconds])))
    return bytes([8, code]) + field(2, message.encode()) + field(3, info)


class Handler(grpc.GenericRpcHandler):
    def __init__(self, arguments):
        self.a = arguments
        self.lock = threading.Lock()
        self.count = 0

    def service(self, details):
        if details.method != METHOD:
            return None
        return grpc.unary_unary_rpc_method_handler(self.export)

    def next_code(self):
        if self.a.code and self.a.times != 0:
            self.a.times -= 1
            return self.a.code
        return 0

    def export(self, request, context):
        with self.lock:
            code = self.next_code()
            self.store(request, context, code)
        if code:
            if self.a.wait is not None:
                details = retry_info(code, self.a.message, self.a.wait)
                context.set_trailing_metadata((("grpc-status-details-bin", details),))
            context.abort(CODES[code], self.a.message)
        return b""

    def store(self, request, context, code):
        if not code:
            self.count += 1
            path = os.path.join(self.a.directory, "%06d.otlp" % self.count)
            with open(path + ".tmp", "wb") as f:
                f.write(request)
            os.rename(path + ".tmp", path)
        headers = {k: v if isinstance(v, str) else v.hex() for k, v in context.invocation_metadata()}
        with open(os.path.join(self.a.directory, "requests.jsonl"), "a") as f:
            f.write(json.dumps({"time": time.time(), "peer": context.peer(), "headers": headers, "bytes": len(request),
                                "left": context.time_remaining(), "code": code}) + "\n")


def read(path):
    if not path:
        return None
    with open(path, "rb") as f:
        return f.read()


def listen(server, a):
    address = "127.0.0.1:%d" % a.port
    if not a.cert:
        return server.add_insecure_port(address)
    credentials = grpc.ssl_server_credentials([(read(a.key), read(a.cert))], read(a.client_ca), bool(a.client_ca))
    return server.add_secure_port(address, credentials)


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("directory", metavar="DIR")
    p.add_argument("--port", type=int, default=0, help="0: any free one")
    for name in ("--cert", "--key", "--client-ca"):
        p.add_argument(name, metavar="PEM")
    p.add_argument("--code", type=int, default=0)
    p.add_argument("--times", type=int, default=-1)
    p.add_argument("--message", default="")
    p.add_argument("--wait", type=int)
    return p.parse_args()


def main():
    a = parse_arguments()
    os.makedirs(a.directory, exist_ok=True)
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4), handlers=(Handler(a),))
    port = listen(server, a)
    if not port:
        sys.exit("cannot listen on port %d" % a.port)
    server.start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    print(port, flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()

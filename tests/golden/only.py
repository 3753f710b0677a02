# SPDX-License-Identifier: Apache-2.0
"""Makes a golden case from a capture: keeps the samples, events and answers of
the given processes and of the files that they need, and drops the rest of the
host.
    only.py CAPTURE OUT.capture.gz PID...
Formats: userspace/daemon/engine/capture.h, userspace/process/host.h."""
import gzip
import struct
import sys

SAMPLE, EVENT, ANSWER, FILE = 2, 3, 4, 5
HOST_SCAN = 5
PERF_PID_AT = {1: 8, 3: 8, 4: 8, 7: 8, 10: 8}  # MMAP, COMM, EXIT, FORK, MMAP2


def scan_entries(data):
    at = 0
    while at + 16 <= len(data):
        pid, identity, maps = struct.unpack_from("<III", data, at)
        end = (at + 16 + identity + maps + 7) & ~7
        yield pid, data[at:end]
        at = end


def only(record, payload, pids):
    """The payload that stays, or None."""
    if record == SAMPLE:
        return payload if struct.unpack_from("<I", payload, 28)[0] in pids else None
    if record == EVENT:
        at = PERF_PID_AT.get(struct.unpack_from("<I", payload)[0])
        return payload if at and struct.unpack_from("<I", payload, at)[0] in pids else None
    if record == ANSWER:
        kind, pid = struct.unpack_from("<II", payload)
        path_len = struct.unpack_from("<I", payload, 28)[0]
        if kind != HOST_SCAN:
            return payload if pid in pids else None
        kept = b"".join(e for p, e in scan_entries(payload[40 + path_len:]) if p in pids)
        return payload[:36] + struct.pack("<I", len(kept)) + payload[40:40 + path_len] + kept
    return payload


def records(data):
    at = 32
    while at + 8 <= len(data):
        kind, length = struct.unpack_from("<II", data, at)
        yield kind, data[at + 8:at + 8 + length]
        at += 8 + (length + 7 & ~7)


def main():
    source, target, pids = sys.argv[1], sys.argv[2], {int(p) for p in sys.argv[3:]}
    with open(source, "rb") as f:
        data = f.read()
    out, held = [data[:32]], None
    for kind, payload in records(data):
        if kind == FILE:
            held = payload  # stays if the answer behind it does
            continue
        payload = only(kind, payload, pids)
        if kind == ANSWER and held is not None:
            if payload is not None:
                out.append(struct.pack("<II", FILE, len(held)) + held + bytes(-len(held) % 8))
            held = None
        if payload is not None:
            out.append(struct.pack("<II", kind, len(payload)) + payload + bytes(-len(payload) % 8))
    with gzip.GzipFile(target, "wb", mtime=0) as f:
        f.write(b"".join(out))


main()

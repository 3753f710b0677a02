# SPDX-License-Identifier: Apache-2.0
"""Replays every tests/golden/CASE.capture (or .capture.gz), reads the requests
that come out with the reader that is not our encoder, and compares the stacks
with CASE.ok: one line a stack, root first, with its count.
    run.py [--accept] [CASE...]
--accept writes CASE.ok anew, to be reviewed as a diff."""
import difflib
import glob
import gzip
import os
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
import lib  # noqa: E402

TIMEOUT = 120
BATCH, FLUSH = 1, 8  # userspace/daemon/engine/capture.h


def stacks(directory):
    counts = {}
    for s in lib.samples(directory):
        key = ";".join([lib.service(s)] + ["%s[k]" % n if t == "kernel" else n
                                           for n, t in reversed(list(zip(s.stack, s.types)))])
        counts[key] = counts.get(key, 0) + s.count
    return ["%s %d" % kv for kv in sorted(counts.items())]


def captured_ns(path):
    """Unix time at which a capture ended: a golden does not age."""
    with open(path, "rb") as f:
        data = f.read()
    at, last = 32, 0
    while at + 16 <= len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind in (BATCH, FLUSH):
            last = struct.unpack_from("<Q", data, at + 8)[0]
        at += 8 + (length + 7 & ~7)
    return last + struct.unpack_from("<Q", data, 24)[0]


def replay(case):
    """The lines of a replay, or why there are none."""
    d = lib.Otprofd(hz=97, daemon=False)
    path = os.path.join(HERE, case + ".capture")
    if not os.path.exists(path):
        with gzip.open(path + ".gz") as packed:
            path = os.path.join(d.dir, "capture")
            with open(path, "wb") as f:
                f.write(packed.read())
    p = subprocess.run([lib.OTPROFD, "-f", d.conf, "--replay", path], capture_output=True, text=True,
                       stdin=subprocess.DEVNULL, timeout=TIMEOUT)
    if p.returncode:
        return None, p.stderr.strip()[-500:]
    now = captured_ns(path)
    breaches = [b for f in lib.profile_files(d.files) for b in lib.breaches(lib.read(f), now_ns=now)]
    return stacks(d.files), "; ".join(breaches[:3])


def check(case, accept):
    lines, why = replay(case)
    if not lib.ok(lines and not why, "golden %s: it replays, the data model holds %s" % (case, why)):
        return
    path = os.path.join(HERE, case + ".ok")
    if accept:
        with open(path, "w") as f:
            f.write("\n".join(lines) + "\n")
    with open(path) as f:
        wanted = f.read().splitlines()
    differences = list(difflib.unified_diff(wanted, lines, case + ".ok", "replayed", lineterm="", n=0))
    lib.ok(not differences, "golden %s: %d stacks are what they were" % (case, len(wanted)))
    for line in differences[:30]:
        lib.note(line[:300])


accepting = "--accept" in sys.argv
cases = [a for a in sys.argv[1:] if a != "--accept"] or sorted(
    os.path.basename(f).split(".capture")[0] for f in glob.glob(os.path.join(HERE, "*.capture*")))
if not cases:
    lib.ok(False, "there is a golden case")
for name in cases:
    check(name, accepting)
lib.finish()

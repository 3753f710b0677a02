# SPDX-License-Identifier: Apache-2.0
"""Workers that were taken over: otprofd with one role replaced by an attack
(tests/programs/takeover). Two processes hold, mapped, named and in memory, what
must not reach a worker; the attack reports what did, and the monitor has to
answer meanwhile."""
import os
import shutil
import socket
import struct
import subprocess
import time

import lib

SECRET = b"takeover-secret-"
NOBODY = 65534


def elf(kind):
    """Three pages with an ELF header of this type, and the secret."""
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", kind, 62, 1, 0, 0, 0, 0, 64, 0, 0, 0, 0, 0)
    return (head + SECRET * 600).ljust(12288, b"\0")


def put(path, data, mode):
    with open(path, "wb") as f:
        f.write(data)
    os.chmod(path, mode)


def make_files(directory):
    shutil.copy(os.path.join(lib.PROGRAMS, "takeover-held"), os.path.join(directory, "held"))
    shutil.copy("/bin/true", os.path.join(directory, "program"))
    put(os.path.join(directory, "text"), SECRET * 600, 0o600)
    put(os.path.join(directory, "core"), elf(4), 0o755)
    put(os.path.join(directory, "private"), elf(3), 0o600)
    put(os.path.join(directory, "jitdump"), b"DTiJ" + SECRET * 600, 0o600)
    os.mkfifo(os.path.join(directory, "fifo"), 0o666)
    os.mknod(os.path.join(directory, "device"), 0o600 | 0o020000, os.makedev(1, 5))
    os.symlink("/etc/shadow", os.path.join(directory, "link"))
    put(os.path.join(directory, "app.pdb"), b"BSJB".ljust(100, b"\0"), 0o644)
    put(os.path.join(directory, "text.pdb"), SECRET * 600, 0o644)
    os.symlink("app.pdb", os.path.join(directory, "link.pdb"))
    os.mkfifo(os.path.join(directory, "fifo.pdb"), 0o666)
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(os.path.join(directory, "socket"))
    return sock


def hold(directory, *user):
    # In arguments and environment too: only those that name a service may leave the opener.
    p = lib.start([os.path.join(directory, "held"), directory, *user, "--token=" + SECRET.decode()] if user else
                  [os.path.join(directory, "held"), directory, "0", "--token=" + SECRET.decode()],
                  stdout=subprocess.PIPE, env={"PASSWORD": SECRET.decode()})
    lib.ok(p.stdout.readline() == b"ready\n", "a process of user %s holds what must not be reached" % (user or "root"))
    return p


def forge_perf_maps(root, other):
    """Root's file for the other user's process, and a link for root's."""
    paths = ["/tmp/perf-%d.map" % p.pid for p in (root, other)]
    os.symlink("/etc/shadow", paths[0])
    put(paths[1], SECRET, 0o644)
    return paths


def watch(d, over, patience):
    """Until the attack is over; the longest time that the monitor took to answer."""
    slowest, end = 0, time.monotonic() + patience
    while not over() and time.monotonic() < end:
        began = time.monotonic()
        if d.status() is None:
            return 1e9
        slowest = max(slowest, time.monotonic() - began)
        time.sleep(0.2)
    return slowest


def report(d):
    """What the attack itself has found."""
    lines = dict.fromkeys(d.log_text().splitlines()) # an indexer lives more than once
    for line in lines:
        if line.startswith(("ok - ", "not ok - ")):
            lib.ok(line.startswith("ok"), line.split(" - ", 1)[1])
    lib.ok("takeover: done" in lines, "the attack came to its end")


def restarts(s):
    return {role: w["restarts"] for role, w in s["workers"].items()}


def programs(role):
    """otprofd beside otprof-worker, that one of both taken over which has the role."""
    name = "otprofd" if role in ("net", "fetcher") else "otprof-worker"
    to = lib.scratch()
    for n in ("otprofd", "otprof-worker"):
        shutil.copy(os.path.join(lib.PROGRAMS, "takeover-" + role) if n == name else os.path.join(lib.BUILD, n),
                    os.path.join(to, n))
    return os.path.join(to, "otprofd")


def attack(role, seconds=0, reports=True, **config):
    """How often each worker was started again. seconds: the attack lasts so long at least."""
    lib.OTPROFD = programs(role)
    d = lib.Otprofd(hz=97, **config)
    end = time.monotonic() + seconds
    slowest = watch(d, lambda: time.monotonic() > end and (not reports or "takeover: done" in d.log_text()), 100)
    if reports:
        report(d)
    lib.ok(slowest < 5, "%s: the monitor answers all the time (%.3f s at most)" % (role, slowest))
    s = lib.wait_for(d.ready, 20)
    lib.ok(s, "%s: all workers are there at the end" % role)
    code = lib.end(d.process, 15, 60)
    lib.ok(code == 0, "%s: the daemon ends as ever (%s)" % (role, code))
    return restarts(s) if s else {}


work = lib.scratch()
os.chmod(work, 0o755)
keep = make_files(work)
root, other = hold(work), hold(work, str(NOBODY))
for path in forge_perf_maps(root, other):
    lib.at_end(os.unlink, path)

# The monitor kills an engine for each of the 24 malformed messages. net ends once, by what the engine sends it.
again = attack("engine")
lib.ok(again.get("engine") == 24 and again.get("net", 2) <= 1, "engine: nobody else is ended by it %s" % again)
again = attack("net")
lib.ok(again.get("engine") == 0 and again.get("net") == 0, "net: neither the engine nor net is ended by it %s" % again)
again = attack("decoder")
lib.ok(again.get("engine") == 0 and again.get("net") == 0, "decoder: neither the engine nor net is ended by it %s" % again)
again = attack("opener", seconds=8, reports=False)
lib.ok(again.get("engine") == 0 and again.get("net") == 0, "opener: neither the engine nor net is ended by it %s" % again)
cache = os.path.join(work, "symbols")
again = attack("indexer", seconds=5, symbols={"cache_dir": cache, "debug_dirs": work})
lib.ok(not any(again.values()), "indexer: no worker is ended by it %s" % again)
# A program that wants its debug file; nothing listens at the address that is said to have it.
lib.program("shares-stripped", 120, stdout=subprocess.DEVNULL)
put(os.path.join(work, "key"), SECRET * 10, 0o600)
put(os.path.join(work, "headers"), b"authorization: " + SECRET + b"\n", 0o600)
secrets = {"endpoint": "https://127.0.0.1:9", "headers_file": os.path.join(work, "headers"),
           # One file for both, as PEM files are.
           "tls_cert_file": os.path.join(work, "key"), "tls_key_file": os.path.join(work, "key")}
again = attack("fetcher", exporters={"away": secrets}, debuginfod={"urls": "http://127.0.0.1:9"},
               symbols={"cache_dir": os.path.join(lib.scratch(), "symbols")})
lib.ok(not any(again.values()), "fetcher: no worker is ended by it %s" % again)
lib.finish()

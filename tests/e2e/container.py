# SPDX-License-Identifier: Apache-2.0
"""The seccomp profile for containers: under it everything works that works
without, and what no part of otprof calls is refused."""
import os
import subprocess
import time

import lib

PROFILE = os.path.join(lib.TOP, "packaging", "container", "seccomp.json")
UNDER = [os.path.join(lib.BUILD, "seccomp_run"), PROFILE]
ATTEMPTS = """
import ctypes, errno, os, socket, sys
c = ctypes.CDLL(None, use_errno=True)
def call(*args):
    return c.syscall(*args) < 0 and ctypes.get_errno() == errno.EPERM
def sock(family, kind):
    try:
        socket.socket(family, kind).close()
    except PermissionError:
        return True
PTRACE, SETNS, KEXEC, KEYCTL, INIT_MODULE, UNSHARE, OPEN_BY_HANDLE = sys.argv[1:8]
refused = {"ptrace": call(int(PTRACE), 16, 1, 0, 0), "setns": call(int(SETNS), -1, 0), "kexec": call(int(KEXEC), 0, 0, 0, 0),
           "keyctl": call(int(KEYCTL), 0, -3, 0), "a module": call(int(INIT_MODULE), 0, 0, 0),
           "a user namespace": call(int(UNSHARE), 0x10000000), "a file by handle": call(int(OPEN_BY_HANDLE), -1, 0, 0),
           "a packet socket": sock(17, socket.SOCK_RAW), "a vsock socket": sock(40, socket.SOCK_STREAM)}
print(",".join(sorted(k for k, v in refused.items() if not v)))
"""
NUMBERS = {"x86_64": (101, 308, 246, 250, 175, 272, 304), "aarch64": (117, 268, 104, 219, 105, 97, 265)}


def refusals():
    numbers = NUMBERS.get(os.uname().machine)
    if not numbers:
        lib.skip("calls that nobody needs are refused", "their numbers are not known for this processor")
        return
    p = subprocess.run(UNDER + ["python3", "-c", ATTEMPTS] + [str(n) for n in numbers], capture_output=True, text=True)
    lib.ok(p.returncode == 0 and not p.stdout.strip(), "calls that nobody needs are refused %s" % (p.stdout.strip() or p.stderr[-300:]))


def daemon():
    busy = lib.program("shares", 60, stdout=subprocess.DEVNULL)
    away = lib.Sink()
    d = lib.Otprofd(argv_prefix=UNDER, exporters={"files": {"endpoint": "file://FILES"}, "away": {"endpoint": away.url}})
    lib.wait_for(lambda: away.requests() and lib.profile_files(d.files), 15)
    time.sleep(2)
    p = subprocess.run(UNDER + [lib.OTPROF, "explain", "--runtime-dir", d.runtime, str(busy.pid)], capture_output=True, text=True)
    restarts = [w["restarts"] for w in d.status()["workers"].values()]
    last = d.stop()
    said = [line for line in d.log_text().splitlines() if "not permitted" in line or "no mount" in line]
    named = [s for s in lib.samples(d.files) if lib.service(s) == "shares" or lib.executable(s) == "shares"]
    lib.ok(p.returncode == 0 and "Stacks" in p.stdout, "otprof explain answers under the profile %s" % p.stderr.strip())
    lib.ok(named and all(last["ledger"]["exported"][x] for x in ("files", "away")), "a program is sampled, and sent to both destinations")
    lib.ok(not said and not any(restarts), "nothing that otprofd does is refused: %s" % said[:3])
    lib.check_ledger(last, "container", stopped=True)


refusals()
daemon()
lib.finish()

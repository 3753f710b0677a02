# SPDX-License-Identifier: Apache-2.0
"""Stack bytes are other people's secrets: a program that works with one on its
stack is profiled, and the secret is looked for in a capture with default
options, in what a crash of each process leaves, in cores that root takes of
them, in the log, the status and the exported data. So are two more, in its
arguments and its environment."""
import os
import shutil
import subprocess
import time

import lib

SECONDS = 6


def make_secret():
    """Half of its 8-byte words would do to give it away: none may be found."""
    return os.urandom(16).hex().encode()


STACK, ARGUMENT, VARIABLE = make_secret(), make_secret(), make_secret()


def pieces(secret):
    return [secret[i:i + 8] for i in range(0, len(secret), 8)]


def found(data):
    """Which of them data gives away; addresses and hashes are no such runs of hexadecimal digits."""
    named = (("stack", STACK), ("argument", ARGUMENT), ("environment", VARIABLE))
    return [name for name, secret in named if any(p in data for p in pieces(secret))]


def victim():
    environment = dict(os.environ, SECRET_TOKEN=VARIABLE.decode())
    p = lib.program("secret", "--password", ARGUMENT.decode(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    env=environment)
    p.stdin.write(STACK)
    p.stdin.flush()
    p.stdout.readline()
    return p


def check(data, what, least=1):
    lib.ok(len(data) >= least and not found(data), "%s: no secret in %d bytes%s" % (what, len(data), "".join(
        ", but " + name for name in found(data))))


def processes(d):
    """Monitor and all its workers, by the names that they go by."""
    with open("/proc/%d/task/%d/children" % (d.pid, d.pid)) as f:
        pids = [d.pid] + [int(p) for p in f.read().split()]
    names = {}
    for pid in pids:
        with open("/proc/%d/comm" % pid) as f:
            names["%s %d" % (f.read().strip(), pid)] = pid
    return names


def core_limit(pid):
    with open("/proc/%d/limits" % pid) as f:
        return next(line.split()[4:6] for line in f if line.startswith("Max core file size"))


def dumpable(pid):
    """What may not be dumped has files in /proc that belong to root, whoever runs it; of root's own only the limit tells."""
    return os.stat("/proc/%d/environ" % pid).st_uid == os.stat("/proc/%d" % pid).st_uid and \
        os.stat("/proc/%d" % pid).st_uid != 0


def check_crash(d):
    for name, pid in processes(d).items():
        lib.ok(core_limit(pid) == ["0", "0"] and not dumpable(pid), "%s: a crash leaves no core" % name)


def check_cores(d):
    if not shutil.which("gcore"):
        lib.skip("cores taken by root", "gcore (gdb) is not installed")
        return
    directory = lib.scratch()
    for name, pid in processes(d).items():
        path = os.path.join(directory, "core")
        subprocess.run(["gcore", "-o", path, str(pid)], capture_output=True, timeout=60)
        try:
            check(lib.read("%s.%d" % (path, pid)), "%s: core taken by root" % name, 4096)
            os.unlink("%s.%d" % (path, pid))
        except OSError as e:
            # A decoder ends when nobody has asked it for two seconds; those of the others are taken first.
            lib.ok("decoder" in name and not lib.alive(pid), "%s: it ended before a core was taken, or none could be: %s" % (name, e))


def main():
    capture = os.path.join(lib.scratch(), "capture")
    d = lib.Otprofd(hz=199, extra_args=["--capture", capture])
    p = victim()
    time.sleep(SECONDS)
    check_crash(d)
    check_cores(d)
    check(repr(d.status()).encode(), "status")
    d.stop()
    lib.end(p)
    ours = [s for s in lib.samples(d.files) if lib.executable(s) == "secret"]
    named = [s for s in ours if "secret_leaf" in s.stack and "secret_work" in s.stack and "main" in s.stack]
    lib.ok(len(named) > 0 and sum(s.count for s in named) >= 0.9 * sum(s.count for s in ours),
           "the program with the secret is profiled (%d samples)" % sum(s.count for s in ours))
    check(lib.read(capture), "capture with default options", 100000)
    lib.ok(os.stat(capture).st_mode & 0o777 == 0o600, "the capture is its owner's alone")
    check(d.log_text().encode(), "log")
    check(b"".join(lib.read(f) for f in lib.profile_files(d.files)), "exported data", 1000)
    lib.finish()


main()

# SPDX-License-Identifier: Apache-2.0
"""Two witnesses that share nothing with the unwinder: on random stops of five
programs gdb sees the same stack, address by address, and readelf reads the
same rules out of the same files. STOPS=40 is for the impatient."""
import os
import re
import shutil
import subprocess
import sys

import lib
import workloads

STOPS = int(os.environ.get("STOPS", "200"))
# Seconds that a program is kept busy: gdb needs some 0.05 a stop, more where the CPU is shared.
BUSY = 30 + STOPS // 2
PYTHON = """
def tree(n):
    return (tree(n - 1), tree(n - 1)) if n else ()
def count(t):
    return 1 + sum(map(count, t))
while True:
    sorted((str(count(tree(i % 12))) for i in range(60)), key=lambda s: s[::-1])
"""


def redis():
    return workloads.redis(BUSY)[0]


def python():
    return workloads.quiet(["/usr/bin/python3", "-c", PYTHON])


def cc1():
    """One compiler process that has work for long enough."""
    source = os.path.join(lib.scratch(), "long.c")
    with open(source, "w") as f:
        for i in range(15000):
            f.write("int f%d(int a, int b) { int s = 0; for (int i = 0; i < b; i++) switch ((a ^ i) %% 5) {"
                    " case 0: s += a * %d; break; case 1: s ^= i << 3; break; case 2: s -= b / (i + 1); break;"
                    " default: s = s * 31 + a; } return s; }\n" % (i, i + 3))
    path = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True).stdout.strip()
    return workloads.quiet([path, "-quiet", "-O2", source, "-o", "/dev/null"])


def openssl():
    return workloads.quiet(["openssl", "speed", "-seconds", str(BUSY // 20), "rsa2048", "aes-128-cbc", "sha256", "ecdsap256",
                            "ecdhp256", "sha512", "rsa4096"])


def recursion():
    return lib.program("shares", BUSY, stdout=subprocess.DEVNULL)


PROGRAMS = (
    ("redis", ("redis-server", "redis-benchmark", "redis-cli"), redis),
    ("python3", ("/usr/bin/python3",), python),
    ("cc1", ("gcc",), cc1),
    ("openssl", ("openssl",), openssl),
    ("recursion", (), recursion),
)


def against_gdb(name, begin):
    p = begin()
    lib.time.sleep(0.3)
    told = subprocess.run([os.path.join(lib.HERE, "compare_gdb.sh"), os.path.join(lib.BUILD, "unwind_stops"), str(STOPS),
                           str(p.pid)], capture_output=True, text=True)
    lib.end(p)
    m = re.search(r"^(\d+) stops, (\d+) equal; (\d+) frames", told.stdout, re.M)
    stops, equal, frames = (int(x) for x in m.groups()) if m else (0, 0, 0)
    lib.ok(stops == STOPS and equal == stops,
           "%s: the stack is gdb's on %d of %d random stops (%d frames)" % (name, equal, STOPS, frames))
    if told.returncode or not m:
        lib.note("\n# ".join((told.stdout + told.stderr).splitlines()[:60]))


def against_readelf(path):
    told = subprocess.run([sys.executable, "-B", os.path.join(lib.HERE, "compare_readelf.py"),
                           os.path.join(lib.BUILD, "unwind_rows"), path], capture_output=True, text=True)
    first, *rest = told.stdout.splitlines() or [told.stderr[-300:]]
    lib.ok(told.returncode == 0, "%s: readelf reads the same unwind rules:%s" % (os.path.basename(path), first.rpartition(":")[2]))
    if rest:
        lib.note("\n# ".join(rest))


def libraries():
    """The C library and the loader, as the project's own binary uses them."""
    text = subprocess.run(["ldd", lib.OTPROFD], capture_output=True, text=True).stdout
    return [os.path.realpath(x) for x in re.findall(r"(/\S*/(?:libc\.so\.6|ld-linux-\S+))", text)]


if workloads.have("gdb"):
    for program, tools, start in PROGRAMS:
        if workloads.have(*tools):
            against_gdb(program, start)
        else:
            lib.skip("%s: the stack is gdb's" % program, "not installed")
else:
    lib.skip("stacks beside gdb's", "gdb is not installed")
if workloads.have("readelf"):
    for file in libraries() + [lib.OTPROFD]:
        against_readelf(file)
else:
    lib.skip("unwind rules beside readelf's", "binutils is not installed")
lib.finish()

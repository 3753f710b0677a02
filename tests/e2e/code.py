# SPDX-License-Identifier: Apache-2.0
"""Code that is not the usual: written by the program itself, and 32 bits wide."""
import os
import platform
import subprocess
import time

import lib

lib.need(platform.machine() == "x86_64", "unusual code", "written for x86-64")

HZ = 499
COMPAT = """
__attribute__((noinline)) static void spin32(void) { for (volatile unsigned i = 0; i < 300000000u; i++); }
void _start(void) { spin32(); __asm__ volatile("int $0x80" :: "a"(1), "b"(0)); for (;;); }
"""


def build_compat(where):
    path = os.path.join(where, "compat")
    argv = ["gcc", "-m32", "-O1", "-nostdlib", "-static", "-fno-pie", "-no-pie", "-x", "c", "-o", path, "-"]
    return path if subprocess.run(argv, input=COMPAT, text=True, capture_output=True).returncode == 0 else None


def check_caller(samples, caller):
    stacks = [(lib.user_part(s), s.count) for s in samples if lib.service(s) == "generated"]
    mine = [(names, marker, n) for (names, marker), n in stacks if caller in names]
    count = sum(n for _, _, n in mine)
    whole = sum(n for names, marker, n in mine if not marker and names[-1] == "_start")
    lib.ok(count > 0.25 * 3 * HZ / 3, "%s: %d samples" % (caller, count))
    lib.ok(count and whole >= 0.99 * count, "%s: %d of %d end at _start" % (caller, whole, count))


compat = build_compat(lib.scratch())
d = lib.Otprofd(hz=HZ)
time.sleep(1)
subprocess.run([os.path.join(lib.PROGRAMS, "generated"), "3"], check=True)
if compat:
    subprocess.run([compat], check=True)
time.sleep(1.5)
last = d.stop()
samples = lib.samples(d.files)
for name in ("from_memory", "from_moved", "from_memfd"):
    check_caller(samples, name)
if compat:
    mine = [(lib.user_part(s), s.count) for s in samples if lib.service(s) == "compat"]
    count = sum(n for _, n in mine)
    known = sum(n for part, n in mine if part == (["spin32"], "[cut: 32-bit code]"))
    lib.ok(count and known >= 0.95 * count, "32-bit code is named where it runs, and says why no further (%d of %d)" % (
        known, count))
else:
    lib.skip("32-bit code", "gcc -m32 does not work here")
lib.check_ledger(last, "code", stopped=True)
lib.finish()

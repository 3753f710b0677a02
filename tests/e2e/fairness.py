# SPDX-License-Identifier: Apache-2.0
"""One user asks for all of the work that users share: files whose index takes
seconds each, as many as may wait, and new programs all the time, whose files
have to be opened. Others are sampled and named as if that user were not there."""
import os
import re
import subprocess
import time

import bystander
import lib

NOBODY = 65534
HZ = lib.rate(199)
SLOW_FILES, NEW_PROGRAMS, DEPTH = 32, 200, 50000
WATCH_S, LINES_S = 8, 60
# Everything else on this machine has files to index too.
ONLY = {"include": "exe:early exe:late exe:slow* exe:new*"}
SPIN = """
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
volatile unsigned long sum;
__attribute__((noinline)) void slow_work(void) { for (int i = 0; i < 1000000; i++) sum += i; }
int main(int argc, char **argv) { for (time_t end = time(NULL) + atoi(argv[1]); time(NULL) < end; usleep(100000)) slow_work(); }
"""
# One function with inlined calls, each within the one before.
DEBUG = """
	.section .debug_abbrev,"",@progbits
	.uleb128 1, 0x11, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0
	.uleb128 2, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0
	.uleb128 3, 0x1d, 1, 0x31, 0x13, 0x11, 0x01, 0x12, 0x07, 0x58, 0x0b, 0x59, 0x0b, 0, 0
	.byte 0
	.section .debug_info,"",@progbits
unit:	.long unit_end - unit_begin
unit_begin: .value 4
	.long .debug_abbrev
	.byte 8
	.uleb128 1
	.asciz "slow.c"
	.quad slow_work
	.quad 16
	.uleb128 2
	.asciz "slow_work"
	.quad slow_work
	.quad 16
inlined: .rept %d
	.uleb128 3
	.long inlined - unit
	.quad slow_work
	.quad 16
	.byte 1, 7
	.endr
	.fill %d, 1, 0
unit_end:
	.section .note.GNU-stack,"",@progbits
"""


def slow_program(work):
    """Its bytes, and those of its build-id."""
    path = os.path.join(work, "slow")
    for name, text in (("slow.c", SPIN), ("debug.s", DEBUG % (DEPTH, DEPTH + 2))):
        with open(os.path.join(work, name), "w") as f:
            f.write(text)
    subprocess.run(["gcc", "-O1", "-static", "-Wl,--build-id", "-o", path, work + "/slow.c", work + "/debug.s"], check=True)
    notes = subprocess.run(["readelf", "-n", path], check=True, capture_output=True, text=True).stdout
    return lib.read(path), bytes.fromhex(re.search("Build ID: ([0-9a-f]+)", notes).group(1))


class Flood:
    """Of one user, until end()."""

    def __init__(self):
        self.dir = lib.scratch()
        program, build_id = slow_program(self.dir)
        self.slow = [self.put("slow%d" % i, program.replace(build_id, os.urandom(len(build_id)))) for i in range(SLOW_FILES)]
        short = lib.read(os.path.join(lib.PROGRAMS, "short-static"))
        self.new = [self.put("new%d" % i, short) for i in range(NEW_PROGRAMS)]

    def put(self, name, data):
        path = os.path.join(self.dir, name)
        with open(path, "wb") as f:
            f.write(data)
        os.chmod(path, 0o755)
        os.chown(path, NOBODY, NOBODY)
        return path

    def begin(self):
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "stdout": subprocess.DEVNULL}
        for path in self.slow:
            lib.start([path, "60"], **user)
        lib.start(["sh", "-c", 'while :; do for f; do "$f" 1; done; done', "sh", *self.new], **user)


def made_between(cache, since, until):
    """Indexes, whoever's."""
    times = [os.stat(os.path.join(cache, name)).st_mtime for name in os.listdir(cache) if not name.startswith(".")]
    return sum(since < t < until for t in times)


def turn_comes(sink, late, cache):
    """However slow this machine is: who waits for an index waits for the one that is being made, not for those that wait."""
    lined = lib.wait_for(lambda: bystander.named_at(sink, late, True), LINES_S, 0.5)
    before = lined and made_between(cache, late.began, lined) - 1
    lib.ok(lined and before <= 3, "fairness: the index of who starts meanwhile is made after %s of the flood's, its lines are there in %s" % (
        before, lined and "%.1f s" % (lined - late.began)))


def main():
    sink = lib.Sink()
    cache = os.path.join(lib.scratch(), "symbols")
    d = lib.Otprofd(hz=HZ, exporters={"sink": {"endpoint": sink.url}}, profile=bystander.PROFILE,
                    symbols={"cache_dir": cache}, targets=ONLY)
    others = bystander.Bystanders("fairness", d, sink, HZ)
    flood = Flood()
    flood.begin()
    others.attack_began()
    turn_comes(sink, others.late, cache)
    others.judge(WATCH_S)
    taken = sum(s.count for _, samples in bystander.requests(sink) for s in samples if lib.executable(s).startswith(("slow", "new")))
    made = made_between(cache, others.began, time.time())
    lib.ok(taken > 0 and made > 1, "fairness: the flood's programs are sampled too (%d), and have indexes (%d)" % (taken, made))


main()
lib.finish()

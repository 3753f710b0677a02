# SPDX-License-Identifier: Apache-2.0
"""Debug information that means harm: the process that reads it ends in bounded
time and memory, and the host's other names are not touched. Run under the
limits that the indexer has (userspace/daemon/sandbox/sandbox.c)."""
import os
import random
import resource
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import lib  # noqa: E402

TOOL = os.path.join(lib.BUILD, "symbol_index")
MUTATIONS = int(os.environ.get("OTPROF_MUTATIONS", "150"))
SECONDS = 20
MEMORY_KIB = 64 * 1024

HEAD = """
	.text
	.globl main
	.type main, @function
main:	.fill 4096, 1, 0x90
	ret
	.size main, . - main
end:
	.section .debug_abbrev,"",@progbits
	.uleb128 1, 0x11, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0x10, 0x17, 0, 0
	.uleb128 2, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0
	.uleb128 3, 0x1d, 1, 0x31, 0x13, 0x11, 0x01, 0x12, 0x07, 0x58, 0x0b, 0x59, 0x0b, 0, 0
	.uleb128 4, 0x0b, 1, 0, 0
	.uleb128 5, 0x2e, 1, 0x47, 0x13, 0x11, 0x01, 0x12, 0x07, 0, 0
	.uleb128 6, 0x2e, 1, 0x03, 0x0e, 0x11, 0x01, 0x12, 0x07, 0, 0
	.byte 0
	.section .debug_info,"",@progbits
cu:	.long cu_end - cu_begin
cu_begin: .value 4
	.long .debug_abbrev
	.byte 8
	.uleb128 1
	.asciz "hostile.c"
	.quad main
	.quad end - main
	.long line
"""
TAIL = """
	.byte 0
cu_end:
	.section .debug_line,"",@progbits
line:	.long line_end - line_begin
line_begin: .value 4
	.long head_end - head_begin
head_begin: .byte 1, 1, 1, -5, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1
	.byte 0
	.asciz "hostile.c"
	.uleb128 0, 0, 0
	.byte 0
head_end:
	.byte 0, 9, 2
	.quad main
%s
	.byte 0, 1, 1
line_end:
	.section .note.GNU-stack,"",@progbits
"""
FUNCTION = "	.uleb128 %d\n	%s\n	.quad main\n	.quad end - main\n"
INLINED = "	.uleb128 3\n	.long %s - cu\n	.quad main\n	.quad 16\n	.byte 1, 7\n"


def source(body, lines="	.byte 0x14\n", more=""):
    return HEAD + body + TAIL % lines + more


def named(text):
    return FUNCTION % (2, '.asciz "%s"' % text)


CASES = {
    "origin that is itself": source(named("f") + "self:" + INLINED % "self" + "	.byte 0, 0\n"),
    "origins that are each other": source(named("f") + "one:" + INLINED % "two" + "two:" + INLINED % "one" + "	.byte 0, 0, 0\n"),
    "specification that is itself": source("self:" + FUNCTION % (5, ".long self - cu") + "	.byte 0\n"),
    "blocks 100,000 deep": source(named("f") + "	.fill 100000, 1, 4\n" + "	.fill 100001, 1, 0\n"),
    "a million inlined calls": source(named("f") + "x:\n	.rept 200000\n" + INLINED % "x" + "	.byte 0\n	.endr\n	.byte 0\n"),
    "inlined calls 50,000 deep": source(named("f") + "x:\n	.rept 50000\n" + INLINED % "x" + "	.endr\n	.fill 50001, 1, 0\n"),
    "four million lines": source(named("f") + "	.byte 0\n", "	.fill 4000000, 1, 0x22\n"),
    "lines that go back and forth": source(named("f") + "	.byte 0\n", "	.rept 300000\n	.byte 2, 0x80, 0x20, 1, 0, 9, 2\n	.quad main\n	.endr\n"),
    "a name of 4 megabytes": source(FUNCTION % (6, ".long name") + "	.byte 0\n", more="	.section .debug_str,\"MS\",@progbits,1\nname:	.fill 4194304, 1, 0x41\n	.byte 0\n"),
    "tables that count to 2^64": source(named("f") + "	.byte 0\n", "	.byte 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f, 2\n"),
}


def limits():
    resource.setrlimit(resource.RLIMIT_DATA, (40 << 20, 40 << 20))
    resource.setrlimit(resource.RLIMIT_CPU, (120, 120))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def index(path, work):
    """Seconds, result line or how it ended, resident kilobytes (0: it did not say)."""
    start = time.monotonic()
    p = subprocess.run([TOOL, "make", path, os.path.join(work, "index")], capture_output=True, text=True,
                       preexec_fn=limits, timeout=120)
    rss = [int(w) for w in p.stdout.split("rss_kib ")[1:]]
    return time.monotonic() - start, p.stdout.strip() or "ended with %d" % p.returncode, rss[0] if rss else 0


def assemble(text, work, *options):
    s, out = os.path.join(work, "h.s"), os.path.join(work, "hostile")
    with open(s, "w") as f:
        f.write(text)
    subprocess.run(["gcc", *options, "-o", out, s], check=True, capture_output=True)
    return out


def bomb(work):
    """400 MB of zeros in a section that packs to some hundred kilobytes."""
    text = source(named("f") + "	.byte 0\n", more='	.section .debug_loc,"",@progbits\n	.zero 419430400\n')
    return assemble(text, work, "-Wl,--compress-debug-sections=zlib")


def debug_sections(path):
    out = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        f = line.replace("[ ", "[").split()
        if len(f) > 6 and f[1].startswith(".debug_"):
            yield int(f[4], 16), int(f[5], 16)


def mutations(path, work, rng):
    with open(path, "rb") as f:
        whole = f.read()
    ranges = list(debug_sections(path))
    for _ in range(MUTATIONS):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 3, 20))):
            start, size = rng.choice(ranges)
            data[start + rng.randrange(size)] = rng.choice((0, 0xff, 0x80, 0x7f, rng.randrange(256)))
        out = os.path.join(work, "mutant")
        with open(out, "wb") as f:
            f.write(data)
        yield index(out, work)


def main():
    work = lib.scratch()
    for name, text in CASES.items():
        seconds, said, rss = index(assemble(text, work), work)
        lib.ok(seconds < SECONDS and rss < MEMORY_KIB, "debug information, %s: %.1f s, %d MiB" % (name, seconds, rss >> 10))
        lib.note(said[:150])
    seconds, said, rss = index(bomb(work), work)
    lib.ok(seconds < SECONDS and rss < MEMORY_KIB, "debug information, a bomb of 400 MB: %.1f s, %d MiB" % (seconds, rss >> 10))
    lib.note(said[:150])
    runs = list(mutations(TOOL, work, random.Random(7)))
    slowest, largest = max(r[0] for r in runs), max(r[2] for r in runs)
    ended = [r[1] for r in runs if r[1].startswith("ended")]
    lib.ok(slowest < SECONDS and largest < MEMORY_KIB, "debug information, %d mutations: %.1f s, %d MiB at most, %d did not survive"
           % (len(runs), slowest, largest >> 10, len(ended)))
    shutil.rmtree(work, ignore_errors=True)


main()
lib.finish()

# SPDX-License-Identifier: Apache-2.0
"""otprof status beside a daemon that runs: the page, JSON, and the live view on
a terminal - its own screen, the window's size, the way out."""
import os
import re
import signal
import subprocess
import time

import lib
from terminal import Terminal


def rows_of(frame):
    """The last whole frame as rows of text."""
    last = frame.split(b"\x1b[H")[-1]
    text = re.sub(rb"\x1b\[[?0-9;]*[A-Za-z]", b"", last).decode(errors="replace")
    return [row.rstrip("\r") for row in text.split("\r\n")]  # the terminal adds one of its own


def page(d):
    p = subprocess.run([lib.OTPROF, "status", "--runtime-dir", d.runtime], capture_output=True, text=True)
    lib.ok(p.returncode == 0 and not p.stderr, "a page is printed (%d)" % p.returncode)
    for section in ("Sampler", "Samples: taken", "Quality", "Cost", "Limits", "Now"):
        lib.ok("\n" + section in p.stdout, "it has a section %s" % section)
    lib.ok(re.search(r"^  kernel +[0-9.]+ % of one CPU, [0-9.]+ µs a sample$", p.stdout, re.M),
           "kernel time is known without bpf_stats_enabled")
    for row in (r"  all for files +[0-9.]+ % of one CPU", r"  +credit +[0-9.]+.* of CPU time left", r"  resting +[0-9]"):
        lib.ok(re.search("^" + row, p.stdout, re.M), "it has a row like %s" % row)
    # perf's ticks have no bound.
    bounded = re.search(r"^    first copy +.*\b[0-9]+ µs$", p.stdout, re.M)
    lib.ok(bool(bounded) == (lib.SOURCE in ("bpf", "kmod")), "the bound of a first copy is shown where there is one: %s" % (
        bounded and bounded[0]))


def live(d):
    t = Terminal([lib.OTPROF, "status", "-w0.5s", "--runtime-dir", d.runtime], 20, 60)
    first = t.read(1.8)
    lib.ok(b"\x1b[?1049h" in first and b"\x1b[?25l" in first, "the live view has a screen of its own")
    lib.ok(first.count(b"\x1b[H") >= 3, "it is renewed every half second (%d frames)" % first.count(b"\x1b[H"))
    rows = rows_of(first)
    lib.ok(len(rows) == 20 and max(map(len, rows)) <= 60, "it fits a window of 20 rows and 60 columns (%d, %d)" % (
        len(rows), max(map(len, rows))))
    lib.ok(any("a second" in r for r in rows), "it tells samples a second")
    t.size(50, 100)
    rows = rows_of(t.read(1.2))
    lib.ok(len(rows) > 20 and any(len(r) > 60 for r in rows), "a larger window shows more (%d rows)" % len(rows))
    t.write(b"q")
    lib.ok(t.wait(3) == 0 and t.text.endswith(b"\x1b[?25h\x1b[?1049l"), "q ends it and gives the screen back")


def live_interrupted(d):
    t = Terminal([lib.OTPROF, "status", "--watch=1s", "--runtime-dir", d.runtime], 24, 80)
    t.read(0.5)
    os.kill(t.pid, signal.SIGTERM)
    lib.ok(t.wait(3) == 0 and t.text.endswith(b"\x1b[?1049l"), "a signal ends it in the same way")


def piped(d):
    p = lib.start([lib.OTPROF, "status", "-w0.3s", "--runtime-dir", d.runtime], stdout=subprocess.PIPE)
    time.sleep(1.2)
    p.terminate()
    out = p.communicate()[0]
    lib.ok(out.count(b"otprofd ") >= 3 and b"\x1b" not in out, "in a pipe it is page after page, without a screen")


def absent():
    p = subprocess.run([lib.OTPROF, "status", "-w", "--runtime-dir", "/nonexistent"], capture_output=True, text=True)
    lib.ok(p.returncode == 3 and "Is otprofd running?" in p.stderr, "without a daemon the status is 3")


def main():
    busy = lib.program("shares", stdout=subprocess.DEVNULL) if os.path.exists(os.path.join(lib.PROGRAMS, "shares")) else None
    d = lib.Otprofd(hz=97, limits={"cpu_percent": 50})  # one that is not reached
    time.sleep(1.5)
    page(d)
    live(d)
    live_interrupted(d)
    piped(d)
    absent()
    d.stop()
    if busy:
        lib.end(busy)
    lib.finish()


main()

# SPDX-License-Identifier: Apache-2.0
"""otprof top on a terminal: functions of a workload by self and total, by kind, scrolled, in a window that changes; and
the way out, by a key and by a signal."""
import os
import re
import signal
import subprocess
import time

import browser
import lib
from terminal import DOWN, Screen, Terminal

ROWS, COLUMNS = 24, 110


class Top(Terminal):
    """The program, with the screen that it has drawn so far."""

    def __init__(self, d, *args):
        self.screen = Screen(ROWS, COLUMNS)
        super().__init__([lib.OTPROF, "top", "--runtime-dir=" + d.runtime] + list(args), ROWS, COLUMNS, "vt100")

    def rows(self, seconds=0.4):
        self.screen.write(self.read(seconds))
        return self.screen.rows()

    def wait_for(self, holds, seconds=20):
        deadline = time.monotonic() + seconds
        while not holds(self.rows()) and time.monotonic() < deadline:
            pass
        return self.screen.rows()


def functions(rows):
    """(self, total, kind, name) of the rows below the head."""
    found = [re.match(r"\s*([0-9.]+)% +([0-9.]+)% +\d+  (\S+) +(\S+)", row) for row in rows]
    return [(float(m[1]), float(m[2]), m[3], m[4]) for m in found if m]


def live(d):
    t = Top(d, browser.LOAD)
    rows = t.wait_for(lambda r: len(functions(r)) > 5, 30)
    lib.ok(rows[0].startswith(browser.LOAD + ": ") and "by self, kind: all" in rows[0], "the first line says what is shown: " + rows[0])
    lib.ok(re.match(r"flame graph: http://127\.0\.0\.1:\d+/#/w/[0-9a-f]{16}$", rows[1]), "the second has the graph's address: " + rows[1])
    shown = functions(rows)
    lib.ok(len(shown) == ROWS - 5 and all(a[0] >= b[0] for a, b in zip(shown, shown[1:])), "%d functions, by self" % len(shown))
    lib.ok("q quit" in rows[-1], "the last line has the keys")
    t.write(b"t")
    rows = t.wait_for(lambda r: "by total" in r[0])
    shown = functions(rows)
    lib.ok(shown and shown[0][1] == 100 and all(a[1] >= b[1] for a, b in zip(shown, shown[1:])), "t orders by total: %s" % shown[:1])
    second = rows[5]
    t.write(DOWN)
    rows = t.wait_for(lambda r: functions(r)[:1] != shown[:1])
    lib.ok(rows[4].split()[-2:] == second.split()[-2:] and rows[3].split()[0] == "self", "an arrow scrolls the rows below their head: %s" % rows[3:5])
    kinds = set()
    for _ in range(6):
        before = t.screen.rows()[0]
        t.write(b"k")
        rows = t.wait_for(lambda r: r[0].split("kind: ")[-1] != before.split("kind: ")[-1])
        kind = rows[0].split("kind: ")[-1]
        if kind == "all":
            break
        kinds.add(kind)
        lib.ok(functions(rows) and {f[2] for f in functions(rows)} == {kind.split()[0]}, "k shows only functions of kind " + kind)
    lib.ok(len(kinds) >= 2 and kind == "all", "and all of them after the last: %s" % sorted(kinds))
    t.screen = Screen(40, COLUMNS)
    t.size(40, COLUMNS)
    os.kill(t.pid, signal.SIGWINCH)
    rows = t.wait_for(lambda r: len(functions(r)) > ROWS)
    lib.ok(len(functions(rows)) > ROWS and "q quit" in rows[-1], "a larger window shows more (%d functions)" % len(functions(rows)))
    t.write(b"q")
    lib.ok(t.wait(5) == 0 and t.echoes(), "q ends it, and the terminal is as before")


def all_workloads(d):
    t = Top(d)
    rows = t.wait_for(lambda r: any(browser.LOAD in row for row in r))
    lib.ok(any(browser.LOAD in row for row in rows), "without a name it lists the workloads")
    os.kill(t.pid, signal.SIGTERM)
    lib.ok(t.wait(5) == 0 and t.echoes(), "a signal ends it in the same way")


def elsewhere(d):
    p = subprocess.run([lib.OTPROF, "top", "--runtime-dir=" + d.runtime, browser.LOAD], capture_output=True, text=True, timeout=60,
                       stdin=subprocess.DEVNULL)
    lib.ok(p.returncode == 0 and "\x1b" not in p.stdout and functions(p.stdout.splitlines()), "in a pipe it is one page")
    t = Top(d, "--once", browser.LOAD)
    lib.ok(t.wait(20) == 0 and b"flame graph: http" in t.text and b"\x1b" not in t.text, "so is --once on a terminal")


d = browser.hub()
load = browser.load()
lib.wait_for(lambda: subprocess.run([lib.OTPROF, "enable", "--runtime-dir=" + d.runtime, browser.LOAD], capture_output=True,
                                    stdin=subprocess.DEVNULL).returncode == 0, 40, 1)
time.sleep(10)
live(d)
all_workloads(d)
elsewhere(d)
lib.check_ledger(d.stop(), "hub_top", stopped=True)
lib.finish()

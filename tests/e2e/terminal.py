# SPDX-License-Identifier: Apache-2.0
"""A program on a pseudo terminal, and the screen that it draws there."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

import lib

# Keys, as a vt100 in application mode sends them.
DOWN, UP = b"\x1bOB", b"\x1bOA"


class Terminal:
    """A program on a pseudo terminal of so many rows and columns."""

    def __init__(self, argv, rows, columns, term="xterm"):
        self.text = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = term
            os.execv(argv[0], argv)
        self.size(rows, columns)
        self.status = None
        lib.at_end(self.end)

    def size(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds):
        """What it writes within that time."""
        new, deadline = b"", time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not select.select([self.fd], [], [], 0.1)[0]:
                continue
            try:
                part = os.read(self.fd, 65536)
            except OSError:
                break
            if not part:
                break
            new += part
        self.text += new
        return new

    def write(self, data):
        os.write(self.fd, data)

    def wait(self, seconds):
        deadline = time.monotonic() + seconds
        while self.status is None and time.monotonic() < deadline:
            self.read(0.1)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status

    def end(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    def echoes(self):
        """Whether the terminal is as a shell has it."""
        return bool(termios.tcgetattr(self.fd)[3] & termios.ECHO)


# What a vt100 is told: a place, what to erase, moves, rows to scroll, and attributes, which are not kept.
ORDER = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b[()][0-9A-Za-z]|\x1b[=>M]|[\x00-\x1f]|[^\x00-\x1f\x1b]")


class Screen:
    """The screen of a vt100: rows of text after all that a program has written to it."""

    def __init__(self, rows, columns):
        self.cells = [[" "] * columns for _ in range(rows)]
        self.y = self.x = 0
        self.region = (0, rows - 1) # which scrolls

    def rows(self):
        return ["".join(row).rstrip() for row in self.cells]

    def write(self, data):
        for m in ORDER.finditer(data.decode(errors="replace")):
            if m[2]:
                self.order(m[2], [int(n or 0) for n in m[1].lstrip("?").split(";")])
            elif m[0] == "\r":
                self.x = 0
            elif m[0] == "\n":
                self.line_feed()
            elif m[0] == "\x1bM":
                self.line_feed(back=True)
            elif m[0] == "\t":
                self.x = min((self.x // 8 + 1) * 8, len(self.cells[0]) - 1)
            elif m[0] == "\b":
                self.x = max(self.x - 1, 0)
            elif m[0] >= " ":
                self.put(m[0])

    def put(self, character):
        row = self.cells[self.y]
        row[min(self.x, len(row) - 1)] = character
        self.x += 1

    def line_feed(self, back=False):
        top, bottom = self.region
        if self.y != (top if back else bottom):
            self.y = min(max(self.y + (-1 if back else 1), 0), len(self.cells) - 1)
            return
        gone = self.cells.pop(bottom if back else top)
        self.cells.insert(top if back else bottom, [" "] * len(gone))

    def order(self, letter, numbers):
        first, columns = numbers[0], len(self.cells[0])
        if letter == "H":
            self.y = min(max(first, 1), len(self.cells)) - 1
            self.x = min(max(numbers[1] if len(numbers) > 1 else 1, 1), columns) - 1
        elif letter == "r":
            self.region = (max(first, 1) - 1, min(numbers[1] if len(numbers) > 1 else 999, len(self.cells)) - 1)
            self.y = self.x = 0
        elif letter in "AB":
            self.y = min(max(self.y + max(first, 1) * (1 if letter == "B" else -1), 0), len(self.cells) - 1)
        elif letter in "CD":
            self.x = min(max(self.x + max(first, 1) * (1 if letter == "C" else -1), 0), columns - 1)
        elif letter == "K":
            erased = range(self.x, columns) if first == 0 else range(self.x + 1) if first == 1 else range(columns)
            for x in erased:
                self.cells[self.y][x] = " "
        elif letter == "J":
            start = self.y + 1 if first == 0 else 0
            if first == 0:
                self.order("K", [0])
            for row in self.cells[start:]:
                row[:] = [" "] * columns

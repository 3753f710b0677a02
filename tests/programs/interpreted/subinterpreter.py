# SPDX-License-Identifier: Apache-2.0
"""Runs code in another interpreter of the process, for so many seconds: its frames are in a list of their own."""
import sys

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

CODE = """
import time
def inner(n):
    return sum(i * i for i in range(n))
def outer(end):
    while time.time() < end:
        inner(3000)
outer(time.time() + %s)
"""


def caller(seconds):
    one = interpreters.create()
    interpreters.run_string(one, CODE % seconds)
    interpreters.destroy(one)


caller(float(sys.argv[1]))

# SPDX-License-Identifier: Apache-2.0
"""What the tests of JavaScript share: the programs of node that there are, that of PATH and those that NODES names, of other
versions; and how one is started. JAVASCRIPT=all runs every mode, and longer."""
import os
import re
import shutil
import subprocess

import known_program
import lib

ALL = os.environ.get("JAVASCRIPT") == "all"
KNOWN = ("10.2.", "11.3.", "12.4.", "13.6.")  # of V8: v8_rows in userspace/runtime/v8.c
CUT = re.compile(r"\[cut: (?!inside exec).*")
UNKNOWN = ("[JavaScript function]", "[anon]")


def is_known(node):
    v8 = subprocess.run([node, "-p", "process.versions.v8"], capture_output=True, text=True).stdout.strip()
    if not v8.startswith(KNOWN):
        lib.skip("stacks of %s" % node, "its V8 is %s; known is %s" % (v8 or "unknown", ", ".join(KNOWN)))
    return v8.startswith(KNOWN)


def nodes():
    found = [shutil.which("node") or ""] + os.environ.get("NODES", "").split()
    there = [p for p in dict.fromkeys(os.path.realpath(p) for p in found if p) if os.access(p, os.X_OK)]
    lib.need(there, "stacks of JavaScript", "there is no node")
    return [p for p in there if is_known(p)]


def takes(node, options):
    """Whether this node has these options: Maglev's are not in Node.js 18."""
    has = not options or subprocess.run([node] + options + ["-e", "0"], capture_output=True).returncode == 0
    if not has:
        lib.skip("stacks of %s %s" % (node, " ".join(options)), "it has no such option")
    return has


def start(node, options, program, seconds, *arguments):
    return lib.start([node] + options + [os.path.join(known_program.WHERE, program), str(seconds), *arguments],
                     stdout=subprocess.DEVNULL)

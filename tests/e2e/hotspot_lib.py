# SPDX-License-Identifier: Apache-2.0
"""What the tests of Java share: the JDKs that there are, and how a program is compiled."""
import glob
import os
import shutil
import subprocess

import lib

WHERE = os.path.join(lib.TOP, "tests", "programs", "interpreted")


def homes():
    """(label, path of java) of each JDK to be tried."""
    found = []
    java = shutil.which("java")
    if java:
        found.append(os.path.dirname(os.path.dirname(os.path.realpath(java))))
    found += os.environ.get("JAVA_HOMES", "").split()
    if os.environ.get("HOTSPOT") == "all":
        found += [p for p in sorted(glob.glob("/usr/lib/jvm/*")) if not os.path.islink(p)]
    unique = list(dict.fromkeys(os.path.realpath(p) for p in found))
    return [(os.path.basename(p), p) for p in unique if os.path.exists(os.path.join(p, "lib", "server", "libjvm.so")) or
            glob.glob(os.path.join(p, "jre/lib/*/server/libjvm.so"))]


def compile_program(source):
    """Its classes for 8 and later; None: there is no compiler."""
    compiler = shutil.which("javac")
    if not compiler:
        return None
    to = lib.scratch()
    p = subprocess.run([compiler, "--release", "8", "-g", "-d", to, os.path.join(WHERE, source)],
                       capture_output=True, text=True)
    return to if lib.ok(p.returncode == 0, "the program is compiled %s" % p.stderr[-200:].replace("\n", " ")) else None

# SPDX-License-Identifier: Apache-2.0
"""What the tests of Go programs share: building by any go command, and whether a process' goroutines are found."""
import json
import os
import shutil
import subprocess

import lib

SOURCES = os.path.join(lib.TOP, "tests", "programs", "golang")
CLOCK = os.path.join(SOURCES, "clock.go")
STRIP = "-s -w"
WHICH = os.environ.get("GOLANG") # all, or what a test names


def build(tool, name, flags, to, source, cgo=False):
    """source: a file of SOURCES; the clock that they share is built in."""
    # Off: Go's own settings of the user who runs the test, its network, its modules.
    env = dict(os.environ, GOENV="off", GOFLAGS="", GOTOOLCHAIN="local", GO111MODULE="off", GOPROXY="off",
               GOCACHE=os.path.join(lib.BUILD, "gocache"), CGO_ENABLED="1" if cgo else "0")
    p = subprocess.run([tool, "build"] + flags + ["-o", to, os.path.join(SOURCES, source), CLOCK], env=env, capture_output=True, text=True)
    return lib.ok(p.returncode == 0, "%s is built %s" % (name, p.stderr[-200:]))


def version(tool):
    words = subprocess.run([tool, "version"], env=dict(os.environ, GOTOOLCHAIN="local", GOENV="off", GOFLAGS=""),
                           capture_output=True, text=True).stdout.split()
    return words[2] if len(words) > 2 else "unknown"


def tools():
    """The go command that is installed, and those that GO_TOOLS names."""
    return [t for t in [shutil.which("go")] + os.environ.get("GO_TOOLS", "").split() if t]


def plain(names):
    """Without the suffixes of the symbol table, and without the creator of the goroutine, who is none of its frames."""
    return [n[:-5] if n.endswith(".abi0") else n for n in names if not n.startswith("created by ")]


def is_walked(d, pid):
    p = subprocess.run([lib.OTPROF, "explain", "--json", "--runtime-dir", d.runtime, str(pid)], capture_output=True,
                       text=True)
    if p.returncode:
        return False
    runtimes = (json.loads(p.stdout).get("process") or {}).get("runtimes", [])
    return any(r["runtime"] == "Go" and r["walked"] for r in runtimes)


def after_walked(d, argv, name):
    """A program that turns until it gets a line, and then works: what it prints, and the samples of its work."""
    p = lib.start(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    lib.ok(lib.wait_for(lambda: is_walked(d, p.pid), 60, 0.5), "%s: where its goroutines are is known" % name)
    before = set(lib.profile_files(d.files))
    lib.wait_for(lambda: set(lib.profile_files(d.files)) - before, 15) # what was sampled until then is in one of these
    before = set(lib.profile_files(d.files))
    truth = json.loads(p.communicate("go\n", timeout=120)[0])
    d.stop()
    files = [f for f in lib.profile_files(d.files) if f not in before]
    samples = [s for f in files for s in lib.Request(lib.read(f)).samples()]
    return truth, [s for s in samples if lib.executable(s) == os.path.basename(argv[0])]

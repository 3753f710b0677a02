# SPDX-License-Identifier: Apache-2.0
"""What the tests of JavaScript share: the programs of node that there are, that of PATH and those that NODES names, of other
versions, and those of Deno, of PATH and DENOS; and how one is started. JAVASCRIPT=all runs every mode, and longer, also each node that is in a root of CHROOTS (a
distribution's own is a library without symbols); another value: those nodes that match it, as "trixie$"."""
import collections
import functools
import glob
import os
import re
import shutil
import subprocess

import known_program
import lib

ALL = os.environ.get("JAVASCRIPT") == "all"
KNOWN = ("10.2.", "11.3.", "12.4.", "13.6.")  # of V8: v8_rows in userspace/runtime/v8.c
# Likewise, of Deno, which tells nothing of its V8.
KNOWN_HIDDEN = ("13.7.", "14.0.", "14.2.", "14.5.", "14.6.", "14.7.", "14.9.", "15.0.")
CUT = re.compile(r"\[cut: (?!inside exec).*")
UNKNOWN = ("[JavaScript function]", "[anon]")


class Node(collections.namedtuple("Node", "path root")):
    """A program of node; root "": the host's."""

    def __str__(self):
        return "%s in %s" % (self.name, os.path.basename(self.root)) if self.root else self.path

    @property
    def name(self):
        return os.path.basename(self.path)

    @property
    def label(self):
        """Short, and another one for each."""
        return str(self) if self.root else os.path.join(*self.path.split(os.sep)[-2:])

    def command(self, *arguments):
        """With a /proc in its root, which programs name their threads by: as long as they run."""
        enter = ["unshare", "--mount", "sh", "-c", 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"', self.root]
        return (enter if self.root else []) + [self.path, *arguments]

    def nothing(self, *options):
        """Does nothing, with these options."""
        return self.command(*options, "-e", "0")

    def place(self, path):
        """The file's path as this node sees it: of one in a root, that of a copy."""
        if not self.root:
            return path
        directory = "/tmp/otprof-%d" % os.getpid()
        if not os.path.isdir(self.root + directory):
            os.mkdir(self.root + directory)
            lib.at_end(shutil.rmtree, self.root + directory, True)
            for program in glob.glob(os.path.join(known_program.WHERE, "*.js")):
                shutil.copy(program, self.root + directory)
        inner = os.path.join(directory, os.path.basename(path))
        shutil.copy(path, self.root + inner)
        return inner


class Deno(Node):
    """A program of Deno. Options are V8's."""

    def command(self, *arguments):
        options = [a for a in arguments if a.startswith("--")]
        return [self.path, "run", "--quiet", "--allow-all"] + ["--v8-flags=" + ",".join(options)] * bool(options) + [
            a for a in arguments if a not in options]

    def nothing(self, *options):
        return [self.path, "eval", "--v8-flags=" + ",".join(options), "0"]


@functools.cache
def v8_of(node):
    if isinstance(node, Deno):
        command = [node.path, "eval", "console.log(Deno.version.v8)"]
    else:
        command = node.command("-p", "process.versions.v8")
    return subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, NO_COLOR="1")).stdout.strip()


def is_known(node):
    v8, known = v8_of(node), KNOWN_HIDDEN if isinstance(node, Deno) else KNOWN
    if not v8.startswith(known):
        lib.skip("stacks of %s" % (node,), "its V8 is %s; known is %s" % (v8 or "unknown", ", ".join(known)))
    return v8.startswith(known)


def denos():
    found = [shutil.which("deno") or ""] + os.environ.get("DENOS", "").split()
    there = [Deno(p, "") for p in dict.fromkeys(os.path.realpath(p) for p in found if p) if os.access(p, os.X_OK)]
    if not there:
        lib.skip("stacks of Deno", "there is no deno in PATH, and DENOS names none")
    return [d for d in there if is_known(d)]


def nodes():
    wanted = os.environ.get("JAVASCRIPT", "")
    found = [shutil.which("node") or ""] + os.environ.get("NODES", "").split()
    there = [Node(p, "") for p in dict.fromkeys(os.path.realpath(p) for p in found if p) if os.access(p, os.X_OK)]
    roots = sorted(glob.glob(os.environ.get("CHROOTS", "/var/lib/otprof-tests/chroots") + "/*/")) if wanted else []
    there += [Node("/usr/bin/node", r.rstrip("/")) for r in roots if os.path.exists(r + "usr/bin/node")]
    if wanted and not ALL:
        there = [n for n in there if re.search(wanted, str(n))]
    lib.need(there, "stacks of JavaScript", "there is no node")
    return [n for n in there if is_known(n)]


def tells_heaps(node, what):
    """Whether V8's heaps and its code of WebAssembly are found: a library of V8 13 exports only its interface."""
    hidden = node.root and v8_of(node).startswith("13.")
    if hidden:
        lib.skip("%s of %s" % (what, node), "its library does not tell where V8's heaps are")
    return not hidden


@functools.cache
def takes(node, *options):
    """Whether this node has these options: Maglev's are not in Node.js 18. To be asked before the daemon runs: a process of a
    moment, if it is the first with a file, may be gone before that is opened, which is tried again a second later."""
    has = not options or subprocess.run(node.nothing(*options), capture_output=True).returncode == 0
    if not has:
        lib.skip("stacks of %s %s" % (node, " ".join(options)), "it has no such option")
    return has


def start(node, options, program, seconds, *arguments):
    return lib.start(node.command(*options, node.place(os.path.join(known_program.WHERE, program)), str(seconds), *arguments),
                     stdout=subprocess.DEVNULL)

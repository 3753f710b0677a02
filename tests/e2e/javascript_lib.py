# SPDX-License-Identifier: Apache-2.0
"""What the tests of JavaScript share: the programs of node that there are, that of PATH and those that NODES names, of other
versions; and how one is started. JAVASCRIPT=all runs every mode, and longer, also each node that is in a root of CHROOTS (a
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


@functools.cache
def v8_of(node):
    return subprocess.run(node.command("-p", "process.versions.v8"), capture_output=True, text=True).stdout.strip()


def is_known(node):
    v8 = v8_of(node)
    if not v8.startswith(KNOWN):
        lib.skip("stacks of %s" % (node,), "its V8 is %s; known is %s" % (v8 or "unknown", ", ".join(KNOWN)))
    return v8.startswith(KNOWN)


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
    has = not options or subprocess.run(node.command(*options, "-e", "0"), capture_output=True).returncode == 0
    if not has:
        lib.skip("stacks of %s %s" % (node, " ".join(options)), "it has no such option")
    return has


def start(node, options, program, seconds, *arguments):
    return lib.start(node.command(*options, node.place(os.path.join(known_program.WHERE, program)), str(seconds), *arguments),
                     stdout=subprocess.DEVNULL)

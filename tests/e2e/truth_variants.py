# SPDX-License-Identifier: Apache-2.0
"""The truth programs as compilers, linkers and packagers make them: what each
variant is built with, and what is done to it afterwards. Used by truth.py."""
import concurrent.futures
import importlib.util
import os
import shutil
import subprocess
import sys

import lib

SOURCES = os.path.join(lib.TOP, "tests", "programs", "truth")
FILES = {"c": ["truth.c", "burn.c"], "c++": ["truth.cc"], "rust": ["truth.rs"], "zig": ["truth.zig", "truth_zig.c"]}


# llvm-dwp 14 never ends on what gcc 12 makes of DWARF 5; dwp of binutils 2.40 makes a package
# without an index of it. So there is no variant of these.
TOOL_SECONDS = 180


class Missing(Exception):
    """A tool that is not installed here."""


def have(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise Missing(tool + " is not installed")


class Variant:
    def __init__(self, name, language, compiler, options, after=None, brief=False, lines=True):
        self.name, self.language, self.compiler, self.options = name, language, compiler, options
        self.after, self.brief, self.lines = after, brief, lines
        self.missing = self.broken = None

    def run(self, *argv, env=None):
        try:
            said = subprocess.run(argv, cwd=self.dir, capture_output=True, text=True, timeout=TOOL_SECONDS,
                                  env=env and {**os.environ, **env})
        except subprocess.TimeoutExpired as e:
            raise RuntimeError("%s does not end" % " ".join(argv)) from e
        if said.returncode:
            raise RuntimeError("%s: %s" % (" ".join(argv), (said.stderr or said.stdout)[-400:]))
        return said.stdout

    def build(self, top, debug_dir):
        self.dir = os.path.join(top, self.name.replace(" ", "-").replace("/", "-"))
        self.program = os.path.join(self.dir, "truth")
        self.debug_dir = debug_dir
        os.mkdir(self.dir)
        try:
            {"rust": build_rust, "zig": build_zig}.get(self.language, build_c)(self)
            if self.after:
                self.after(self)
        except Missing as e:
            self.missing = str(e)
        except RuntimeError as e:
            self.broken = str(e)
        return self

    def sources(self):
        return [os.path.join(SOURCES, f) for f in FILES[self.language]]

    def strip(self):
        """Returns where the debug information went."""
        self.run("objcopy", "--only-keep-debug", "truth", "truth.debug")
        self.run("strip", "truth")
        return os.path.join(self.dir, "truth.debug")


def build_c(v):
    have(v.compiler, *(["ld.lld"] if "-fuse-ld=lld" in v.options else []))
    options = [*([] if any(o.startswith("-g") for o in v.options) else ["-g"]), "-Wl,--build-id", *v.options]
    if v.compiler == "clang" or v.compiler == "clang++":
        options.append("-Wno-unused-command-line-argument")
    objects = []
    for source in v.sources():
        objects.append(os.path.basename(source) + ".o")
        v.run(v.compiler, *options, "-c", "-o", objects[-1], source)
    v.run(v.compiler, *options, "-o", "truth", *objects)


def build_rust(v):
    have("rustc")
    v.run("rustc", "-g", *v.options, "-o", "truth", *v.sources())


def build_zig(v):
    zig = ["zig"] if shutil.which("zig") else [sys.executable, "-m", "ziglang"] if importlib.util.find_spec("ziglang") else None
    if not zig:
        raise Missing("zig is not installed")
    source, main = v.sources()
    v.run(*zig, "build-obj", "-fno-strip", "-fPIC", "-target", "x86_64-linux-gnu", *v.options, "-femit-bin=zig.o", source)
    v.run("gcc", "-g", "-O2", "-Wl,--build-id", "-o", "truth", main, "zig.o")


# What is done afterwards.

def by_build_id(v):
    build_id = v.run("readelf", "-n", "truth").split("Build ID: ")[1].split()[0]
    where = os.path.join(v.debug_dir, ".build-id", build_id[:2])
    os.makedirs(where, exist_ok=True)
    os.rename(v.strip(), os.path.join(where, build_id[2:] + ".debug"))


def by_link(v):
    # A build-id of its own would be looked for first.
    v.run("objcopy", "--remove-section=.note.gnu.build-id", "truth")
    out = v.strip()
    v.run("objcopy", "--add-gnu-debuglink=" + out, "truth")
    os.mkdir(os.path.join(v.dir, ".debug"))
    os.rename(out, os.path.join(v.dir, ".debug", "truth.debug"))


def packed_symbols(v):
    """.gnu_debugdata, as some distributions have it: function names without lines."""
    have("xz")
    out = v.strip()
    v.run("objcopy", "--strip-debug", out, "mini")
    v.run("xz", "-f", "mini")
    v.run("objcopy", "--add-section", ".gnu_debugdata=mini.xz", "truth")
    os.unlink(out)


def dwz(v):
    """The program and its twin share a third file."""
    have("dwz")
    shutil.copy(v.program, v.program + ".twin")
    v.run("dwz", "-m", "common", "truth", "truth.twin")
    if "gnu_debugaltlink" not in v.run("readelf", "-SW", "truth"):
        raise RuntimeError("dwz found nothing to share")


def dwz_alone(v):
    have("dwz")
    v.run("dwz", "truth")


def compressed(kind):
    def after(v):
        v.run("objcopy", "--compress-debug-sections=" + kind, "truth")
    return after


def without_tables(v):
    """Nothing says how to unwind the program's own code."""
    v.run("objcopy", "--remove-section=.debug_frame", "truth")


def package(tool):
    def after(v):
        have(tool)
        dwo = sorted(f for f in os.listdir(v.dir) if f.endswith(".dwo"))
        v.run(tool, *dwo, "-o", "truth.dwp")
        for f in dwo:
            os.unlink(os.path.join(v.dir, f))
    return after


def trained(v):
    """Built again with what a run of the first build has counted."""
    v.run("./truth", "0.05")
    v.options = ["-fprofile-use" if o == "-fprofile-generate" else o for o in v.options]
    build_c(v)


def trained_clang(v):
    have("llvm-profdata")
    v.run("./truth", "0.05", env={"LLVM_PROFILE_FILE": os.path.join(v.dir, "raw")})
    v.run("llvm-profdata", "merge", "-o", "counts", "raw")
    v.options = ["-fprofile-use=counts" if o == "-fprofile-generate" else o for o in v.options]
    build_c(v)


def c(name, *options, **kw):
    return Variant(name, "c", "gcc", options, **kw)


def clang(name, *options, **kw):
    return Variant(name, "c", "clang", options, **kw)


FRAME, NO_FRAME = "-fno-omit-frame-pointer", "-fomit-frame-pointer"
NO_TABLES = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"] # what -g makes then is .debug_frame
# brief: those of make check; each has something that no other one of them has.
ALL = [
    c("gcc O0", "-O0", brief=True),
    c("gcc O1", "-O1"),
    c("gcc O2", "-O2", NO_FRAME),
    c("gcc O2 frame pointers", "-O2", FRAME, brief=True),
    c("gcc O3", "-O3", NO_FRAME, brief=True),
    c("gcc Os", "-Os", brief=True),
    c("gcc Og", "-Og"),
    c("gcc O2 LTO", "-O2", "-flto", brief=True),
    c("gcc O2 PGO", "-O2", "-fprofile-generate", after=trained, brief=True),
    c("gcc O2 LTO PGO", "-O2", "-flto", "-fprofile-generate", after=trained),
    c("gcc static", "-O2", "-static", brief=True),
    c("gcc static-pie", "-O2", "-fPIE", "-static-pie", brief=True),
    c("gcc no pie", "-O2", "-no-pie", "-fno-pie"),
    c("gcc DWARF 4", "-O2", "-gdwarf-4", brief=True),
    c("gcc DWARF 3", "-O2", "-gdwarf-3"),
    c("gcc no inline records", "-O2", "-g1", lines=False),
    c("gcc debug types", "-O2", "-g", "-fdebug-types-section"),
    c("gcc functions in sections", "-O2", "-ffunction-sections", "-Wl,--gc-sections"),
    c("build-id", "-O2", after=by_build_id, brief=True),
    c("debuglink", "-O2", after=by_link, brief=True),
    c("build-id static-pie", "-O2", "-fPIE", "-static-pie", after=by_build_id),
    c("gnu_debugdata", "-O2", after=packed_symbols, brief=True, lines=False),
    c("dwz", "-O2", after=dwz, brief=True),
    c("dwz alone", "-O2", after=dwz_alone),
    c("dwz DWARF 4", "-O2", "-gdwarf-4", after=dwz),
    c("zlib", "-O2", after=compressed("zlib"), brief=True),
    c("zlib as GNU had it", "-O2", after=compressed("zlib-gnu")),
    c("zstd", "-O2", after=compressed("zstd"), brief=True),
    c("split DWARF 5", "-O2", "-gdwarf-5", "-gsplit-dwarf", brief=True),
    c("split DWARF 4", "-O2", "-gdwarf-4", "-gsplit-dwarf"),
    c("package DWARF 4", "-O2", "-gdwarf-4", "-gsplit-dwarf", after=package("dwp"), brief=True),
    c("debug_frame", "-O2", NO_FRAME, *NO_TABLES),
    c("debug_frame zlib", "-O2", NO_FRAME, *NO_TABLES, after=compressed("zlib"), brief=True),
    c("debug_frame zlib as GNU had it", "-O2", NO_FRAME, *NO_TABLES, after=compressed("zlib-gnu")),
    c("debug_frame zstd", "-O2", NO_FRAME, *NO_TABLES, after=compressed("zstd")),
    c("frame pointers alone", "-O2", FRAME, *NO_TABLES, "-static", after=without_tables, brief=True),
    c("no tables", "-O2", NO_FRAME, *NO_TABLES, after=without_tables),
    clang("clang O0", "-O0", brief=True),
    clang("clang O1", "-O1"),
    clang("clang O2", "-O2"),
    clang("clang O3 frame pointers", "-O3", FRAME, brief=True),
    clang("clang Os DWARF 4", "-Os", "-gdwarf-4"),
    clang("clang LTO", "-O2", "-flto"),
    clang("clang thin LTO lld", "-O2", "-flto=thin", "-fuse-ld=lld"),
    clang("clang PGO", "-O2", "-fprofile-generate", after=trained_clang),
    clang("clang split DWARF 5", "-O2", "-gdwarf-5", "-gsplit-dwarf", brief=True),
    clang("clang package DWARF 5", "-O2", "-gdwarf-5", "-gsplit-dwarf", after=package("llvm-dwp"), brief=True),
    clang("clang static", "-O2", "-static"),
    Variant("musl", "c", "musl-gcc", ["-O2"], brief=True),
    Variant("musl static", "c", "musl-gcc", ["-O2", "-static"], brief=True),
    Variant("musl O0", "c", "musl-gcc", ["-O0"]),
    Variant("musl frame pointers alone", "c", "musl-gcc", ["-O2", "-static", FRAME, *NO_TABLES], after=without_tables),
    Variant("C++ gcc O0", "c++", "g++", ["-O0"]),
    Variant("C++ gcc O2", "c++", "g++", ["-O2"], brief=True),
    Variant("C++ gcc O3 LTO", "c++", "g++", ["-O3", "-flto"]),
    Variant("C++ clang O2", "c++", "clang++", ["-O2"], brief=True),
    Variant("C++ clang O0", "c++", "clang++", ["-O0"]),
    Variant("Rust debug", "rust", "rustc", []),
    Variant("Rust O2", "rust", "rustc", ["-C", "opt-level=2"], brief=True),
    Variant("Rust O3 LTO v0", "rust", "rustc", ["-C", "opt-level=3", "-C", "lto=fat", "-C", "symbol-mangling-version=v0"]),
    # Its own code generator, the default of Debug, names inlined functions without their file; with
    # LLVM's, what passes arguments is of the inlined function, at the line of the call.
    Variant("Zig debug", "zig", "zig", ["-O", "Debug", "-fllvm", "-fno-stack-check"], lines=False),
    Variant("Zig fast", "zig", "zig", ["-O", "ReleaseFast"], brief=True),
]


def build(variants, top, debug_dir):
    """All of them, in parallel; those whose tools are missing say so."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda v: v.build(top, debug_dir), variants))

# SPDX-License-Identifier: Apache-2.0
"""Wherever a program's debug information lies, and however it is packed, the
same addresses have the same functions, inlined calls, files and lines as in
the program that has it in itself."""
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import lib  # noqa: E402

TOOL = os.path.join(lib.BUILD, "symbol_index")
SOURCE = os.path.join(os.path.dirname(HERE), "golden", "inline_x86_64.cpp")


def run(*argv, text=None, cwd=None):
    return subprocess.run(argv, input=text, capture_output=True, text=True, check=True, cwd=cwd).stdout


def have(tool):
    return shutil.which(tool) is not None


class Case:
    """A directory of its own with the program `p`, whose debug information goes elsewhere."""
    compiler = "g++"
    mapped = "/src"

    def __init__(self, name, *options):
        self.dir = lib.scratch("otprof-debug-")
        self.program = os.path.join(self.dir, "p")
        self.debug = os.path.join(self.dir, "debug")
        self.name = name
        shutil.copy(SOURCE, os.path.join(self.dir, "p.cpp"))
        # The source's own directory would differ from case to case.
        run(self.compiler, "-O2", "-Wl,--build-id", "-ffile-prefix-map=%s=%s" % (self.dir, self.mapped),
            *(options or ("-g",)), "-o", "p", "p.cpp", cwd=self.dir)

    def answers(self, path=None):
        path = path or self.program
        index = os.path.join(self.dir, "index")
        said = run(TOOL, "make", path, index, self.debug)
        start, size = text_of(path)
        found = run(TOOL, "find", path, index, text="".join("%x\n" % a for a in range(start, start + size)))
        return found, said

    def strip(self, *options):
        """Returns where the debug information went."""
        out = os.path.join(self.dir, "p.debug")
        run("objcopy", "--only-keep-debug", self.program, out)
        run("strip", *options, self.program)
        return out


def text_of(path):
    for line in run("readelf", "-SW", path).splitlines():
        f = line.replace("[ ", "[").split()
        if len(f) > 6 and f[1] == ".text":
            return int(f[3], 16), int(f[5], 16)
    raise RuntimeError("no .text in " + path)


def build_id_path(c):
    text = run("readelf", "-n", c.program)
    build_id = text.split("Build ID: ")[1].split()[0]
    return os.path.join(c.debug, ".build-id", build_id[:2], build_id[2:] + ".debug")


def by_build_id(c):
    where = build_id_path(c)
    os.makedirs(os.path.dirname(where))
    os.rename(c.strip(), where)


def by_link(c, below):
    out = c.strip()
    run("objcopy", "--remove-section=.note.gnu.build-id", "--add-gnu-debuglink=" + out, c.program)
    run("objcopy", "--remove-section=.note.gnu.build-id", out, out + ".none")
    # The link has the sum of the file that it was made from.
    where = os.path.join(c.debug + os.path.realpath(c.dir) if below == "debug" else os.path.join(c.dir, below))
    os.makedirs(where, exist_ok=True)
    os.rename(out, os.path.join(where, "p.debug"))


def dwz(c):
    twin = os.path.join(c.dir, "twin")
    shutil.copy(c.program, twin)
    run("dwz", "-m", os.path.join(c.dir, "common"), c.program, twin)


def compressed(kind):
    def change(c):
        run("objcopy", "--compress-debug-sections=" + kind, c.program)
    return change


CASES = [
    ("by build-id", by_build_id, ("-g",)),
    ("by debuglink beside it", lambda c: by_link(c, ""), ("-g",)),
    ("by debuglink in .debug", lambda c: by_link(c, ".debug"), ("-g",)),
    ("by debuglink below the debug directory", lambda c: by_link(c, "debug"), ("-g",)),
    ("compressed with zlib", compressed("zlib"), ("-g",)),
    ("compressed with zstd", compressed("zstd"), ("-g",)),
    ("shared by dwz", dwz, ("-g",)),
    ("of DWARF 4", None, ("-gdwarf-4",)),
    ("of 64-bit DWARF", None, ("-gdwarf-5", "-gdwarf64")),
    ("split, DWARF 5", None, ("-gdwarf-5", "-gsplit-dwarf")),
    ("split, DWARF 4", None, ("-gdwarf-4", "-gsplit-dwarf")),
]


def packed_symbols(plain):
    """.gnu_debugdata: functions, but no lines."""
    c = Case("packed symbols")
    out = c.strip()
    mini = os.path.join(c.dir, "mini")
    run("objcopy", "-S", "--remove-section", ".comment", "--keep-symbol", "main", "--keep-symbol", "_start", out, mini)
    run("xz", "-f", mini)
    run("objcopy", "--add-section", ".gnu_debugdata=%s.xz" % mini, c.program)
    found, said = c.answers()
    names = {line.split("\t")[0] for line in found.splitlines() if line}
    lib.ok("main" in names and "lines 0 " in said, "debug files: names from .gnu_debugdata")


def wrong_file():
    """A debug file with another build-id is none, wherever it lies."""
    c, other = Case("wrong"), Case("other", "-g", "-DOTHER")
    where = build_id_path(c)
    os.makedirs(os.path.dirname(where))
    run("objcopy", "--remove-section=.note.gnu.build-id", other.program)
    os.rename(other.strip(), where)
    c.strip()
    found, said = c.answers()
    lib.ok("lines 0 " in said, "debug files: one that is another program's is not taken")


class ClangCase(Case):
    compiler = "clang++"


def wide():
    """clang lists ranges by number, in 64-bit DWARF by wider ones."""
    plain = ClangCase("plain", "-gdwarf-5").answers()[0]
    for options in ("-gdwarf64",), ("-gdwarf64", "-gsplit-dwarf"):
        found = ClangCase("wide", "-gdwarf-5", *options).answers()[0]
        lib.ok(found == plain, "debug files: the same answers of clang's 64-bit DWARF " + " ".join(options[1:]))


class RelativeCase(Case):
    mapped = "src"


def relative_directory():
    """Debian builds so: what it was compiled in is said once."""
    for options in ("-gdwarf-5",), ("-gdwarf-4",):
        found = RelativeCase("relative", *options).answers()[0]
        paths = {line.split("\t")[1].rsplit(":", 1)[0] for line in found.splitlines() if "p.cpp" in line}
        lib.ok(paths == {"src/p.cpp"}, "debug files: a relative directory is said once, %s %s" % (options[0], paths))


INLINES = """
extern volatile int g, h;
static inline __attribute__((always_inline)) int inlined(int *p, int n)
{
	if (__builtin_expect(p[n] == 7, 0)) { h = n; __builtin_trap(); }
	return p[n] * n + g;
}
void dropped(int *p) { %s }
"""
STAYS = """
volatile int g, h;
__attribute__((noinline)) void stays(void) { %s }
int main(void) { stays(); return 0; }
"""


def dropped_by_the_linker():
    """A function that was dropped lies at 0, and what it inlined on top of others' code."""
    for compiler in "gcc", "clang":
        d = lib.scratch("otprof-dropped-")
        for name, text, line in ("dropped.c", INLINES, "if (g == %d) h += inlined(p, %d);"), ("stays.c", STAYS, "if (g == %d) h += %d * g;"):
            with open(os.path.join(d, name), "w") as f:
                f.write(text % "\n".join(line % (i, i) for i in range(900)))
        if not have(compiler):
            lib.note("no %s here" % compiler)
            continue
        run(compiler, "-O2", "-gdwarf-5", "-ffunction-sections", "-Wl,--gc-sections", "-o", "p", "stays.c", "dropped.c", cwd=d)
        program, index = os.path.join(d, "p"), os.path.join(d, "index")
        run(TOOL, "make", program, index)
        start, size = text_of(program)
        found = run(TOOL, "find", program, index, text="".join("%x\n" % a for a in range(start, start + size)))
        names = {line.split("\t")[0] for line in found.splitlines() if line}
        lib.ok("stays" in names and not names & {"inlined", "dropped"}, "debug files: nothing of a dropped function is left, " + compiler)


def main():
    plain, said = Case("plain").answers()
    lib.ok(plain.count("\n") > 200 and " flags 3 " in said, "debug files: the program in itself has them")
    lib.note(said.strip())
    for name, change, options in CASES:
        c = Case(name, *options)
        if change is dwz and not have("dwz"):
            lib.note("no dwz here")
            continue
        try:
            if change:
                change(c)
        except subprocess.CalledProcessError as e:
            lib.note("%s: %s" % (name, (e.stderr or "").strip()[:200]))
            continue
        found, said = c.answers()
        lib.ok(found == plain, "debug files: the same answers " + name)
        if found != plain:
            lib.note(said.strip())
    packed_symbols(plain)
    wrong_file()
    relative_directory()
    dropped_by_the_linker()
    if have("clang++"):
        wide()
    else:
        lib.note("no clang++ here")


main()
lib.finish()

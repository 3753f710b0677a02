# SPDX-License-Identifier: Apache-2.0
"""Programs of interpreters that know their own calls, lines and shares: what otprof says of each must be legal in
every frame, from the first interval on, in mixed stacks. INTERPRETED=all: every interpreter that is here, of pyenv, in
chroots and under /var/lib/otprof-tests/interpreters/NAME/bin; another value: those of them that match it, as "sid$"."""
import glob
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys

import known_program
import lib

HZ = lib.rate(199)
SECONDS = 8


def in_chroot(root):
    """Each version that Debian's packages have put there, by its own file."""
    for path in sorted(glob.glob(root + "/usr/bin/*")):
        name = os.path.basename(path)
        language = re.fullmatch(r"(python)3\.\d+|(ruby|php)\d\.\d|(perl)", name)
        if language and not os.path.islink(path):
            yield next(filter(None, language.groups())), "%s in %s" % (name, os.path.basename(root)), ["chroot", root, "/usr/bin/" + name]


def versions():
    """(language, label, argv) of each interpreter to be tried."""
    wanted = os.environ.get("INTERPRETED")
    found = [(name, name, [os.path.realpath(path)]) for name, path in (
        ("python", "/usr/bin/python3"), ("ruby", "/usr/bin/ruby"), ("php", "/usr/bin/php"), ("perl", "/usr/bin/perl"))
        if os.path.exists(path)]
    if not wanted:
        return found + list(compilers(found))
    for builds in ("~/.pyenv/versions/3.*", "/var/lib/otprof-tests/interpreters/*"):
        for path in sorted(glob.glob(os.path.expanduser(builds + "/bin/python3"))):
            found.append(("python", "python " + path.split("/")[-3], [path]))
    for root in sorted(glob.glob(os.environ.get("CHROOTS", "/var/lib/otprof-tests/chroots") + "/*/")):
        found += in_chroot(root.rstrip("/"))
    found += list(compilers(found))
    return [f for f in found if wanted == "all" or re.search(wanted, f[1])]


OPCACHE = ["-d", "opcache.enable_cli=1"]
# language: how it compiles what it runs, its options and a program that tells whether it can
COMPILERS = {
    "php": [("opcache", OPCACHE + ["-d", "opcache.jit=disable"], "exit(opcache_get_status() ? 0 : 1);")] + [
        (mode + " JIT", OPCACHE + ["-d", "opcache.jit_buffer_size=64M", "-d", "opcache.jit=" + mode],
         "exit((opcache_get_status()['jit']['on'] ?? false) ? 0 : 1);") for mode in ("tracing", "function")],
    "python": [(what, ["-X", option], "import sys; sys.exit(not sys.is_stack_trampoline_active())")
               for what, option in (("perf trampolines", "perf"), ("jitdump trampolines", "perf_jit"))] + [
        ("JIT", ["/usr/bin/env", "PYTHON_JIT=1"], "import sys; sys.exit(not sys._jit.is_enabled())")],
    "ruby": [("YJIT", ["--yjit", "--yjit-call-threshold=5"], "exit(RubyVM::YJIT.enabled?)")],
}


def compilers(found):
    """The same interpreters, with each of their compilers that works."""
    for language, label, argv in found:
        for name, options, probe in COMPILERS.get(language, []):
            compiling = argv[:-1] + options + argv[-1:] if "env" in options[0] else argv + options
            tried = subprocess.run(compiling + [{"php": "-r", "python": "-c"}.get(language, "-e"), probe],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if tried.returncode == 0:
                yield language, label + ", " + name, compiling


def start(language, argv, script=None):
    folder = lib.scratch()
    script = script or known_program.LANGUAGES[language][1]
    where = folder
    if argv[0] == "chroot":
        where = os.path.join(argv[1], "tmp", os.path.basename(folder))
        shutil.copytree(known_program.WHERE, where)
        lib.at_end(shutil.rmtree, where, True)
        script = os.path.join("/tmp", os.path.basename(folder), script)
    else:
        shutil.copytree(known_program.WHERE, where, dirs_exist_ok=True)
        script = os.path.join(where, script)
    return lib.start(argv + [script, str(SECONDS)], stdout=subprocess.DEVNULL)


def judge(label, language, samples, cpu):
    """Also the number of samples; and that trampolines are not shown beside what they call."""
    all_ = known_program.judge(label, language, samples, HZ)
    if "trampolines" in label:
        twice = sum(s.count for s in samples if any(n.startswith("py::") for n in s.stack))
        lib.ok(twice <= 0.01 * all_, "%s: %d of %d stacks have trampolines beside their functions" % (label, twice, all_))
    want = cpu * HZ
    lib.ok(abs(all_ - want) <= 0.2 * want + 4 * want ** 0.5, "%s: %d samples of %.2f s of CPU time, expected %d" % (
        label, all_, cpu, want))


def has_subinterpreters(language, label, argv):
    """Up to 3.11 a thread's slot keeps the state that it began with: only the frames outside are found, and a marker."""
    return language == "python" and "trampolines" not in label and subprocess.run(argv + ["-c", "import sys; sys.exit(sys.version_info < (3, 12))"]).returncode == 0


def judge_subinterpreter(label, samples, cpu):
    """Its own frames, where they ran: the frames that called it are in no list that a walk of it reaches."""
    own = [s for s in samples if "inner" in s.stack]
    wrong = 0
    for s in own:
        frames = [(name, type_) for name, type_, *_ in reversed(s.frames)]
        names = [name for name, type_ in frames if type_ == "cpython"]
        outside = frames[:s.types[::-1].index("cpython")]
        runs = any(re.search("interp_run_string|interpreters", name) for name, _ in outside)
        wrong += s.count * (names[:3] != ["<module>", "outer", "inner"] or any(t != "native" for _, t in outside) or not runs)
    count = sum(s.count for s in own)
    # Of its CPU time, which beside other programs is little: interpreters begin in it, and the first samples have no walk.
    due = cpu * HZ - 0.5 * HZ
    lib.ok(count >= max(20, 0.75 * due) and wrong <= 0.01 * count,
           "%s: %d stacks in another interpreter begin with its own frames, %d do not; some %d expected" % (
               label, count, wrong, due))


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def try_one(language, label, argv, script=None):
    """Its pid, and the CPU time that it took."""
    before = cpu_of_children()
    p = start(language, argv, script)
    p.wait(SECONDS * 4)
    for left in ("/tmp/perf-%d.map", "/tmp/jit-%d.dump"):
        lib.at_end(pathlib.Path((argv[1] if argv[0] == "chroot" else "") + left % p.pid).unlink, True)
    lib.ok(p.returncode == 0, "%s: the program ends well (%s)" % (label, p.returncode))
    return p.pid, cpu_of_children() - before


def doctor_finding(d):
    """What otprof doctor says of the interpreters of a running daemon."""
    root = lib.scratch()
    os.mkdir(os.path.join(root, "run"))
    os.symlink(d.runtime, os.path.join(root, "run", "otprof"))
    r = subprocess.run([lib.OTPROF, "doctor", "--json", "--root=" + root], capture_output=True, text=True)
    return next(f["text"] for f in json.loads(r.stdout)["findings"] if f["id"] == "interpreters")


def check_reports(d, ran):
    """Figures of interpreters and decoders, where people look for them."""
    said = doctor_finding(d)
    figures = re.match(r"(\d+) interpreters walked, .*% of (\d+) frames named; decoders: (\d+) started", said)
    lib.ok(figures and int(figures[1]) >= ran and int(figures[2]) and int(figures[3]) >= ran, "doctor reports: " + said)
    status = subprocess.run([lib.OTPROF, "status", "--runtime-dir=" + d.runtime], capture_output=True, text=True).stdout
    row = re.search(r"decoders +(\d+) +started.*", status)
    lib.ok(row and int(row[1]) >= ran, "status reports: %s" % (row and row[0]))


def main():
    found = versions()
    for language in sorted(known_program.LANGUAGES.keys() - {l for l, _, _ in found}):
        lib.skip(language + ": its frames are named", "there is no interpreter")
    lib.need(found, "interpreted code", "no interpreter")
    if lib.SOURCE == "perf":
        lib.skip("interpreted code by perf", "perf does not walk interpreters")
        return
    d = lib.Otprofd(hz=HZ, profile={"sample_attributes": "process.pid"})
    ran = [(language, label) + try_one(language, label, argv) for language, label, argv in found]
    inner = [(label,) + try_one(language, label + ", two interpreters", argv, "subinterpreter.py")
             for language, label, argv in found if has_subinterpreters(language, label, argv)]
    check_reports(d, len(ran))
    last = d.stop()
    by_pid = known_program.samples_by_pid(d)
    for language, label, pid, cpu in ran:
        judge(label, language, by_pid[pid], cpu)
    if not inner:
        lib.skip("frames of another interpreter in one process", "no Python of 3.12 or later among these")
    for label, pid, cpu in inner:
        judge_subinterpreter(label, by_pid[pid], cpu)
    lib.check_ledger(last, "the ledger balances", stopped=True)
    decoders = last["quality"]["interpreted"]["decoders"]
    lib.ok(decoders["started"] >= len(ran) and not decoders["died"] and decoders["functions"] > 0,
           "decoders read what they are asked for: %s" % decoders)
    # Of the whole host: other programs may come and go too fast for their names.
    lib.note(str(last["quality"]["interpreted"]))


main()
lib.finish()

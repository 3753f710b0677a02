# SPDX-License-Identifier: Apache-2.0
"""Methods of .NET that come and go: dynamic ones, and those of assemblies that are unloaded; others lie where they lay. No
stack may have the name of another one; what cannot be known has none, and that is counted. By .NET 8; if DOTNET is set, for
a minute if it is all, and with methods that live for an instant too; SECONDS, if it is set, is for how long."""
import collections
import os
import platform
import re
import shutil
import subprocess

import dotnet_runtime
import known_program
import lib

HZ = lib.rate(997)
WHOLE = "DOTNET" in os.environ
SECONDS = int(os.environ.get("SECONDS", 60 if dotnet_runtime.ALL else 16))
# Milliseconds that a method runs: the highest share of stacks that are not known.
RUNS = {"realistic": (4000, 0.01), "extreme": (15, 0.9)}
THREAD = re.compile(r"Known\.Churn\.Thread([AB])\(")
DYNAMIC = re.compile(r"DynamicClass\.Made([AB])(\d+)")
PLUG = re.compile(r"Known\.Plug([AB])\.Run\(long\)")
UNKNOWN = re.compile(r"\[unknown method of \.NET\]|\[\.NET function\]|\[anon\]|memfd:doublemapper.*|\[generated code.*|\[cut: .*")


def is_wrong(stack):
    """Whether a method has another letter than its thread, or another number than its caller calls."""
    thread = next((THREAD.match(n)[1] for n in stack if THREAD.match(n)), None)
    for name, caller in zip(stack, stack[1:] + [""]):
        m = DYNAMIC.match(name)
        if (m or PLUG.match(name)) and thread not in (None, (m or PLUG.match(name))[1]):
            return True
        called_by = re.match(r"Known\.Churn\.(Even|Odd)\(", caller)
        if m and called_by and called_by[1] != ("Odd" if int(m[2]) % 2 else "Even"):
            return True
    return False


def judge(label, samples, highest):
    right, wrong, unknown = collections.Counter(), collections.Counter(), collections.Counter()
    for s in samples:
        made = next((n for n in s.stack if DYNAMIC.match(n) or PLUG.match(n)), None)
        if is_wrong(s.stack):
            wrong[str(s.stack[:4])] += s.count
        elif any(map(UNKNOWN.match, s.stack)):
            unknown[next(n for n in s.stack if UNKNOWN.match(n))] += s.count
        elif made:
            right["dynamic" if DYNAMIC.match(made) else "loaded"] += s.count
    all_ = right.total() + unknown.total() + wrong.total()
    lib.ok(right["dynamic"] and right["loaded"] and not wrong, "%s: none of %d stacks has the name of another method, %d do: %s" % (
        label, all_, wrong.total(), wrong.most_common(3)))
    lib.ok(unknown.total() <= highest * all_, "%s: %d of %d stacks (%.2f %%) are not known, at most %.0f %%: %s" % (
        label, unknown.total(), all_, 100.0 * unknown.total() / max(all_, 1), 100 * highest, dict(unknown)))


def compile_programs():
    """The directory of the program and of the assemblies that it loads."""
    directory = lib.scratch()
    for source, name, symbols in (("churn", "churn", "NONE"), ("plug", "PlugA", "A"), ("plug", "PlugB", "B")):
        dotnet_runtime.compile_with_roslyn(os.path.join(dotnet_runtime.PROGRAMS, source + ".cs"),
                                           os.path.join(directory, name + ".dll"), symbols)
    return directory


def run(directory, life):
    argv = dotnet_runtime.command(os.path.join(directory, "churn.dll")) + [str(SECONDS), str(life), directory]
    p = lib.start(argv, stdout=subprocess.PIPE, text=True)
    text, _ = p.communicate(timeout=SECONDS * 6)
    lib.ok(p.returncode == 0, "methods that live for %d ms: %s" % (life, text.strip()))
    return p.pid


def main():
    lib.need(platform.machine() == "x86_64", "stacks of .NET methods that come and go", "its code is read on x86-64 alone")
    lib.need(shutil.which("mcs"), "stacks of .NET methods that come and go", "there is no compiler of C# (mono-mcs)")
    try:
        directory = compile_programs()
    except (dotnet_runtime.Unavailable, OSError) as e:
        lib.need(False, "stacks of .NET methods that come and go", "there is no compiler or runtime: %s" % e)
    d = lib.Otprofd(hz=HZ, profile={"sample_attributes": "process.pid"}, targets={"include": ["exe:dotnet"]})
    ran = [(name, run(directory, life), highest) for name, (life, highest) in RUNS.items() if WHOLE or name == "realistic"]
    last = d.stop()
    by_pid = known_program.samples_by_pid(d)
    for name, pid, highest in ran:
        # Beside others a reading may come late; what it names must be right all the same.
        judge(name, by_pid[pid], highest if WHOLE else max(highest, 0.05))
    lib.check_ledger(last, "the ledger balances", stopped=True)
    decoders = last["quality"]["interpreted"]["decoders"]
    lib.ok(not decoders["died"], "decoders read what they are asked for: %s" % decoders)


main()
lib.finish()

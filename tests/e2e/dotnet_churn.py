# SPDX-License-Identifier: Apache-2.0
"""Methods of .NET that come and go: dynamic ones, and those of assemblies that are unloaded; others lie where they lay. No
stack may have the name of another one; what cannot be known has none, and that is counted. By .NET 8; if DOTNET is set, for
a minute if it is all, and with methods that live for an instant too; SECONDS, if it is set, is for how long; churn_lib.py
says how many samples."""
import os
import platform
import re
import shutil
import subprocess

import churn_lib
import dotnet_runtime
import lib

HZ = lib.rate(997)
WHOLE = "DOTNET" in os.environ
SECONDS = int(os.environ.get("SECONDS", 60 if dotnet_runtime.ALL else 16))
# Milliseconds that a method runs: the highest share of stacks that are not known. Extreme methods live hardly longer than an
# answer takes: that any is known is enough, and of which kind is left to chance.
RUNS = {"realistic": (4000, 0.01), "second": (1000, 0.05), "short": (100, 0.5), "extreme": (15, 0.999)}
MODES = os.environ.get("MODES", "" if WHOLE else "realistic")
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


def judge(sample):
    made = next((n for n in sample.stack if DYNAMIC.match(n) or PLUG.match(n)), None)
    if is_wrong(sample.stack):
        return churn_lib.WRONG, str(sample.stack[:4])
    if any(map(UNKNOWN.match, sample.stack)):
        return churn_lib.UNKNOWN, next(n for n in sample.stack if UNKNOWN.match(n))
    if not made:
        return churn_lib.ELSEWHERE, sample.stack[0]
    return churn_lib.RIGHT, "dynamic" if DYNAMIC.match(made) else "loaded"


def compile_programs():
    """The directory of the program and of the assemblies that it loads."""
    directory = lib.scratch()
    for source, name, symbols in (("churn", "churn", "NONE"), ("plug", "PlugA", "A"), ("plug", "PlugB", "B")):
        dotnet_runtime.compile_with_roslyn(os.path.join(dotnet_runtime.PROGRAMS, source + ".cs"),
                                           os.path.join(directory, name + ".dll"), symbols)
    return directory


def begin(directory, life):
    return [lib.start(dotnet_runtime.command(os.path.join(directory, "churn.dll")) + [str(SECONDS), str(life), directory],
                      stdout=subprocess.DEVNULL)]


def main():
    lib.need(platform.machine() == "x86_64", "stacks of .NET methods that come and go", "its code is read on x86-64 alone")
    lib.need(shutil.which("mcs"), "stacks of .NET methods that come and go", "there is no compiler of C# (mono-mcs)")
    try:
        directory = compile_programs()
    except (dotnet_runtime.Unavailable, OSError) as e:
        lib.need(False, "stacks of .NET methods that come and go", "there is no compiler or runtime: %s" % e)
    churn = churn_lib.Churn(lib.Otprofd(hz=HZ, profile={"sample_attributes": "process.pid"}, targets={"include": ["exe:dotnet"]}))
    for name, (life, highest) in RUNS.items():
        # Beside others a reading may come late; what it names must be right all the same.
        if re.search(MODES, name):
            churn.run("%s, %d ms" % (name, life), lambda ms=life: begin(directory, ms), SECONDS, judge,
                      highest if WHOLE else max(highest, 0.05))
    churn.stop()
    for judged in churn.all:
        if judged.label.startswith("extreme"):
            continue
        judged.ok_alone(set(judged.seen[churn_lib.RIGHT]) == {"dynamic", "loaded"}, "%s: methods of both kinds are known: %s" % (
            judged.label, dict(judged.seen[churn_lib.RIGHT])))


main()
lib.finish()

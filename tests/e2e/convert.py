# SPDX-License-Identifier: Apache-2.0
"""otprof convert on the profiles of a capture: types, filters, comparisons."""
import gzip
import os
import re
import subprocess
import xml.etree.ElementTree

import lib

GOLDEN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden", "x86_64-shares.capture.gz")
work = lib.scratch()


def path(name):
    return os.path.join(work, name)


def convert(*args):
    return subprocess.run([lib.OTPROF, "convert"] + list(args), capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL)


def collapsed(name, *args):
    """Lines of FILE.collapsed: {stack: numbers}."""
    p = convert("-o", path(name), *args)
    if p.returncode:
        lib.note(p.stderr.strip()[:300])
        return {}
    with open(path(name)) as f:
        return {m[1]: [int(n) for n in m[2].split()] for m in (re.match(r"(.*?)((?: \d+)+)$", line) for line in f)}


def total(stacks):
    return sum(n[-1] for n in stacks.values())


def replay():
    """One file with the profiles of the capture."""
    d = lib.Otprofd(hz=97, daemon=False)
    with gzip.open(GOLDEN) as packed, open(path("capture"), "wb") as f:
        f.write(packed.read())
    p = subprocess.run([lib.OTPROFD, "-f", d.conf, "--replay", path("capture")], capture_output=True, text=True, timeout=120,
                       stdin=subprocess.DEVNULL)
    p = convert("-o", path("cpu.otlp"), d.files) if not p.returncode else p
    lib.ok(not p.returncode, "a capture becomes one request %s" % p.stderr.strip()[-200:])


def other_type():
    """The same profile as samples of another type: names of equal length, so that no length in front changes."""
    with open(path("cpu.otlp"), "rb") as f:
        data = f.read()
    for old, new in ((b"\x07samples", b"\x07pgfault"), (b"\x03cpu", b"\x03pgf"), (b"\x0bnanoseconds", b"\x0bother_units")):
        lib.ok(data.count(old) == 1, "the request has one string %s" % old[1:].decode())
        data = data.replace(old, new)
    with open(path("faults.otlp"), "wb") as f:
        f.write(data)


def types(whole):
    p = convert("-o", path("all.svg"), path("faults.otlp"), path("cpu.otlp"))
    lines = p.stderr.splitlines()
    lib.ok(p.returncode == 0 and len(lines) == 2 and "all.svg: " in lines[0] and lines[0].endswith(" samples") and
           "all.pgfault.svg: " in lines[1] and lines[1].endswith(" pgfault"), "a file for each type, and it says so: %s" % lines)
    with open(path("all.pgfault.svg")) as f:
        text = f.read()
    lib.ok(" pgfault (" in text and " samples (" not in text, "its figures are in its unit")
    both = [collapsed("all.collapsed", path("faults.otlp"), path("cpu.otlp"))]
    with open(path("all.pgfault.collapsed")) as f:
        lib.ok(len(f.readlines()) == len(both[0]) and total(both[0]) == total(whole), "collapsed stacks are apart by type, too")
    p = convert("-o", path("all.pb.gz"), path("faults.otlp"), path("cpu.otlp"))
    with gzip.open(path("all.pb.gz")) as f:
        raw = f.read()
    lib.ok(p.returncode == 0 and b"pgfault" in raw and b"samples" in raw, "pprof holds both: %s" % p.stderr.strip())
    p = convert("--type", "pgfault", "-o", path("one.pb.gz"), path("faults.otlp"), path("cpu.otlp"))
    with gzip.open(path("one.pb.gz")) as f:
        raw = f.read()
    lib.ok(p.returncode == 0 and b"pgfault" in raw and b"nanoseconds" not in raw, "--type writes one")
    p = convert("--type", "heap", "-o", path("none.svg"), path("cpu.otlp"))
    lib.ok(p.returncode == 1 and "cpu" in p.stderr and not os.path.exists(path("none.svg")),
           "a type that is not there is refused: %s" % p.stderr.strip())


def filters(whole):
    cpu = path("cpu.otlp")
    focus = collapsed("f.collapsed", "--focus", "^work_", cpu)
    ignore = collapsed("i.collapsed", "--ignore", "^work_", cpu)
    lib.ok(focus and all(";work_" in s for s in focus) and not any(";work_" in s for s in ignore) and
           total(focus) + total(ignore) == total(whole), "--focus and --ignore part the stacks (%d and %d of %d)" % (
               total(focus), total(ignore), total(whole)))
    two = collapsed("t.collapsed", "--focus", "^work_half$", "--focus", "^work_third$", "--ignore", "^work_third$", cpu)
    lib.ok(two and all(";work_half" in s for s in two), "several are any of them")
    hidden = collapsed("h.collapsed", "--hide", "native,marker", cpu)
    lib.ok(len(whole) > 1 and list(hidden) == ["shares;[hidden]"] and total(hidden) == total(whole),
           "--hide leaves frames out and totals as they are: %s" % hidden)
    convert("--hide", "native,marker", "-o", path("h.otlp"), cpu)
    lib.ok(collapsed("i.collapsed", path("h.otlp")) == hidden, "so does a request, whose samples all have a frame")
    p = convert("--focus", "^work_", "-o", path("f.otlp"), cpu)
    again = collapsed("g.collapsed", path("f.otlp"))
    lib.ok(again == focus, "a filtered request has the same stacks: %s" % p.stderr.strip())
    p = convert("--focus", "(a", cpu)
    q = convert("--hide", "cobol", cpu)
    lib.ok(p.returncode == 2 and q.returncode == 2 and "'(a'" in p.stderr and "kernel" in q.stderr,
           "what is no expression or kind is refused: %s" % (p.stderr.splitlines() + q.stderr.splitlines())[:3:2])


def comparison(whole):
    cpu, part = path("cpu.otlp"), path("part.otlp")
    convert("--ignore", "^work_half$", "-o", part, cpu)
    stacks = collapsed("d.collapsed", "--base", cpu, part)
    lib.ok(stacks and all(len(n) == 2 for n in stacks.values()) and {s: n[0] for s, n in stacks.items()} ==
           {s: n[0] for s, n in whole.items()}, "collapsed stacks have the values before and after")
    lib.ok(all((n[1] == 0) == (";work_half" in s) for s, n in stacks.items()), "what is gone has 0 after")
    p = convert("--base", cpu, "-o", path("d.svg"), part)
    with open(path("d.svg")) as f:
        text = f.read()
    xml.etree.ElementTree.fromstring(text)
    lib.ok(p.returncode == 0 and "before: " in text and "are gone" in text and "compared with" in text,
           "a compared flame graph has both figures")
    p = convert("--base", cpu, "-o", path("d.pb.gz"), part)
    q = convert("--base", cpu, "-o", path("d.otlp"), part)
    lib.ok(p.returncode == 2 and q.returncode == 2 and "--base is for .svg and .collapsed" in p.stderr,
           "pprof and OTLP refuse a comparison: %s" % p.stderr.splitlines()[:1])
    p = convert("--base", cpu, "-o", path("e.svg"), path("faults.otlp"))
    lib.ok(p.returncode == 1 and "pgfault" in p.stderr and not os.path.exists(path("e.svg")),
           "so does a base without samples of the type: %s" % p.stderr.strip())


replay()
other_type()
everything = collapsed("whole.collapsed", path("cpu.otlp"))
lib.ok(total(everything) > 50, "the capture holds %d samples" % total(everything))
types(everything)
filters(everything)
comparison(everything)
lib.finish()

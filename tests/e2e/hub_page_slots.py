# SPDX-License-Identifier: Apache-2.0
"""Time and slots in the hub's page, as tests/page/slots.mjs has them; then the files that the page saved, each read by
a program that is made for its format. They are of one range, so all of them have the same sums."""
import csv
import json
import os
import re
import shutil
import subprocess
import time
import xml.etree.ElementTree

import browser
import lib

try:
    import jsonschema
except ImportError as e:
    lib.need(False, "the page's files", "%s; tests/setup.sh installs it" % e)

SPEEDSCOPE = os.path.join(browser.MODULES, "speedscope", "dist", "release")
files = lib.scratch()


def path(suffix):
    return os.path.join(files, browser.LOAD + suffix)


def read(suffix):
    with open(path(suffix)) as f:
        return f.read()


def collapsed(text):
    """{function: [self, total]} of collapsed stacks; a stack counts once for a function."""
    sums = {}
    for line in text.splitlines():
        stack, value = re.fullmatch(r"(.+) (\d+)", line).groups()
        frames = stack.split(";")
        sums.setdefault(frames[-1], [0, 0])[0] += int(value)
        for name in set(frames):
            sums.setdefault(name, [0, 0])[1] += int(value)
    return sums


def otlp(whole):
    p = subprocess.run([lib.OTPROF, "convert", "-o", os.path.join(files, "again.collapsed"), path("-cpu.otlp")],
                       capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    again = os.path.join(files, "again.collapsed")
    same = not p.returncode and sorted(open(again).read().splitlines()) == sorted(
        browser.LOAD + ";" + line for line in whole.splitlines())
    lib.ok(same, "otprof convert reads the OTLP file: the collapsed file's stacks, below the service %s" % p.stderr.strip()[-200:])


def speedscope(total):
    data = json.loads(read("-cpu.speedscope.json"))
    with open(os.path.join(SPEEDSCOPE, "file-format-schema.json")) as f:
        schema = json.load(f)
    try:
        jsonschema.validate(data, schema)
        wrong = ""
    except jsonschema.ValidationError as e:
        wrong = e.message
    lib.ok(not wrong, "the file is as speedscope's schema has it %s" % wrong[:200])
    p = data["profiles"][0]
    lib.ok(sum(p["weights"]) == p["endValue"] > 0 and len(p["samples"]) == len(p["weights"]),
           "its weights are its whole time (%d samples)" % total)


def pprof(total):
    if not shutil.which("go"):
        lib.skip("the pprof file by Google's pprof", "no go")
        return
    p = subprocess.run(["go", "tool", "pprof", "-top", "-sample_index=samples", path("-cpu.pb.gz")], capture_output=True,
                       text=True, stdin=subprocess.DEVNULL, timeout=60, env={**os.environ, "PPROF_NO_BROWSER": "1"})
    shown = re.search(r"of (\d+) total", p.stdout) or re.search(r"accounting for (\d+)", p.stdout)
    lib.ok(p.returncode == 0 and shown and int(shown[1]) == total, "Google's pprof reads it: %s of %d samples %s" % (
        shown and shown[1], total, p.stderr.strip()[-200:]))


def svg():
    root = xml.etree.ElementTree.fromstring(read("-cpu.svg"))
    lib.ok(root.tag.endswith("svg") and "page_load" in read("-cpu.svg"), "the SVG is XML, and a picture of the workload")


def table(sums, total):
    """The page's own table: by name, as functions of one name and several kinds are several rows."""
    mine = {}
    for row in csv.DictReader(read(".csv").splitlines()):
        mine.setdefault(row["Function"].lstrip("'"), []).append((int(row["Self"]), int(row["Total"])))
    differing = {n: (rows, sums.get(n)) for n, rows in mine.items() if len(rows) == 1 and list(rows[0]) != sums.get(n)}
    lib.ok(not differing and len(mine) > 20 and sum(s for rows in mine.values() for s, _ in rows) == total,
           "the table's self and total of %d functions are those of the stacks %s" % (len(mine), dict(list(differing.items())[:3])))


browser.need()
d = browser.hub()
load = browser.load()
other = [lib.program("shares", 170, stdout=subprocess.DEVNULL), lib.program("depth", 10, 170, stdout=subprocess.DEVNULL)]
time.sleep(8)
browser.run("slots.mjs", d, DOWNLOADS=files, SPEEDSCOPE=SPEEDSCOPE)
d.stop()
if lib.ok(len(os.listdir(files)) >= 6, "the files are there: %s" % sorted(os.listdir(files))):
    whole = read("-cpu.collapsed")
    sums = collapsed(whole)
    total = sum(own for own, _ in sums.values())
    otlp(whole)
    speedscope(total)
    pprof(total)
    svg()
    table(sums, total)
lib.finish()

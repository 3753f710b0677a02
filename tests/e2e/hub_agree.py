# SPDX-License-Identifier: Apache-2.0
"""One profile, four ways: the API's tree, the page's table of it, otprof convert of the same requests, and Google's pprof
on the snapshot give each function the same self and total. Real programs: a server, a compiler, an interpreter with
recursion."""
import collections
import csv
import json
import os
import re
import shutil
import subprocess
import time

import browser
import lib
import workloads
from hub_client import Hub

TABLE = os.path.join(browser.PAGE, "table.mjs")


def of_stacks(stacks):
    """{name: (self, total)} of (names, value); a stack counts once for a function. And the names that recur."""
    own, total, recursive = collections.Counter(), collections.Counter(), set()
    for names, value in stacks:
        own[names[-1]] += value
        for name in set(names):
            total[name] += value
        recursive |= {n for n, times in collections.Counter(names).items() if times > 1}
    return {n: (own[n], total[n]) for n in total}, recursive


def tree_stacks(tree):
    path, n, f = [], tree["nodes"], tree["functions"]
    for depth, function, value in zip(n["depth"], n["function"], n["self"]):
        del path[depth:]
        path.append(tree["strings"][f["name"][function]])
        if value and depth:
            yield path[1:], value


def collapsed_stacks(text, service):
    for line in text.splitlines():
        stack, value = re.fullmatch(r"(.+) (\d+)", line).groups()
        frames = stack.split(";")
        if frames[0] == service:
            yield frames[1:], int(value)


def by_convert(files, service):
    out = os.path.join(lib.scratch(), "all.collapsed")
    p = subprocess.run([lib.OTPROF, "convert", "-o", out] + files, capture_output=True, text=True, timeout=60,
                       stdin=subprocess.DEVNULL)
    if p.returncode:
        lib.note(p.stderr.strip()[-300:])
        return {}
    with open(out) as f:
        return of_stacks(collapsed_stacks(f.read(), service))[0]


def single(rows):
    """{name: (self, total)} of those names that only one row has."""
    by_name = collections.defaultdict(list)
    for name, own, total in rows:
        by_name[name].append((own, total))
    return {n: values[0] for n, values in by_name.items() if len(values) == 1}


def by_page(tree):
    p = subprocess.run(["node", TABLE], input=json.dumps(tree), capture_output=True, text=True, timeout=60)
    if p.returncode:
        lib.note(p.stderr.strip()[-300:])
    rows = csv.DictReader(p.stdout.splitlines())
    return single((re.sub(r"^'(?=[=+@-])", "", r["Function"]), int(r["Self"]), int(r["Total"])) for r in rows)


def by_pprof(snapshot):
    path = os.path.join(lib.scratch(), "snapshot.pb.gz")
    with open(path, "wb") as f:
        f.write(snapshot)
    p = subprocess.run(["go", "tool", "pprof", "-top", "-sample_index=samples", "-symbolize=none", "-nodecount=1000000",
                        "-nodefraction=0", "-edgefraction=0", path], capture_output=True, text=True, timeout=60,
                       stdin=subprocess.DEVNULL)
    rows = []
    for line in p.stdout.splitlines():
        m = re.fullmatch(r"\s*(\d+)\s+\S+%\s+\S+%\s+(\d+)\s+\S+%  (.+?)(?: \((?:partial-)?inline\))?", line)
        if m:
            rows.append((m[3], int(m[1]), int(m[2])))
    if not rows:
        lib.note((p.stderr + p.stdout).strip()[-300:])
    return single(rows)


def file_times(d):
    """[(path, start, end)] of the destination's files, ms."""
    times = []
    for path in lib.profile_files(d.files):
        heads = lib.profiles(lib.read(path))
        if heads:
            times.append((path, min(p.time_unix_nano for p in heads) // 10**6,
                          max(p.time_unix_nano + p.duration_nano for p in heads) // 10**6))
    return times


def same(what, expected, other, most):
    """Functions that both have: all of the larger part, but for names that several functions have."""
    missing = [n for n, (_, total) in expected.items() if total and n not in other]
    differing = {n: (expected.get(n), v) for n, v in other.items() if expected.get(n) != v}
    lib.ok(not differing and len(other) > 10 and len(missing) <= most * len(expected),
           "%s: self and total of %d functions%s %s" % (
               what, len(other), ", %d have names of several" % len(missing) if missing else "",
               dict(list(differing.items())[:3]) or ""))


def fetch(d, name):
    """The workload, its tree, and the pprof snapshot of the tree's range."""
    w = Hub(d).workload(name)
    status, _, body = Hub(d).ask("GET", "/api/v1/workloads/%s/tree" % w["id"])
    if not lib.ok(status == 200, "%s: a tree (%d)" % (name, status)):
        return None
    tree = json.loads(body)
    window = (w["id"], tree["from_ms"], tree["to_ms"])
    return w, tree, Hub(d).ask("GET", "/api/v1/workloads/%s/snapshot?format=pprof&from=%d&to=%d" % window)[2]


def agree(name, recursion, got, times):
    w, tree, snapshot = got
    expected, recursive = of_stacks(tree_stacks(tree))
    lib.ok(tree["value"] > 80 and sum(own for own, _ in expected.values()) == tree["value"] and
           (not recursion or recursion <= recursive), "%s: %d samples, %d functions, of which %d recur" % (
               name, tree["value"], len(expected), len(recursive)))
    lib.ok(all(total <= tree["value"] for _, total in expected.values()), "%s: no total is more than all" % name)
    files = [path for path, start, end in times if tree["from_ms"] <= start and end <= tree["to_ms"]]
    same("%s: otprof convert" % name, expected, by_convert(files, w["service"]), 0)
    if shutil.which("node"):
        same("%s: the page's table" % name, expected, by_page(tree), 0.1)
    else:
        lib.skip("%s: the page's table" % name, "no node")
    if shutil.which("go"):
        same("%s: Google's pprof" % name, expected, by_pprof(snapshot), 0.1)
    else:
        lib.skip("%s: Google's pprof" % name, "no go")


d = browser.hub(hz=197)
load = [browser.load()]
names = {browser.LOAD: {"fib"}}
for program, tools in (("redis", workloads.ALL["redis"]), ("gcc", workloads.ALL["gcc"])):
    if workloads.have(*tools[0]):
        load += tools[1](150)
        names[tools[2][0]] = set()
    else:
        lib.skip(program, "not installed")
for name in names:
    found = lib.wait_for(lambda: Hub(d).workload(name), 40, 0.5)
    lib.ok(found and Hub(d).ask("PUT", "/api/v1/workloads/%s/slot" % found["id"])[0] == 201, "%s: its slot is opened" % name)
time.sleep(8)
lib.wait_for(lambda: all(Hub(d).workload(n)["slot"]["counts"]["kept"] > 100 for n in names), 60, 0.5)
workloads.end_all(load)
time.sleep(6) # the last interval arrives
trees = {name: fetch(d, name) for name in names}
times = file_times(d)
for name, recursion in names.items():
    if trees[name]:
        agree(name, recursion, trees[name], times)
lib.check_ledger(d.stop(), "hub_agree", stopped=True)
lib.finish()

# SPDX-License-Identifier: Apache-2.0
"""Generated code that nothing describes, at random stops: the whole stack is the one that a debugger sees when it lets
the code return and unwinds from where it arrives (gdb_generated.py). The programs are makers, whose callers are of all
kinds, and grep -P, whose patterns PCRE2 compiles; with GENERATED=all there are more stops, and queries that PostgreSQL
compiles by LLVM, in whose profile stacks are whole as well. TENSORFLOW=PYTHON names a Python that has TensorFlow, whose
kernels oneDNN compiles."""
import os
import platform
import re
import subprocess

import lib
import workloads
import workloads_native

ALL = os.environ.get("GENERATED") == "all"
STOPS = 300 if ALL else 30
BUSY = 60 + STOPS // 2
SECONDS = 10 # of a profile
TOOL = os.path.join(lib.BUILD, "unwind_stops")
TEXT = "the quick brown fox jumps over lazy dogs aaaaaaaaaaaaaaaaaaaaaaa 1f7"
PATTERN = r"(\w+)\s(\w+)\s.*(a|aa)+c\1"
JIT = ("jit=on", "jit_above_cost=0", "jit_inline_above_cost=0", "jit_optimize_above_cost=0",
       "max_parallel_workers_per_gather=0")
# Whole minutes of work for one compilation: PostgreSQL compiles each query anew.
QUERY = """select a.bid, sum(a.aid::bigint * 3 - a.abalance + g), avg(g * a.aid), count(*) filter (where a.aid % 3 = 1),
max(length(a.filler)) from pgbench_accounts a, generate_series(1, 1000) g where a.aid * 2 > g group by a.bid"""
TRAINING = """
import sys, time
import tensorflow as tf
L = tf.keras.layers
net = tf.keras.Sequential([L.Conv2D(32, 3, activation="relu"), L.DepthwiseConv2D(3), L.Conv2D(24, 1), L.BatchNormalization(),
                           L.AveragePooling2D(2), L.Reshape((-1, 24)), L.LSTM(48), L.Dense(64, activation="gelu"), L.Dense(10)])
image, matrix = tf.random.uniform((8, 24, 24, 3)), tf.random.uniform((300, 300))
@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(net(image, training=True) ** 2)
    half = tf.cast(matrix, tf.bfloat16)
    return tape.gradient(loss, net.trainable_variables), tf.nn.softmax(tf.matmul(matrix, matrix)), tf.matmul(half, half)
step()
print("ready", flush=True)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    step()
"""


def makers():
    # Each part has some milliseconds of CPU in turn.
    return lib.program("makers", BUSY // 4)


def grep():
    lines = lib.start(["yes", TEXT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return workloads.quiet(["grep", "-cP", PATTERN], stdin=lines.stdout)


def postgres():
    _, base = workloads_native.postgres_server(*JIT)
    return client_of(base, ["psql"] + base + ["-c", QUERY, "postgres"])


def client_of(base, command):
    """The server's process for a client that never ends in time."""
    workloads.quiet(command)
    found = []

    def working():
        found[:] = subprocess.run(["psql"] + base + ["-tAc", "select pid from pg_stat_activity where state = 'active' and "
                                                     "pid <> pg_backend_pid() and query like '%filter%'", "postgres"],
                                  capture_output=True, text=True).stdout.split()
        return found
    lib.wait_for(working, 10)
    lib.time.sleep(2) # it compiles first
    return int(found[0])


def tensorflow():
    p = lib.start([os.environ["TENSORFLOW"], "-c", TRAINING, str(4 * BUSY)], stdout=subprocess.PIPE,
                  stderr=subprocess.DEVNULL)
    p.stdout.readline()
    return p


def compare(where):
    told = subprocess.run([TOOL, where], capture_output=True, text=True)
    m = re.search(r"^(\d+) stops, (\d+) equal; (\d+) frames", told.stdout, re.M)
    return [int(x) for x in m.groups()] if m else [0, 0, 0], told.stdout


def mislead(where):
    """Another caller of the generated code in the last stop, by one byte."""
    path = os.path.join(where, "stops")
    with open(path) as f:
        head, _, pcs = f.read().rpartition("pcs ")
    words = pcs.split()
    words[-1 - len(words) // 2] = "%x" % (int(words[-1 - len(words) // 2], 16) + 1)
    with open(path, "w") as f:
        f.write(head + "pcs " + " ".join(words) + "\n")


def check_stops(name, pid, stops):
    """At least stops of them, each equal to the witness'; which is no witness if it cannot contradict."""
    where = os.path.join(lib.scratch(), "stops")
    told = subprocess.run([os.path.join(lib.HERE, "compare_gdb.sh"), TOOL, str(stops), str(pid)], capture_output=True,
                          text=True, env=dict(os.environ, STOPS_GENERATED="1", KEEP=where))
    (seen, equal, frames), text = compare(where)
    lib.ok(seen == stops and equal == stops, "%s: the stack is the one that generated code returned to on %d of %d random stops "
           "(%d frames)" % (name, equal, stops, frames))
    if equal != stops:
        lib.note("\n# ".join((text + told.stderr).splitlines()[:60]))
    if seen:
        mislead(where)
        (_, fewer, _), _ = compare(where)
        lib.ok(fewer == equal - 1, "%s: a caller that is another one is noticed" % name)


def check_profile(name, command, service, maker):
    """Of a whole profile: stacks in generated code end at a root, and are named after their maker."""
    d = lib.Otprofd(hz=lib.rate(499), targets={"include": ["exe:" + service]})
    lib.time.sleep(1)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    lib.time.sleep(1.5)
    last = d.stop()
    mine = [(lib.user_part(s), s.count) for s in lib.samples(d.files) if lib.service(s) == service]
    inside = [(names, marker, n) for (names, marker), n in mine if any(x.startswith("[generated") for x in names)]
    every, cut = sum(n for _, n in mine), sum(n for (_, marker), n in mine if marker)
    count, whole = sum(n for _, _, n in inside), sum(n for names, marker, n in inside if not marker)
    named = sum(n for names, _, n in inside if "[generated code, called by %s]" % maker in names)
    lib.ok(count > 100 and whole >= 0.99 * count, "%s: %d of %d stacks in generated code are whole" % (name, whole, count))
    lib.ok(named >= 0.99 * count, "%s: %d of %d name %s" % (name, named, count, maker))
    lib.ok(cut <= 0.01 * every, "%s: %d of %d stacks are cut" % (name, cut, every))
    lib.check_ledger(last, name, stopped=True)


def check_pgbench():
    script = workloads_native.written("query.sql", QUERY.replace("1000)", "20)") + ";\n")
    _, base = workloads_native.postgres_server(*JIT)
    check_profile("PostgreSQL under pgbench", ["pgbench", "-n", "-f", script, "-c", "2", "-T", str(SECONDS)] + base +
                  ["postgres"], "postgres", "postgres")


def check(name, tools, begin, stops=STOPS):
    if not workloads.have(*tools):
        lib.skip("%s: the stack is the one that generated code returned to" % name, "not installed")
        return
    p = begin()
    lib.time.sleep(0.3)
    check_stops(name, p if isinstance(p, int) else p.pid, stops)
    if not isinstance(p, int):
        lib.end(p)


lib.need(platform.machine() == "x86_64", "generated code", "written for x86-64")
lib.need(workloads.have("gdb"), "generated code", "gdb is not installed")
check("makers", (), makers)
if subprocess.run(["grep", "-qP", "a"], input="a", text=True).returncode == 0:
    check("grep -P", (), grep)
else:
    lib.skip("grep -P", "this grep has no PCRE2")
if ALL:
    check("PostgreSQL", ("psql", "pgbench"), postgres)
    if workloads.have("psql", "pgbench"):
        check_pgbench()
    if "TENSORFLOW" in os.environ:
        check("TensorFlow", (), tensorflow, STOPS // 3)
    else:
        lib.skip("TensorFlow", "TENSORFLOW names no Python")
lib.finish()

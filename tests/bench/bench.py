# SPDX-License-Identifier: Apache-2.0
"""make bench: every budget beside what is measured here, in one run.
    bench.py [PART...]     parts: cost runtimes module idle wire export replay roots memory hub spool
SECONDS (20) is how long each load runs, MEMORY_SECONDS (600) the memory part. BASE is another build, of a release: the
same parts are measured with its programs, right after, and a table has both."""
import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
import lib  # noqa: E402
import perf  # noqa: E402
import roots as stack_roots  # noqa: E402
import workloads  # noqa: E402
import workloads_native  # noqa: E402

SECONDS = int(os.environ.get("SECONDS_EACH", "20"))
MEMORY_SECONDS = int(os.environ.get("MEMORY_SECONDS", "600"))
rows = []


def row(what, budget, measured, holds=None):
    verdict = "" if holds is None else "ok" if holds else "MISSED"
    rows.append((what, budget, measured, verdict))
    print("  %-52s %-18s %-22s %s" % rows[-1], flush=True)


def mixed_load(seconds):
    """Both CPUs busy with real programs, as far as they are installed."""
    return [p for tools, begin, _, _ in workloads.ALL.values() if workloads.have(*tools) for p in begin(seconds)]


def bpf_stats(on):
    """Lets the kernel measure program run time; what was set before comes back at the end."""
    path = "/proc/sys/kernel/bpf_stats_enabled"
    with open(path) as f:
        before = f.read().strip()
    with open(path, "w") as f:
        f.write(on)
    return before


def pids(status):
    return [status["pid"]] + [w["pid"] for w in status["workers"].values()] + children(status["pid"])


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(c) for c in f.read().split()]


def difference(first, second, *path):
    for key in path:
        first, second = first[key], second[key]
    return second - first


def measure(begin, warm_up, seconds, **config):
    """Runs a load under a daemon. Status after the warm-up, status at the end, and what the stop said."""
    d = lib.Otprofd(**config)
    load = begin()
    time.sleep(warm_up)
    first = d.status()
    time.sleep(seconds)
    second = d.status()
    last = d.stop()
    workloads.end_all(load)
    return first, second, last


def per_sample(first, second, *parts):
    """Microseconds of those parts of the cost for each sample; and the samples."""
    taken = max(difference(first, second, "ledger", "taken"), 1)
    return {k: difference(first, second, "cost", k) / taken / 1000 for k in parts}, taken


def cost_at(hz):
    """Kernel and process time per sample under the mixed load, after a warm-up."""
    first, second, last = measure(lambda: mixed_load(SECONDS + 10), 6, SECONDS, hz=hz, interval="5s")
    parts, taken = per_sample(first, second, "kernel_ns", "monitor_cpu_ns", "engine_cpu_ns", "net_cpu_ns")
    return taken, parts, last


def cost():
    for hz, budget in ((97, 20), (20, 35)):
        taken, us, last = cost_at(hz)
        if hz == 97:
            row("kernel time per sample, mixed load, stacks as planned", "<= 2 us", "%.2f us" % us["kernel_ns"], us["kernel_ns"] <= 2)
        total = sum(us.values())
        row("all CPU per sample, %d Hz, both CPUs busy" % hz, "<= %d us" % budget, "%.1f us" % total, total <= budget)
        row("  of that: kernel, monitor, engine, net", "", " ".join("%.1f" % v for v in us.values()) + " us")
        row("  the longest tick, interrupts off", "<= %d us" % (last["cost"]["kernel_limit_ns"] / 1000), "%.0f us" % (
            last["cost"]["kernel_longest_ns"] / 1000))
        row("  samples, lost, missed ticks", "", "%d, %d, %d" % (
            taken, sum(last["ledger"]["lost"].values()), last["ledger"]["missed"]))
    kernel_at_4k()


def kernel_at_4k():
    """Stacks deep enough that the whole 4 KiB are always copied, and no more."""
    first, second, _ = measure(
        lambda: [lib.program("depth", 100, SECONDS, 200, stdout=subprocess.DEVNULL) for _ in range(os.cpu_count())],
        2, min(SECONDS, 8), hz=997, sampler={"stack_bytes": "4K", "stack_max_bytes": "4K"})
    us = per_sample(first, second, "kernel_ns")[0]["kernel_ns"]
    row("kernel time per sample, exactly 4 KiB of stack", "<= 2 us", "%.2f us" % us, us <= 2)


# A chain of calls of that depth, then loops for ever: in each language about as much work a call.
DEEP = {
    "python3": ["-c", "import sys; sys.setrecursionlimit(9999)\n"
                "def f(n):\n  if n: return f(n - 1)\n  while 1:\n    for i in range(9999): n += i\nf(int(sys.argv[1]))"],
    "ruby": ["-e", "def f(n)\n return f(n - 1) if n > 0\n while true\n  n += 1\n end\nend\nf(ARGV[0].to_i)"],
    "php": ["-r", "function f($n) { if ($n) return f($n - 1); while (1) $n++; } f((int)$argv[1]);"],
    "perl": ["-e", "no warnings; sub f { my $n = shift; return f($n - 1) if $n; while (1) { $n++ } } f($ARGV[0])"],
}


def interpreter_cost(argv, walk):
    """Kernel time and the engine's for each sample of one busy interpreter on each CPU, and its interpreted frames."""
    first, second, _ = measure(
        lambda: [lib.start(argv, stdout=subprocess.DEVNULL) for _ in range(os.cpu_count())], 4, min(SECONDS, 6),
        hz=497, interval="1s", runtimes={"walk": walk}, targets={"include": ["exe:" + os.path.realpath(argv[0])]})
    us, taken = per_sample(first, second, "kernel_ns", "engine_cpu_ns")
    return [us["kernel_ns"], us["engine_cpu_ns"], difference(first, second, "quality", "interpreted", "frames") / taken]


def runtimes():
    """Bounds: 1.5 times 3 us with some 20 frames, 20 us with 220 (the trial's figures)."""
    for name, argv in DEEP.items():
        path = "/usr/bin/" + name
        if not os.path.exists(path):
            row("%s: walking" % name, "", "skipped: no %s" % path)
            continue
        for depth, budget in ((20, 1.5 * (8 if name == "ruby" else 4)), (200, 1.5 * 20)):
            off, on = (interpreter_cost([path] + argv + [str(depth)], walk) for walk in ("no", "yes"))
            row("%s, %d calls deep: kernel time per sample" % (name, depth), "<= %.0f us" % budget,
                "%.1f us, without %.1f (%.2f)" % (on[0], off[0], on[0] / max(off[0], 0.01)), on[0] <= budget)
            row("  engine; frames a sample", "", "%.1f us, without %.1f; %.0f" % (on[1], off[1], on[2]))
    interpreted_memory()
    java_large(1, 1000, "512m")
    node_large(1)
    node_large(LARGE_MANY)
    java_large(LARGE_MANY, 1000, "256m")


# Calls for some 5 ms a second, each time from another depth: programs that are there, and little more.
SPARSE = {
    "python3": ["-c", "import time\ndef f(n):\n  return f(n - 1) if n else sum(range(99999))\n"
                "while 1:\n  for d in range(9): f(d); time.sleep(0.1)"],
    "ruby": ["-e", "def f(n) = n > 0 ? f(n - 1) : (1..5000).sum { |i| i }\nloop { 9.times { |d| f(d); sleep 0.1 } }"],
    "php": ["-r", "function f($n) { if ($n) return f($n - 1); for ($i = 0; $i < 30000; $i++); }"
            "while (1) for ($d = 0; $d < 9; $d++) { f($d); usleep(100000); }"],
    "perl": ["-e", "sub f { my $n = shift; return f($n - 1) if $n; for (1 .. 9999) { $x += $_ } }"
             "while (1) { for (0 .. 8) { f($_); select undef, undef, undef, 0.1 } }"],
}
SPARSE_EACH = 50


def interpreted_memory():
    """200 processes of four interpreters, all walked and decoded, and nothing else."""
    argv = [["/usr/bin/" + name] + code for name, code in SPARSE.items() if os.path.exists("/usr/bin/" + name)]
    d = lib.Otprofd(hz=97, interval="5s", targets={"include": ["exe:" + os.path.realpath(a[0]) for a in argv]})
    sparse = [lib.start(a, stdout=subprocess.DEVNULL) for a in argv for _ in range(SPARSE_EACH)]
    most, end = 0, time.monotonic() + 6 * SECONDS
    while time.monotonic() < end:
        time.sleep(SECONDS / 2)
        status = d.status()
        most = max(most, pss_kib(status) + bpf_kib(d.pid))
    seen = status["quality"]["interpreted"]
    row("memory with %d interpreted processes, the most in %d s" % (len(sparse), 6 * SECONDS), "<= 48 MiB",
        "%.1f MiB" % (most / 1024), most <= 48 * 1024)
    row("  what was seen of them", "", ", ".join("%s %s" % (k, v) for k, v in seen.items() if isinstance(v, int)))
    d.stop()
    workloads.end_all(sparse)


# A method whose code is some kilobytes: accesses to an array, each with its checks.
LARGE_METHOD = "\tstatic int m%d(int x) {\n\t\tint[] a = new int[64];\n%s\t\treturn a[x & 63];\n\t}\n"
LARGE_STATEMENT = "\t\ta[(x + %d) & 63] += a[(x * %d) & 63] / ((x & 7) + 1);\n"
LARGE_METHODS = 50
LARGE_BUDGET = 48 << 20
LARGE_MANY = 10


def compile_large():
    """Large.java and the class that it defines again and again."""
    to = lib.scratch()
    methods = "".join(LARGE_METHOD % (n, "".join(LARGE_STATEMENT % (i, 2 * n + i) for i in range(24))) for n in range(LARGE_METHODS))
    part = os.path.join(to, "Part00000.java")
    with open(part, "w", encoding="utf-8") as f:
        f.write("public class Part00000 implements java.util.function.IntUnaryOperator {\n%s\tpublic int applyAsInt(int x) {\n%s"
                "\t\treturn x;\n\t}\n}\n" % (methods, "".join("\t\tx += m%d(x);\n" % n for n in range(LARGE_METHODS))))
    sources = [part, os.path.join(lib.TOP, "tests", "programs", "interpreted", "Large.java")]
    subprocess.run(["javac", "--release", "8", "-g", "-nowarn", "-d", to] + sources, check=True, capture_output=True)
    return to


def codecache(pid):
    """What the virtual machine says of its code: bytes, compiled methods."""
    text = subprocess.run(["jcmd", str(pid), "Compiler.codecache"], capture_output=True, text=True).stdout
    used = sum(int(w.split("=")[1][:-2]) for line in text.splitlines() if "size=" in line for w in line.split() if w.startswith("used="))
    return used << 10, next((int(w.split("=")[1]) for w in text.split() if w.startswith("nmethods=")), 0)


def first_named(d, waiting, function, seconds):
    """Seconds until each of these processes has had a stack with such a function; None: some had none."""
    began, waiting, read = time.monotonic(), set(waiting), set()
    while time.monotonic() - began < seconds:
        time.sleep(0.5)
        for path in set(lib.profile_files(d.files)) - read:
            read.add(path)
            waiting -= {s.attributes.get("process.pid") for s in lib.samples_of(lib.read(path)) if any(map(function.match, s.stack))}
        if not waiting:
            return time.monotonic() - began
    return None


LARGE_FIRST = 5  # seconds


def large_rows(processes, exe, function, rest=lambda: None):
    """otprofd meets programs of much compiled code, which run until rest is called: what that costs at first, and then."""
    d = lib.Otprofd(hz=97, interval="1s", profile={"sample_attributes": "process.pid"}, targets={"include": ["exe:" + exe]})
    first = first_named(d, [p.pid for p in processes], function, 60)
    # Each has its turn on the CPUs, and its decoder among those that run.
    budget = LARGE_FIRST * max(1, len(processes) // 2)
    row("  first stacks with a function of %s" % ("the program" if len(processes) == 1 else "each program"), "<= %d s" % budget,
        "none" if first is None else "%.1f s" % first, first is not None and first <= budget)
    most, before = 0, None
    for _ in range(8):
        time.sleep(SECONDS / 4)
        after = d.status()
        most = max(most, (pss_kib(after) + bpf_kib(d.pid)) << 10)
        before = before or after
    us, taken = per_sample(before, after, "kernel_ns", "engine_cpu_ns", "opener_cpu_ns")
    row("  memory of all processes, the most", "<= 48 MiB", "%.1f MiB" % (most / (1 << 20)), most <= LARGE_BUDGET)
    row("  CPU time per sample of %d: kernel, engine, decoders" % taken, "", " ".join("%.0f" % v for v in us.values()) + " us")
    seen = after["quality"]["interpreted"]
    row("  frames of the runtime; without a name", "", "%d; %d" % (seen["frames"], seen["frames_unknown"]))
    d.stop()
    rest()
    workloads.end_all(processes)


def java_compiles(pid, methods):
    """Waits until the process has compiled so many, for some minutes."""
    for _ in range(120):
        used, nr = codecache(pid)
        if nr >= methods:
            break
        time.sleep(2)
    return used, nr


def java_large(count, classes, heap):
    """Java programs of 50 * classes compiled methods each."""
    if not all(map(shutil.which, ("java", "javac", "jcmd"))):
        row("Java, 50,000 compiled methods", "", "skipped: no java, javac or jcmd")
        return
    to = compile_large()
    # One after the other, and those that are ready stand still meanwhile: beside each other they would take hours.
    processes, caches = [], []
    for _ in range(count):
        processes.append(lib.start(["java", "-XX:ReservedCodeCacheSize=240m", "-XX:TieredStopAtLevel=1",
                                    "-XX:CompileThresholdScaling=0.01", "-Xmx" + heap, "-cp", to, "Large", str(classes), "36000"],
                                   stdout=subprocess.DEVNULL))
        caches.append(java_compiles(processes[-1].pid, classes * LARGE_METHODS))
        processes[-1].send_signal(signal.SIGSTOP)
    for p in processes:
        p.send_signal(signal.SIGCONT)
    row("%s: compiled methods, bytes of their code" % ("Java" if count == 1 else "%d of Java" % count), "", "%d, %.0f MiB" % (
        sum(nr for _, nr in caches), sum(used for used, _ in caches) / (1 << 20)))
    large_rows(processes, "java", re.compile("Part"))


# A function with a loop of its own, as the next one has but for numbers.
NODE_FUNCTION = """	part%(n)d(x) {
		const seen = [x];
		for (let i = 0; i < 20; i++) seen[i & 7] = (x * %(n)d + i) %% 1000003 + (seen[i & 3] | 0);
		return seen.length + %(n)d;
	},
"""
NODE_FUNCTIONS, NODE_MODULES, NODE_EACH = 20000, 400, 400


def node_modules():
    """A directory of modules, which together have the functions."""
    to, each = lib.scratch(), NODE_FUNCTIONS // NODE_MODULES
    for m in range(NODE_MODULES):
        with open(os.path.join(to, "module%04d.js" % m), "w", encoding="utf-8") as f:
            f.write('"use strict";\nmodule.exports = {\n%s};\n' % "".join(
                NODE_FUNCTION % {"n": n} for n in range(m * each, (m + 1) * each)))
    return to


def node_requests(ports, ended):
    """One client of all servers, over connections that stay."""
    clients = [http.client.HTTPConnection("127.0.0.1", port) for port in ports]
    while not ended.is_set():
        for c in clients:
            c.request("GET", "/")
            c.getresponse().read()


def node_large(count):
    """Servers of 20,000 functions each."""
    if not shutil.which("node"):
        row("Node.js, 20,000 functions", "", "skipped: no node")
        return
    source = os.path.join(lib.TOP, "tests", "programs", "interpreted", "large.js")
    argv = ["node", source, node_modules(), str(NODE_EACH)]
    servers = [lib.start(argv, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    ports, ended = [int(p.stdout.readline()) for p in servers], threading.Event()
    client = threading.Thread(target=node_requests, args=(ports, ended), daemon=True)
    client.start()
    row("%s: functions" % ("Node.js" if count == 1 else "%d of Node.js" % count), "", "%d" % (count * NODE_FUNCTIONS))
    large_rows(servers, "node", re.compile("part"), lambda: (ended.set(), client.join()))


def module():
    """In a guest, because a module may not be loaded here: only the ratio means something there."""
    p = subprocess.run([os.path.join(HERE, "module.sh"), lib.BUILD], capture_output=True, text=True)
    runs = [line.split()[1:] for line in p.stdout.splitlines() if line.startswith("cost ")]
    if p.returncode or not runs:
        why = [line for line in (p.stderr + p.stdout).splitlines() if line.strip()]
        row("module: time per sample, 4 KiB of stack", "", "skipped" if p.returncode == 77 else "failed", None if p.returncode == 77 else False)
        lib.note(why[-1] if why else "module.sh said nothing")
        return
    us = {s: min(int(ns) for source, _, ns, _, _ in runs if source == s) / 1000 for s in ("bpf", "kmod")}
    longest, bound = max((int(ns), int(limit)) for source, _, _, ns, limit in runs if source == "kmod")
    row("module / eBPF, time per sample, 4 KiB, one guest", "<= 1", "%.2f (%.1f / %.1f us)" % (
        us["kmod"] / us["bpf"], us["kmod"], us["bpf"]), us["kmod"] <= us["bpf"])
    row("  the module's longest run, interrupts off", "<= %d us" % (bound / 1000), "%.0f us, %d samples" % (
        longest / 1000, sum(int(n) for source, n, _, _, _ in runs if source == "kmod")), longest <= bound)


def switches(pid):
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, task)) as f:
            total += sum(int(line.split()[1]) for line in f if line.startswith("voluntary_ctxt"))
    return total


def idle():
    d = lib.Otprofd(hz=20, interval="5s")
    time.sleep(5)
    everyone = pids(d.status())
    before = sum(switches(p) for p in set(everyone))
    time.sleep(20)
    rate = (sum(switches(p) for p in set(everyone)) - before) / 20
    taken = d.status()["ledger"]["taken"]
    d.stop()
    row("wake-ups a second, all processes, idle host", "<= 10", "%.1f (%d samples)" % (rate, taken), rate <= 10)


def gzip_bytes(data):
    """As the exporter compresses (export/gzip.c)."""
    z = zlib.compressobj(6, zlib.DEFLATED, 15 + 16, 4)
    return len(z.compress(data) + z.flush())


def wire():
    d = lib.Otprofd(hz=20, interval="5s")
    load = mixed_load(SECONDS + 10)
    time.sleep(SECONDS + 6)
    d.stop()
    workloads.end_all(load)
    sizes = [(gzip_bytes(lib.read(f)), sum(s.count for s in lib.samples_of(lib.read(f))))
             for f in lib.profile_files(d.files)]
    per_sample = sum(s for s, _ in sizes) / max(sum(n for _, n in sizes), 1)
    row("bytes per sample on the wire, gzip, 20 Hz, mixed load", "<= 57", "%.1f" % per_sample, per_sample <= 57)


def of_destination(status, name):
    """Bytes a sample, requests, and milliseconds of net's CPU time a request."""
    d = status["ledger"]["destinations"][name]
    return d["bytes"] / max(d["exported"], 1), d["requests"], status["cost"]["net_cpu_ns"] / max(d["requests"], 1) / 1e6


def of_files(d, samples, preset, seconds, coding):
    """What net makes of the requests that were written, by the code that it runs."""
    files = sorted(lib.profile_files(d.files))
    p = subprocess.run([os.path.join(lib.BUILD, "bench_wire"), "5000", preset, str(seconds * 1000), coding] + files,
                       capture_output=True, text=True, check=True)
    r = lib.json.loads(p.stdout)
    row("%s, %d s, %s: bytes a sample" % (preset, seconds, coding), "", "%.1f" % (r["bytes"] / samples))
    row("  CPU time a request: shape, compression; KB", "", "%.1f, %.1f ms; %.0f" % (
        r["shape_us"] / 1e3 / r["requests"], r["coding_us"] / 1e3 / r["requests"], r["bytes"] / 1e3 / r["requests"]))


def export():
    """Bytes on the wire and CPU time by preset, interval and compression, all of the same requests; and all of net's CPU
    time where one destination gets them as the engine makes them."""
    sink = lib.Sink()
    d = lib.Otprofd(hz=20, interval="5s", exporters={"a": {"endpoint": sink.url}, "files": {"endpoint": "file://FILES"}})
    load = mixed_load(3 * SECONDS + 10)
    time.sleep(3 * SECONDS + 6)
    last = d.stop()
    workloads.end_all(load)
    bytes_, requests, ms = of_destination(last, "a")
    samples = last["ledger"]["destinations"]["files"]["exported"]
    row("sent to a receiver, 20 Hz, mixed load: bytes a sample", "", "%.1f" % bytes_)
    row("  requests; all of net's CPU time a request", "", "%d; %.1f ms" % (requests, ms))
    if not os.path.exists(os.path.join(lib.BUILD, "bench_wire")):
        return
    for preset in ("otlp", "pyroscope"):
        for seconds in (5, 15, 60):
            for coding in ("gzip", "zstd"):
                of_files(d, samples, preset, seconds, coding)


def captured(load, hz, seconds, **sections):
    d = lib.Otprofd(hz=hz, daemon=False, interval="5s", **sections)
    path = os.path.join(d.dir, "capture")
    d.argv += ["--capture", path]
    d.start()
    running = load(seconds + 4)
    time.sleep(seconds)
    d.stop()
    workloads.end_all(running)
    return d.conf, path


def replayed(conf, path, rounds=4):
    p = subprocess.run([os.path.join(lib.BUILD, "bench_replay"), conf, path, str(rounds)], capture_output=True, text=True)
    if p.returncode:
        lib.note("replay: " + p.stderr.strip())
        return None
    return lib.json.loads(p.stdout)


def replay():
    thirty = replayed(*captured(lambda s: [lib.program("depth", 26, s, stdout=subprocess.DEVNULL)], 997, 8))
    if thirty:
        row("engine, warm, %.1f frames a stack" % thirty["frames"], "<= 10 us", "%.2f us" % thirty["warm_us"], thirty["warm_us"] <= 10)
    mixed = replayed(*captured(mixed_load, 499, SECONDS))
    if mixed:
        rate = 1e6 / max(mixed["warm_us"], 0.001)
        row("replay, warm, mixed load, %.1f frames a stack" % mixed["frames"], ">= 100,000 /s", "{:,.0f} /s".format(rate), rate >= 100000)
        row("  cold: the first time through", "", "{:,.0f} /s".format(1e6 / max(mixed["cold_us"], 0.001)))


def roots():
    """Stacks of real programs, from their first sample on. Counted apart: generated code that has no table, and
    ticks inside exec, where the old program's stack is gone and the new one has none."""
    print("  %-10s %9s %8s   %s" % ("program", "stacks", "whole", "the rest; perf record --call-graph dwarf,4096 on the same load"))
    for name, (tools, begin, services, comms) in workloads_native.NATIVE.items():
        if not workloads.have(*tools):
            print("  %-10s not installed" % name)
            continue
        d = lib.Otprofd(hz=97)
        load = begin(SECONDS + 4)
        theirs, why = perf.record(SECONDS, lib.scratch())
        d.stop()
        workloads.end_all(load)
        total, whole, apart, reasons = stack_roots.count(d.files, services)
        print("  %-10s %9d %7.2f%%   %s" % (name, total, 100 * whole / max(total, 1), reasons or "-"))
        for what, count in apart.items():
            print("  %-10s %9d            %s: not counted" % ("", count, what))
        if theirs:
            stacks, rooted = perf.roots_in(theirs, comms)
            print("  %-10s %9d %7.2f%%   perf" % ("", stacks, 100 * rooted / max(stacks, 1)))
        else:
            print("  %-10s %s" % ("", why))
        if total:
            row("stacks of %s that end at a true root" % name, ">= 99.5 %", "%.2f %%" % (100 * whole / total), whole >= 0.995 * total)


def pss_kib(status):
    total = 0
    for pid in set(pids(status)):
        try:
            with open("/proc/%d/smaps_rollup" % pid) as f:
                total += sum(int(line.split()[1]) for line in f if line.startswith("Pss:"))
        except (FileNotFoundError, ProcessLookupError):
            pass  # a decoder or an indexer that has ended meanwhile
    return total


def bpf_kib(pid):
    total = 0
    for map_id in lib.fdinfo(pid, "map_id"):
        shown = lib.bpftool("map", "show", "id", str(map_id)) or {}
        total += shown.get("bytes_memlock", 0)
    return total // 1024


def memory():
    """200 idle processes beside the load: the table and the caches are full-sized."""
    d = lib.Otprofd(hz=20, interval="5s")
    sleepers = [lib.start(["sleep", str(MEMORY_SECONDS + 60)]) for _ in range(200)]
    deadline, least, most = time.monotonic() + MEMORY_SECONDS, None, 0
    load = mixed_load(MEMORY_SECONDS)
    while time.monotonic() < deadline:
        time.sleep(min(30, MEMORY_SECONDS / 4))
        status = d.status()
        now = pss_kib(status) + bpf_kib(d.pid)
        least, most = min(least or now, now), max(most, now)
    row("memory after %d s: PSS + BPF maps + buffers" % MEMORY_SECONDS, "<= 48 MiB", "%.1f MiB" % (now / 1024), now <= 48 * 1024)
    row("  least and most on the way; what it says itself", "", "%.1f %.1f; %.1f MiB" % (
        least / 1024, most / 1024, status["cost"]["memory_bytes"] / 2**20))
    d.stop()
    workloads.end_all(load + sleepers)


def viewers(d, n, seconds):
    """CPU time of the hub, of one CPU, and of the engine, while n readers follow a workload."""
    connections, stop = [], time.monotonic() + seconds + 1
    with open(os.path.join(d.runtime, "hub.token")) as f:
        address = f.read().split()[0]

    def ask(method, path):
        c = http.client.HTTPConnection(address, timeout=20)
        c.request(method, "/api/v1" + path)
        return c, c.getresponse()

    w = max(lib.json.loads(ask("GET", "/workloads")[1].read())["workloads"], key=lambda w: w["cpus"] or 0)["id"]
    ask("PUT", "/workloads/%s/slot" % w)[1].read()
    for _ in range(n):
        connections.append(ask("GET", "/events?workload=" + w))
        threading.Thread(target=lambda r: [None for _ in iter(r.readline, b"")], args=(connections[-1][1],), daemon=True).start()
    before = d.status()["cost"]
    time.sleep(max(0, stop - time.monotonic()))
    hub, engine = (difference(before, d.status()["cost"], role + "_cpu_ns") / 1e9 / seconds for role in ("hub", "engine"))
    return hub, engine


def hub_memory(d):
    """KiB of all processes but the slots' bytes; of the hub; of the slots."""
    address = open(os.path.join(d.runtime, "hub.token")).read().split()[0]
    c = http.client.HTTPConnection(address, timeout=20)
    c.request("GET", "/api/v1/slots")
    slots = lib.json.loads(c.getresponse().read())["bytes"] // 1024
    status = d.status()
    alone = pss_kib({"pid": status["workers"]["hub"]["pid"], "workers": {}})
    return pss_kib(status) + bpf_kib(d.pid) - slots, alone - slots, slots


def hub():
    """Requests of the mixed load, kept by the hub for twelve hours; what ten viewers cost; memory; and the page."""
    d = lib.Otprofd(hz=20, interval="5s", hub={"listen": "127.0.0.1:4399", "token": "no"})
    load = mixed_load(4 * SECONDS)
    time.sleep(2 * SECONDS)
    alone = viewers(d, 0, SECONDS)
    ten = viewers(d, 10, SECONDS)
    held = hub_memory(d)
    workloads.end_all(load)
    hub_page()
    d.stop()
    p = subprocess.run([os.path.join(lib.BUILD, "bench_hub"), d.files, "12"], capture_output=True, text=True)
    r = lib.json.loads(p.stdout)
    ratio = r["request_bytes"] / r["slot_bytes"]
    row("hub: 12 h of %d slots beside their requests" % r["slots"], ">= 20 x", "%.0f x (%.1f MiB)" % (
        ratio, r["slot_bytes"] / 2**20), ratio >= 20)
    told = r["slot_bytes"] / r["allocated"]
    row("hub: bytes of slots told, of the allocator's", "90 to 110 %", "%.1f %% of %.1f MiB" % (
        100 * told, r["allocated"] / 2**20), 0.9 <= told <= 1.1)
    row("hub: a tree of %d samples, %d nodes" % (r["samples"], r["nodes"]), "<= 50 ms", "%.1f ms" % (r["answer_us"] / 1e3),
        r["answer_us"] <= 50000)
    row("hub: memory of all processes but the slots' bytes", "<= 48 MiB", "%.1f MiB, the hub %.1f, and slots %.1f" % tuple(
        n / 1024 for n in held), held[0] <= 48 * 1024)
    row("hub: ten viewers, of one CPU", "<= 2 %", "%.2f %% (none: %.2f)" % (100 * ten[0], 100 * alone[0]), ten[0] <= 0.02)
    row("hub: ten viewers, the engine", "no more", "%.2f %% (none: %.2f)" % (100 * ten[1], 100 * alone[1]))


def hub_page():
    """The page in Chromium, drawing by software: in place of the hub's answer, two large trees."""
    page = os.path.join(HERE, "..", "page")
    tools = subprocess.run([os.path.join(page, "run.sh"), "tools"], capture_output=True, text=True, env={**os.environ, "BUILD": lib.BUILD})
    if tools.returncode or not shutil.which("chromium"):
        row("page: first picture, zoom, search", "", "skipped: %s" % (tools.stdout.strip() or "no chromium"))
        return
    p = subprocess.run(["node", os.path.join(page, "speed.mjs")], capture_output=True, text=True, timeout=300, env={
        **os.environ, "HUB_ADDRESS": "127.0.0.1:4399", "HUB_TOKEN": "", "CHROMIUM": shutil.which("chromium"),
        "PLAYWRIGHT": os.path.join(lib.BUILD, "page/node_modules/playwright-core/index.js")})
    for line in p.stdout.splitlines():
        r = lib.json.loads(line)
        row("page: first picture, %s tree of %d nodes" % (r["tree"], r["nodes"]), "<= 300 ms", "%d ms" % r["first"], r["first"] <= 300)
        for what in ("zoom", "scroll", "search"):
            # A frame that is not missed takes 16.7 ms, whatever the clock of the screen adds.
            row("  %s, median of frames" % what, "<= 16.7 ms", "%.1f ms (95 %%: %.1f, CPU %.1f)" % (
                r[what]["median"], r[what]["p95"], r[what]["cpu"]), r[what]["median"] <= 16.8)
    if p.returncode:
        row("page", "", "failed: " + p.stderr.strip()[-100:], False)


def spool():
    """What net's loop pays for a request that goes to disk and comes back, of the size that the mixed load has."""
    p = subprocess.run([os.path.join(lib.BUILD, "bench_spool"), lib.scratch(), "500", "70000"], capture_output=True, text=True)
    r = lib.json.loads(p.stdout)
    own, each = r["thread"], r["each"]
    row("spool: write of a request of 70 kB; read back, dropped", "<= 1 ms", "%.0f us; %.0f us" % (own["write_us"], own["read_us"]),
        own["write_us"] <= 1000 and own["read_us"] <= 1000)
    row("  written and read a second", "", "%d and %d MiB" % (own["write_mib_s"], own["read_mib_s"]))
    row("  the longest write; with a sync each: mean, longest", "", "%.1f ms; %.1f, %.1f ms" % (
        own["worst_us"] / 1e3, each["write_us"] / 1e3, each["worst_us"] / 1e3))


def measured_by(build, part):
    """What one part measures with the programs of another build; a part that it cannot run measures nothing."""
    path = os.path.join(lib.scratch(), "rows")
    subprocess.run([sys.executable, "-B", os.path.abspath(__file__), part], capture_output=True,
                   env={**os.environ, "BUILD": os.path.realpath(build), "BASE": "", "BENCH_ROWS": path})
    if not os.path.exists(path):
        return {}
    with open(path) as f:
        return {what: measured for what, _, measured, _ in lib.json.load(f)}


def beside(build):
    print("\n  %-52s %-24s %s" % ("what", "BASE", "now"))
    before = {}
    for part in parts:
        before.update(measured_by(build, part))
    for what, _, now, _ in rows:
        print("  %-52s %-24s %s" % (what, before.get(what, "-"), now), flush=True)


if os.geteuid() != 0:
    print("bench: the sampler needs root")
    sys.exit(1)
parts = sys.argv[1:] or ["cost", "runtimes", "module", "idle", "wire", "export", "replay", "roots", "memory", "hub", "spool"]
lib.at_end(bpf_stats, bpf_stats("1"))
print("otprof bench: kernel %s, %d CPUs" % (os.uname().release, os.cpu_count()))
print("  %-52s %-18s %s" % ("what", "budget", "measured"))
for part in parts:
    {"cost": cost, "runtimes": runtimes, "module": module, "idle": idle, "wire": wire, "export": export, "replay": replay, "roots": roots,
     "memory": memory, "hub": hub, "spool": spool}[part]()
if os.environ.get("BENCH_ROWS"):
    with open(os.environ["BENCH_ROWS"], "w") as f:
        lib.json.dump(rows, f)
if os.environ.get("BASE"):
    beside(os.environ["BASE"])
missed = [r[0].strip() for r in rows if r[3] == "MISSED"]
print("otprof bench: %d budgets hold, %d missed%s" % (
    sum(r[3] == "ok" for r in rows), len(missed), missed and ": " + "; ".join(missed) or ""))

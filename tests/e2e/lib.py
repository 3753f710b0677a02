# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: facts, a daemon of their own, its status
and ledger, the kernel's counters, programs to profile.

Every test is a script that prints one line a fact ("ok - ", "not ok - ",
"skip - ") and exits 1 if a fact does not hold. It only ever signals
processes that it started.

OTPROF_SOURCE=bpf|kmod|perf says by which source everything is sampled; a fact
that one of them cannot have is a skip with its reason."""

import atexit
import glob
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.realpath(os.path.join(TOP, os.environ.get("BUILD", "build")))
PROGRAMS = os.path.join(BUILD, "programs")
OTPROFD = os.path.join(BUILD, "otprofd")
OTPROF = os.path.join(BUILD, "otprof")
sys.path.insert(0, os.path.join(TOP, "tests", "lib"))
import otlp_check  # noqa: E402
import sink as receiver  # noqa: E402

SKIP = 77
SOURCE = os.environ.get("OTPROF_SOURCE", "bpf")
# What has nothing to do with the source was looked at with another one.
BRIEF = bool(os.environ.get("E2E_BRIEF"))
# Under emulation: everything takes long, and a high rate takes all.
SLOW = bool(os.environ.get("E2E_SLOW"))
_failed = 0
_cleanups = []


# Facts.

def ok(holds, text):
    global _failed
    print(("ok - " if holds else "not ok - ") + text, flush=True)
    if not holds:
        _failed += 1
    return holds


def note(text):
    print("# " + text, flush=True)


def skip(text, reason):
    print("skip - %s: %s" % (text, reason), flush=True)


def finish():
    sys.exit(1 if _failed else 0)


def rate(hz):
    return min(hz, 97) if SLOW else hz


def need(condition, text, reason):
    """The whole script makes no sense without it."""
    if not condition:
        skip(text, reason)
        sys.exit(SKIP)


# Cleaning up, newest first, also after an exception.

def at_end(fn, *args):
    _cleanups.append((fn, args))


def _clean():
    while _cleanups:
        fn, args = _cleanups.pop()
        try:
            fn(*args)
        except OSError as e:
            note("cleaning up: %s" % e)


atexit.register(_clean)


def _on_signal(number, _frame):
    sys.exit(128 + number)


signal.signal(signal.SIGTERM, _on_signal)


def scratch(prefix="otprof-e2e-"):
    """A directory that the workers can enter too."""
    path = tempfile.mkdtemp(prefix=prefix)
    os.chmod(path, 0o755)
    if os.environ.get("KEEP"):
        note("kept: " + path)
    else:
        at_end(shutil.rmtree, path, True)
    return path


def start(argv, **kw):
    """A process that is killed at the end if it still lives."""
    kw.setdefault("stdin", subprocess.DEVNULL)
    p = subprocess.Popen(argv, **kw)
    at_end(end, p)
    return p


def end(p, sig=signal.SIGKILL, timeout=10):
    if p.poll() is None:
        try:
            p.send_signal(sig)
            p.wait(timeout)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()
    return p.returncode


def program(name, *args, **kw):
    return start([os.path.join(PROGRAMS, name)] + [str(a) for a in args], **kw)


def free_port():
    """A port of loopback that nobody listens on now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(fn, timeout=10.0, step=0.05):
    """fn's first true value, or its last false one."""
    deadline = time.monotonic() + timeout
    while True:
        value = fn()
        if value or time.monotonic() > deadline:
            return value
        time.sleep(step)


# Processes and the kernel's side.

def alive(pid):
    """Running: neither gone nor a zombie that its parent has not collected."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def fdinfo(pid, key):
    """Ids of the BPF objects that a process holds: key is map_id, prog_id or link_id."""
    ids = set()
    for path in glob.glob("/proc/%d/fdinfo/*" % pid):
        try:
            with open(path) as f:
                ids.update(int(line.split()[1]) for line in f if line.startswith(key + ":"))
        except OSError:
            pass
    return ids


def bpftool(*args):
    tool = shutil.which("bpftool", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") or "bpftool"
    p = subprocess.run([tool, "-j"] + list(args), capture_output=True, text=True)
    return json.loads(p.stdout) if p.returncode == 0 and p.stdout.strip() else None


def programs_left(ids):
    """Those of these BPF programs that the kernel still has."""
    return {i for i in ids if bpftool("prog", "show", "id", str(i))}


def contract_number(name):
    """A number that the contract defines, from its own header."""
    with open(os.path.join(TOP, "kmod", "uapi", "otprof.h")) as f:
        for line in f:
            words = line.split()
            if words[:2] == ["#define", name]:
                return int(words[2], 0)
    raise KeyError(name)


COUNTER_FIELDS = ("ticks", "taken", "put", "put_bytes", "chunks", "chunks_lost", "short_stacks", "reserved")
SKIP_FIELDS = ("idle", "not_selected", "stopped", "resting")


def sum_counters(raw):
    """struct otp_cpu_counters of every CPU, added up."""
    total = dict.fromkeys(COUNTER_FIELDS + SKIP_FIELDS + ("lost",), 0)
    for at in range(0, len(raw) - 511, 512):
        words = struct.unpack_from("<64Q", raw, at)
        for i, field in enumerate(COUNTER_FIELDS):
            total[field] += words[i]
        for i, field in enumerate(SKIP_FIELDS):
            total[field] += words[8 + i]
        total["lost"] += sum(words[16:48])
    return total


def bpf_counters(pid):
    for map_id in sorted(fdinfo(pid, "map_id")):
        shown = bpftool("map", "show", "id", str(map_id))
        if not shown or not shown.get("name", "").startswith("counters"):
            continue
        raw = b""
        for entry in bpftool("map", "dump", "id", str(map_id)) or []:
            raw += bytes(int(b, 16) for b in entry["value"]) if isinstance(entry["value"], list) else b""
        return sum_counters(raw)
    return None


def perf_counters(pid):
    for path in glob.glob("/proc/%d/fd/*" % pid):
        try:
            if "otprof-counters" in os.readlink(path):
                return sum_counters(read(path))
        except OSError:
            pass
    return None


NO_COUNTERS = "the module's counters are seen by its owner only; tests/guest/probe compares them"


def kernel_counters(pid):
    """The sampler's own counters, all CPUs together, read past otprof; None where nobody else may."""
    return {"bpf": bpf_counters, "perf": perf_counters}.get(SOURCE, lambda _: None)(pid)


# The daemon.

def render(sections):
    """{"sampler": {"frequency_hz": 97}} as a configuration file; a list repeats its key."""
    lines = []
    for section, keys in sections.items():
        lines.append("[%s]" % section)
        for key, value in keys.items():
            for v in value if isinstance(value, list) else [value]:
                lines.append("%s = %s" % (key, v))
    return "\n".join(lines) + "\n"


class Otprofd:
    """A daemon of the test's own, with its own directories; FILES in an exporter's
    key is the directory that samples() reads."""

    def __init__(self, hz=97, exporters=None, interval="1s", argv_prefix=(), daemon=True, extra_args=(), spool_dir=None, **sections):
        self.dir = scratch()
        self.runtime = os.path.join(self.dir, "rt")
        self.files = os.path.join(self.dir, "profiles") # made by otprofd, for net's user
        os.mkdir(self.runtime)
        if exporters is None:
            exporters = {"files": {"endpoint": "file://FILES"}}
        config = {"sampler": {"frequency_hz": hz, "mode": SOURCE}, "profile": {"interval": interval},
                  # Rates are what a test asks for, unless the guard is what it tests.
                  "limits": {"cpu_percent": 0},
                  # One cache for all tests: what one has indexed, the next one has at once.
                  "symbols": {"cache_dir": os.path.join(BUILD, "symbols")}, "daemon": {"runtime_dir": self.runtime}}
        if spool_dir:
            config["daemon"]["spool_dir"] = spool_dir
        for name, keys in exporters.items():
            config["exporter " + name] = {k: str(v).replace("FILES", self.files) for k, v in keys.items()}
        for section, keys in sections.items():
            config.setdefault(section, {}).update(keys)
        self.conf = os.path.join(self.dir, "otprof.conf")
        with open(self.conf, "w") as f:
            f.write(render(config))
        self.log = os.path.join(self.dir, "otprofd.log")
        self.argv = list(argv_prefix) + [OTPROFD, "-f", self.conf] + list(extra_args)
        self.process = None
        if daemon:
            self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = start(self.argv, stdout=log, stderr=log)
        self.pid = self.process.pid
        if not wait_for(self.ready, 60 if SLOW else 30):
            note(self.log_text()[-2000:])
            raise RuntimeError("otprofd is not ready")
        return self

    def ready(self):
        if self.process.poll() is not None:
            raise RuntimeError("otprofd ended with %s: %s" % (self.process.returncode, self.log_text()[-1000:]))
        s = self.status()
        return s and s["sampler"]["sampling"] and s["workers"]["engine"]["pid"] and s["workers"]["net"]["pid"] and s

    def status(self, timeout=10):
        """What status.sock says, or None."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(timeout)
            try:
                sock.connect(os.path.join(self.runtime, "status.sock"))
                text = b""
                while True:
                    part = sock.recv(65536)
                    if not part:
                        break
                    text += part
            except OSError:
                return None
        return json.loads(text) if text else None

    def last_status(self):
        with open(os.path.join(self.runtime, "last-status.json")) as f:
            return json.load(f)

    def log_text(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def worker(self, role):
        s = self.status()
        return s["workers"][role]["pid"] if s else 0

    def stop(self, timeout=30):
        """Ends it as an operator would; the last status it wrote."""
        code = end(self.process, signal.SIGTERM, timeout)
        if code != 0:
            note("otprofd ended with %s: %s" % (code, self.log_text()[-1500:]))
        return self.last_status()


def imbalance(status):
    """What does not add up in a status, as text; empty when everything does."""
    wrong = []
    ledger = status["ledger"]
    if not ledger["balanced"]:
        wrong.append("it says itself that it is not balanced")
    for name, d in ledger["destinations"].items():
        total = d.get("earlier", 0) + d["exported"] + d["unconfirmed"] + d["in_flight"] + sum(d["lost"].values())
        if total != ledger["taken"] + d.get("restored", 0):
            wrong.append("%s: %d taken, %d accounted for (%s)" % (name, ledger["taken"], total, d))
    return "; ".join(wrong)


def check_ledger(status, what, stopped=False):
    wrong = imbalance(status)
    ok(not wrong, "%s: the ledger balances (%d taken)%s" % (what, status["ledger"]["taken"], wrong and ": " + wrong))
    if stopped:
        in_flight = [status["ledger"]["in_flight"]] + [d["in_flight"] for d in status["ledger"]["destinations"].values()]
        ok(not any(in_flight), "%s: nothing is in flight after the stop %s" % (what, in_flight if any(in_flight) else ""))


# Profiles, by the reader that is not our encoder.

class Frame(tuple):
    """(name, type, address, file, line, source), the line where its function begins, and the column in its line."""
    start = column = 0


class Sample:
    """One stack, leaf first, of Frames; how often, and what is known about it."""

    def __init__(self, frames, count, attributes, resource, profile, type):
        self.frames, self.count, self.attributes, self.resource = frames, count, attributes, resource
        self.profile, self.type, self.value = profile, type, count
        self.stack = [f[0] for f in frames]
        self.types = [f[1] for f in frames]


def read(path):
    with open(path, "rb") as f:
        return f.read()


def profile_files(directory):
    return sorted(glob.glob(os.path.join(directory, "otprof-*.otlp")))


def breaches(requests, hz=0, now_ns=None):
    """What is wrong with these requests, each and one after the other."""
    checker = otlp_check.Checker(hz, now_ns)
    for i, r in enumerate([requests] if isinstance(requests, bytes) else requests):
        checker.request(r, "request %d" % (i + 1))
    return checker.breaches


class Request:
    """A decoded request with its references followed."""

    def __init__(self, data):
        self.message = otlp_check.decode("Request", memoryview(data))
        self.d = self.message.dictionary
        self.frames_of = {}

    def text(self, i):
        return self.d.strings[i]

    def attributes(self, indices):
        entries = (self.d.attributes[i] for i in indices)
        return {self.text(a.key): getattr(a.value, next(iter(a.value.present))) for a in entries}

    def location(self, i):
        if i not in self.frames_of:
            at = self.d.locations[i]
            kind = self.attributes(at.attributes).get("profile.frame.type", "")
            where = self.text(self.d.mappings[at.mapping].filename)
            functions = [self.d.functions[x.function] for x in at.lines]
            self.frames_of[i] = [Frame((self.text(f.name), kind, at.address, where, x.line, self.text(f.filename)))
                                 for f, x in zip(functions, at.lines)]
            for frame, f, x in zip(self.frames_of[i], functions, at.lines):
                frame.start, frame.column = f.start_line, x.column
        return self.frames_of[i]

    def stack(self, i):
        return [f for x in self.d.stacks[i].locations for f in self.location(x)]

    def profiles(self):
        for r in self.message.resource_profiles:
            resource = {a.key: a.value.string_value for a in r.resource.attributes}
            for scope in r.scope_profiles:
                for p in scope.profiles:
                    yield resource, p

    def samples(self):
        for resource, p in self.profiles():
            for s in p.samples:
                yield Sample(self.stack(s.stack), s.values[0], self.attributes(s.attributes), resource, p,
                             self.text(p.sample_type.type))


def profiles(data):
    """Heads of the profiles: time_unix_nano, duration_nano, period."""
    return [p for _, p in Request(data).profiles()]


def samples_of(data):
    return list(Request(data).samples())


def samples(directory):
    """Everything that a file destination holds."""
    return [s for f in profile_files(directory) for s in Request(read(f)).samples()]


class Sink:
    """A receiver on loopback, in a thread; keys say how it answers (see sink.py)."""

    def __init__(self, **behave):
        self.sink = receiver.Sink(scratch(), behave=behave).start()
        self.url = self.sink.url
        at_end(self.sink.stop)

    def requests(self):
        return self.sink.bodies()

    def log(self):
        return self.sink.log()


def service(sample):
    return sample.resource.get("service.name", "")


def executable(sample):
    return (sample.attributes.get("process.executable.name") or sample.resource.get("process.executable.name") or
            service(sample))


def is_marker(name):
    return name.startswith("[cut:")


def user_part(sample):
    """The user frames of a stack, leaf first, and its marker if it has one."""
    names = [n for n, t in zip(sample.stack, sample.types) if t != "kernel" and not is_marker(n)]
    marker = next((n for n in sample.stack if is_marker(n)), None)
    return names, marker

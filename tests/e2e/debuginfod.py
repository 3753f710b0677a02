# SPDX-License-Identifier: Apache-2.0
"""Debug files from a debuginfod server: off until it is asked for, then names
and lines of stripped programs get better while they run; a server that errs or
means harm loses only the names of the file that it was asked for."""
import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.request

import lib

SOURCE = """
#include <time.h>
volatile unsigned long sink;
static inline __attribute__((always_inline)) void innermost(void)
{
	for (int i = 0; i < 400000; i++)
		sink += i;
}
static __attribute__((noinline)) void hidden(void)
{
	innermost();
}
int main(void)
{
	const struct timespec rest = {0, 60000000};

	for (;;) {
		hidden();
		nanosleep(&rest, 0);
	}
}
"""
TIMEOUT, FILE_MAX = 5, 1 << 20
# Case: the reason that otprof gives, or "" where the file is good.
CASES = {"good": "", "shared": "", "moved": "", "none": "not_found", "forbidden": "refused", "endless": "too_large", "claims": "too_large",
         "slow": "timeout", "other": "wrong_build_id", "page": "not_elf", "cut": "truncated", "shorter": "truncated",
         "chunked": "truncated", "empty": "no_debug_info", "etc": "redirect", "loopback": "redirect", "circle": "redirect",
         "error": "server_error"}
IDS = {"%040x" % (0x0dbf0000000000000000000000000000000000 + i): name for i, name in enumerate(CASES)}
ID_OF = {name: ident for ident, name in IDS.items()}


def run(*argv, cwd):
    subprocess.run(argv, cwd=cwd, check=True, capture_output=True)


def share(top, program):
    """What dwz takes out of two programs is a file of its own, with a build-id of its own."""
    run("gcc", "-O2", "-g", "-Wl,--build-id=none", "-o", program + ".twin", "p.c", cwd=top)
    run("dwz", "-m", os.path.join(top, "twins"), program, program + ".twin", cwd=top)
    # Not where the link leads.
    os.rename(os.path.join(top, "twins"), os.path.join(top, "common.debug"))
    notes = subprocess.run(["readelf", "-n", os.path.join(top, "common.debug")], capture_output=True, text=True, check=True)
    IDS[notes.stdout.split("Build ID: ")[1].split()[0]] = "common"


def build(top):
    """Each case's program, and the file that was stripped off it."""
    with open(os.path.join(top, "p.c"), "w") as f:
        f.write(SOURCE)
    for name, ident in ID_OF.items():
        program = os.path.join(top, name)
        run("gcc", "-O2", "-g", "-Wl,--build-id=0x" + ident, "-o", program, "p.c", cwd=top)
        if name == "shared" and shutil.which("dwz"):
            share(top, program)
        run("objcopy", "--only-keep-debug", program, program + ".debug", cwd=top)
        run("strip", program, cwd=top)
    run("objcopy", "--strip-debug", "--strip-all", os.path.join(top, "empty.debug"), cwd=top)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True


class Neighbour:
    """A service of this host that a server would like us to ask."""

    def __init__(self):
        self.sock = socket.socket()
        self.sock.bind(("127.0.0.1", 0))
        self.sock.listen(8)
        self.sock.setblocking(False)
        self.port = self.sock.getsockname()[1]

    def was_asked(self):
        try:
            self.sock.accept()[0].close()
            return True
        except BlockingIOError:
            return False


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked, neighbour, top = [], None, None

    def log_message(self, *_):
        pass

    def do_GET(self):
        parts = self.path.split("/")
        self.asked.append(self.path)
        name = IDS.get(parts[2], "none") if len(parts) == 4 else "none"
        self.close_connection = True
        try:
            getattr(self, "case_" + name, self.case_good)(name)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def body(self, name="good"):
        return lib.read(os.path.join(self.top, name + ".debug"))

    def answer(self, body=b"", status=200, length=None, **headers):
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), value)
        if length != "":
            self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def case_good(self, name):
        self.answer(self.body(name))

    def case_moved(self, name):
        if "elsewhere" in self.path:
            self.answer(self.body(name))
        else:
            self.answer(status=302, Location="/elsewhere/%s/debuginfo" % ID_OF[name])

    def case_none(self, _):
        self.answer(b"not here", 404)

    def case_forbidden(self, _):
        self.answer(b"no", 403)

    def case_endless(self, name):
        self.answer(self.body(name), length="")
        for _ in range(100000):
            self.wfile.write(bytes(65536))

    def case_claims(self, name):
        self.answer(self.body(name), length=10 << 40)

    def case_slow(self, name):
        self.answer(length=100000)
        for byte in self.body(name):
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            time.sleep(0.2)

    def case_other(self, _):
        self.answer(self.body("good"))

    def case_page(self, _):
        self.answer(b"<html>" + b"not what you want " * 1000)

    def case_cut(self, name):
        self.answer(self.body(name)[:-700], length="")

    def case_shorter(self, name):
        body = self.body(name)
        self.answer(body[:-1], length=len(body))

    def case_chunked(self, name):
        self.answer(b"%x\r\n%s\r\n" % (1000, self.body(name)[:1000]), length="", Transfer_Encoding="chunked")

    def case_etc(self, _):
        self.answer(status=302, Location="file:///etc/passwd")

    def case_loopback(self, _):
        self.answer(status=307, Location="http://127.0.0.1:%d/" % self.neighbour.port)

    def case_circle(self, _):
        self.answer(status=301, Location=self.path)

    def case_error(self, _):
        self.answer(b"x" * 1000, 503)


def told(d, p):
    a = subprocess.run([lib.OTPROF, "explain", "--json", "--runtime-dir", d.runtime, str(p.pid)], capture_output=True,
                       text=True, timeout=30)
    return json.loads(a.stdout) if a.returncode == 0 else {}


def names_of(d, p, name):
    files = told(d, p).get("process", {}).get("files", [])
    return next((f["names"] for f in files if f["path"].endswith("/" + name) and "names" in f), {})


def configure(d, top, url, **more):
    """Of a daemon that runs: what a reload reads."""
    with open(d.conf) as f:
        text = f.read().split("[debuginfod]")[0]
    keys = {"timeout": "%ds" % TIMEOUT, "max_file_bytes": FILE_MAX, "cache_bytes": "4M", "requests_per_minute": 600, **more}
    if url:
        keys["urls"] = url
    with open(d.conf, "w") as f:
        f.write(text + lib.render({"debuginfod": keys}))


def daemon(top):
    d = lib.Otprofd(hz=97, daemon=False, targets={"include": "exe:%s/*" % top},
                    metrics={"listen": "127.0.0.1:%d" % lib.free_port()}, symbols={"cache_dir": os.path.join(top, "cache")})
    return d


def metrics(d):
    with open(d.conf) as f:
        listen = next(line.split("= ")[1].strip() for line in f if line.startswith("listen"))
    with urllib.request.urlopen("http://%s/metrics" % listen, timeout=10) as answer:
        return dict(line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if not line.startswith("#"))


def state(d):
    return (d.status() or {}).get("debuginfod", {})


def indexed(d, programs):
    """Those whose index there is."""
    return [n for n, p in programs.items() if names_of(d, p, n).get("index") == "ready"]


def off(d, programs):
    lib.ok(lib.wait_for(lambda: len(indexed(d, programs)) == len(programs), 30, 0.5), "stripped programs are met, and indexed")
    lib.ok(not Handler.asked and not state(d)["on"], "nobody is asked, because nobody said so")
    lib.ok("names" not in str(names_of(d, programs["good"], "good").get("debuginfod")), "and explain says nothing of it")


def fetcher_pids():
    out = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if lib.read("/proc/%s/comm" % pid).strip() == b"otprof-fetcher":
                out.append(int(pid))
        except OSError:
            pass
    return out


def sandboxed(d):
    """Of one that is at work, with a server that is slow."""
    def look():
        for pid in fetcher_pids():
            try:
                text = lib.read("/proc/%d/status" % pid).decode()
                fields = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
                if fields.get("Seccomp") == "2" and int(fields["PPid"]) == d.pid:
                    return fields
            except (OSError, ValueError):
                pass
        return None
    f = lib.wait_for(look, 30, 0.02)
    lib.ok(f and f["Uid"].split()[0] not in ("0",) and int(f["CapEff"], 16) == 0 and int(f["CapBnd"], 16) == 0 and
           f["NoNewPrivs"] == "1", "who asks has no rights and its own user (%s)" % (f and f["Uid"].split()[0]))


def reasons_wanted():
    wanted = {}
    for reason in filter(None, CASES.values()):
        wanted[reason] = wanted.get(reason, 0) + 1
    return wanted


def good_files():
    """That servers have, with what dwz made."""
    return sum(not reason for reason in CASES.values()) + ("common" in IDS.values())


def all_settled(d):
    s = state(d)
    return s.get("fetched", 0) >= good_files() and all(s["failed"][r] >= n for r, n in reasons_wanted().items()) and s


def on(d, programs, url):
    configure(d, None, url)
    d.process.send_signal(signal.SIGHUP)
    sandboxed(d)
    s = lib.wait_for(lambda: all_settled(d), 90, 0.5)
    lib.ok(s, "by a reload they are asked for: what can be had is, and what cannot is counted by its reason")
    if not s:
        lib.note(json.dumps(state(d)))
    said = lambda name: names_of(d, programs[name], name)
    for name in ("good", "moved", "shared"):
        lib.ok(lib.wait_for(lambda: said(name).get("dwarf") and said(name).get("fetched"), 20, 0.5),
               "names of a program that runs get better: %s" % name)
    for name, reason in CASES.items():
        if reason:
            n = lib.wait_for(lambda: said(name).get("debuginfod") == reason and said(name), 10, 0.5) or said(name)
            lib.ok(n.get("debuginfod") == reason and not n.get("dwarf"), "%s: explain says %s (%s)" %
                   (name, reason, n.get("debuginfod")))
    lib.ok(not Handler.neighbour.was_asked(), "a redirection to this host's own services is not followed")
    asked = [p for p in Handler.asked if "elsewhere" not in p]
    lib.ok(all(p.startswith("/buildid/") and p.endswith("/debuginfo") and len(p.split("/")[2]) == 40 for p in asked),
           "requests are what debuginfod(8) says")
    # Once, or again where this machine was too slow for the answer.
    none = sum(ID_OF["none"] in p for p in asked)
    lib.ok(1 <= none <= 3, "what a server does not have is not asked for again and again (%d)" % none)
    circle = Handler.asked.count("/buildid/%s/debuginfo" % ID_OF["circle"])
    lib.ok(4 <= circle <= 12, "a circle is left after three turns (%d)" % circle)


def in_words(d, p):
    page = subprocess.run([lib.OTPROF, "explain", "--runtime-dir", d.runtime, str(p["good"].pid)], capture_output=True, text=True)
    lib.ok("by debuginfod" in page.stdout, "otprof explain says where names come from")
    page = subprocess.run([lib.OTPROF, "explain", "--runtime-dir", d.runtime, str(p["none"].pid)], capture_output=True, text=True)
    lib.ok("no debuginfod server has it" in page.stdout, "and why they are missing")
    page = subprocess.run([lib.OTPROF, "status", "--runtime-dir", d.runtime], capture_output=True, text=True)
    lib.ok("Debug files by debuginfod" in page.stdout and "wrong_build_id" in page.stdout, "otprof status counts them")
    m = metrics(d)
    lib.ok(m.get("otprof_debuginfod_fetched_total") == str(good_files()) and
           m.get('otprof_debuginfod_failed_total{reason="redirect"}') == "3" and "otprof_debuginfod_cached_bytes" in m,
           "and so do the metrics")


def functions(d, name):
    return {f for s in lib.samples(d.files) if lib.executable(s) == name for f in s.stack}


def profiles(d):
    def named():
        return {"innermost", "hidden", "main"} <= functions(d, "good")
    if "common" in IDS.values():
        lib.ok(lib.wait_for(lambda: {"innermost", "hidden", "main"} <= functions(d, "shared"), 20, 1),
               "the file that dwz took names out of is asked for, too")
    lib.ok(lib.wait_for(named, 15, 1), "profiles have its functions, inlined ones too %s" % sorted(functions(d, "good"))[:6])
    other = functions(d, "other")
    lib.ok(other and "hidden" not in other and any(f.startswith("other+0x") for f in other),
           "another build's names are given to nobody %s" % sorted(other)[:4])


def kept(d, programs, server):
    """A daemon that comes later asks nobody again."""
    cache = state(d)["cached_bytes"]
    on_disk = [n for n in os.listdir(os.path.join(os.path.dirname(programs["good"].args[0]), "cache", "debuginfod"))]
    lib.ok(0 < cache <= 4 << 20 and sum(n.endswith(".debug") for n in on_disk) == good_files(), "what came is kept (%d bytes)" % cache)
    lib.check_ledger(d.stop(), "with all of this", stopped=True)
    final = {ID_OF[n] for n, r in CASES.items() if r not in ("timeout", "truncated", "server_error")}
    before = len(Handler.asked)
    shutil.rmtree(d.files, True)
    d.start()
    lib.ok(lib.wait_for(lambda: names_of(d, programs["good"], "good").get("fetched"), 20, 0.5),
           "after a restart its names are there from the cache")
    time.sleep(3)
    again = {p.split("/")[2] for p in Handler.asked[before:]} & final
    lib.ok(not again, "and nobody is asked for what was settled %s" % sorted(IDS[i] for i in again))


def off_again(d, top, programs):
    configure(d, top, None)
    d.process.send_signal(signal.SIGHUP)
    lib.ok(lib.wait_for(lambda: not state(d).get("on", True), 10), "a reload turns it off")
    lib.wait_for(lambda: not fetcher_pids(), 5)
    before = len(Handler.asked)
    late = os.path.join(top, "late")
    run("gcc", "-O2", "-s", "-Wl,--build-id", "-o", late, "p.c", cwd=top)
    p = lib.start([late])
    lib.wait_for(lambda: names_of(d, p, "late").get("index") == "ready", 20, 0.5)
    time.sleep(1)
    lib.ok(len(Handler.asked) == before, "and then nobody is asked")


def main():
    top = lib.scratch()
    build(top)
    Handler.top, Handler.neighbour = top, Neighbour()
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = "http://127.0.0.1:%d" % server.server_address[1]
    for proxy in ("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        os.environ.pop(proxy, None)
    d = daemon(top).start()
    programs = {name: lib.start([os.path.join(top, name)]) for name in CASES}
    off(d, programs)
    on(d, programs, url)
    in_words(d, programs)
    profiles(d)
    kept(d, programs, server)
    off_again(d, top, programs)
    lib.check_ledger(d.stop(), "debuginfod", stopped=True)


lib.need(all(shutil.which(t) for t in ("gcc", "objcopy", "strip")), "debuginfod", "no compiler here")
main()
lib.finish()

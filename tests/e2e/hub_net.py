# SPDX-License-Identifier: Apache-2.0
"""Where the hub listens: with TLS and a token off loopback, on a UNIX socket,
at another address after a reload; an address in use; and a hub without a
sampler, to which another otprofd exports."""
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time

import lib


PORTS = [lib.free_port() for _ in range(3)]
WORKERS_ONLY = 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 18  # CAP_KILL, SETGID, SETUID, SETPCAP, SYS_CHROOT


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(self.path)


def where(d):
    """Address and token, as clients of this host find them."""
    try:
        with open(os.path.join(d.runtime, "hub.token")) as f:
            words = f.read().split()
    except OSError:
        return None, ""
    return words[0], words[1] if len(words) > 1 else ""


def number(pid, name, base=10):
    """A line of a process's status."""
    with open("/proc/%d/status" % pid) as f:
        return next(int(line.split()[1], base) for line in f if line.startswith(name + ":"))


def connect(address, cert=None):
    if address.startswith("unix:"):
        return UnixConnection(address[5:])
    if address.startswith("https://"):
        context = ssl.create_default_context(cafile=cert)
        context.check_hostname = False
        return http.client.HTTPSConnection(address[8:], timeout=20, context=context)
    return http.client.HTTPConnection(address, timeout=20)


def ask(d, method="GET", path="/status", body=None, token=True, headers=None):
    """Status and answer; 0: there was none."""
    address, secret = where(d)
    if not address:
        return 0, None
    c = connect(address, os.path.join(d.runtime, "hub.crt"))
    all_headers = dict(headers or {})
    if token and secret:
        all_headers["Authorization"] = "Bearer " + secret
    try:
        c.request(method, "/api/v1" + path, body, all_headers)
        r = c.getresponse()
        text = r.read()
        return r.status, json.loads(text) if text.startswith(b"{") else None
    except (OSError, http.client.HTTPException):
        return 0, None
    finally:
        c.close()


def reload(d, **keys):
    """Other keys of [hub], the last section; None removes one."""
    with open(d.conf) as f:
        head, own = f.read().split("[hub]\n")
    values = dict(line.split(" = ", 1) for line in own.splitlines())
    values.update(keys)
    with open(d.conf, "w") as f:
        f.write(head + "[hub]\n" + "".join("%s = %s\n" % (k, v) for k, v in values.items() if v is not None))
    before = d.log_text().count("is in force")
    os.kill(d.pid, signal.SIGHUP)
    return lib.wait_for(lambda: d.log_text().count("is in force") > before, 30)


def refused(text):
    """What -t says of a configuration with these lines of [hub]."""
    path = os.path.join(lib.scratch(), "otprof.conf")
    with open(path, "w") as f:
        f.write(text)
    p = subprocess.run([lib.OTPROFD, "-t", "-f", path], capture_output=True, text=True)
    return p.stderr if p.returncode else ""


def otprof(d, *args):
    return subprocess.run([lib.OTPROF, args[0], "--runtime-dir=" + d.runtime] + list(args[1:]), capture_output=True,
                          text=True, timeout=60, stdin=subprocess.DEVNULL)


# What is refused in words.
lib.ok("expected token = yes" in refused("[hub]\nlisten = 0.0.0.0:4380\ntoken = no\n"), "off loopback a token is needed")
lib.ok("expected tls_cert_file and tls_key_file" in refused("[hub]\nlisten = 0.0.0.0:4380\n"), "and TLS")
lib.ok("tls_key_file: missing" in refused("[hub]\nlisten = 127.0.0.1:4380\ntls_cert_file = /x\n"), "a certificate needs its key")
lib.ok("such as 127.0.0.1:4380" in refused("[hub]\nlisten = example.org:4380\n"), "names are not resolved: addresses are numbers")
lib.ok("expected listen in [hub]" in refused("[sampler]\nmode = none\n"), "without sampler and hub there is nothing to do")

openssl = shutil.which("openssl")
certs = lib.scratch()


def make_cert(name):
    cert, key = os.path.join(certs, name + ".crt"), os.path.join(certs, name + ".key")
    subprocess.run([openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
                    "2", "-subj", "/CN=" + name, "-addext", "subjectAltName=DNS:" + name, "-keyout", key, "-out", cert],
                   check=True, capture_output=True)
    os.chmod(key, 0o600)
    return cert, key


def subject(port):
    """Of the certificate that is shown."""
    pem = ssl.get_server_certificate(("127.0.0.1", port), timeout=10)
    return subprocess.run([openssl, "x509", "-noout", "-subject"], input=pem, capture_output=True, text=True).stdout


d = lib.Otprofd(hz=97, hub={"listen": "127.0.0.1:%d" % PORTS[0]})
shares = lib.program("shares", 300, stdout=subprocess.DEVNULL)
w = lib.wait_for(lambda: next((w for w in (ask(d, path="/workloads")[1] or {"workloads": []})["workloads"]
                               if w["name"] == "shares"), None), 40, 0.5)
lib.ok(w and ask(d, "PUT", "/workloads/%s/slot" % w["id"])[0] == 201, "a slot is open")


def kept():
    return ((ask(d, path="/workloads/%s" % w["id"])[1] or {}).get("slot") or {}).get("counts", {}).get("kept", 0)


lib.ok(lib.wait_for(lambda: kept() > 20, 40, 0.5), "and has samples")
before, hub_pid = kept(), d.worker("hub")

# Reloads: limits, address, token; the slot stays.
lib.ok(reload(d, max_slots=7, listen="127.0.0.1:%d" % PORTS[1]), "a reload with another address and other limits")
lib.ok(lib.wait_for(lambda: where(d)[0] == "127.0.0.1:%d" % PORTS[1] and ask(d)[0] == 200, 20), "the hub is at the new address")
lib.ok((ask(d, path="/limits")[1] or {}).get("max_slots") == 7, "the limit is in force")
lib.ok(d.worker("hub") == hub_pid and kept() >= before, "its process and its slot stay (%d samples)" % kept())
try:
    socket.create_connection(("127.0.0.1", PORTS[0]), 5).close()
    closed = False
except OSError:
    closed = True
lib.ok(closed, "the old address is closed")
lib.ok(reload(d, token="no") and lib.wait_for(lambda: ask(d, token=False)[0] == 200, 20), "without a token everybody may ask")
lib.ok(reload(d, token="yes") and lib.wait_for(lambda: ask(d, token=False)[0] == 401, 20) and ask(d)[0] == 200, "and with it again, not")

# A UNIX socket.
path = os.path.join(d.runtime, "hub.sock")
lib.ok(reload(d, listen="unix:" + path) and lib.wait_for(lambda: ask(d)[0] == 200, 20), "a UNIX socket, whose rights are the check")
lib.ok(os.stat(path).st_mode & 0o777 == 0o660 and where(d) == ("unix:" + path, ""), "only its owner and group may connect")
lib.ok(otprof(d, "workloads").returncode == 0, "the command line finds it there")
r = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-c",
                    "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])", path], capture_output=True)
lib.ok(b"PermissionError" in r.stderr, "another user may not connect")

# TLS, at every address of this host: the test connects by loopback.
if not openssl:
    lib.skip("TLS", "openssl is not installed")
else:
    cert, key = make_cert("hub.test")
    lib.ok(reload(d, listen="127.0.0.1:%d" % PORTS[1], tls_cert_file=cert, tls_key_file=key, names="hub.test") and
           lib.wait_for(lambda: ask(d)[0] == 200, 20), "TLS with the certificate that was configured")
    lib.ok(ask(d, token=False)[0] == 401, "which needs the token")
    lib.ok(ask(d, headers={"Host": "hub.test:1"})[0] == 200 and ask(d, headers={"Host": "evil.test"})[0] == 421,
           "it answers by its names, not by others")
    lib.ok(otprof(d, "workloads").returncode == 0, "the command line expects that certificate")
    lib.ok(otprof(d, "ui", "--print").stdout.startswith("https://127.0.0.1:%d/#token=" % PORTS[1]), "otprof ui prints https")
    try:
        plain = http.client.HTTPConnection("127.0.0.1", PORTS[1], timeout=10)
        plain.request("GET", "/api/v1/status")
        status = plain.getresponse().status
    except (OSError, http.client.HTTPException):
        status = 0
    lib.ok(status == 0, "and nothing is served in the clear")
    cert, key = make_cert("other.test")
    lib.ok(reload(d, tls_cert_file=cert, tls_key_file=key), "a certificate is renewed by a reload")
    lib.ok(lib.wait_for(lambda: ask(d)[0] == 200 and "other.test" in subject(PORTS[1]), 20),
           "clients that expect the new one are served")
    lib.ok(d.worker("hub") == hub_pid and kept() >= before, "its process and its slot stay through all of it (%d)" % kept())
    with open(cert, "w") as f:
        f.write("nothing\n")
    lib.ok(reload(d) and "no PEM file" in d.log_text() and lib.wait_for(lambda: ask(d)[0] == 200, 20),
           "a broken certificate changes nothing, and is said")
    third = make_cert("third.test")
    lib.ok(reload(d, tls_cert_file=third[0], tls_key_file=key) and lib.wait_for(
        lambda: "certificate and key cannot be used" in d.log_text(), 20), "nor does a key that is another's")
    lib.ok("other.test" in subject(PORTS[1]) and d.worker("hub") == hub_pid, "the hub goes on with the old ones")
    lib.ok(reload(d, tls_cert_file=None, tls_key_file=None, names=None), "plain again")

# An address in use: said once, retried, shown; profiling goes on.
taken = socket.socket()
taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
taken.bind(("127.0.0.1", PORTS[2]))
taken.listen(1)
lib.ok(reload(d, listen="127.0.0.1:%d" % PORTS[2]) and lib.wait_for(lambda: d.status()["hub"].get("error"), 10),
       "status says why there is no hub: %s" % d.status()["hub"].get("error"))
time.sleep(6)
lib.ok(d.log_text().count("cannot listen on 127.0.0.1:%d" % PORTS[2]) == 1, "the log says it once")
lib.ok(d.status()["workers"]["hub"]["pid"] == 0, "no process is started for nothing")
view = lib.scratch()
os.makedirs(os.path.join(view, "run"))
os.symlink(d.runtime, os.path.join(view, "run", "otprof"))
found = {f["id"]: f for f in json.loads(subprocess.run([lib.OTPROF, "doctor", "--json", "--root=" + view],
                                                       capture_output=True, text=True).stdout)["findings"]}
lib.ok(found["hub"]["level"] == "warn" and "cannot listen" in found["hub"]["text"], "otprof doctor says so: %s" % found["hub"]["text"])
taken.close()
lib.ok(lib.wait_for(lambda: ask(d)[0] == 200, 75, 0.5), "when the address is free, the hub is there")
lib.ok(reload(d, listen=None) and lib.wait_for(lambda: not d.status()["hub"]["on"] and not d.status()["workers"].get("hub", {}).get("pid"), 10),
       "without listen it ends")
lib.ok(reload(d, listen="127.0.0.1:%d" % PORTS[0]) and lib.wait_for(lambda: ask(d)[0] == 200, 30), "and with it again it begins")
lib.ok(reload(d, slot_max_bytes="64M") and lib.wait_for(lambda: "may take more memory" in d.log_text(), 20) and
       lib.wait_for(lambda: (ask(d, path="/limits")[1] or {}).get("slot_max_bytes") == 64 << 20, 30),
       "limits beyond what its process may take start it again")
lib.check_ledger(d.stop(), "a hub that came and went", stopped=True)

# A viewer: no sampler, no engine; another otprofd exports to it.
v = lib.Otprofd(daemon=False, hub={"listen": "127.0.0.1:%d" % PORTS[0], "receive": "yes"}, sampler={"mode": "none"})
with open(v.log, "ab") as log:
    v.process = lib.start(v.argv, stdout=log, stderr=log)
v.pid = v.process.pid
lib.ok(lib.wait_for(lambda: ask(v)[0] == 200, 30), "mode = none serves a hub %s" % v.log_text()[-200:])
s = v.status()
lib.ok(s["sampler"]["mode"] == "none" and not s["sampler"]["sampling"] and not s["workers"]["engine"]["pid"] and
       not s["workers"]["net"]["pid"] and s["workers"]["hub"]["pid"], "and has no sampler, engine or net: %s" % s["workers"])
kept = {name: number(v.pid, name, 16) for name in ("CapEff", "CapPrm", "CapBnd")}
lib.ok(set(kept.values()) == {WORKERS_ONLY}, "the monitor keeps what it needs to start the hub again: %s" % {
    k: "%x" % n for k, n in kept.items()})
os.kill(s["workers"]["hub"]["pid"], signal.SIGKILL)
lib.ok(lib.wait_for(lambda: v.status()["workers"]["hub"]["restarts"] == 1 and ask(v)[0] == 200, 30), "which it does")
resident = 1024 * number(v.status()["workers"]["hub"]["pid"], "VmRSS")
lib.ok(lib.wait_for(lambda: v.status()["cost"]["memory_bytes"] > resident, 15), "and its memory is told")
page = otprof(v, "status").stdout
lib.ok("none (configured: profiles of other hosts are shown)" in page and "Ledger" not in page and "Samples" not in page,
       "status says so")
status, hub = ask(v)
lib.ok(hub["sampler"] is False and hub["receiver"] is True, "so does the API")
p = otprof(v, "select", "exe:shares")
lib.ok(p.returncode == 1 and "no sampler" in p.stderr, "there is nothing to select: %s" % p.stderr.strip())
headers = os.path.join(lib.scratch(), "headers")
with open(headers, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
    f.write("Authorization: Bearer %s\n" % where(v)[1])
sender = lib.Otprofd(hz=97, exporters={"hub": {"endpoint": "http://127.0.0.1:%d" % PORTS[0], "headers_file": headers}},
                     resource={"host.name": "node-7"})
w = lib.wait_for(lambda: next((w for w in ask(v, path="/workloads")[1]["workloads"]
                               if w["name"] == "shares" and w["host"] == "node-7"), None), 40, 0.5)
lib.ok(w and w["target"] is None, "what another otprofd exports is shown, and cannot be selected from here")
ask(v, "PUT", "/workloads/%s/slot" % w["id"])
tree = lib.wait_for(lambda: (t := ask(v, path="/workloads/%s/tree" % w["id"])[1]) and t.get("value") and t, 30, 0.5)
lib.ok(tree and "work_fifth" in tree["strings"], "with its functions by name")
last = sender.stop()
lib.check_ledger(last, "the sender", stopped=True)
lib.ok(not any(last["ledger"]["destinations"]["hub"]["lost"].values()), "the viewer took every request")

# As the leading peer writes it: every sample with the times at which it was taken and without a value, a thread's
# attributes, a mapping, and all texts in the request's dictionary.
now = time.time_ns()
peer = {
    "dictionary": {
        "stringTable": ["", "samples", "count", "cpu", "nanoseconds", "handle", "serve", "/srv/app", "thread.name",
                        "worker-1", "process.executable.name", "app", "profile.frame.type", "native"],
        "mappingTable": [{}, {"memoryStart": "4096", "memoryLimit": "8192", "filenameStrindex": 7}],
        "attributeTable": [{}, {"keyStrindex": 8, "value": {"stringValue": "worker-1"}},
                           {"keyStrindex": 10, "value": {"stringValue": "app"}},
                           {"keyStrindex": 12, "value": {"stringValue": "native"}}],
        "functionTable": [{}, {"nameStrindex": 5}, {"nameStrindex": 6}],
        "locationTable": [{}, {"mappingIndex": 1, "address": "4100", "lines": [{"functionIndex": 1}], "attributeIndices": [3]},
                          {"mappingIndex": 1, "address": "4200", "lines": [{"functionIndex": 2}], "attributeIndices": [3]}],
        "stackTable": [{}, {"locationIndices": [1, 2]}, {"locationIndices": [2]}],
        "linkTable": [{}],
    },
    "resourceProfiles": [{
        "resource": {"attributes": [{"key": "container.id", "value": {"stringValue": "ab" * 32}},
                                    {"key": "k8s.namespace.name", "value": {"stringValue": "shop"}},
                                    {"key": "k8s.deployment.name", "value": {"stringValue": "cart"}}]},
        "scopeProfiles": [{"profiles": [{
            "profileId": "01" * 16, "timeUnixNano": str(now - 5 * 10**9), "durationNano": str(5 * 10**9),
            "sampleType": {"typeStrindex": 1, "unitStrindex": 2}, "periodType": {"typeStrindex": 3, "unitStrindex": 4},
            "period": "50000000",
            "samples": [{"stackIndex": 1, "attributeIndices": [1, 2],
                         "timestampsUnixNano": [str(now - 4 * 10**9 + i * 10**8) for i in range(7)]},
                        {"stackIndex": 2, "attributeIndices": [1, 2], "timestampsUnixNano": [str(now - 3 * 10**9)]}]}]}]}],
}


def post(request):
    c = http.client.HTTPConnection("127.0.0.1", PORTS[0], timeout=20)
    try:
        c.request("POST", "/v1development/profiles", json.dumps(request),
                  {"Content-Type": "application/json", "Authorization": "Bearer " + where(v)[1]})
        r = c.getresponse()
        return r.status, r.read()
    finally:
        c.close()


lib.ok(post(peer) == (200, b"{}"), "a request of the leading peer's layout is taken whole")
w = next((w for w in ask(v, path="/workloads")[1]["workloads"] if w["name"] == "deployment/cart"), None)
lib.ok(w and w["kind"] == "kubernetes" and w["namespace"] == "shop", "as the workload that its attributes tell")
if w:
    ask(v, "PUT", "/workloads/%s/slot" % w["id"])
    post(peer)
    tree = ask(v, path="/workloads/%s/tree" % w["id"])[1] or {}
    self_of = {}
    for f, n in zip(tree["nodes"]["function"], tree["nodes"]["self"]):
        name = tree["strings"][tree["functions"]["name"][f]]
        self_of[name] = self_of.get(name, 0) + n
    lib.ok(self_of.get("handle") == 7 and self_of.get("serve") == 1, "each time counts as a sample: %s" % self_of)

with open(v.conf) as f:
    text = f.read()
with open(v.conf, "w") as f:
    f.write(text.replace("receive = yes", "receive = yes\nmax_slots = 3"))
os.kill(v.pid, signal.SIGHUP)
lib.ok(lib.wait_for(lambda: (ask(v, path="/limits")[1] or {}).get("max_slots") == 3, 20), "a viewer's limits change on a reload, too")
lib.ok(lib.end(v.process, signal.SIGTERM, 20) == 0, "and it ends when it is told to")
lib.finish()

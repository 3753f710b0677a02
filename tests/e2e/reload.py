# SPDX-License-Identifier: Apache-2.0
"""SIGHUP under load: what can change does, what cannot is said, a wrong file
changes nothing, destinations come and go, and every sample stays accounted for."""
import hashlib
import http.server
import os
import re
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import threading
import time

import lib


def write(d, **sections):
    config = {"sampler": {"frequency_hz": 97, "mode": lib.SOURCE}, "profile": {"interval": "1s"},
              "symbols": {"cache_dir": os.path.join(lib.BUILD, "symbols")}, "daemon": {"runtime_dir": d.runtime}}
    for name, keys in sections.items():
        config.setdefault(name.replace("__", " "), {}).update(keys)
    with open(d.conf, "w") as f:
        f.write(lib.render({k: v for k, v in config.items() if v is not None}))


def since(d, mark):
    return d.log_text()[mark:]


def reload(d, wait_for, timeout=30):
    """Sends SIGHUP; what the log says up to wait_for."""
    mark = len(d.log_text())
    d.process.send_signal(signal.SIGHUP)
    lib.wait_for(lambda: wait_for in since(d, mark), timeout)
    return since(d, mark)


def in_force(d):
    return reload(d, "is in force")


def metrics_at(port):
    """Whether a scrape of this port has otprofd's figures."""
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as s:
            s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            answer = b""
            while True:
                part = s.recv(65536)
                if not part:
                    return b"otprof_samples_taken_total" in answer
                answer += part
    except OSError:
        return False


def kill(d, role):
    pid = lib.wait_for(lambda: d.worker(role), 10)
    if pid:
        os.kill(pid, signal.SIGKILL)


class Manager:
    """What a service manager hears."""

    def __init__(self):
        self.path = os.path.join(lib.scratch(), "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.said = []
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            self.said.append(self.socket.recv(4096).decode())

    def heard(self):
        time.sleep(0.3)
        said, self.said = self.said, []
        return "".join(line + "\n" for line in said)


one, two = lib.Sink(), lib.Sink()
token = os.path.join(lib.scratch(), "token")
with open(token, "w") as f:
    f.write("Authorization: Bearer first\n")
os.chmod(token, stat.S_IRUSR | stat.S_IWUSR)
files = {"endpoint": "file://FILES"}
web = {"endpoint": one.url, "headers_file": token}
manager = Manager()
os.environ["NOTIFY_SOCKET"] = manager.path
d = lib.Otprofd(hz=97, exporters={"files": files, "web": web, "gone": {"endpoint": "http://127.0.0.1:9"}})
del os.environ["NOTIFY_SOCKET"]
files = {"endpoint": "file://" + d.files}
load = [lib.program("kernelio", 300), lib.program("forkstorm", "-n", 50, 300)]
lib.wait_for(lambda: len(one.requests()) > 1, 20)
workers = (d.worker("engine"), d.worker("net"))
manager.heard()

# A wrong file: said with its line, and nothing else happens.
before = d.status()
with open(d.conf) as f:
    good = f.read()
with open(d.conf, "w") as f:
    f.write(good.replace("frequency_hz = 97", "frequency_hz = many"))
text = reload(d, "nothing has changed")
lib.ok("%s:2: sampler.frequency_hz: bad value \"many\"" % d.conf in text, "a wrong file is refused with its line")
os.makedirs(d.conf + ".d")
drop_in = d.conf + ".d/10-test.conf"
with open(d.conf, "w") as f:
    f.write(good)
with open(drop_in, "wb") as f:
    f.write(b"[resource]\na = \xff\n")
text = reload(d, "nothing has changed")
lib.ok("%s:2: bytes that are no text" % drop_in in text, "so is a wrong drop-in, by its own name")
os.unlink(drop_in)
status = d.status()
lib.ok(status["sampler"]["frequency_hz"] == 97 and set(status["ledger"]["destinations"]) == {"files", "web", "gone"},
       "the former configuration stays in force")
said = manager.heard()
lib.ok(re.search(r"RELOADING=1\nMONOTONIC_USEC=\d+", said) and said.rfind("\nREADY=1") > said.rfind("RELOADING=1"),
       "the service manager hears of it, and that we go on")

# Much at once: rate, stacks, interval, headers, a destination that goes and one that comes, resource, metrics.
with open(token, "w") as f:
    f.write("Authorization: Bearer second\n")
port = lib.free_port()
write(d, sampler={"frequency_hz": 199, "stack_bytes": "2K", "stack_max_bytes": "64K", "ring_size": "16M"},
      profile={"interval": "500ms", "sample_attributes": "process.pid"}, exporter__files=files, exporter__web=web,
      exporter__new={"endpoint": two.url, "compression": "none"}, resource={"team": "reload"},
      metrics={"listen": "127.0.0.1:%d" % port}, limits={"cpu_percent": 0},
      daemon={"processes_max": 1000, "log_level": "debug"})
text = in_force(d)
changed_ns = time.time_ns()
lib.ok("needs a restart: sampler.ring_size, daemon.processes_max" in text,
       "what needs a restart is named")
lib.ok("reload: changed: sampler.frequency_hz, sampler.stack_bytes" in text and "exporter web" in text and "exporter gone" in text and "exporter new" in text,
       "what has changed is named")
lib.ok("second" not in text and "Bearer" not in text, "no secret is")
lib.ok(re.search("exporter gone: removed: exported 0", d.log_text()), "a destination that goes leaves its account")
lib.wait_for(lambda: two.requests() and d.status()["sampler"]["frequency_hz"] == 199, 15)
status = d.status()
lib.ok(set(status["ledger"]["destinations"]) == {"files", "web", "new"}, "destinations come and go %s" %
       sorted(status["ledger"]["destinations"]))
lib.ok(status["ledger"]["destinations"]["new"]["earlier"] > 0 and not status["ledger"]["destinations"]["web"]["earlier"],
       "what was over before one came is no loss of its own")
lib.check_ledger(status, "after the reload")
lib.ok((d.worker("engine"), d.worker("net")) == workers, "no worker was started again")
time.sleep(3)
mark = len(one.requests())
lib.wait_for(lambda: len(one.requests()) > mark + 1, 10)
last = lib.Request(one.requests()[-1])
lib.ok(all(r.get("team") == "reload" for r, _ in last.profiles()), "every workload has the new resource")
after = [s for r in one.requests() for s in lib.Request(r).samples() if s.profile.time_unix_nano >= changed_ns]
lib.ok(len(after) > 100 and all("process.pid" in s.attributes for s in after),
       "every sample has the new attribute, from the next interval on (%d samples)" % len(after))
# Softirqs of an idle CPU belong to none.
lib.ok(all(s.attributes.get("process.pid") or s.resource["service.name"] == "kernel (interrupts)" for s in after),
       "it is the id of a process")
lib.ok(all(abs(p.period - 1e9 / 199) < 2 and p.duration_nano < 9e8 for p in lib.profiles(one.requests()[-1])),
       "period and interval are the new ones")
# Profiles of samples that waited for a name may begin earlier than the last one ended.
wrong = [b for b in lib.breaches(one.requests()) if " begins " not in b]
lib.ok(not wrong, "what arrived is sound, from the first to the last %s" % wrong[:3])
seen = [h.get("authorization") or h.get("Authorization") for h in (e.get("headers", {}) for e in one.log())]
lib.ok(not seen or seen[-1] == "Bearer second", "the new header is sent %s" % seen[-1:])
lib.ok(metrics_at(port), "metrics are served where they were not before")

# A port that is somebody's when it is asked for, and free at the next reload.
with socket.create_server(("127.0.0.1", 0)) as other:
    taken = other.getsockname()[1]
    write(d, sampler={"frequency_hz": 199}, exporter__files=files, exporter__web={"endpoint": one.url, "headers_file": token},
          metrics={"listen": "127.0.0.1:%d" % taken})
    lib.ok("cannot listen on 127.0.0.1:%d" % taken in in_force(d), "an address that is taken is named")
in_force(d)
lib.ok(lib.wait_for(lambda: metrics_at(taken), 5), "and served when it is free at the next reload")

# A directory that net has no way to; the last destination of the network goes to another address.
write(d, sampler={"frequency_hz": 199}, exporter__files=files, exporter__web={"endpoint": two.url, "headers_file": token},
      exporter__late={"endpoint": "file://" + lib.scratch()})
text = in_force(d)
lib.ok("needs a restart: exporter late.endpoint" in text, "a new directory needs a restart")
mark = len(two.requests())
lib.ok(lib.wait_for(lambda: len(two.requests()) > mark + 1, 15), "a destination's new address is used")

# Selection changes live.
write(d, sampler={"frequency_hz": 199}, exporter__files=files, targets={"include": "exe:kernelio"})
text = in_force(d)
time.sleep(1.5)
names = set(lib.profile_files(d.files))
lib.wait_for(lambda: len(set(lib.profile_files(d.files)) - names) > 3, 15)
fresh = [s for f in sorted(set(lib.profile_files(d.files)) - names)[1:] for s in lib.Request(lib.read(f)).samples()]
lib.ok(fresh and {lib.executable(s) for s in fresh} == {"kernelio"}, "only what is selected now is sampled")

# One after the other, faster than they can be done, with workers dying in between.
for i in range(6):
    write(d, sampler={"frequency_hz": 97 + i}, exporter__files=files, **({"exporter__web": web} if i % 2 else {}))
    d.process.send_signal(signal.SIGHUP)
    if i == 2:
        kill(d, "net")
    if i == 4:
        kill(d, "engine")
    time.sleep(0.4)
lib.wait_for(lambda: d.status() and d.status()["sampler"]["frequency_hz"] == 102 and
             set(d.status()["ledger"]["destinations"]) == {"files", "web"}, 40, 0.3)
status = d.status()
lib.ok(status["sampler"]["frequency_hz"] == 102 and set(status["ledger"]["destinations"]) == {"files", "web"},
       "the last of many reloads is in force")
lib.check_ledger(status, "after many reloads and deaths")
for p in load:
    lib.end(p)
last = d.stop()
lib.check_ledger(last, "reload", stopped=True)


# Keys that change under the same names.

class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    clients = []

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.clients.append(hashlib.sha1(self.connection.getpeercert(True) or b"").hexdigest())
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def make_key(directory, name):
    key, cert = (os.path.join(directory, name + end) for end in (".key", ".pem"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2",
                    "-subj", "/CN=%s" % time.time(), "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    os.chmod(key, 0o600)
    with open(cert) as f:
        return key, cert, hashlib.sha1(ssl.PEM_cert_to_DER_cert(f.read())).hexdigest()


if not shutil.which("openssl"):
    lib.skip("keys that change", "there is no openssl to make some")
    lib.finish()
keys = lib.scratch()
server_key, server_cert, _ = make_key(keys, "server")
key, cert, first = make_key(keys, "client")
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(server_cert, server_key)
context.verify_mode = ssl.CERT_OPTIONAL
context.load_verify_locations(cert)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
server.socket = context.wrap_socket(server.socket, server_side=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
d = lib.Otprofd(hz=97, exporters={"web": {"endpoint": "https://127.0.0.1:%d" % server.server_port, "tls_ca_file": server_cert,
                                          "tls_cert_file": cert, "tls_key_file": key}})
busy = lib.program("kernelio", 60)
lib.ok(lib.wait_for(lambda: first in Receiver.clients, 15), "a receiver knows us by our certificate")
_, _, second = make_key(keys, "client")
context.load_verify_locations(cert)
in_force(d)
lib.ok(lib.wait_for(lambda: second in Receiver.clients, 15), "and by another one after a reload")
mark = len(Receiver.clients)
lib.wait_for(lambda: len(Receiver.clients) > mark + 1, 15)
lib.ok(set(Receiver.clients[mark:]) == {second}, "from then on by no other")
lib.end(busy)
lib.check_ledger(d.stop(), "keys", stopped=True)
lib.finish()

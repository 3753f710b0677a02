# SPDX-License-Identifier: Apache-2.0
"""otprof doctor on this kernel, with things taken away from it: BTF, rights,
kernel symbols, the cgroup hierarchy, and all of /proc."""
import json
import os
import shutil
import subprocess

import lib


def doctor(*prefix, root=None):
    """Exit status and findings by id."""
    argv = list(prefix) + [lib.OTPROF, "doctor", "--json"] + (["--root=" + root] if root else [])
    p = subprocess.run(argv, capture_output=True, text=True)
    try:
        report = json.loads(p.stdout)
    except ValueError:
        lib.note("doctor said: %s %s" % (p.stdout[-300:], p.stderr[-300:]))
        return p.returncode, {}
    levels = ["ok", "warn", "fail"]
    worst = max(levels.index(f["level"]) for f in report["findings"])
    if levels[worst] != report["level"] or worst != p.returncode:
        lib.ok(False, "exit status %d is the worst level, %s" % (p.returncode, levels[worst]))
    return p.returncode, {f["id"]: f for f in report["findings"]}


def is_level(found, name, level, text, fix=""):
    f = found.get(name, {"level": "none", "text": ""})
    return lib.ok(f["level"] == level and text in f["text"] and fix in f.get("fix", ""), "%s: %s: %s%s" % (
        name, f["level"], f["text"][:90], fix and " -> " + f.get("fix", "")[:60]))


def hidden(path, kind):
    """A shell in mount and other namespaces of its own, in which path is covered."""
    cover = {"dir": "mount -t tmpfs none %s" % path, "file": "mount --bind /dev/null %s" % path}[kind]
    return ["unshare", "--mount", "sh", "-c", cover + ' && exec "$@"', "sh"]


def without_paranoid(value):
    path = os.path.join(lib.scratch(), "paranoid")
    with open(path, "w") as f:
        f.write("%d\n" % value)
    return ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /proc/sys/kernel/perf_event_paranoid && exec "$@"', path]


def caps(*dropped):
    names = ",".join("-" + c for c in dropped)
    return ["setpriv", "--bounding-set", names, "--inh-caps", names]


def view(d):
    """A root in which the daemon's own directory is the service's."""
    root = lib.scratch()
    os.mkdir(os.path.join(root, "run"))
    os.symlink(d.runtime, os.path.join(root, "run", "otprof"))
    return root


def have_answers(d):
    status = d.status() # None on a machine that has no time for it
    return status and all(e["requests"] or e["last_error"] for e in status["ledger"]["destinations"].values())


def exporters():
    """What a receiver answers, and which key to change."""
    cases = (({"endpoint": "http://127.0.0.1:9"}, "onnect", "[exporter bad] in /etc/otprof.conf: start the receiver"),
             ({"endpoint": lib.Sink(status=404).url}, "HTTP 404", "--feature-gates=service.profilesSupport"),
             ({"endpoint": lib.Sink(status=401).url}, "HTTP 401", "headers_file"),
             ({"endpoint": lib.Sink().url, "protocol": "grpc"}, "1 of 2 deliver; bad: ", "a receiver of OTLP profiles"))
    busy = lib.program("shares", 600, stdout=subprocess.DEVNULL)
    for keys, text, fix in cases:
        d = lib.Otprofd(hz=97, interval="300ms", exporters={"good": {"endpoint": "file://FILES"}, "bad": keys})
        lib.wait_for(lambda: have_answers(d), 20)
        is_level(doctor(root=view(d))[1], "exporters", "warn", text, fix)
        d.stop()
    d = lib.Otprofd(hz=97, interval="300ms")
    lib.wait_for(lambda: have_answers(d), 20)
    is_level(doctor(root=view(d))[1], "exporters", "ok", "1 of 1 deliver")
    d.stop()
    lib.end(busy)


def tried():
    """Without otprofd, a request without samples: what is answered, and which key to change."""
    good, sinks = lib.Sink(), [lib.Sink(status=401), lib.Sink(status=400, body="00")]
    cases = (({"endpoint": good.url}, "ok", "2 of 2 answer a request without samples", ""),
             ({"endpoint": "http://127.0.0.1:9"}, "warn", "1 of 2 answer a request without samples; bad: ", "start the receiver"),
             ({"endpoint": sinks[0].url}, "warn", "bad: HTTP 401", "headers_file"),
             ({"endpoint": good.url + "/nowhere"}, "warn", "bad: HTTP 404", "--feature-gates=service.profilesSupport"),
             ({"endpoint": good.url, "protocol": "grpc"}, "warn", "bad: ", "a receiver of OTLP profiles"),
             ({"endpoint": good.url.replace("http", "https")}, "warn", "bad: ", "endpoint: https://"),
             # Connection, path and rights are right: it wants samples.
             ({"endpoint": sinks[1].url}, "ok", "2 of 2 answer", ""))
    for keys, level, text, fix in cases:
        root = lib.scratch()
        os.mkdir(os.path.join(root, "etc"))
        with open(os.path.join(root, "etc", "otprof.conf"), "w") as f:
            f.write(lib.render({"exporter files": {"endpoint": "file:///nowhere"}, "exporter bad": dict(keys, timeout="2s")}))
        is_level(doctor(root=root)[1], "exporters", level, text, fix)
    sent = [lib.Request(r) for r in good.requests()]
    lib.ok(sent and not any(list(r.samples()) for r in sent), "what was sent has no samples")
    lib.ok(all([a.value.string_value for x in r.message.resource_profiles for a in x.resource.attributes] == ["otprof"] and
               r.message.dictionary.mappings and r.message.dictionary.strings == [""] for r in sent),
           "but otprof's name, and a dictionary of zero entries")
    is_level(doctor(root=lib.scratch())[1], "exporters", "ok", "not known")


def main():
    lib.need(shutil.which("unshare") and shutil.which("setpriv"), "doctor", "unshare and setpriv are needed")
    status, whole = doctor()
    lib.ok(status in (0, 1) and whole.get("sampler", {}).get("level") == "ok", "this host can sample (%d)" % status)
    lib.ok(all(f["level"] == "ok" or f.get("fix") for f in whole.values()), "every warning has a command")

    _, found = doctor(*hidden("/sys/kernel/btf", "dir"))
    is_level(found, "btf", "warn", "no BTF", "otprof-dkms")
    lib.ok(found["sampler"]["level"] != "ok" or "kmod" in found["sampler"]["text"], "the verdict follows: %s" %
           found["sampler"]["text"])

    _, found = doctor(*hidden("/proc/kallsyms", "file"))
    is_level(found, "kallsyms", "warn", "cannot be read", "CONFIG_KALLSYMS")

    status, found = doctor(*without_paranoid(3), *caps("sys_admin"))
    is_level(found, "perf_event_paranoid", "warn", "= 3", "sysctl -w kernel.perf_event_paranoid=2")
    lib.ok(status == 1 or status == 2, "paranoid 3 without CAP_SYS_ADMIN is no small thing (%d)" % status)
    _, found = doctor(*without_paranoid(3))
    is_level(found, "perf_event_paranoid", "ok", "= 3, and CAP_SYS_ADMIN is held")

    _, found = doctor(*caps("sys_ptrace"))
    is_level(found, "capabilities", "warn", "missing: CAP_SYS_PTRACE.", "--cap-add")

    _, found = doctor("unshare", "--pid", "--fork", "--mount-proc")
    is_level(found, "pid_namespace", "warn", "of its own", "--pid=host")

    _, found = doctor(*hidden("/sys/fs/cgroup", "dir"))
    is_level(found, "cgroup", "warn", "none is mounted", "mount -t cgroup2")
    both = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && mkdir -p /sys/fs/cgroup/memory '
            '&& exec "$@"', "sh"]
    _, found = doctor(*both)
    is_level(found, "cgroup", "warn", "version 1", "systemd.unified_cgroup_hierarchy=1")

    if not os.path.exists("/dev/otprof"):
        _, found = doctor(*hidden("/sys/kernel/btf", "dir"))
        is_level(found, "module", "warn", "not", "otprof")

    exporters()
    tried()

    status, found = doctor(root="/nonexistent")
    lib.ok(status == 2, "where nothing can be read, otprofd cannot run (%d)" % status)
    p = subprocess.run([lib.OTPROF, "doctor"], capture_output=True, text=True)
    lib.ok(p.returncode in (0, 1) and "sampler" in p.stdout and "\033" not in p.stdout, "the text has a line a finding")
    p = subprocess.run([lib.OTPROF, "doctor", "--no-such"], capture_output=True, text=True)
    lib.ok(p.returncode == 64, "wrong usage is 64, apart from verdicts")
    lib.finish()


main()

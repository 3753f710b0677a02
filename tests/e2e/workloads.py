# SPDX-License-Identifier: Apache-2.0
"""Real programs from Debian under real load, for the tests and the bench. A
workload is started with for how many seconds it is to keep busy, and says by
which service names its samples go."""
import os
import shutil
import subprocess

import lib


def have(*tools):
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return all(shutil.which(t, path=path) for t in tools)


def quiet(argv, **kw):
    return lib.start(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **kw)


def redis(seconds):
    port = str(lib.free_port())
    server = quiet(["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--daemonize", "no"])
    lib.wait_for(lambda: subprocess.run(["redis-cli", "-p", port, "ping"], capture_output=True).returncode == 0, 10)
    return [server, quiet(["timeout", "-s", "KILL", str(seconds), "redis-benchmark", "-p", port, "-l", "-q", "-P", "4",
                           "-t", "set,get,lpush,lrange_100,zadd"])]


def gcc(seconds):
    work = lib.scratch()
    source = os.path.join(work, "generated.c")
    with open(source, "w") as f:
        f.write("#include <stdio.h>\n")
        for i in range(1500):
            f.write("int f%d(int a, int b) { int s = 0; for (int i = 0; i < b; i++) switch ((a ^ i) %% 5) {"
                    " case 0: s += a * %d; break; case 1: s ^= i << 3; break; case 2: s -= b / (i + 1); break;"
                    " default: s = s * 31 + a; } return s; }\n" % (i, i + 3))
    return [quiet(["timeout", "-s", "KILL", str(seconds), "sh", "-c",
                   "while :; do gcc -O2 -c -o '%s/out.o' '%s'; done" % (work, source)])]


def openssl(seconds):
    return [quiet(["timeout", "-s", "KILL", str(seconds), "openssl", "speed", "-seconds", "1", "rsa2048", "aes-128-cbc",
                   "sha256", "ecdsap256"])]


def nginx(seconds):
    work = lib.scratch()
    port = lib.free_port()
    with open(os.path.join(work, "index.html"), "w") as f:
        f.write("x" * 4096)
    with open(os.path.join(work, "nginx.conf"), "w") as f:
        f.write("""daemon off; worker_processes 1; error_log %(w)s/error.log; pid %(w)s/pid;
            events { worker_connections 256; }
            http { access_log off; client_body_temp_path %(w)s/a; proxy_temp_path %(w)s/b; fastcgi_temp_path %(w)s/c;
                   uwsgi_temp_path %(w)s/d; scgi_temp_path %(w)s/e; gzip on; gzip_min_length 100;
                   server { listen 127.0.0.1:%(p)d; root %(w)s; } }""" % {"w": work, "p": port})
    nginx_path = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
    server = quiet([nginx_path, "-c", os.path.join(work, "nginx.conf"), "-e", os.path.join(work, "error.log")])
    lib.at_end(lib.end, server, lib.signal.SIGTERM)
    lib.time.sleep(0.5)
    return [server, quiet(["wrk", "-t1", "-c16", "-d%ds" % seconds, "-H", "Accept-Encoding: gzip",
                           "http://127.0.0.1:%d/" % port])]


# name: (needed tools, start, service names, executables as perf's comm shows them)
ALL = {
    "redis": (("redis-server", "redis-benchmark", "redis-cli"), redis, ("redis-server",), ("redis-server",)),
    "gcc": (("gcc",), gcc, ("cc1", "gcc", "as"), ("cc1", "gcc", "as")),
    "openssl": (("openssl",), openssl, ("openssl",), ("openssl",)),
    "nginx": (("nginx", "wrk"), nginx, ("nginx", "wrk"), ("nginx", "wrk")),
}


def end_all(processes):
    for p in reversed(processes):
        lib.end(p, lib.signal.SIGTERM)

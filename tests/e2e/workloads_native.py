# SPDX-License-Identifier: Apache-2.0
"""More real programs, for the bench's table of roots: compilers, databases,
codecs, and the native part of interpreters. Same shape as workloads.ALL."""
import os
import shutil
import subprocess
import sys

import lib
from workloads import ALL, quiet

TEMPLATES = """#include <map>
#include <regex>
#include <string>
#include <tuple>
#include <vector>
template <int N> struct Fib { static constexpr int value = Fib<N - 1>::value + Fib<N - 2>::value; };
template <> struct Fib<0> { static constexpr int value = 0; };
template <> struct Fib<1> { static constexpr int value = 1; };
template <class... T> struct Many { std::tuple<T...> t; std::map<std::string, std::vector<std::tuple<T...>>> m; };
"""


def again(seconds, command, **kw):
    """A short program over and over: each run is a process whose first samples count too."""
    return [quiet(["timeout", "-s", "KILL", str(seconds), "sh", "-c", "while :; do %s; done >/dev/null 2>&1" % command], **kw)]


def written(name, text):
    path = os.path.join(lib.scratch(), name)
    with open(path, "w") as f:
        f.write(text)
    return path


def noise(size):
    """Text that packs as text does."""
    words = [("w%x" % (i * 2654435761 % 99991)).encode() for i in range(4000)]
    out, i = bytearray(), 1
    while len(out) < size:
        i = (i * 1103515245 + 12345) % 2**31
        out += words[i % 4000] + b" "
    path = os.path.join(lib.scratch(), "noise")
    with open(path, "wb") as f:
        f.write(out)
    return path


def templates():
    body = "".join("Many<%s> m%d; int u%d() { std::regex r(\"a%d+(b|c)*\"); std::sort((std::vector<int>{%d}).begin(), {}); "
                   "return Fib<%d>::value + std::regex_match(std::string(\"x\"), r) + m%d.m.size(); }\n" % (
                       ", ".join(["int", "char", "std::string", "double", "long"][: i % 5 + 1]), i, i, i, i, 60 + i, i)
                   for i in range(12))
    return written("templates.cc", "#include <algorithm>\n" + TEMPLATES + body.replace(
        "std::sort((std::vector<int>{", "std::vector<int> v{").replace("}).begin(), {});", "}; std::sort(v.begin(), v.end());"))


def gxx(seconds):
    return again(seconds, "g++ -std=c++17 -O2 -ftemplate-depth=2000 -c -o /dev/null '%s'" % templates())


def clang(seconds):
    return again(seconds, "clang++ -std=c++17 -O2 -ftemplate-depth=2000 -c -o /dev/null '%s'" % templates())


def rust_source():
    return written("lib.rs", "use std::collections::*;\n" + "".join(
        "pub fn f%d(v: &[u64]) -> BTreeMap<String, Vec<u64>> { let mut m = BTreeMap::new(); for x in v.iter().filter(|x| "
        "**x > %d).map(|x| x * %d) { m.entry(format!(\"k{}\", x %% 7)).or_insert_with(Vec::new).push(x); } m }\n" % (i, i, i + 1)
        for i in range(150)))


def rustc(seconds):
    return again(seconds, "rustc --crate-type lib -O -o '%s/out.rlib' '%s'" % (lib.scratch(), rust_source()))


def cargo(seconds):
    top = lib.scratch()
    os.makedirs(os.path.join(top, "src"))
    shutil.copy(rust_source(), os.path.join(top, "src", "lib.rs"))
    with open(os.path.join(top, "Cargo.toml"), "w") as f:
        f.write("[package]\nname = \"busy\"\nversion = \"0.1.0\"\nedition = \"2021\"\n")
    return again(seconds, "cargo metadata --offline --format-version 1; cargo build --offline; touch src/lib.rs", cwd=top)


def xz(seconds):
    return again(seconds, "xz -6 -c '%s'" % noise(8 << 20))


def git(seconds):
    top = lib.scratch()
    subprocess.run(["git", "init", "-q", top], check=True)
    stream = "".join("blob\nmark :%d\ndata %d\n%s\n" % (i + 1, len("line %d\n" % i * 60), "line %d\n" % i * 60) for i in range(4000))
    stream += "commit refs/heads/main\ncommitter a <a@b> 0 +0000\ndata 1\nx\n" + "".join(
        "M 644 :%d f%d\n" % (i + 1, i) for i in range(4000))
    subprocess.run(["git", "-C", top, "fast-import", "--quiet"], input=stream, text=True, check=True)
    return again(seconds, "git -C '%s' repack -q -a -d -f --depth=50 --window=50" % top)


def ffmpeg(seconds):
    return again(seconds, "ffmpeg -v quiet -f lavfi -i testsrc2=size=640x360:rate=30 -t 5 -c:v libx264 -f null -")


def sqlite(seconds):
    sql = ("with recursive n(i) as (select 1 union all select i + 1 from n where i < 300000) "
           "select count(*), sum(length(x)) from (select hex(i * 31 %% 977) as x from n order by x desc, i) group by x limit 5;" % ())
    return again(seconds, "sqlite3 :memory: '%s'" % sql)


def python(seconds):
    script = written("busy.py", "import json, re, hashlib, zlib\nwhile True:\n"
                     "    d = json.dumps([{'a': i, 'b': [str(i)] * 9} for i in range(500)])\n    json.loads(d)\n"
                     "    re.findall(r'\"(\\w+)\": (\\d+)', d)\n    hashlib.sha256(d.encode()).hexdigest()\n"
                     "    zlib.compress(d.encode())\n    sorted(d, key=lambda c: ord(c) % 7)\n")
    return [quiet(["timeout", "-s", "KILL", str(seconds), "/usr/bin/python3", script])]


def node(seconds):
    script = written("busy.js", "const z = require('zlib'), c = require('crypto');\nfunction f(n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\n"
                     "while (true) { f(24); const s = JSON.stringify(Array.from({length: 999}, (_, i) => ({i, k: 'x' + i})));\n"
                     "JSON.parse(s); z.deflateSync(s); c.createHash('sha256').update(s).digest(); s.replace(/x(\\d+)/g, '$1'); }\n")
    return [quiet(["timeout", "-s", "KILL", str(seconds), "node", script])]


def java(seconds):
    script = written("Busy.java", "import java.util.*; public class Busy { static int f(int n) { return n < 2 ? n : f(n-1) + f(n-2); }\n"
                     "public static void main(String[] a) throws Exception { while (true) { f(25); Map<String,Integer> m = new HashMap<>();\n"
                     "for (int i = 0; i < 20000; i++) m.merge(\"k\" + i % 997, i, Integer::sum);\n"
                     "new java.util.zip.CRC32().update(m.toString().getBytes()); } } }\n")
    return [quiet(["timeout", "-s", "KILL", str(seconds), "java", script])]


def postgres_server(*options):
    """A server with pgbench's tables, and how its clients reach it."""
    bin_dir = os.path.dirname(sorted(__import__("glob").glob("/usr/lib/postgresql/*/bin/initdb"))[-1])
    data, port = lib.scratch(), str(lib.free_port())
    subprocess.run(["chown", "postgres", data], check=True)
    os.chmod(data, 0o700)
    user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    subprocess.run(user + [bin_dir + "/initdb", "-D", data + "/d", "-A", "trust"], check=True, capture_output=True, cwd="/")
    server = quiet(user + [bin_dir + "/postgres", "-D", data + "/d", "-p", port, "-k", data, "-c", "listen_addresses=",
                           "-c", "fsync=off"] + [x for o in options for x in ("-c", o)], cwd="/")
    lib.at_end(lib.end, server, lib.signal.SIGINT)
    base = ["-h", data, "-p", port, "-U", "postgres"]
    lib.wait_for(lambda: subprocess.run(["psql"] + base + ["-c", "select 1", "postgres"], capture_output=True).returncode == 0, 20)
    subprocess.run(["pgbench", "-i", "-q", "-s", "3"] + base + ["postgres"], capture_output=True, check=True)
    return server, base


def postgres(seconds):
    server, base = postgres_server()
    return [server, quiet(["pgbench", "-c", "4", "-T", str(seconds)] + base + ["postgres"])]


def chromium(seconds):
    page = written("page.html", "<canvas id=c width=900 height=600></canvas><div id=d></div><script>let n=0;const x=c.getContext('2d');"
                   "function f(){for(let i=0;i<400;i++){x.fillStyle=`hsl(${(n+i)%360} 80% 50%)`;x.fillRect(Math.random()*900,"
                   "Math.random()*600,20,20)};d.innerHTML=Array.from({length:300},(_,i)=>`<p style='margin:${i%9}px'>${n*i}</p>`).join('');"
                   "n++;requestAnimationFrame(f)};f()</script>")
    return again(seconds, "chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
                 "--disable-component-update --disable-sync --user-data-dir='%s' --screenshot=/dev/null --timeout=%d000 'file://%s'" % (
                     lib.scratch(), seconds, page))


NATIVE = dict(ALL, **{
    "postgres": (("pgbench", "psql"), postgres, ("postgres", "pgbench"), ("postgres", "pgbench")),
    "g++": (("g++",), gxx, ("cc1plus", "g++", "as"), ("cc1plus", "g++", "as")),
    "xz": (("xz",), xz, ("xz",), ("xz",)),
    "git": (("git",), git, ("git",), ("git",)),
    "ffmpeg": (("ffmpeg",), ffmpeg, ("ffmpeg",), ("ffmpeg",)),
    "sqlite": (("sqlite3",), sqlite, ("sqlite3",), ("sqlite3",)),
    "clang": (("clang++",), clang, ("clang", "clang-14", "clang++"), ("clang", "clang-14", "clang++")),
    "rustc": (("rustc",), rustc, ("rustc",), ("rustc",)),
    "cargo": (("cargo", "rustc"), cargo, ("cargo",), ("cargo",)),
    "python3": (("/usr/bin/python3",), python, ("python3", "busy", "python3.11"), ("python3",)),
    "node": (("node",), node, ("node", "busy"), ("node",)),
    "java": (("java",), java, ("java", "Busy"), ("java",)),
    "chromium": (("chromium",), chromium, ("chromium",), ("chromium",)),
})

if __name__ == "__main__": # by hand: run one load for so many seconds
    lib.time.sleep(int(sys.argv[2]) + (1 if NATIVE[sys.argv[1]][1](int(sys.argv[2])) else 0))

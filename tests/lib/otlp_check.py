#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads OTLP profile requests and finds every breach of the data model.

An independent reader: it decodes the wire format itself (no generated code, no
protobuf package), from field numbers written down here a second time. Files are
raw ExportProfilesServiceRequest messages, checked one by one and, in the order
given (or found, by name, in a directory), against each other.

  otlp_check.py [--hz N] [--json] [--stacks] [--service NAME] FILE|DIR...

Exit status: 0 no breach, 1 breaches (one line each, on stderr), 2 usage.
--json prints a summary: samples by service, functions by self and total, and
with --stacks every stack with its names, innermost first.
"""
import argparse
import collections
import json
import os
import re
import struct
import sys
import time

KERNEL_HALF = 0xffff800000000000
FRAME_TYPES = {"beam", "cpython", "dotnet", "go", "jvm", "kernel", "luajit", "native",
               "perl", "php", "ruby", "rust", "v8js"}  # of the semantic conventions
OUR_FRAME_TYPES = {"jit", "lua"}
# Values and period of each kind of profile: CPU samples, or events as perf calls them.
CPU_TYPES = (("samples", "count"), ("cpu", "nanoseconds"))
EVENTS = {"page_faults", "minor_faults", "major_faults", "context_switches", "cpu_migrations", "alignment_faults",
          "emulation_faults", "cycles", "instructions", "cache_references", "cache_misses", "branches",
          "branch_misses", "bus_cycles", "ref_cycles"}
YEAR_NS = 365 * 86400 * 10**9


class Malformed(Exception):
    pass


# --- wire format ---------------------------------------------------------

def varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data):
            raise Malformed("varint is cut")
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        if not byte & 0x80:
            if value >> 64:
                raise Malformed("varint is longer than 64 bits")
            return value, at
        shift += 7
        if shift > 63:
            raise Malformed("varint is longer than ten bytes")


def fields(data):
    """(number, wire type, value) of each field."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise Malformed("field number 0")
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            if at + 8 > len(data):
                raise Malformed("fixed64 is cut")
            value, at = struct.unpack_from("<Q", data, at)[0], at + 8
        elif kind == 2:
            size, at = varint(data, at)
            if at + size > len(data):
                raise Malformed("block is cut")
            value, at = data[at:at + size], at + size
        elif kind == 5:
            if at + 4 > len(data):
                raise Malformed("fixed32 is cut")
            value, at = struct.unpack_from("<I", data, at)[0], at + 4
        else:
            raise Malformed("wire type %d" % kind)
        yield number, kind, value


def signed(value, bits):
    value &= (1 << 64) - 1
    if value >> 63:
        value -= 1 << 64
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise Malformed("%d does not fit int%d" % (value, bits))
    return value


# A message: {number: (name, type, repeated)}. Types: string, bytes, int32,
# int64, uint32, uint64, fixed64, bool, double, or another message's name.
MESSAGES = {
    "Request": {1: ("resource_profiles", "ResourceProfiles", True), 2: ("dictionary", "Dictionary", False)},
    "Dictionary": {1: ("mappings", "Mapping", True), 2: ("locations", "Location", True),
                   3: ("functions", "Function", True), 4: ("links", "Link", True),
                   5: ("strings", "string", True), 6: ("attributes", "KeyValueAndUnit", True),
                   7: ("stacks", "Stack", True)},
    "ResourceProfiles": {1: ("resource", "Resource", False), 2: ("scope_profiles", "ScopeProfiles", True),
                         3: ("schema_url", "string", False)},
    "Resource": {1: ("attributes", "KeyValue", True), 2: ("dropped_attributes_count", "uint32", False),
                 3: ("entity_refs", "EntityRef", True)},
    "EntityRef": {1: ("schema_url", "string", False), 2: ("type", "string", False),
                  3: ("id_keys", "string", True), 4: ("description_keys", "string", True)},
    "ScopeProfiles": {1: ("scope", "Scope", False), 2: ("profiles", "Profile", True),
                      3: ("schema_url", "string", False)},
    "Scope": {1: ("name", "string", False), 2: ("version", "string", False),
              3: ("attributes", "KeyValue", True), 4: ("dropped_attributes_count", "uint32", False)},
    "Profile": {1: ("sample_type", "ValueType", False), 2: ("samples", "Sample", True),
                3: ("time_unix_nano", "fixed64", False), 4: ("duration_nano", "uint64", False),
                5: ("period_type", "ValueType", False), 6: ("period", "int64", False),
                7: ("profile_id", "bytes", False), 8: ("dropped_attributes_count", "uint32", False),
                9: ("original_payload_format", "string", False), 10: ("original_payload", "bytes", False),
                11: ("attribute_indices", "int32", True)},
    "ValueType": {1: ("type", "int32", False), 2: ("unit", "int32", False)},
    "Sample": {1: ("stack", "int32", False), 2: ("attributes", "int32", True), 3: ("link", "int32", False),
               4: ("values", "int64", True), 5: ("timestamps", "fixed64", True)},
    "Mapping": {1: ("start", "uint64", False), 2: ("limit", "uint64", False), 3: ("offset", "uint64", False),
                4: ("filename", "int32", False), 5: ("attributes", "int32", True)},
    "Stack": {1: ("locations", "int32", True)},
    "Location": {1: ("mapping", "int32", False), 2: ("address", "uint64", False), 3: ("lines", "Line", True),
                 4: ("attributes", "int32", True)},
    "Line": {1: ("function", "int32", False), 2: ("line", "int64", False), 3: ("column", "int64", False)},
    "Function": {1: ("name", "int32", False), 2: ("system_name", "int32", False),
                 3: ("filename", "int32", False), 4: ("start_line", "int64", False)},
    "Link": {1: ("trace_id", "bytes", False), 2: ("span_id", "bytes", False)},
    "KeyValueAndUnit": {1: ("key", "int32", False), 2: ("value", "AnyValue", False), 3: ("unit", "int32", False)},
    "KeyValue": {1: ("key", "string", False), 2: ("value", "AnyValue", False), 3: ("key_strindex", "int32", False)},
    "AnyValue": {1: ("string_value", "string", False), 2: ("bool_value", "bool", False),
                 3: ("int_value", "int64", False), 4: ("double_value", "double", False),
                 5: ("array_value", "ArrayValue", False), 6: ("kvlist_value", "KeyValueList", False),
                 7: ("bytes_value", "bytes", False), 8: ("string_value_strindex", "int32", False)},
    "ArrayValue": {1: ("values", "AnyValue", True)},
    "KeyValueList": {1: ("values", "KeyValue", True)},
}
KINDS = {"string": 2, "bytes": 2, "fixed64": 1, "double": 1}
DEFAULTS = {"string": "", "bytes": b"", "bool": False, "double": 0.0}


class Message:
    """Fields by name; absent ones have their default. `present` holds what was on the wire."""

    def __init__(self, kind):
        self.kind = kind
        self.present = set()
        for name, of, repeated in MESSAGES[kind].values():
            setattr(self, name, [] if repeated else None if of in MESSAGES else DEFAULTS.get(of, 0))

    def value(self):
        """What identifies the message: all its fields, recursively."""
        return tuple((name, plain(getattr(self, name))) for name, _, _ in MESSAGES[self.kind].values())


def plain(v):
    if isinstance(v, Message):
        return v.value()
    if isinstance(v, list):
        return tuple(plain(x) for x in v)
    return v


def scalar(of, kind, raw):
    if KINDS.get(of, 0) != kind:
        raise Malformed("%s in wire type %d" % (of, kind))
    if of == "string":
        try:
            return bytes(raw).decode("utf-8")
        except UnicodeDecodeError:
            raise Malformed("string is no UTF-8: %r" % bytes(raw[:40]))
    if of == "bytes":
        return bytes(raw)
    if of == "double":
        return struct.unpack("<d", struct.pack("<Q", raw))[0]
    if of == "bool":
        return bool(raw)
    if of in ("int32", "int64"):
        return signed(raw, int(of[3:]))
    if of == "uint32" and raw >> 32:
        raise Malformed("%d does not fit uint32" % raw)
    return raw


def packed(of, data):
    out, at = [], 0
    while at < len(data):
        if of == "fixed64":
            if at + 8 > len(data):
                raise Malformed("packed fixed64 is cut")
            out.append(struct.unpack_from("<Q", data, at)[0])
            at += 8
        else:
            raw, at = varint(data, at)
            out.append(scalar(of, 0, raw))
    return out


def decode(kind, data, into=None):
    message = into or Message(kind)
    for number, wire, raw in fields(data):
        if number not in MESSAGES[kind]:
            raise Malformed("%s has no field %d" % (kind, number))
        name, of, repeated = MESSAGES[kind][number]
        message.present.add(name)
        if of in MESSAGES:
            if wire != 2:
                raise Malformed("%s.%s in wire type %d" % (kind, name, wire))
            if repeated:
                getattr(message, name).append(decode(of, raw))
            else:
                setattr(message, name, decode(of, raw, getattr(message, name)))
        elif not repeated:
            setattr(message, name, scalar(of, wire, raw))
        elif wire == 2 and KINDS.get(of, 0) != 2:
            getattr(message, name).extend(packed(of, raw))
        else:
            getattr(message, name).append(scalar(of, wire, raw))
    return message


# --- one request ---------------------------------------------------------

TABLES = ("mappings", "locations", "functions", "links", "strings", "attributes", "stacks")
ZERO_LINKS = {(b"", b""), (bytes(16), bytes(8))}


class Checker:
    def __init__(self, hz=0, now_ns=None):
        self.hz = hz
        self.now_ns = now_ns or time.time_ns()
        self.breaches = []
        self.where = ""
        self.ids = set()
        self.last_start = 0
        self.last_end = 0
        self.requests = self.profiles = self.bytes = 0
        self.services = collections.Counter()
        self.resources = {}
        self.self_of = collections.Counter()
        self.total_of = collections.Counter()
        self.stacks = collections.Counter()
        self.types = collections.Counter()
        self.frames = self.frames_named = 0

    def breach(self, text, *args):
        self.breaches.append("%s: %s" % (self.where, text % args if args else text))

    def index(self, table, i, what):
        """The entry, or None after saying that the index is none."""
        entries = getattr(self.d, table)
        if not 0 <= i < len(entries):
            self.breach("%s: index %d is not in %s (%d)", what, i, table, len(entries))
            return None
        self.used[table].add(i)
        return entries[i]

    def text(self, i, what):
        return self.index("strings", i, what) or ""

    # tables

    def zero_entries(self):
        for table in TABLES:
            entries = getattr(self.d, table)
            if not entries:
                self.breach("%s is empty: its zero entry is missing", table)
            elif table == "strings":
                if entries[0] != "":
                    self.breach("strings[0] is %r", entries[0])
            elif table == "links":
                if (entries[0].trace_id, entries[0].span_id) not in ZERO_LINKS:
                    self.breach("links[0] is not the zero value")
            elif entries[0].present:
                self.breach("%s[0] is not the zero value: it has %s", table, sorted(entries[0].present))

    def resolved(self, table, i):
        """Value of an entry with its references followed: what makes two entries equal."""
        d, key = self.d, (table, i)
        if key in self.values:
            return self.values[key]
        if not 0 <= i < len(getattr(d, table)):
            return ("bad", i)
        e = getattr(d, table)[i]
        if table == "strings":
            v = e
        elif table == "functions":
            v = (self.resolved("strings", e.name), self.resolved("strings", e.system_name),
                 self.resolved("strings", e.filename), e.start_line)
        elif table == "attributes":
            v = (self.resolved("strings", e.key), plain(e.value), self.resolved("strings", e.unit))
        elif table == "mappings":
            v = (e.start, e.limit, e.offset, self.resolved("strings", e.filename), self.attribute_set(e.attributes))
        elif table == "locations":
            v = (self.resolved("mappings", e.mapping), e.address,
                 tuple((self.resolved("functions", x.function), x.line, x.column) for x in e.lines),
                 self.attribute_set(e.attributes))
        elif table == "stacks":
            v = tuple(self.resolved("locations", x) for x in e.locations)
        else:
            v = plain(e)
        # Nested values are long; a number for each keeps comparing cheap.
        self.values[key] = self.interned.setdefault((table, v), len(self.interned))
        return self.values[key]

    def attribute_set(self, indices):
        return tuple(sorted(self.resolved("attributes", i) for i in indices) if
                     all(0 <= i < len(self.d.attributes) for i in indices) else ("bad",))

    def duplicates(self):
        self.values, self.interned = {}, {}
        for table in TABLES:
            first = {}
            for i in range(len(getattr(self.d, table))):
                v = self.resolved(table, i)
                if v in first:
                    self.breach("%s[%d] repeats [%d]%s", table, i, first[v],
                                ": %r" % self.d.strings[i] if table == "strings" else "")
                else:
                    first[v] = i

    def orphans(self):
        for table in TABLES:
            for i in range(1, len(getattr(self.d, table))):
                if i not in self.used[table]:
                    self.breach("%s[%d] is an orphan%s", table, i,
                                ": %r" % self.d.strings[i] if table == "strings" else "")

    # attributes

    def inline(self, attributes, what, limit=None):
        """Attributes of a resource or scope: key and string, written out."""
        out = {}
        for a in attributes:
            if a.key_strindex or "key_strindex" in a.present:
                self.breach("%s: key is a reference (%d)", what, a.key_strindex)
            if not a.key:
                self.breach("%s: attribute without a key", what)
            if a.key in out:
                self.breach("%s: %s twice", what, a.key)
            if a.value is None:
                self.breach("%s: %s has no value", what, a.key)
                continue
            if "string_value_strindex" in a.value.present:
                self.breach("%s: value of %s is a reference", what, a.key)
            if a.value.present != {"string_value"}:
                self.breach("%s: value of %s is %s, not a string", what, a.key, sorted(a.value.present))
            out[a.key] = a.value.string_value
        return out

    def table_attributes(self, indices, what):
        out = {}
        for i in indices:
            a = self.index("attributes", i, what)
            if a is None:
                continue
            if i == 0:
                self.breach("%s: refers to the zero attribute", what)
                continue
            key = self.text(a.key, what + ": attribute key")
            if a.unit:
                self.text(a.unit, what + ": attribute unit")
            if not key:
                self.breach("%s: attribute %d without a key", what, i)
            if key in out:
                self.breach("%s: %s twice", what, key)
            if a.value is None or len(a.value.present) != 1:
                self.breach("%s: %s has no value", what, key)
                continue
            if "string_value_strindex" in a.value.present:
                self.breach("%s: value of %s is a reference", what, key)
            out[key] = getattr(a.value, next(iter(a.value.present)))
        return out

    # entries, each once

    def mapping(self, i):
        m = self.index("mappings", i, "location")
        if not i or m is None or i in self.mapping_seen:
            return m
        self.mapping_seen.add(i)
        what = "mappings[%d]" % i
        name = self.text(m.filename, what + ": filename")
        attributes = self.table_attributes(m.attributes, what)
        if not name.strip():
            self.breach("%s has no filename", what)
        if m.start >= KERNEL_HALF or m.limit >= KERNEL_HALF:
            self.breach("%s %s: kernel addresses %#x-%#x", what, name, m.start, m.limit)
        if m.limit < m.start:
            self.breach("%s %s: limit below start", what, name)
        # A file whose layout is known was read, so its identity is known as well.
        if name.startswith("/") and m.limit and "process.executable.build_id.htlhash" not in attributes:
            self.breach("%s %s has no htlhash", what, name)
        for key in ("process.executable.build_id.htlhash", "process.executable.build_id.gnu"):
            if key in attributes and not re.fullmatch(r"([0-9a-f]{2})+", str(attributes[key])):
                self.breach("%s %s: %s is %r", what, name, key, attributes[key])
        return m

    def function(self, i, what):
        f = self.index("functions", i, what)
        if f is None:
            return "[index]"
        if i == 0:
            self.breach("%s: refers to the zero function", what)
        name = self.text(f.name, what + ": function name")
        system = self.text(f.system_name, what + ": system name")
        self.text(f.filename, what + ": function file")
        if not name.strip():
            self.breach("%s: functions[%d] has no name (system name %r)", what, i, system)
        return name

    def location(self, i):
        """Names, innermost first."""
        if i in self.location_names:
            self.used["locations"].add(i)
            return self.location_names[i]
        l = self.index("locations", i, "stack")
        names = []
        what = "locations[%d]" % i
        if l is not None:
            if i == 0:
                self.breach("a stack refers to the zero location")
            m = self.mapping(l.mapping)
            if l.address >= KERNEL_HALF:
                self.breach("%s: kernel address %#x", what, l.address)
            if m is not None and m.limit and not m.start <= l.address <= m.limit:
                self.breach("%s: address %#x outside its mapping %#x-%#x (%s)", what, l.address, m.start, m.limit,
                            self.text(m.filename, what))
            if not l.lines:
                self.breach("%s has no line", what)
            names = [self.function(x.function, what) for x in l.lines]
            kind = self.table_attributes(l.attributes, what).get("profile.frame.type")
            # A marker is no frame, and has no type.
            if kind is None and not l.address and not l.mapping and names and names[0].startswith("["):
                kind = "marker"
            elif kind not in FRAME_TYPES | OUR_FRAME_TYPES:
                self.breach("%s (%s): profile.frame.type is %r", what, ";".join(names), kind)
            self.kinds[i] = kind
        self.location_names[i] = names
        return names

    def stack(self, i):
        if i in self.stack_names:
            self.used["stacks"].add(i)
            return self.stack_names[i]
        s = self.index("stacks", i, "sample")
        names = []
        if s is not None:
            if i == 0 or not s.locations:
                self.breach("a sample has an empty stack (%d)", i)
            for x in s.locations:
                of = self.location(x)
                names.extend((name, self.kinds.get(x)) for name in of)
        self.stack_names[i] = names
        return names

    # profiles

    def value_type(self, v, want, what):
        if v is None:
            self.breach("%s is missing", what)
            return
        got = (self.text(v.type, what), self.text(v.unit, what))
        if got != want:
            self.breach("%s is %s/%s, not %s/%s", what, *got, *want)

    def times(self, p):
        end = p.time_unix_nano + p.duration_nano
        if abs(p.time_unix_nano - self.now_ns) > YEAR_NS:
            self.breach("time_unix_nano %d is not within a year of now", p.time_unix_nano)
        if end > self.now_ns + 60 * 10**9:
            self.breach("the profile ends %.1f s from now", (end - self.now_ns) / 1e9)
        if not 0 < p.duration_nano <= 3600 * 10**9:
            self.breach("duration_nano is %d", p.duration_nano)
        self.span.add((p.time_unix_nano, p.duration_nano))

    def profile_head(self, p):
        event = self.text(p.sample_type.type, "sample_type") if p.sample_type else ""
        wanted = ((event, "count"),) * 2 if event in EVENTS else CPU_TYPES
        self.value_type(p.sample_type, wanted[0], "sample_type")
        self.value_type(p.period_type, wanted[1], "period_type")
        if p.period <= 0:
            self.breach("period is %d", p.period)
        elif self.hz and wanted is CPU_TYPES and abs(p.period - 1e9 / self.hz) > 1:
            self.breach("period is %d, not %.0f (%g Hz)", p.period, 1e9 / self.hz, self.hz)
        if len(p.profile_id) != 16 or not any(p.profile_id):
            self.breach("profile_id is %s", p.profile_id.hex() or "empty")
        elif p.profile_id in self.ids:
            self.breach("profile_id %s again", p.profile_id.hex())
        self.ids.add(p.profile_id)
        if bool(p.original_payload_format) != bool(p.original_payload):
            self.breach("original_payload and its format go together")
        self.table_attributes(p.attribute_indices, "profile")
        self.times(p)

    def sample(self, p, s, service, seen):
        identity = (s.stack, tuple(sorted(s.attributes)), s.link)
        if identity in seen:
            self.breach("two samples of a profile have stack %d and the same attributes", s.stack)
        seen.add(identity)
        self.table_attributes(s.attributes, "sample")
        if s.link:
            self.index("links", s.link, "sample")
        names = self.stack(s.stack)
        if len(s.values) != 1 or s.values[0] <= 0:
            self.breach("values are %s", s.values)
            return 0
        if s.timestamps:
            self.breach("timestamps beside an aggregated value")
        self.account(names, s.values[0], service)
        return s.values[0]

    def account(self, names, n, service):
        plain_names = [name for name, _ in names]
        self.services[service] += n
        if plain_names:
            self.self_of[plain_names[0]] += n
        for name in set(plain_names):
            self.total_of[name] += n
        self.stacks[(service, tuple(plain_names))] += n
        for name, kind in names:
            self.types[kind] += n
            self.frames += n
            self.frames_named += n if not re.search(r"\+0x[0-9a-f]+$|^\[(unknown|anon|kernel)\]$", name) else 0

    def profile(self, p, service):
        self.profile_head(p)
        if not p.samples:
            self.breach("a profile without samples")
        if len(p.samples) > 16000:
            self.breach("%d samples in a profile, receivers take 16000", len(p.samples))
        seen = set()
        total = sum(self.sample(p, s, service, seen) for s in p.samples)
        self.profiles += 1
        return total

    def resource(self, r, seen):
        attributes = self.inline(r.resource.attributes if r.resource else [], "resource")
        service = attributes.get("service.name", "")
        if not service.strip():
            self.breach("resource without service.name: %s", attributes)
        if len(attributes) > 26:
            self.breach("%s: %d attributes, receivers take 25 besides service.name", service, len(attributes))
        key = tuple(sorted(attributes.items()))
        if key in seen:
            self.breach("resource %s twice in a request", service)
        seen.add(key)
        self.resources[key] = attributes
        if not r.scope_profiles:
            self.breach("%s: resource without scope", service)
        for scope in r.scope_profiles:
            if scope.scope is None or not scope.scope.name:
                self.breach("%s: scope without a name", service)
            elif scope.scope.attributes:
                self.inline(scope.scope.attributes, "scope")
            if not scope.profiles:
                self.breach("%s: scope without profiles", service)
            for p in scope.profiles:
                self.profile(p, service)

    def order(self):
        """Requests come in the order of their times; parts of one interval share them."""
        if len(self.span) > 1:
            self.breach("profiles of one request have %d different time ranges", len(self.span))
        for start, duration in sorted(self.span)[:1]:
            if start != self.last_start and start < self.last_end:
                self.breach("begins %.6f s before the previous one ended", (self.last_end - start) / 1e9)
            self.last_start, self.last_end = start, start + duration

    def request(self, data, where):
        self.where = where
        self.requests += 1
        self.bytes += len(data)
        self.used = {table: set() for table in TABLES}
        self.mapping_seen, self.location_names, self.stack_names, self.kinds = set(), {}, {}, {}
        self.span = set()
        try:
            message = decode("Request", memoryview(data))
        except Malformed as e:
            self.breach("malformed: %s", e)
            return
        if message.dictionary is None:
            self.breach("no dictionary")
            return
        if not message.resource_profiles:
            self.breach("no resource_profiles")
        self.d = message.dictionary
        self.zero_entries()
        self.duplicates()
        seen = set()
        for r in message.resource_profiles:
            self.resource(r, seen)
        self.orphans()
        self.order()

    # what was read

    def summary(self, stacks, service):
        functions = [{"name": name, "self": self.self_of[name], "total": total}
                     for name, total in self.total_of.most_common()]
        functions.sort(key=lambda f: (-f["self"], -f["total"], f["name"]))
        out = {"requests": self.requests, "profiles": self.profiles, "bytes": self.bytes,
               "samples": sum(self.services.values()), "services": dict(self.services.most_common()),
               "frames": self.frames, "frames_named": self.frames_named, "frame_types": dict(self.types),
               "resources": list(self.resources.values()), "functions": functions,
               "breaches": len(self.breaches)}
        if stacks:
            out["stacks"] = [{"service": of, "count": n, "names": list(names)}
                             for (of, names), n in self.stacks.most_common() if service in (None, of)]
        return out


def files(paths):
    for path in paths:
        if os.path.isdir(path):
            for name in sorted(os.listdir(path)):
                if name.endswith(".otlp"):
                    yield os.path.join(path, name)
        else:
            yield path


def main():
    ap = argparse.ArgumentParser(description="Check OTLP profile requests.")
    ap.add_argument("paths", nargs="+", metavar="FILE|DIR")
    ap.add_argument("--hz", type=float, default=0, help="sampling rate that the period must say")
    ap.add_argument("--json", action="store_true", help="print a summary")
    ap.add_argument("--stacks", action="store_true", help="with every stack, innermost first")
    ap.add_argument("--service", help="only this service's stacks")
    ap.add_argument("--max", type=int, default=50, help="breaches to print, 0: all")
    args = ap.parse_args()
    checker = Checker(args.hz)
    for path in files(args.paths):
        with open(path, "rb") as f:
            checker.request(f.read(), os.path.basename(path))
    if not checker.requests:
        checker.where = "input"
        checker.breach("no request")
    shown = checker.breaches[:args.max or None]
    for line in shown:
        print(line, file=sys.stderr)
    if len(shown) < len(checker.breaches):
        print("... and %d more" % (len(checker.breaches) - len(shown)), file=sys.stderr)
    if args.json or args.stacks:
        json.dump(checker.summary(args.stacks, args.service), sys.stdout, indent=1)
        print()
    return 1 if checker.breaches else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""A model of what Grafana Pyroscope (main of 2026-08) does with OTLP requests.

Pyroscope cannot be assembled from modules, so its rules are written down here,
as reading its sources and running it found them: what it answers, what it keeps
of a request that it answers with an error, what it loses behind a 200, and
which series it makes. Store.push is one request; Store.series is what a query
would find: {labels: {(stack of names): value}}.
"""
import collections
import gzip
import struct
import time

import otlp_check

PATH = "/v1development/profiles"
TYPES = ("application/x-protobuf", "application/protobuf", "application/json")
LABELS_MAX = 30        # of a series; five are Pyroscope's own
OWN_LABELS = 5
NAME_MAX, VALUE_MAX = 1024, 2048
SAMPLES_MAX = 16000
STACK_MAX = 1000
FUNCTION_MAX = 65535
PROFILE_MAX = 4 << 20  # converted
BURST_MAX = 2 << 20    # a larger profile is never within the rate
BODY_MAX = 256 << 20
OLDEST_NS, NEWEST_NS = 3600 * 10**9, 600 * 10**9


class Refused(Exception):
    """A status; kept: whether other profiles of the request are stored."""

    def __init__(self, status, why, kept=False):
        super().__init__("%d: %s" % (status, why))
        self.status, self.kept = status, kept


def entry(table, i, what):
    if not 0 <= i < len(table):
        raise Refused(500, "%s index %d of %d" % (what, i, len(table)))
    return table[i]


def label_value(v):
    """Text of a label, or None: no label is made of it."""
    if v is None or len(v.present) != 1:
        return None
    if "string_value" in v.present:
        return v.string_value or None
    if "int_value" in v.present:
        return str(v.int_value)
    if "array_value" in v.present and len(v.array_value.values) == 1:
        return label_value(v.array_value.values[0])
    return None


def inline(attributes):
    """References stay unresolved: such an attribute has no key, or no value."""
    return {a.key: label_value(a.value) for a in attributes if a.key and label_value(a.value) is not None}


class Store:
    def __init__(self, now_ns=None):
        self.now_ns = now_ns
        self.series = collections.defaultdict(collections.Counter)
        self.unseen = 0   # weight of stacks without any name: in no graph, and in no total
        self.silent = []  # what was lost behind a 200
        self.requests = []

    # one request

    def push(self, body, headers, limit=None):
        """(status, answer). limit: this many profiles are stored, then the rate ends (429)."""
        try:
            status = self.take(self.expand(body, headers), limit)
        except Refused as e:
            status = e.status
            self.why = str(e)
        self.requests.append(status)
        return status, b""

    def expand(self, body, headers):
        if headers.get("content-type") not in TYPES:
            raise Refused(415, "content type %r" % headers.get("content-type"))
        if len(body) > BODY_MAX:
            raise Refused(413, "%d bytes" % len(body))
        encoding = headers.get("content-encoding")
        if encoding is None:
            return body
        if encoding != "gzip":
            raise Refused(400, "encoding " + encoding)
        try:
            return gzip.decompress(body)
        except (OSError, EOFError):
            raise Refused(400, "bad gzip")

    def take(self, body, limit):
        try:
            q = otlp_check.decode("Request", memoryview(body))
        except otlp_check.Malformed as e:
            raise Refused(400, str(e))
        if q.dictionary is None or not q.resource_profiles:
            raise Refused(500, "no dictionary or no resource_profiles")
        if not q.dictionary.mappings:
            raise Refused(500, "empty mapping_table")
        converted = [c for r in q.resource_profiles for s in r.scope_profiles for p in s.profiles
                     for c in self.convert(q.dictionary, r, s, p)]
        worst = 200
        for n, c in enumerate(converted):
            if limit is not None and n >= limit or c["bytes"] > BURST_MAX:
                worst = max(worst, 429) if worst != 400 else 400
                continue
            try:
                self.validate(c)
            except Refused as e:
                worst, self.why = 400, str(e)
                continue
            for labels, stack, value in c["samples"]:
                self.series[labels][stack] += value
                self.unseen += 0 if any(stack) else value
        return worst

    # conversion: whatever fails here fails the whole request, before anything is stored

    def convert(self, d, resource, scope, p):
        if p.sample_type is None:
            raise Refused(500, "no sample_type")
        text = lambda i: entry(d.strings, i, "string")
        counted = (text(p.sample_type.type), text(p.sample_type.unit))
        period = (text(p.period_type.type), text(p.period_type.unit)) if p.period_type else ("", "")
        name, scale = self.metric(counted, period, p.period)
        base = inline(resource.resource.attributes if resource.resource else [])
        base.update(inline(scope.scope.attributes if scope.scope else []))
        service = base.get("service.name") or "unknown_service" + (
            ":" + base["process.executable.name"] if base.get("process.executable.name") else "")
        samples, bytes_, gone = [], 0, False
        for s in p.samples:
            stack = self.stack(d, s.stack)
            entry(d.links, s.link, "link")
            if len(s.values) != 1 and not (not s.values and s.timestamps):
                raise Refused(500, "%d values" % len(s.values))
            value = s.values[0] if s.values else len(s.timestamps)
            labels = self.sample_labels(d, s)
            if labels is None:
                gone = True
            elif value < 1 or stack is None:
                self.silent.append("a sample of %s: value %d, stack %s" % (service, value, stack))
            else:
                labels = {**base, **labels}
                labels["service_name"] = labels.pop("service.name", service)
                labels["__name__"] = name
                samples.append((tuple(sorted(labels.items())), stack, value * scale))
                bytes_ += 3 * len(stack)
        bytes_ += sum(64 + len(n) for n in {n for _, stack, _ in samples for n in stack})
        if gone:
            self.silent.append("a profile of %s: an attribute index is out of range" % service)
            samples = []
        return [{"name": name, "type": counted[0], "start": p.time_unix_nano, "samples": samples, "bytes": bytes_}]

    @staticmethod
    def metric(counted, period, n):
        """__name__, and what a value is multiplied by."""
        if counted == ("samples", "count") and period == ("cpu", "nanoseconds") and n:
            return "process_cpu", n
        if counted == ("off_cpu", "nanoseconds"):
            return "off_cpu", 1
        return (period[0] if n else ""), 1

    def stack(self, d, i):
        """Names, innermost first; None: the sample is lost."""
        out = []
        locations = entry(d.stacks, i, "stack").locations
        if not locations:
            return None
        for k in locations:
            at = entry(d.locations, k, "location")
            entry(d.mappings, at.mapping, "mapping")
            if not at.lines and not at.address:
                return None
            for line in at.lines:
                f = entry(d.functions, line.function, "function")
                out.append(entry(d.strings, f.name, "string")[:FUNCTION_MAX])
            if not at.lines:
                out.append("")
        if len(locations) > STACK_MAX:
            self.silent.append("%d frames of a stack, innermost first" % (len(locations) - STACK_MAX))
            out = out[len(locations) - STACK_MAX:]
        return tuple(out)

    @staticmethod
    def sample_labels(d, s):
        out = {}
        for i in s.attributes:
            if not 0 <= i < len(d.attributes) or not 0 <= d.attributes[i].key < len(d.strings):
                return None
            key, value = d.strings[d.attributes[i].key], label_value(d.attributes[i].value)
            if value is not None and key not in ("span_id", "trace_id"):
                out[key] = value
        return out

    # validation: of each profile for itself

    def validate(self, c):
        now = self.now_ns or time.time_ns()
        if not c["name"]:
            raise Refused(400, "invalid metric name", True)
        if "-" in c["type"]:
            raise Refused(400, "sample type " + c["type"], True)
        if c["start"] and not now - OLDEST_NS <= c["start"] <= now + NEWEST_NS:
            raise Refused(400, "start %d" % c["start"], True)
        if len(c["samples"]) > SAMPLES_MAX:
            raise Refused(400, "%d samples" % len(c["samples"]), True)
        if c["bytes"] > PROFILE_MAX:
            raise Refused(400, "%d bytes" % c["bytes"], True)
        for labels, _, _ in c["samples"]:
            if len(labels) - 2 + OWN_LABELS > LABELS_MAX:
                raise Refused(400, "%d labels" % len(labels), True)
            for key, value in labels:
                if len(key) > NAME_MAX or len(value) > VALUE_MAX:
                    raise Refused(400, "label %s" % key[:40], True)

    # what was stored

    def weight(self, name="process_cpu"):
        return sum(sum(stacks.values()) for labels, stacks in self.series.items() if dict(labels)["__name__"] == name)

    def values(self, label):
        return {dict(labels).get(label) for labels in self.series} - {None}


# --- writing, to make requests that are wrong in one point ------------------

def put_varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 0x7f:
        out.append(n & 0x7f | 0x80)
        n >>= 7
    return bytes(out + bytes([n]))


def put_scalar(of, v):
    if of in ("string", "bytes"):
        raw = v.encode("utf-8", "surrogateescape") if of == "string" else v
        return 2, put_varint(len(raw)) + raw
    if of == "fixed64":
        return 1, struct.pack("<Q", v)
    if of == "double":
        return 1, struct.pack("<d", v)
    return 0, put_varint(int(v))


def encode(m):
    """A message of otlp_check, changed or not, as bytes."""
    out = b""
    for number, (name, of, repeated) in sorted(otlp_check.MESSAGES[m.kind].items()):
        value = getattr(m, name)
        values = value if repeated else [] if value is None else [value]
        if repeated and of not in otlp_check.MESSAGES and of not in ("string", "bytes"):
            if values:
                body = b"".join(put_scalar(of, v)[1] for v in values)
                out += put_varint(number << 3 | 2) + put_varint(len(body)) + body
            continue
        for v in values:
            if of in otlp_check.MESSAGES:
                body = encode(v)
                out += put_varint(number << 3 | 2) + put_varint(len(body)) + body
            elif repeated or v != otlp_check.DEFAULTS.get(of, 0) or (m.kind == "AnyValue" and name in m.present):
                kind, body = put_scalar(of, v)
                out += put_varint(number << 3 | kind) + body
    return out

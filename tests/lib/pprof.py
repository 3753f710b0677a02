# SPDX-License-Identifier: Apache-2.0
"""Reads pprof files: field numbers of google/pprof's profile.proto, written down here a second time."""
import gzip

import otlp_check

otlp_check.MESSAGES.update({
    "Pprof": {1: ("sample_types", "ValueType", True), 2: ("samples", "PprofSample", True),
              3: ("mappings", "bytes", True), 4: ("locations", "PprofLocation", True),
              5: ("functions", "PprofFunction", True), 6: ("strings", "string", True), 7: ("drop_frames", "int64", False),
              8: ("keep_frames", "int64", False), 9: ("time_nanos", "int64", False),
              10: ("duration_nanos", "int64", False), 11: ("period_type", "ValueType", False),
              12: ("period", "int64", False), 13: ("comments", "int64", True),
              14: ("default_sample_type", "int64", False), 15: ("doc_url", "int64", False)},
    "PprofSample": {1: ("locations", "uint64", True), 2: ("values", "int64", True), 3: ("labels", "bytes", True)},
    "PprofLocation": {1: ("id", "uint64", False), 2: ("mapping", "uint64", False), 3: ("address", "uint64", False),
                      4: ("lines", "PprofLine", True), 5: ("is_folded", "bool", False)},
    "PprofLine": {1: ("function", "uint64", False), 2: ("line", "int64", False), 3: ("column", "int64", False)},
    "PprofFunction": {1: ("id", "uint64", False), 2: ("name", "int64", False), 3: ("system_name", "int64", False),
                      4: ("filename", "int64", False), 5: ("start_line", "int64", False)},
})


def read(path):
    """({type: unit}, [(names, leaf first, {type: value})])"""
    with gzip.open(path) as f:
        p = otlp_check.decode("Pprof", memoryview(f.read()))
    types = [(p.strings[t.type], p.strings[t.unit]) for t in p.sample_types]
    names = {f.id: p.strings[f.name] for f in p.functions}
    lines = {at.id: [names[x.function] for x in at.lines] for at in p.locations}
    return dict(types), [([n for at in s.locations for n in lines[at]], dict(zip([t for t, _ in types], s.values)))
                         for s in p.samples]

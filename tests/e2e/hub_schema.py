# SPDX-License-Identifier: Apache-2.0
"""The hub's API under requests that schemathesis makes of openapi.yaml, valid ones and others: each answer is documented
and has the form that is documented, none is an internal error, and what the contract forbids is refused. Streams end
only with their reader, so /events is left out. schemathesis comes from PyPI, of the version below."""
import os
import re
import shutil
import subprocess
import sys

import lib
from hub_client import Hub

VERSION = "4.32.5"
SECONDS = int(os.environ.get("SCHEMA_SECONDS", "60"))
HOME = os.path.join(lib.BUILD, "schemathesis-" + VERSION)
TOOL = os.path.join(HOME, "bin", "schemathesis")
CONTRACT = os.path.join(lib.TOP, "userspace", "hub", "openapi.yaml")
# An expression that does not compile is of the documented type, and a slot may go between two requests.
CHECKS = ("not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
          "response_schema_conformance,negative_data_rejection,missing_required_header,unsupported_method")


# A slot that another request has closed is gone (410), and a body or an address is too large (413, 414, 431), whatever
# else is wrong with them.
EXPECTED = """[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 410, 413, 414, 415, 422, 428, 429, 431, "5xx"]
"""


def install():
    """Why not; empty: it is there."""
    if os.path.exists(TOOL):
        return ""
    shutil.rmtree(HOME, ignore_errors=True) # what an install that was ended has left
    for argv in ([sys.executable, "-m", "venv", HOME],
                 [os.path.join(HOME, "bin", "pip"), "install", "-q", "--no-compile", "schemathesis==" + VERSION]):
        try:
            p = subprocess.run(argv, capture_output=True, text=True, timeout=75, stdin=subprocess.DEVNULL)
        except (subprocess.TimeoutExpired, OSError) as e:
            return str(e)
        if p.returncode:
            return (p.stderr + p.stdout).strip().splitlines()[-1]
    return "" if os.path.exists(TOOL) else "pip left no program"


def contract(known):
    """A copy of the contract, where a request's id is that of a workload which is there: else every answer is 404."""
    with open(CONTRACT) as f:
        text = f.read()
    mine = re.sub(r"(name: (?:id|workload)\n\s+in: (?:path|query)\n\s+required: true\n\s+schema: )\{\$ref: '#/components/schemas/Id'\}",
                  r"\1{enum: ['%s']}" % known, text)
    path = os.path.join(lib.scratch(), "openapi.yaml")
    with open(path, "w") as f:
        f.write(mine)
    return path


why = install()
lib.need(not why, "requests made of the contract", "no schemathesis %s: %s" % (VERSION, why))
port = lib.free_port()
d = lib.Otprofd(hz=97, hub={"listen": "127.0.0.1:%d" % port, "token": "no"})
hub = Hub(d)
shares = lib.program("shares", 170, stdout=subprocess.DEVNULL)
known = lib.wait_for(lambda: [w["id"] for w in hub.get("/workloads")["workloads"] if w["name"] == "shares"],
                     30, 0.5)
lib.ok(known and hub.ask("PUT", "/api/v1/workloads/%s/slot" % known[0])[0] == 201, "a workload has a slot")
pid = d.worker("hub")
config = os.path.join(lib.scratch(), "schemathesis.toml")
with open(config, "w") as f:
    f.write(EXPECTED)
p = subprocess.run([TOOL, "--config-file", config, "run", contract(known[0]), "-u", "http://127.0.0.1:%d/api/v1" % port, "--exclude-path", "/events", "-c", CHECKS,
                    "--max-time", str(SECONDS), "--request-timeout", "20", "--suppress-health-check", "all", "--no-color"],
                   capture_output=True, text=True, timeout=SECONDS + 90, stdin=subprocess.DEVNULL,
                   cwd=lib.scratch())
cases = re.search(r"([\d,]+) generated", p.stdout)
failures = re.findall(r"^\s*(?:❌ )?(?:- )?(ST\d+ .*)$", p.stdout, re.M)
lib.ok(cases and int(cases[1].replace(",", "")) > 30, "schemathesis made %s requests of the contract" % (cases and cases[1]))
if not cases:
    lib.note((p.stdout + p.stderr)[-600:].replace("\n", " | "))
if not lib.ok(p.returncode == 0, "and every answer was as documented %s" % sorted(set(failures))[:5]):
    for line in p.stdout.splitlines()[-120:]:
        lib.note(line[:400])
lib.ok(hub.get("/status") and d.worker("hub") == pid, "the hub answers still, and is the same process")
lib.check_ledger(d.stop(), "hub_schema", stopped=True)
lib.finish()

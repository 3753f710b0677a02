# SPDX-License-Identifier: Apache-2.0
"""The server keeps to its contract: every operation of openapi.yaml is asked
for, and each answer has a documented status, type and form."""
import http.client
import json
import os
import re
import subprocess
import time

import lib

try:
    import jsonschema
    import yaml
except ImportError as e:
    lib.need(False, "the API's contract", "%s; tests/setup.sh installs it" % e)

CONTRACT = os.path.join(lib.TOP, "userspace", "hub", "openapi.yaml")
with open(CONTRACT) as f:
    api = yaml.safe_load(f)
port = lib.free_port()
d = lib.Otprofd(hz=97, hub={"listen": "127.0.0.1:%d" % port, "token": "no", "selection": "yes"})
shares = lib.program("shares", 60, stdout=subprocess.DEVNULL)


def ask(method, path, body=None, headers=None):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        c.request(method, "/api/v1" + path, body, headers or {})
        r = c.getresponse()
        stream = r.headers["Content-Type"] == "text/event-stream"
        return r.status, r.headers["Content-Type"], r.readline() if stream else r.read()
    finally:
        c.close()


def resolved(node):
    """References of the contract, inline."""
    if isinstance(node, dict):
        if "$ref" in node:
            at = api
            for part in node["$ref"].split("/")[1:]:
                at = at[part]
            return resolved(at)
        return {k: resolved(v) for k, v in node.items()}
    return [resolved(v) for v in node] if isinstance(node, list) else node


def closed(schema):
    """The same, where a member that is not documented is an error."""
    if isinstance(schema, dict):
        schema = {k: closed(v) for k, v in schema.items()}
        if schema.get("type") == "object" and "properties" in schema:
            schema.setdefault("additionalProperties", False)
    elif isinstance(schema, list):
        schema = [closed(v) for v in schema]
    return schema


asked = set()


def check(method, template, path, expected, body=None, headers=None):
    """One request: its status, and the form of its answer."""
    operation = resolved(api["paths"][template][method.lower()])
    status, kind, answer = ask(method, path, body, headers)
    asked.add((method, template))
    response = operation["responses"].get(str(status), operation["responses"].get("default"))
    wrong = "" if status == expected else "status %d" % status
    content = response.get("content", {})
    if not wrong and content and (kind or "").split(";")[0] not in content:
        wrong = "type %s" % kind
    schema = content.get("application/json", {}).get("schema") if kind == "application/json" else None
    if not wrong and schema:
        try:
            jsonschema.Draft202012Validator(closed(schema)).validate(json.loads(answer))
        except (jsonschema.ValidationError, json.JSONDecodeError) as e:
            wrong = str(e)[:300]
    lib.ok(not wrong, "%s %s: %d as documented%s" % (method, re.sub("[0-9a-f]{16}", "{id}", path), expected, wrong and ": " + wrong))
    return answer


def find():
    status, _, body = ask("GET", "/workloads")
    return next((w["id"] for w in json.loads(body)["workloads"] if w["name"] == "shares"), None) if status == 200 else None


jsonschema.Draft202012Validator.check_schema({"$defs": api["components"]["schemas"]})
w = lib.wait_for(find, 30, 0.5)
lib.ok(w, "a workload to ask for")
one, json_type = "/workloads/" + w, {"Content-Type": "application/json"}
check("GET", "/status", "/status", 200)
check("GET", "/workloads", "/workloads", 200)
check("GET", "/workloads", "/workloads?q=share", 200)
check("GET", "/workloads/{id}", one, 200)
check("GET", "/workloads/{id}", "/workloads/" + "0" * 16, 404)
check("GET", "/workloads/{id}/slot", one + "/slot", 404)
check("GET", "/workloads/{id}/tree", one + "/tree", 404)
check("PUT", "/workloads/{id}/slot", one + "/slot", 201)
check("PUT", "/workloads/{id}/slot", one + "/slot", 200)
check("GET", "/workloads/{id}/slot", one + "/slot", 200)
check("GET", "/workloads/{id}/tree", one + "/tree", 200)
lib.wait_for(lambda: json.loads(ask("GET", one + "/slot")[2])["intervals"] > 2, 20, 0.5)
tree = json.loads(check("GET", "/workloads/{id}/tree", one + "/tree?from=-2000", 200))
columns = tree["nodes"]
lib.ok(len({len(columns[c]) for c in ("id", "depth", "function", "self")}) == 1 and tree["value"] == sum(columns["self"]) > 0,
       "its columns have one length")
check("GET", "/workloads/{id}/tree", one + "/tree?after=%d&generation=%d" % (tree["seq"], tree["generation"]), 200)
check("GET", "/workloads/{id}/tree", one + "/tree?after=1&generation=99", 410)
check("GET", "/workloads/{id}/tree", one + "/tree?focus=(", 422)
check("GET", "/workloads/{id}/tree", one + "/tree?hide=kernel&ignore=nothing", 200)
check("GET", "/workloads/{id}/timeline", one + "/timeline", 200)
check("GET", "/workloads/{id}/timeline", one + "/timeline?steps=0", 422)
for name in resolved(api["paths"]["/workloads/{id}/snapshot"]["get"]["parameters"])[0]["schema"]["enum"]:
    check("GET", "/workloads/{id}/snapshot", one + "/snapshot?format=" + name, 200)
check("GET", "/workloads/{id}/snapshot", one + "/snapshot", 422)
check("GET", "/diff", "/diff?workload=%s&from=-1000&base_from=-3000&base_to=-1000" % w, 200)
check("GET", "/diff", "/diff", 422)
check("GET", "/slots", "/slots", 200)
check("GET", "/limits", "/limits", 200)
check("PATCH", "/limits", "/limits", 200, '{"max_slots":5}', json_type)
check("PATCH", "/limits", "/limits", 422, '{"max_slots":-5}', json_type)
check("GET", "/selection", "/selection", 200)
check("PUT", "/selection", "/selection", 202, '{"targets":["exe:shares"],"frequency_hz":49,"seconds":60}', json_type)
check("PUT", "/selection", "/selection", 422, '{"targets":["exe:shares"],"seconds":0}', json_type)
check("PUT", "/selection", "/selection", 415, '{"targets":["exe:shares"]}')
lib.wait_for(lambda: json.loads(ask("GET", "/selection")[2])["on"], 10)
check("GET", "/selection", "/selection", 200)
lib.ok(json.loads(ask("GET", "/selection")[2])["targets"] == ["exe:shares"], "a selection that was asked for is in force")
time.sleep(1.1) # between two requests of the hub
check("DELETE", "/selection", "/selection", 202)
lib.ok(lib.wait_for(lambda: not json.loads(ask("GET", "/selection")[2])["on"], 10), "and ended on request")
check("GET", "/events", "/events?workload=" + w, 200)
check("GET", "/events", "/events?workload=x", 422)
check("DELETE", "/workloads/{id}/samples", one + "/samples", 204)
check("DELETE", "/workloads/{id}/slot", one + "/slot", 204)
check("GET", "/workloads/{id}/tree", one + "/tree", 410)
check("GET", "/slots", "/slots", 200)
check("GET", "/workloads", "/workloads", 200)
documented = {(m.upper(), p) for p, item in api["paths"].items() for m in item if m in ("get", "put", "patch", "delete", "post")}
lib.ok(asked == documented, "every operation was asked for: %s" % sorted(documented - asked))
with open(os.path.join(lib.TOP, "userspace", "hub", "api.c")) as f:
    routes = {(m, p.replace("{}", "{id}")) for m, p in re.findall(r'\{"(\w+)", "([^"]+)", api_', f.read())}
lib.ok(routes | {("GET", "/events")} == documented, "the server has the operations that are documented: %s" % (routes ^ documented))
lib.check_ledger(d.stop(), "hub_api", stopped=True)
lib.finish()

# SPDX-License-Identifier: Apache-2.0
"""A client of a hub's API."""
import http.client
import json
import os


class Hub:
    """One hub, by the address and token that its daemon leaves for otprof ui."""

    def __init__(self, daemon):
        with open(os.path.join(daemon.runtime, "hub.token")) as f:
            self.address, *token = f.read().split()
        self.token = token[0] if token else None # it asks for none

    def ask(self, method, path, body=None, headers=None, token=True):
        """Status, headers and body. token: the hub's, another one, or none (False)."""
        c = http.client.HTTPConnection(self.address, timeout=30)
        token = self.token if token is True else token
        h = {**({"Authorization": "Bearer " + token} if token else {}), **(headers or {})}
        try:
            c.request(method, path, body, h)
            r = c.getresponse()
            return r.status, r.headers, r.read()
        finally:
            c.close()

    def get(self, path):
        """What a path of the API has; None: an error."""
        status, _, body = self.ask("GET", "/api/v1" + path)
        return json.loads(body) if status == 200 else None

    def workload(self, name, host=None):
        """The only one of this name; None: there is none, or several."""
        found = [w for w in (self.get("/workloads") or {"workloads": []})["workloads"]
                 if w["name"] == name and host in (None, w["host"])]
        return found[0] if len(found) == 1 else None

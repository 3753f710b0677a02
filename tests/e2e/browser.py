# SPDX-License-Identifier: Apache-2.0
"""The hub's page in headless Chromium, for the tests of it: a daemon with a hub, a busy Python program, and the scripts
of tests/page that open the page."""
import os
import shutil
import subprocess
import sys

import lib

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "..", "page")
MODULES = os.path.join(lib.BUILD, "page", "node_modules")
LOAD = "page_load.py"
CODE = """import json
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
while True:
    fib(15); json.loads(json.dumps([{"n": i, "text": str(i * 0.1)} for i in range(200)]))
"""


def need():
    """Ends the test where there is no browser, or no way to drive it."""
    tools = subprocess.run([os.path.join(PAGE, "run.sh"), "tools"], capture_output=True, text=True,
                           env={**os.environ, "BUILD": lib.BUILD})
    if tools.returncode == 77 or not shutil.which("chromium"):
        lib.skip("the page in a browser", tools.stdout.strip() or "no chromium")
        sys.exit(lib.SKIP)


def load():
    """A program whose stacks have Python and native frames, and recursion."""
    script = os.path.join(lib.scratch(), LOAD)
    with open(script, "w") as f:
        f.write(CODE)
    return lib.start([shutil.which("python3"), script])


def hub(hz=97):
    return lib.Otprofd(hz=hz, hub={"listen": "127.0.0.1:%d" % lib.free_port(), "selection": "yes"})


def run(script, d, workload=LOAD, timeout=170, **env):
    """A script, which prints its facts; whether all of them hold is one more."""
    with open(os.path.join(d.runtime, "hub.token")) as f:
        address, token = f.read().split()
    argv = ["node", os.path.join(PAGE, script)]
    env = {**os.environ, "HUB_ADDRESS": address, "HUB_TOKEN": token, "HUB_WORKLOAD": workload,
           "CHROMIUM": shutil.which("chromium"),
           "PLAYWRIGHT": os.path.join(MODULES, "playwright-core", "index.js"), **env}
    try:
        p = subprocess.run(argv, stderr=subprocess.PIPE, text=True, timeout=timeout, env=env)
    except subprocess.TimeoutExpired:
        return lib.ok(False, "%s ended within %d s" % (script, timeout))
    why = p.stderr.strip()[-400:].replace("\n", " ")
    return lib.ok(p.returncode == 0, "%s ended with %d %s" % (script, p.returncode, why))

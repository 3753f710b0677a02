# SPDX-License-Identifier: Apache-2.0
"""The hub's page in headless Chromium, on a real workload: the facts are those of tests/page/browser.mjs."""
import os
import shutil
import socket
import subprocess
import sys

import lib

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "..", "page")
CODE = """import json
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
while True:
    fib(15); json.loads(json.dumps([{"n": i, "text": str(i * 0.1)} for i in range(200)]))
"""

tools = subprocess.run([os.path.join(PAGE, "run.sh"), "tools"], capture_output=True, text=True,
                       env={**os.environ, "BUILD": lib.BUILD})
chromium = shutil.which("chromium")
if tools.returncode == 77 or not chromium:
    lib.skip("the page in a browser", tools.stdout.strip() or "no chromium")
    sys.exit(77)

with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
script = os.path.join(lib.scratch(), "page_load.py")
with open(script, "w") as f:
    f.write(CODE)
d = lib.Otprofd(hz=97, hub={"listen": "127.0.0.1:%d" % port, "selection": "yes"})
load = lib.start([shutil.which("python3"), script])
with open(os.path.join(d.runtime, "hub.token")) as f:
    address, token = f.read().split()
subprocess.run(["sleep", "8"])
shots = os.environ.get("SHOTS", "")
p = subprocess.run(["node", os.path.join(PAGE, "browser.mjs")], capture_output=True, text=True, timeout=170, env={
    **os.environ, "HUB_ADDRESS": address, "HUB_TOKEN": token, "HUB_WORKLOAD": "page_load.py", "CHROMIUM": chromium,
    "PLAYWRIGHT": os.path.join(lib.BUILD, "page/node_modules/playwright-core/index.js"), "SHOTS": shots})
print(p.stdout, end="", flush=True)
lib.ok(p.returncode == 0, "the page's tests ended with %d %s" % (p.returncode, p.stderr.strip()[-400:].replace("\n", " ")))
d.stop()
lib.finish()

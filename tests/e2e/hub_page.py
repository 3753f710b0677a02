# SPDX-License-Identifier: Apache-2.0
"""The hub's page in headless Chromium, on a real workload: the facts are those of tests/page/browser.mjs."""
import time

import browser
import lib

browser.need()
d = browser.hub()
load = browser.load()
time.sleep(8)
browser.run("browser.mjs", d)
d.stop()
lib.finish()

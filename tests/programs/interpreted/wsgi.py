# SPDX-License-Identifier: Apache-2.0
# python.py as an application of a web server; a request takes as many seconds as its query says.
import time

import python


def application(environ, start_response):
    python.main(time.time() + float(environ["QUERY_STRING"]))
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done\n"]

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The page's tests that need no hub, and the tools of those that do:
#   run.sh          unit tests of the pure parts, by node's own runner
#   run.sh types    TypeScript over the comments' types
#   run.sh tools    fetches TypeScript and Playwright, as package-lock.json has them, into BUILD/page
# Exit code 77: node is missing, or the tools could not be fetched.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
tools=$(realpath -m "${BUILD:-build}")/page

command -v node >/dev/null || { echo "skip - the page's tests: no node (Debian: nodejs)"; exit 77; }

fetch_tools() {
	mkdir -p "$tools"
	cmp -s tests/page/package-lock.json "$tools/package-lock.json" && [ -d "$tools/node_modules" ] && return
	command -v npm >/dev/null || { echo "skip - the page's tools: no npm (Debian: npm)"; exit 77; }
	cp tests/page/package.json tests/page/package-lock.json "$tools/"
	npm ci --prefix "$tools" --ignore-scripts --no-audit --no-fund >"$tools/npm.log" 2>&1 && return
	rm -f "$tools/package-lock.json"
	echo "skip - the page's tools: npm could not fetch them ($(grep -m 1 'ERR' "$tools/npm.log"))"
	exit 77
}

case ${1:-unit} in
unit)
	node --test --test-reporter=tap tests/page/pure.test.js | sed -E 's/^(not ok|ok) [0-9]+ - /\1 - /'
	;;
types)
	fetch_tools
	"$tools/node_modules/.bin/tsc" -p tests/page
	;;
tools)
	fetch_tools
	;;
*)
	echo "usage: run.sh [unit|types|tools]" >&2
	exit 2
	;;
esac

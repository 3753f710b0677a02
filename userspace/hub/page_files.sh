#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# page_files.sh DIR: the page's files as C, for page.c: path, hash of the content, content.
set -eu
[ -d "$1" ] || exit 0 # a tree without the page has none
cd "$1"
find . -type f \( -name '*.html' -o -name '*.js' -o -name '*.css' -o -name '*.svg' \) \
	! -name '*.test.js' ! -path '*/node_modules/*' ! -path './test*' | LC_ALL=C sort |
while read -r file; do
	hash=$(sha256sum "$file" | cut -c 1-16)
	echo "FILE(\"${file#.}\", \"$hash\","
	sed -e 's/[\\"]/\\&/g' -e 's/?/\\?/g' -e 's/^/"/' -e 's/$/\\n"/' "$file"
	echo ')'
done

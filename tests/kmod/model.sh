#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Has spin search every interleaving of the ring's protocol: with an honest
# reader and with one that lies, and once with a mistake put in, which the
# search must find. Exit code 77 without spin or a compiler.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
for tool in spin gcc; do
	command -v $tool >/dev/null || { echo "skip - module's ring, model: no $tool"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
bad=0

# search MODEL DEFINITION...: prints the number of states, fails on an error.
search() {
	model=$1
	shift
	spin "$@" -a "$model" >spin.log 2>&1 && gcc -O2 -w -DSAFETY -DCOLLAPSE -DMEMLIM=1500 -o pan pan.c 2>>spin.log ||
		{ cat spin.log; return 2; }
	./pan -m200000 >pan.log 2>&1
	grep -q 'errors: 0' pan.log && ! grep -qE 'max search depth too small|out of memory' pan.log || return 1
	sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log
}

holds() {
	text=$1
	shift
	if states=$(search "$here/ring.pml" "$@"); then
		echo "ok - module's ring, model: $text ($states states)"
	else
		bad=1
		echo "not ok - module's ring, model: $text"
		grep -E 'assert|errors|depth|memory' pan.log | head -n 5 | sed 's/^/#   /'
	fi
}

finds() {
	text=$1
	sed "$2" "$here/ring.pml" >wrong.pml
	shift 2
	if cmp -s wrong.pml "$here/ring.pml" || search wrong.pml "$@" >/dev/null || ! grep -q 'assertion violated' pan.log; then
		bad=1
		echo "not ok - module's ring, model: $text"
	else
		echo "ok - module's ring, model: $text"
	fi
}

holds "two writers and an honest reader" -DWRITERS=2 -DRECORDS=2
holds "two writers and a reader that lies" -DWRITERS=2 -DRECORDS=2 -DLIAR
finds "without the check of the reader's word it shows the overwritten record" \
	's/room = at <= bound \&\& bound - at <= SIZE \&\& /room = /' -DWRITERS=2 -DRECORDS=2 -DLIAR
finds "without the announcement before the exchange it shows the reader an open record" \
	's/^\t\t\tpending\[me\] = h;$/skip;/' -DWRITERS=2 -DRECORDS=2
finds "without the head of what is left over it shows the reader a gap" \
	's/:: units > used -> heads.*/:: units > used -> skip/' -DWRITERS=2 -DRECORDS=2
finds "without the look at the slots after an attempt that failed a record stays unseen" \
	's/^\t\tleave(me);$/if :: taken -> leave(me) :: else -> pending[me] = IDLE fi;/' -DWRITERS=2 -DRECORDS=2
[ $bad = 0 ]

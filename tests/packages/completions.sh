#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the three shells offer at TAB, in the shells themselves, against what
# --help names: every verb, and every option of every verb.
# BUILD's programs; 1 if a fact does not hold, a shell that is not there is skipped.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${BUILD:-build}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
export PATH=$build:$PATH HOME=$work LC_ALL=C.UTF-8
completions=$PWD/packaging/completions

verbs() { otprof --help | sed -n '/^Verbs:/,/^$/s/^  \([a-z][a-z-]*\).*/\1/p'; }

# All that begins as an option does in the first columns of --help.
options() { # COMMAND...
	"$@" --help | sed -nE 's/^ {2,8}(-.*)/\1/p' | sed -E 's/  .*//' | grep -oE -- '(^|[ ,])--?[A-Za-z][a-z-]*' | tr -d ' ,'
}

in_bash() { # WORD...
	bash --norc -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _otprof; printf "%s\n" "${COMPREPLY[@]}"' \
		bash "$completions/otprof.bash" "$@" | sed 's/=$//'
}

# An interactive zsh on a terminal of its own gets the line and a TAB; what it lists is read from the screen.
in_zsh() {
	zsh -f "$(dirname "$0")/zsh_tab.zsh" "$completions" "$*"
}

in_fish() {
	fish --no-config -c 'set -p fish_complete_path $argv[1]; complete -C $argv[2]' "$completions" "$*" | cut -f 1
}

fact() { # SHELL WHAT WANTED OFFERED
	local missing
	missing=$(comm -23 <(sort -u <<<"$3") <(sort -u <<<"$4") | tr '\n' ' ')
	if [ -z "$missing" ] && [ -n "$3" ]; then
		echo "ok - $1 offers $2 ($(sort -u <<<"$3" | wc -l))"
	else
		bad=1
		echo "not ok - $1 offers $2: missing ${missing:-all}"
	fi
}

for shell in bash zsh fish; do
	command -v $shell >/dev/null || { echo "skip - completion in $shell: it is not installed"; continue; }
	fact $shell "every verb" "$(verbs)" "$(in_$shell otprof '')"
	fact $shell "every option of otprof" "$(options otprof)" "$(in_$shell otprof -; in_$shell otprof --)"
	fact $shell "every option of otprofd" "$(options otprofd)" "$(in_$shell otprofd -; in_$shell otprofd --)"
	fact $shell "options of otprofd behind -t" "$(options otprofd)" "$(in_$shell otprofd -t -; in_$shell otprofd -t --)"
	fact $shell "a command behind --" sleep "$(in_$shell otprof record -- slee)"
	fact $shell "the samplers" "$(printf '%s\n' auto bpf kmod perf)" "$(in_$shell otprof record --sampler '')"
	for verb in $(verbs); do
		fact $shell "every option of otprof $verb" "$(options otprof "$verb")" \
			"$(in_$shell otprof "$verb" -; in_$shell otprof "$verb" --)"
	done
done
exit $bad

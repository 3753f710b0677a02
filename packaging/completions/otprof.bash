# SPDX-License-Identifier: Apache-2.0
# bash completion for otprof and otprofd. What --help names is what is
# offered, so that the two never differ.

_otprof_verbs() {
	"$1" --help 2>/dev/null | sed -n '/^Verbs:/,/^$/s/^  \([a-z][a-z-]*\).*/\1/p'
}

# The names stand before the first two blanks of a line: "-o, --output=FILE   text".
_otprof_options() {
	"$@" --help 2>/dev/null | sed -nE 's/^ +(-.*)/\1/p' | sed 's/  .*//' |
		grep -oE -- '--[a-z][a-z-]*=?|^-[A-Za-z0-9]'
}

_otprof_value() {
	case $1 in
	-o | --output | --svg | --base | -f | --capture | --replay) mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
	--dir | --runtime-dir | --root) mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
	-p | --pid) mapfile -t COMPREPLY < <(compgen -W "$(cd /proc && echo [0-9]*)" -- "$2") ;;
	-e | --event) mapfile -t COMPREPLY < <(compgen -W "$(otprof record -e help 2>/dev/null)" -- "$2") ;;
	--unit) mapfile -t COMPREPLY < <(compgen -W "$(systemctl list-units --plain --no-legend 2>/dev/null |
		cut -d ' ' -f 1)" -- "$2") ;;
	--cgroup) mapfile -t COMPREPLY < <(compgen -d -- "/sys/fs/cgroup$2" | sed 's|^/sys/fs/cgroup||') ;;
	--user) mapfile -t COMPREPLY < <(compgen -u -- "$2") ;;
	--exe | --) mapfile -t COMPREPLY < <(compgen -c -- "$2") ;;
	--hide) mapfile -t COMPREPLY < <(compgen -W "kernel native jit marker other go rust cpython jvm v8js dotnet php ruby perl beam luajit lua" -- "$2") ;;
	--sampler) mapfile -t COMPREPLY < <(compgen -W "auto bpf kmod perf" -- "$2") ;;
	--rate | --stack-bytes | --for | --container | --type | --focus | --ignore | -d | --duration | -F | --frequency | -c | -t | --title | --window | --interval | --count) ;;
	*) return 1 ;;
	esac
}

_otprof() {
	local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} verb=
	COMPREPLY=()
	# "--output=FILE" arrives in three words.
	if [ "$current" = = ]; then
		current=
	elif [ "$previous" = = ]; then
		previous=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	# The daemon's -t takes no value, that of record and convert does.
	[ "${program##*/}$previous" != otprofd-t ] || previous=
	if [ "${program##*/}" = otprof ]; then
		if [ "$COMP_CWORD" = 1 ]; then
			mapfile -t COMPREPLY < <(compgen -W "$(_otprof_verbs "$program") $(_otprof_options "$program")" -- "$current")
			return
		fi
		verb=${COMP_WORDS[1]}
		if [ "$verb" = help ]; then
			mapfile -t COMPREPLY < <(compgen -W "$(_otprof_verbs "$program")" -- "$current")
			return
		fi
	fi
	_otprof_value "$previous" "$current" && return
	case $verb$current in
	explain-*) ;;
	explain*)
		_otprof_value --pid "$current"
		return
		;;
	esac
	case $current in
	-*) mapfile -t COMPREPLY < <(compgen -W "$(_otprof_options "$program" ${verb:+"$verb"})" -- "$current") ;;
	*) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
	esac
	if [ ${#COMPREPLY[@]} = 1 ] && [[ ${COMPREPLY[0]} == *= ]]; then
		compopt -o nospace 2>/dev/null
	fi
}

complete -o filenames -F _otprof otprof otprofd

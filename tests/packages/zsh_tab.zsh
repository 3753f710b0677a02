# SPDX-License-Identifier: Apache-2.0
# zsh_tab.zsh DIRECTORY LINE: prints the words that an interactive zsh, with
# DIRECTORY first in fpath, lists when TAB is pressed after LINE.
zmodload zsh/zpty
zpty -b tab "TERM=dumb zsh -f -i"
tell() { zpty -w tab "$1" }
read_until() { # MARK
	local text= chunk
	while zpty -r tab chunk "*$1*" 2>/dev/null; do
		text+=$chunk
		[[ $text == *$1* ]] && break
	done
	print -r -- "$text"
}
tell "stty -echo rows 500 cols 200; PROMPT= RPROMPT= PS2=; unsetopt zle_bracketed_paste prompt_sp; LISTMAX=10000"
tell "fpath=(${(q)1} \$fpath); autoload -Uz compinit; compinit -u -D"
tell "listed() { zle list-choices; zle -I; zle kill-buffer; print; print end-of-list }; zle -N listed; bindkey '^I' listed"
tell "print begin-\"\"of-list"
read_until begin-of-list >/dev/null
zpty -w -n tab "$2"$'\t'
read_until end-of-list | tr ' ,' '\n\n' | tr -d '\r' | sed 's/=$//' | grep -E '^(--?)?[A-Za-z]'
zpty -d tab

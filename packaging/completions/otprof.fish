# SPDX-License-Identifier: Apache-2.0
# What --help names is what is offered, so that the two never differ.

function __otprof_verbs
    otprof --help 2>/dev/null | sed -n '/^Verbs:/,/^$/s/^  \([a-z][a-z-]*\)  *\(.*\)/\1\t\2/p'
end

# One line an option: name, tab, description.
function __otprof_options
    for line in ($argv --help 2>/dev/null | string match -r '^ +-.*' | string trim)
        set -l parts (string split -m 1 '  ' -- $line)
        set -l text (string trim -- "$parts[2]")
        for name in (string match -ar -- '--[a-z][a-z-]*|^-[A-Za-z0-9](?=[,\s]|$)' $parts[1])
            printf '%s\t%s\n' $name $text
        end
    end
end

function __otprof_first
    test (count (commandline -opc)) = 1
end

function __otprof_verb_options
    set -l words (commandline -opc)
    test (count $words) -gt 1; and __otprof_options otprof $words[2]
end

function __otprof_wants_dir
    string match -qr -- '^--((runtime-)?dir|root)$' (commandline -opc)[-1]
end

function __otprof_wants_pid
    string match -qr -- '^(-p|--pid)$' (commandline -opc)[-1]
end

function __otprof_explains
    test (commandline -opc)[2] = explain 2>/dev/null
end

function __otprof_wants
    test (commandline -opc)[-1] = $argv[1]
end

complete -c otprof -n __otprof_first -f -a '(__otprof_verbs)'
complete -c otprof -n __otprof_first -f -a '(__otprof_options otprof)'
complete -c otprof -n 'not __otprof_first; and string match -q -- "-*" (commandline -ct)' -f -a '(__otprof_verb_options)'
complete -c otprof -n __otprof_wants_dir -f -a '(__fish_complete_directories (commandline -ct))'
complete -c otprof -n __otprof_wants_pid -f -a '(__fish_complete_pids)'
complete -c otprof -n '__otprof_explains; and not string match -q -- "-*" (commandline -ct)' -f -a '(__fish_complete_pids)'
complete -c otprof -n '__otprof_wants --hide' -f -a 'kernel native jit marker other go rust cpython jvm v8js dotnet php ruby perl beam luajit lua'
complete -c otprof -n '__otprof_wants --sampler' -f -a 'auto bpf kmod perf'
complete -c otprof -n '__otprof_wants --user' -f -a '(__fish_complete_users)'
complete -c otprof -n '__otprof_wants --unit' -f -a '(systemctl list-units --plain --no-legend 2>/dev/null | string split -f 1 " ")'
complete -c otprof -n '__otprof_wants --' -f -a '(__fish_complete_command)'

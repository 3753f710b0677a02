# SPDX-License-Identifier: Apache-2.0
# What --help names is what is offered, so that the two never differ.

function __otprofd_options
    for line in (otprofd --help 2>/dev/null | string match -r '^ +-.*' | string trim)
        set -l parts (string split -m 1 '  ' -- $line)
        set -l text (string trim -- "$parts[2]")
        for name in (string match -ar -- '--[a-z][a-z-]*|^-[A-Za-z0-9](?=[,\s]|$)' $parts[1])
            printf '%s\t%s\n' $name $text
        end
    end
end

complete -c otprofd -n 'string match -q -- "-*" (commandline -ct)' -f -a '(__otprofd_options)'

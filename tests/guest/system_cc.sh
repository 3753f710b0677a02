#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In the image, before the compilers of which it has the names: answers from
# ccache, in front of whatever calls it. Refusals too, which ccache does not
# keep, where the module asks what its kernel has: each costs seconds under emulation.
compiler=/usr/bin/${0##*/}
case " $* " in
*/compat/probes/*) ;;
*) exec ccache "$compiler" "$@" ;;
esac
for source; do :; done
refused=/var/cache/ccache/refused-$({ echo "$compiler $*" && cat "$source"; } | cksum | tr ' ' -)
[ ! -e "$refused" ] || exit 1
ccache "$compiler" "$@" && exit
: >"$refused"
exit 1

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make lint: checks of the source that do not run it. Each line is a fact; the
# exit status is 1 if one does not hold.
set -u
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build}
MAKE=${MAKE:-make}
bad=0
mkdir -p "$BUILD/lint"

fact() { # fact STATUS TEXT, with the findings in $out
	if [ "$1" = 0 ]; then
		echo "ok - $2"
	else
		bad=1
		echo "not ok - $2"
		head -n 30 <<<"$out" | sed 's/^/   | /'
	fi
}

sources() { # files of ours, with these endings
	find kmod bpf userspace proto tests packaging .ci Makefile Kbuild -type f \
		-regextype egrep -regex ".*($1)" -not -path '*/__pycache__/*' 2>/dev/null | sort
}

compiles_with() {
	out=$($MAKE --no-print-directory -k -j"$(nproc)" BUILD="$BUILD/lint/$1" CC="$1" WERROR=1 \
		all unit programs tools 2>&1 >/dev/null)
	fact $? "$1 -Werror compiles everything"
}

# Every header compiles on its own, twice in a row.
headers_alone() {
	local h flags="-std=gnu11 -D_GNU_SOURCE -I. -Iuserspace -I$BUILD/lint/gcc/gen -Wall -Wextra -Wno-unused-parameter -Werror"
	out=$(for h in $(sources '\.h' | grep -E '^(userspace|kmod/uapi)/'); do
		# shellcheck disable=SC2086
		printf '#include "%s"\n#include "%s"\n' "$h" "$h" |
			gcc $flags -fsyntax-only -x c - 2>&1 || echo "$h does not stand alone"
	done)
	[ -z "$out" ]
	fact $? "every header compiles alone"
}

# The layers of userspace/: a file includes its own folder and folders of lower
# layers only. Folders on one line do not include each other: processes of the
# daemon share nothing but the layers below, and talk by the messages of ipc.h.
LAYERS="base
otlp ring process
source unwind symbol recording
runtime
profile graph
render
export
hub
daemon/config cli
daemon
daemon/limits daemon/cache daemon/sandbox
daemon/report
daemon/engine daemon/net daemon/hub daemon/disposable daemon/monitor daemon/worker"

include_direction() {
	out=$(sources '\.[ch]' | grep '^userspace/' | LAYERS="$LAYERS" python3 -c '
import os, re, sys
rank = {f: n for n, line in enumerate(os.environ["LAYERS"].splitlines()) for f in line.split()}
for path in sys.stdin.read().split():
    folder = os.path.dirname(path).split("/", 1)[1]
    for number, line in enumerate(open(path), 1):
        m = re.match(r"\s*#\s*include\s+\"([^\"]+)\"", line)
        if not m or "/" not in m[1]:
            continue
        other = os.path.dirname(m[1])
        if m[1].startswith("kmod/uapi/") or other == folder or os.path.isdir("proto/" + m[1].split("/")[0]):
            continue
        where = "%s:%d: %s" % (path, number, m[1])
        if other not in rank or folder not in rank:
            print(where, "is in no layer")
        elif rank[other] >= rank[folder] or "cli" == other:
            print(where, "points up or sideways")
')
	[ -z "$out" ]
	fact $? "includes point down the layers only"
	out=$(LAYERS="$LAYERS" python3 -c '
import os, re
listed = [set(line.split()) for line in os.environ["LAYERS"].splitlines()]
folders = {f for layer in listed for f in layer}
section = open("ARCHITECTURE.md").read().split("## Who may include whom")[1].split("\n## ")[0]
named = [p for p in section.split("\n\n") if "\u2190" in p]
shown = [set(re.findall("`([^`]*)`", layer)) for layer in "".join(named).split("\u2190")]
sources = {os.path.relpath(d, "userspace") for d, _, files in os.walk("userspace") if any(f[-2:] in (".c", ".h") for f in files)}
for f in sorted(folders - sources):
    print("there is no userspace/" + f)
for f in sorted(sources - folders):
    print("userspace/" + f, "is in no layer")
for n in range(max(len(shown), len(listed))):
    here, there = (" ".join(sorted(layers[n])) if n < len(layers) else "none" for layers in (listed, shown))
    if here != there:
        print("layer %d: here %s, in ARCHITECTURE.md %s" % (n + 1, here, there))
')
	[ -z "$out" ]
	fact $? "every layer is a folder, every folder has a layer, and ARCHITECTURE has the same list"
}

# Between backquotes, and in the drawing, of ARCHITECTURE.md, README.md and SECURITY.md: a word with a slash, or with the
# ending of a source or a page, is a path from the root or from userspace/. A name alone is in the folder of the path
# before it, or in the root; "*" and [ch] may stand in it. Folders of build/ are made by make.
paths_exist() {
	out=$(python3 -c '
import glob, os, re, sys
for page in sys.argv[1:]:
    folder = ""
    text = open(page).read()
    drawings = [d for d in re.findall(r"```\n(.*?)```", text, re.S)]
    code = re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.S)) + drawings
    links = re.findall(r"\]\(([^)]*)\)", text)
    for path in [w for c in code for w in c.split()] + links:
        path = path.rstrip(",;")
        if not re.fullmatch(r"[A-Za-z_][\w.*/\[\]-]*", path) or path.startswith("build/"):
            continue
        if not re.search(r"/|\.([chs15]|md|sh|py|mk|conf|proto)$", path):
            continue
        found = [p for below in ("", "userspace/") for p in glob.glob(below + path)]
        if not found and "/" not in path:
            found = glob.glob(os.path.join(folder, path))
        if not found:
            print(page, "names", path, "which is not there")
        elif "/" in path:
            folder = found[0] if os.path.isdir(found[0]) else os.path.dirname(found[0])
' ARCHITECTURE.md README.md SECURITY.md)
	[ -z "$out" ]
	fact $? "every path that ARCHITECTURE, README and SECURITY name exists"
}

# Each word alone between backquotes that has an underscore, or is in capitals, is a name in some source.
names_exist() {
	out=$(sources '\.[ch]|\.py|\.sh|\.js' | python3 -c '
import re, sys
known = set()
for path in sys.stdin.read().split():
    known.update(re.findall(r"\w+", open(path, errors="replace").read()))
for page in sys.argv[1:]:
    text = re.sub(r"```.*?```", "", open(page).read(), flags=re.S)
    for word in sorted(set(re.findall(r"`(\w+)`", text))):
        if re.fullmatch(r"[A-Za-z]\w*_\w*|[A-Z][A-Z0-9]{2,}", word) and word not in known:
            print(page, "names", word, "which no source has")
' ARCHITECTURE.md README.md SECURITY.md)
	[ -z "$out" ]
	fact $? "every name in code that ARCHITECTURE, README and SECURITY use exists"
}

# The lists that pages and completions repeat: each entry is in each of them.
lists_are_complete() {
	out=$(python3 -c '
import glob, os, re
def entries(path, pattern, name=None):
    text = open(path).read()
    if name:
        text = re.search(r"#define %s\(X\)(.*?[^\\])\n" % name, text, re.S)[1]
    return set(re.findall(pattern, text))
def check(found, least, form, *pages):
    if len(found) < least:
        print("only", len(found), "entries for", *pages)
    for page in pages:
        text = open(page).read().replace("\\-", "-")
        for entry in sorted(found):
            if not re.search(form % re.escape(entry), text, re.M):
                print(page, "does not have", entry)
sample, man, man1 = "packaging/otprof.conf", "packaging/man/otprof.conf.5", "packaging/man/otprof.1"
keys = entries("userspace/daemon/config/config_keys.c", r"""(?:K\(\w+, |E\(|\.name = )"(\w+)\"""")
check(keys, 40, r"^#?%s =", sample)
check(keys, 40, r"^\.B %s$", man)
check(entries("kmod/uapi/otprof.h", r"X\(\d+, \w+, \"([^\"]+)\"\)", "OTP_ORIGINS"), 10, r"(?<![\w-])%s(?![\w-])", man)
check(entries("userspace/profile/profile.h", r"X\(\w+, \"([^\"]+)\"", "SAMPLE_ATTRIBUTES"), 5, r"(?<![\w.])%s(?![\w.])",
      sample, man)
check(entries("userspace/base/frame_kind.h", r"X\(\w+, \"(\w+)\"", "FRAME_KINDS"), 10, r"(?<!\w)%s(?!\w)", man1,
      *("packaging/completions/" + c for c in ("otprof.bash", "otprof.fish", "_otprof")))
check({os.path.basename(p) for p in glob.glob("tests/fuzz/fuzz_*.c")}, 30, r"\b%s\b", "SECURITY.md")
' 2>&1)
	[ -z "$out" ]
	fact $? "pages and completions have every key, event, sample attribute and frame kind, SECURITY every fuzz target"
}

spdx_of() {
	case $1 in
	kmod/uapi/*) echo '(GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause' ;;
	kmod/* | bpf/* | Kbuild | tests/kmod/old_release.h) echo 'GPL-2.0-only' ;;
	*) echo 'Apache-2.0' ;;
	esac
}

spdx() {
	local f
	out=$(for f in $(sources '\.(c|h|sh|py|mk|proto|js|mjs|html)|run|Makefile|Kbuild'); do
		head -n 3 "$f" | grep -qF "SPDX-License-Identifier: $(spdx_of "$f")" || echo "$f: not $(spdx_of "$f")"
	done)
	[ -z "$out" ]
	fact $? "every file names its licence"
}

# What is in the root, committed or about to be: files of editors and debuggers were committed there.
TOP=".ci .gitignore ARCHITECTURE.md Kbuild LICENSES Makefile README.md SECURITY.md bpf dkms.conf kmod packaging proto tests userspace"

top_level() {
	if git rev-parse --git-dir >/dev/null 2>&1; then
		out=$(git ls-files --cached --others --exclude-standard | cut -d / -f 1 | sort -u |
			grep -vxF "$(tr ' ' '\n' <<<"$TOP")")
		[ -z "$out" ]
		fact $? "the root holds no file or folder but the known ones"
	else
		echo "skip - the root holds no file or folder but the known ones: no git tree"
	fi
}

# No path of the machine on which a file was written, and no mark of unfinished work.
traces() {
	out=$(sources '\.(c|h|sh|py|mk|proto|conf)|run|Makefile|Kbuild' | grep -v '^tests/lint\.sh$' |
		xargs grep -nE '(^|[ "=:])/(home|work|root)/[a-z]|/tmp/(build|[a-z0-9-]+/)|\b(TODO|FIXME|XXX)\b' |
		grep -vE '/home/(user|other)|/root/(\.|secret)|"\$root"/tmp/')
	[ -z "$out" ]
	fact $? "no work-machine path and no unfinished mark"
}

shell() {
	if command -v shellcheck >/dev/null; then
		out=$(sources '\.sh|\.ci/run' | xargs shellcheck -S warning 2>&1)
		fact $? "shellcheck finds nothing"
	else
		echo "skip - shellcheck: not installed"
	fi
}

python() {
	out=$(sources '\.py' | xargs -r python3 -c '
import ast, sys
for path in sys.argv[1:]:
    try: ast.parse(open(path).read(), path)
    except SyntaxError as e: print(e); sys.exit(1)' 2>&1)
	fact $? "Python parses"
}

# The types that the page's comments state, by TypeScript; and its policy: nothing inline.
page() {
	out=$(tests/page/run.sh types 2>&1)
	case $? in
	77) echo "skip - the page's types agree: ${out#skip - }" ;;
	*) [ -z "$out" ]; fact $? "the page's types agree" ;;
	esac
	out=$(grep -nE '<style|<script>| style="| on[a-z]+="' userspace/hub/page/*.html
		grep -nE 'innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function\(|cssText|setAttribute\(.style' \
			userspace/hub/page/*.js)
	[ -z "$out" ]
	fact $? "the page has no inline script or style, and makes no element from text"
}

# The kernel's own rules, without those that fit code inside its tree only: no version checks (the module refuses old
# kernels), no lists that a macro repeats, no prototypes in .c files (a probe consists of one).
module_style() {
	local script
	if script=$(tests/guest/checkpatch.sh 2>"$BUILD/lint/why"); then
		out=$(sources '\.[ch]' | grep '^kmod/' | xargs perl "$script" --no-tree --no-summary --terse --show-types \
			--max-line-length=120 --ignore LINUX_VERSION_CODE,CONSTANT_COMPARISON,COMPLEX_MACRO,AVOID_EXTERNS -f 2>&1)
		fact $? "checkpatch finds nothing in kmod/"
	else
		echo "skip - checkpatch finds nothing in kmod/: $(tail -n 1 "$BUILD/lint/why")"
	fi
}

# Address spaces, locks and contexts, for ARCHITECTURE (as Debian and as the kernel call it) and 6.1's headers.
module_sparse() {
	local headers what="sparse finds nothing in kmod/ on $1" dir="$BUILD/lint/sparse-$1"
	if ! command -v sparse >/dev/null; then
		echo "skip - $what: not installed (Debian: sparse)"
	elif [ "$1" != amd64 ] && ! command -v "$3gcc" >/dev/null; then
		echo "skip - $what: no $3gcc"
	elif ! headers=$(OTPROF_GUEST_ARCH=$1 tests/guest/headers.sh 6.1 2>"$BUILD/lint/why"); then
		echo "skip - $what: $(tail -n 1 "$BUILD/lint/why")"
	else
		rm -rf "$dir" && mkdir -p "$dir" && cp -r Kbuild kmod "$dir/"
		out=$($MAKE -C "$headers" M="$(realpath "$dir")" ARCH="$2" CROSS_COMPILE="$3" CC="$3gcc" C=2 W=1 \
			CONFIG_DEBUG_INFO_BTF_MODULES= modules 2>&1)
		# Findings in the kernel's own headers do not count.
		[ $? = 0 ] && out=$(grep -E '(^|/)kmod/[^:]*:[0-9]+:' <<<"$out" | grep -E 'warning|error')
		[ -z "$out" ]
		fact $? "$what"
	fi
}

include_direction
paths_exist
names_exist
lists_are_complete
spdx
top_level
traces
shell
python
page
module_style
module_sparse amd64 x86 ''
module_sparse arm64 arm64 aarch64-linux-gnu-
compiles_with gcc
compiles_with clang
headers_alone # needs the generated headers
exit $bad

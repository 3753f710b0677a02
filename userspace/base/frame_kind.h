/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of frames that stacks consist of, from the unwinder to the flame
 * graph: one list that profile.frame.type, quality counters, colours, legends
 * and filters are made from. A new kind is a line here, besides the code that
 * makes its frames, and pages and tests that list the kinds.
 *
 * Called by all that make, encode, read or draw frames. Plain values.
 */
#ifndef OTP_BASE_FRAME_KIND_H
#define OTP_BASE_FRAME_KIND_H

#include <stdint.h>

/*
 *   X(NAME, "type", "label", hue, spread, saturation %, lightness %)
 * type: the value of profile.frame.type (OpenTelemetry semantic conventions,
 * profile attributes; "jit" and "lua" are ours), NULL: no frame of a stack, or a frame
 * whose type is not known. The rest is what viewers show: a label, and the
 * kind's colour with the width of its hues.
 */
#define FRAME_KINDS(X)                                          \
	X(ALL, NULL, "all", 215, 0, 16, 84)                     \
	X(SERVICE, NULL, "service", 215, 14, 28, 80)            \
	X(MARKER, NULL, "marker", 220, 0, 6, 82)                \
	X(OTHER, NULL, "other", 40, 20, 22, 76)                 \
	X(KERNEL, "kernel", "kernel", 33, 10, 94, 64)           \
	X(NATIVE, "native", "native", 8, 16, 82, 73)            \
	X(JIT, "jit", "JIT", 72, 12, 52, 72)                    \
	X(GO, "go", "Go", 187, 12, 52, 66)                      \
	X(RUST, "rust", "Rust", 18, 10, 58, 68)                 \
	X(CPYTHON, "cpython", "Python", 212, 14, 70, 76)        \
	X(JVM, "jvm", "JVM", 132, 16, 44, 69)                   \
	X(V8JS, "v8js", "JavaScript", 54, 8, 78, 66)            \
	X(DOTNET, "dotnet", ".NET", 268, 14, 60, 80)            \
	X(PHP, "php", "PHP", 240, 12, 52, 80)                   \
	X(RUBY, "ruby", "Ruby", 342, 12, 70, 78)                \
	X(PERL, "perl", "Perl", 172, 12, 38, 68)                \
	X(BEAM, "beam", "BEAM", 312, 14, 46, 78)                \
	X(LUAJIT, "luajit", "LuaJIT", 228, 10, 64, 78)           \
	X(LUA, "lua", "Lua", 222, 8, 72, 72)

enum frame_kind {
#define X(NAME, type, label, hue, spread, saturation, lightness) KIND_##NAME,
	FRAME_KINDS(X)
#undef X
	KIND_NR
};

const char *frame_kind_type(enum frame_kind kind); /* NULL: it has none */
const char *frame_kind_label(enum frame_kind kind);
const char *frame_kind_name(enum frame_kind kind); /* its type, or a label where it has none */
/* By type or label, in any case; KIND_NR: no kind has that name. */
enum frame_kind frame_kind_find(const char *name);
enum frame_kind frame_kind_of_type(const char *type); /* KIND_OTHER: NULL, or no kind's type */

#endif

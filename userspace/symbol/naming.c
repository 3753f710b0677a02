// SPDX-License-Identifier: Apache-2.0
#include "symbol/naming.h"

#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"

#define RANK_LENGTH_MAX 4096
#define NAME_TEXT_MAX	4096

/*
 * Marks that compilers append to the name of a function that they copied, cut
 * or moved: gcc (clone_function_name and its callers), clang (ThinLTO's
 * promotion, hot-cold splitting).
 */
static const char *const clone_marks[] = {
	"part",	    "constprop", "isra",  "lto_priv", "llvm", "clone",	"simdclone", "unlikely",
	"hot",	    "startup",	 "exit",  "local",    "warm", "__uniq", "sched",     "specialized",
	"content",
};

/* Marks without a number; other words are names of Zig's and Go's functions (os.exit). */
static const char *const lone_marks[] = {"cold", "localalias"};

static bool name_is_one_of(const char *const *marks, size_t n, const char *s, size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(marks[i]) == len && !memcmp(marks[i], s, len))
			return true;
	return false;
}

static bool name_is_number(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isdigit((unsigned char)s[i]))
			return false;
	return len > 0;
}

/* Length of the mark that s begins with, its numbers included; 0: none. */
static size_t name_mark_length(const char *s)
{
	size_t len = strcspn(s, "."), number;
	bool lone = name_is_one_of(lone_marks, ARRAY_SIZE(lone_marks), s, len), numbered = false;

	if (!lone && !name_is_one_of(clone_marks, ARRAY_SIZE(clone_marks), s, len))
		return 0;
	while (s[len] == '.' && name_is_number(s + len + 1, number = strcspn(s + len + 1, "."))) {
		len += 1 + number;
		numbered = true;
	}
	return lone || numbered ? len : 0;
}

/* Whether all parts from a dot on are marks, and numbers after marks. */
static bool name_is_all_marks(const char *dot)
{
	while (*dot == '.') {
		size_t len = name_mark_length(dot + 1);

		if (!len)
			return false;
		dot += 1 + len;
	}
	return *dot == '\0';
}

size_t name_without_clones(const char *name)
{
	for (const char *dot = strchr(name + (*name != '\0'), '.'); dot; dot = strchr(dot + 1, '.'))
		if (name_is_all_marks(dot))
			return (size_t)(dot - name);
	return strlen(name);
}

static struct str *name_join(const char *name, const char *clone, const char *suffix)
{
	char text[NAME_TEXT_MAX + 256];

	if (!*clone && !*suffix)
		return str_get_c(name);
	snprintf(text, sizeof(text), "%.*s%.200s%.32s", NAME_TEXT_MAX, name, clone, suffix);
	return str_get_c(text);
}

int name_make(const char *linker_name, const char *suffix, bool show_clones, struct str **ret)
{
	_cleanup_(freep) char *bare = NULL, *clone = NULL, *readable = NULL;
	size_t len;

	bare = strndup(linker_name, strcspn(linker_name, "@"));
	if (!bare)
		return -ENOMEM;
	if (!*bare)
		return -ENOENT;
	len = name_without_clones(bare);
	clone = strdup(bare + len);
	if (!clone)
		return -ENOMEM;
	bare[len] = '\0';
	readable = symbol_demangle(bare);
	*ret = name_join(readable ? readable : bare, show_clones ? clone : "", suffix);
	return *ret ? 0 : -ENOMEM;
}

uint32_t name_rank(const struct name_traits *t, const char *name)
{
	uint32_t underscores = 0, rank = t->local ? 1u << 31 : 0;

	/* The underscore of a mangled name is not its own. */
	if (strncmp(name, "_Z", 2) != 0 && strncmp(name, "_R", 2) != 0)
		underscores = (uint32_t)MIN(strspn(name, "_"), 15);
	rank |= underscores << 24;
	rank |= t->untyped ? 1u << 23 : 0;
	rank |= t->weak ? 1u << 22 : 0;
	return rank | (uint32_t)MIN(strlen(name), RANK_LENGTH_MAX);
}

/* $x, $d of arm64; .L of assemblers; .annobin of a compiler's plugin. */
bool name_is_label(const char *name, bool untyped)
{
	return untyped && (name[0] == '$' || name[0] == '.');
}

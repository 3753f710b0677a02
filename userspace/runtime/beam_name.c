// SPDX-License-Identifier: Apache-2.0
/*
 * Module, function and arity as Erlang writes them, or as Elixir does where the
 * module is one of Elixir (Exception.format_mfa): Enum.map/2, and for what the
 * compiler called "-map/2-fun-0-", anonymous fn/1 in Enum.map/2.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "runtime/beam.h"

#define ELIXIR "Elixir."
#define FUN    "-fun-"

static bool beam_is_plain(const char *s)
{
	if (!islower((unsigned char)*s))
		return false;
	while (isalnum((unsigned char)*s) || *s == '_' || *s == '@')
		s++;
	return !*s;
}

static size_t beam_digits(const char *s)
{
	return strspn(s, "0123456789");
}

/* Of "-NAME/ARITY-fun-N-", how long NAME/ARITY is; 0: it is no such name. */
static size_t beam_enclosing(const char *function)
{
	const char *fun = *function == '-' ? strstr(function + 1, FUN) : NULL, *slash;
	size_t n = fun ? beam_digits(fun + strlen(FUN)) : 0;

	if (!n || strcmp(fun + strlen(FUN) + n, "-") != 0)
		return 0;
	slash = memrchr(function + 1, '/', (size_t)(fun - function) - 1);
	if (!slash || slash == function + 1 || !beam_digits(slash + 1) || slash + 1 + beam_digits(slash + 1) != fun)
		return 0;
	return (size_t)(fun - function) - 1;
}

/* Names and operators stand as they are; what the compiler made, or somebody quoted, does not. */
static bool beam_elixir_is_plain(const char *s)
{
	static const char operators[] = "+-*/<>=!&|^~.@";
	size_t n = strspn(s, operators);

	if (n)
		return !s[n];
	if (!islower((unsigned char)*s) && *s != '_' && !((unsigned char)*s & 0x80))
		return false;
	while (isalnum((unsigned char)*s) || *s == '_' || (unsigned char)*s & 0x80)
		s++;
	return !*s || ((*s == '?' || *s == '!') && !s[1]);
}

static void beam_write_elixir(const char *module, const char *function, uint32_t arity, char to[RUNTIME_NAME_MAX])
{
	size_t enclosing = beam_enclosing(function);
	const char *quote = beam_elixir_is_plain(function) ? "" : "\"";

	if (enclosing)
		snprintf(to, RUNTIME_NAME_MAX, "anonymous fn/%u in %.220s.%.*s", arity, module, (int)enclosing, function + 1);
	else
		snprintf(to, RUNTIME_NAME_MAX, "%.240s.%s%.240s%s/%u", module, quote, function, quote, arity);
}

void beam_write_name(const char *atom, char to[RUNTIME_NAME_MAX])
{
	const char *quote = beam_is_plain(atom) ? "" : "'";

	if (!strncmp(atom, ELIXIR, strlen(ELIXIR)))
		snprintf(to, RUNTIME_NAME_MAX, "%s", atom + strlen(ELIXIR));
	else
		snprintf(to, RUNTIME_NAME_MAX, "%s%s%s", quote, atom, quote);
}

void beam_write(const char *module, const char *function, uint32_t arity, char to[RUNTIME_NAME_MAX])
{
	const char *m = beam_is_plain(module) ? "" : "'", *f = beam_is_plain(function) ? "" : "'";

	if (!strncmp(module, ELIXIR, strlen(ELIXIR)))
		beam_write_elixir(module + strlen(ELIXIR), function, arity, to);
	else
		snprintf(to, RUNTIME_NAME_MAX, "%s%.240s%s:%s%.240s%s/%u", m, module, m, f, function, f, arity);
}

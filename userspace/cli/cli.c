// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"

static const char *cli_name = "otprof";

void cli_set_name(const char *name)
{
	cli_name = name;
}

/* Cleaned: it may name a file or a process of somebody who wants the terminal to obey. */
static void cli_print_line(const char *fmt, va_list ap)
{
	_cleanup_(freep) char *text = NULL;

	if (vasprintf(&text, fmt, ap) < 0) {
		text = NULL; /* undefined after a failure */
		return;
	}
	utf8_clean_str(text);
	fprintf(stderr, "%s: %s\n", cli_name, text);
}

void cli_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	cli_print_line(fmt, ap);
	va_end(ap);
}

void cli_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	cli_print_line(fmt, ap);
	va_end(ap);
}

int cli_try_help(int status)
{
	fprintf(stderr, "Try '%s --help' for more information.\n", cli_name);
	return status;
}

int cli_help(const char *text)
{
	if (fputs(text, stdout) == EOF || fflush(stdout) == EOF) {
		cli_error("write error: %s", strerror(errno));
		return CLI_FAILED;
	}
	return 0;
}

int cli_parse_number(const char *s, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t n;
	char *end;

	/* strtoull takes signs and blanks, which no number here has. */
	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	errno = 0;
	n = strtoull(s, &end, 10);
	if (*end)
		return -EINVAL;
	if (errno || n < min || n > max)
		return -ERANGE;
	*ret = n;
	return 0;
}

int cli_parse_time(const char *s, uint64_t *ret_ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}};
	double n;
	char *end;
	size_t i;

	if (!isdigit((unsigned char)*s) && *s != '.')
		return -EINVAL;
	if (s[strspn(s, "0123456789.")] && strpbrk(s, "xXeE"))
		return -EINVAL;
	n = strtod(s, &end);
	for (i = 0; i < ARRAY_SIZE(units); i++) {
		if (end == s || strcmp(end, units[i].name) != 0)
			continue;
		if (!(n * units[i].ns >= 1e6 && n * units[i].ns <= 1e18))
			return -ERANGE;
		*ret_ns = (uint64_t)(n * units[i].ns);
		return 0;
	}
	return -EINVAL;
}

// SPDX-License-Identifier: Apache-2.0
#include "process/selection.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

/* Numbers by name; the field's place in the struct. */
static const struct {
	const char *name;
	size_t field;
	uint32_t min, max;
} selection_numbers[] = {
	{"hz=", offsetof(struct selection, hz), 1, SELECTION_HZ_MAX},
	{"stack_bytes=", offsetof(struct selection, stack_bytes), 512, 1u << 30},
	{"seconds=", offsetof(struct selection, seconds), 1, SELECTION_SECONDS_MAX},
};

static int selection_fail(char why[SELECTION_WHY], int err, const char *text)
{
	snprintf(why, SELECTION_WHY, "%s", text);
	return err;
}

static int selection_number(const char *word, size_t len, uint32_t min, uint32_t max, uint32_t *ret)
{
	uint64_t n = 0;

	if (!len || len > 10)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if (word[i] < '0' || word[i] > '9')
			return -EINVAL;
		n = n * 10 + (uint64_t)(word[i] - '0');
	}
	if (n < min || n > max)
		return -EINVAL;
	*ret = (uint32_t)n;
	return 0;
}

/* Printable, without a blank: it is written into logs, status and terminals. */
static bool selection_is_word(const char *word, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)word[i] <= ' ' || word[i] == 0x7f)
			return false;
	return len;
}

/* KIND:NAME, and no number of the line. */
static bool selection_is_target(const char *word, size_t len)
{
	const char *colon = memchr(word, ':', len);

	return selection_is_word(word, len) && colon && !memchr(word, '=', (size_t)(colon - word));
}

int selection_add(struct selection *s, const char *target, size_t len, char why[SELECTION_WHY])
{
	size_t used = strlen(s->targets);

	if (!selection_is_target(target, len))
		return selection_fail(why, -EINVAL, "a target is KIND:NAME without blanks, such as unit:nginx.service");
	if (s->nr_targets == SELECTION_TARGETS_MAX || used + len + 2 > sizeof(s->targets))
		return selection_fail(why, -ENOSPC, "there are more targets than a selection holds");
	snprintf(s->targets + used, sizeof(s->targets) - used, "%s%.*s", used ? " " : "", (int)len, target);
	s->nr_targets++;
	return 0;
}

static int selection_word(struct selection *s, const char *word, size_t len, char why[SELECTION_WHY])
{
	for (size_t i = 0; i < ARRAY_SIZE(selection_numbers); i++) {
		const char *name = selection_numbers[i].name;
		size_t n = strlen(name);

		if (len < n || memcmp(word, name, n) != 0)
			continue;
		if (!selection_number(word + n, len - n, selection_numbers[i].min, selection_numbers[i].max,
				      (uint32_t *)((char *)s + selection_numbers[i].field))) {
			return 0;
		}
		snprintf(why, SELECTION_WHY, "%.*s is a number from %u to %u", (int)n - 1, name,
			 selection_numbers[i].min, selection_numbers[i].max);
		return -EINVAL;
	}
	return selection_add(s, word, len, why);
}

int selection_parse(const char *text, size_t len, struct selection *ret, char why[SELECTION_WHY])
{
	struct selection s = {.seconds = SELECTION_SECONDS};
	const char *end = text + len, *word;
	int err = 0;

	if (len > SELECTION_LINE_MAX)
		return selection_fail(why, -EINVAL, "the line is too long");
	while (text < end && !err) {
		if (*text == ' ') {
			text++;
			continue;
		}
		word = text;
		while (text < end && *text != ' ')
			text++;
		err = selection_word(&s, word, (size_t)(text - word), why);
	}
	if (err)
		return -EINVAL;
	if (!s.nr_targets && !s.hz && !s.stack_bytes)
		return selection_fail(why, -EINVAL, "it names neither targets nor a rate or depth");
	*ret = s;
	return 0;
}

void selection_print(const struct selection *s, struct buf *to)
{
	if (s->hz)
		buf_printf(to, "hz=%u ", s->hz);
	if (s->stack_bytes)
		buf_printf(to, "stack_bytes=%u ", s->stack_bytes);
	buf_printf(to, "seconds=%u", s->seconds);
	if (s->nr_targets)
		buf_printf(to, " %s", s->targets);
}

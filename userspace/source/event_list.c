// SPDX-License-Identifier: Apache-2.0
#include "source/event_list.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define FREQUENCY_MAX 100000u
#define PERIOD_RATE 1000
#define PERIOD_MAX    (1ULL << 48)
#define BLANK	      " \t"

static int event_refuse(char why[EVENT_WHY], const char *what, size_t len, const char *expected)
{
	snprintf(why, EVENT_WHY, "'%.*s': expected %s", (int)MIN(len, (size_t)40), what, expected);
	return -EINVAL;
}

/* Lists every name in the error's text. */
static int event_refuse_name(char why[EVENT_WHY], const char *name)
{
	int n = snprintf(why, EVENT_WHY, "unknown event '%.40s', expected", name);

	for (uint32_t i = 0; origin_name(i) && n < EVENT_WHY; i++)
		n += snprintf(why + n, (size_t)(EVENT_WHY - n), "%s %s", i ? "," : "", origin_name(i));
	return -EINVAL;
}

/* Digits alone, from 1 to max. */
static int event_number(const char *s, size_t len, uint64_t max, uint64_t *ret)
{
	uint64_t n = 0;

	for (size_t i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9' || n > max)
			return -EINVAL;
		n = n * 10 + (uint64_t)(s[i] - '0');
	}
	*ret = n;
	return len && n && n <= max ? 0 : -EINVAL;
}

/* The text between the slashes: "period=N" or "freq=N". */
static int event_parse_rate(const char *s, size_t len, struct event_spec *e, char why[EVENT_WHY])
{
	uint64_t n;

	if (len > 7 && !strncmp(s, "period=", 7)) {
		if (event_number(s + 7, len - 7, PERIOD_MAX, &e->period) < 0)
			return event_refuse(why, s, len, "period= with a number of events from 1 to 2^48");
		return 0;
	}
	if (len > 5 && !strncmp(s, "freq=", 5)) {
		if (event_number(s + 5, len - 5, FREQUENCY_MAX, &n) < 0)
			return event_refuse(why, s, len, "freq= with samples a second from 1 to 100000");
		e->frequency_hz = (uint32_t)n;
		return 0;
	}
	return event_refuse(why, s, len, "period=N or freq=N");
}

static bool event_is_listed(const struct event_list *l, uint8_t origin)
{
	for (uint32_t i = 0; i < l->count; i++)
		if (l->event[i].origin == origin)
			return true;
	return false;
}

static int event_add(struct event_list *l, const struct event_spec *e, bool has_rate, char why[EVENT_WHY])
{
	const char *name = origin_name(e->origin);

	if (e->origin == OTP_ORIGIN_CPU_CLOCK ? !l->no_clock : event_is_listed(l, e->origin))
		return snprintf(why, EVENT_WHY, "'%s' is there twice", name), -EINVAL;
	if (e->origin == OTP_ORIGIN_CPU_CLOCK) {
		if (has_rate)
			return snprintf(why, EVENT_WHY, "'%s' has its own setting: the frequency", name), -EINVAL;
		l->no_clock = false;
		return 0;
	}
	if (l->count == EVENT_LIST_MAX)
		return snprintf(why, EVENT_WHY, "more than %d events", EVENT_LIST_MAX), -EINVAL;
	l->event[l->count++] = *e;
	return 0;
}

/* "NAME" or "NAME/RATE/", without blanks around it. */
static int event_parse(struct event_list *l, const char *s, size_t len, char why[EVENT_WHY])
{
	const char *slash = memchr(s, '/', len);
	size_t name_len = slash ? (size_t)(slash - s) : len;
	struct event_spec e = {0};
	char name[48];
	int r = 0;

	snprintf(name, sizeof(name), "%.*s", (int)MIN(name_len, sizeof(name) - 1), s);
	if (!name_len || origin_find(name, &e.origin) < 0)
		return event_refuse_name(why, name);
	if (slash && (s[len - 1] != '/' || len < name_len + 2))
		return event_refuse(why, s, len, "EVENT/period=N/ or EVENT/freq=N/");
	if (slash)
		r = event_parse_rate(slash + 1, len - name_len - 2, &e, why);
	return r < 0 ? r : event_add(l, &e, slash, why);
}

int event_list_parse(const char *text, struct event_list *ret, char why[EVENT_WHY])
{
	struct event_list l = {.no_clock = true};
	const char *s = text;
	int r = 0;

	do {
		size_t len;

		s += strspn(s, BLANK);
		len = strcspn(s, ",");
		text = s + len;
		while (len && strchr(BLANK, s[len - 1]))
			len--;
		r = event_parse(&l, s, len, why);
		s = text;
	} while (r == 0 && *s++ == ',');
	if (r == 0)
		*ret = l;
	return r;
}

void event_list_print(const struct event_list *l, struct buf *to)
{
	if (!l->no_clock)
		buf_add_str(to, origin_name(OTP_ORIGIN_CPU_CLOCK));
	for (uint32_t i = 0; i < l->count; i++) {
		const struct event_spec *e = &l->event[i];

		buf_printf(to, "%s%s", i || !l->no_clock ? ", " : "", origin_name(e->origin));
		if (e->period)
			buf_printf(to, "/period=%" PRIu64 "/", e->period);
		else if (e->frequency_hz)
			buf_printf(to, "/freq=%" PRIu32 "/", e->frequency_hz);
	}
}

void event_list_set_rate(struct event_list *l, uint64_t period, uint32_t frequency_hz)
{
	for (uint32_t i = 0; i < l->count; i++) {
		struct event_spec *e = &l->event[i];

		if (e->period || e->frequency_hz)
			continue;
		e->period = period;
		e->frequency_hz = period ? 0 : frequency_hz;
	}
}

uint32_t event_list_rate(const struct event_list *l, uint32_t frequency_hz)
{
	uint32_t rate = l->no_clock ? 0 : frequency_hz;

	for (uint32_t i = 0; i < l->count; i++) {
		const struct event_spec *e = &l->event[i];

		rate += e->period ? PERIOD_RATE : e->frequency_hz ? e->frequency_hz : frequency_hz;
	}
	return rate;
}

void event_list_origins(const struct event_list *l, uint64_t clock_ns, struct origins *ret)
{
	*ret = origins_of_clock(clock_ns);
	ret->slot[0].sampled = !l->no_clock;
	for (uint32_t i = 0; i < l->count; i++)
		ret->slot[i + 1] = (struct origin_slot){
			.origin = l->event[i].origin, .sampled = true, .period = MAX(l->event[i].period, 1ULL)};
	ret->count = l->count + 1;
}

// SPDX-License-Identifier: Apache-2.0
#include "process/environ.h"

#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"
#include "process/text.h"

#define PAIRS_MAX 256

struct span {
	const char *s;
	size_t len;
};

static bool find_variable(struct span text, const char *name, struct span *ret)
{
	size_t n = strlen(name);

	while (text.len) {
		size_t len = strnlen(text.s, text.len);

		if (len > n && !memcmp(text.s, name, n) && text.s[n] == '=') {
			*ret = (struct span){text.s + n + 1, len - n - 1};
			return true;
		}
		len += len < text.len;
		text.s += len;
		text.len -= len;
	}
	return false;
}

static struct span trim(struct span t)
{
	while (t.len && isspace((unsigned char)t.s[0])) {
		t.s++;
		t.len--;
	}
	while (t.len && isspace((unsigned char)t.s[t.len - 1]))
		t.len--;
	return t;
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What is no escape stays as it is. */
static size_t percent_decode(struct span from, char *to, size_t cap)
{
	size_t n = 0;

	for (size_t i = 0; i < from.len && n < cap; i++) {
		bool escape = from.s[i] == '%' && from.len - i > 2 && hex(from.s[i + 1]) >= 0 &&
			      hex(from.s[i + 2]) >= 0;

		if (escape) {
			to[n++] = (char)(hex(from.s[i + 1]) << 4 | hex(from.s[i + 2]));
			i += 2;
		} else {
			to[n++] = from.s[i];
		}
	}
	return n;
}

static struct str *decoded(struct span from, size_t max)
{
	char raw[ENVIRON_VALUE_MAX];

	return text_str(raw, percent_decode(from, raw, MIN(max, sizeof(raw))), max);
}

static int set_service(struct environ_facts *f, struct span value)
{
	struct str *s;

	if (!value.len)
		return 0;
	s = decoded(value, ENVIRON_VALUE_MAX);
	if (!s)
		return -ENOMEM;
	str_put(f->service);
	f->service = s;
	return 0;
}

static struct attribute *slot_for(struct environ_facts *f, const struct str *key)
{
	for (uint32_t i = 0; i < f->count; i++)
		if (f->attributes[i].key == key)
			return &f->attributes[i];
	return f->count < ENVIRON_ATTRIBUTES_MAX ? &f->attributes[f->count++] : NULL;
}

static int set_attribute(struct environ_facts *f, struct span key, struct span value)
{
	struct str *k = decoded(key, ENVIRON_KEY_MAX), *v = decoded(value, ENVIRON_VALUE_MAX);
	struct attribute *slot = k && v ? slot_for(f, k) : NULL;

	if (!slot) {
		str_put(k);
		str_put(v);
		return k && v ? 0 : -ENOMEM;
	}
	str_put(slot->key);
	str_put(slot->value);
	*slot = (struct attribute){.key = k, .value = v};
	return 0;
}

static int take_pair(struct environ_facts *f, struct span pair)
{
	const char *equals = pair.len ? memchr(pair.s, '=', pair.len) : NULL;
	struct span key, value;

	if (!equals)
		return 0;
	key = trim((struct span){pair.s, (size_t)(equals - pair.s)});
	value = trim((struct span){equals + 1, (size_t)(pair.s + pair.len - equals - 1)});
	if (!key.len || key.len > ENVIRON_KEY_MAX)
		return 0;
	if (key.len == strlen("service.name") && !memcmp(key.s, "service.name", key.len))
		return set_service(f, value);
	return set_attribute(f, key, value);
}

static int take_pairs(struct environ_facts *f, struct span list)
{
	int r = 0;

	for (int i = 0; r == 0 && i < PAIRS_MAX && list.len; i++) {
		const char *comma = memchr(list.s, ',', list.len);
		struct span pair = {list.s, comma ? (size_t)(comma - list.s) : list.len};

		r = take_pair(f, pair);
		list.len -= pair.len + (comma != NULL);
		list.s += pair.len + (comma != NULL);
	}
	return r;
}

int environ_parse(const char *text, size_t len, struct environ_facts *ret)
{
	struct span all = {text, len}, value;
	int r = 0;

	*ret = (struct environ_facts){0};
	if (find_variable(all, "OTEL_RESOURCE_ATTRIBUTES", &value))
		r = take_pairs(ret, value);
	/* Its own variable goes before the one in the list, and is not encoded. */
	if (r == 0 && find_variable(all, "OTEL_SERVICE_NAME", &value)) {
		value = trim(value);
		if (value.len) {
			str_put(ret->service);
			ret->service = text_str(value.s, value.len, ENVIRON_VALUE_MAX);
			r = ret->service ? 0 : -ENOMEM;
		}
	}
	return r;
}

void environ_done(struct environ_facts *f)
{
	str_put(f->service);
	for (uint32_t i = 0; i < f->count; i++) {
		str_put(f->attributes[i].key);
		str_put(f->attributes[i].value);
	}
	*f = (struct environ_facts){0};
}

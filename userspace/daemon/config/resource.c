// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/resource.h"

#include <string.h>
#include <sys/utsname.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "daemon/config/config_keys.h"

#define MACHINE_ID_DIGITS 32

/* machine-id(5): lower-case hexadecimal digits and a newline, or "uninitialized". */
static int read_machine_id(const char *path, char id[MACHINE_ID_DIGITS + 2])
{
	if (file_read_text(path, id, MACHINE_ID_DIGITS + 2) < MACHINE_ID_DIGITS)
		return -ENOENT;
	if (strspn(id, "0123456789abcdef") != MACHINE_ID_DIGITS || (id[MACHINE_ID_DIGITS] && id[MACHINE_ID_DIGITS] != '\n'))
		return -ENOENT;
	id[MACHINE_ID_DIGITS] = '\0';
	return 0;
}

int resource_add_host_id(struct config *c)
{
	/* By OpenTelemetry's semantic conventions (resource/host): other agents of this host use the same id. */
	static const char *const paths[] = {"/etc/machine-id", "/var/lib/dbus/machine-id"};
	char id[MACHINE_ID_DIGITS + 2];
	int err = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(paths) && err; i++)
		err = read_machine_id(paths[i], id);
	if (!err)
		err = config_add_resource(c, "host.id", id);
	return err == -EEXIST ? 0 : err; /* the operator's value wins */
}

static int resource_add(struct resource_set *r, const char *key, const char *value)
{
	struct attribute *a;

	for (size_t i = 0; i < r->count; i++)
		if (strcmp(str_c(r->attributes[i].key), key) == 0)
			return 0; /* the configuration was added first and wins */
	if (r->count == ARRAY_SIZE(r->attributes))
		return -E2BIG;
	a = &r->attributes[r->count];
	a->key = str_get_c(key);
	a->value = str_get_c(value);
	if (!a->key || !a->value) {
		str_put(a->key);
		str_put(a->value);
		return -ENOMEM;
	}
	r->count++;
	return 0;
}

int resource_set_new(struct resource_set *r, const struct config *c)
{
	struct utsname u;
	int err = 0;

	*r = (struct resource_set){0};
	for (uint32_t i = 0; i < c->nr_resources && err == 0; i++)
		err = resource_add(r, c->resources[i].key, c->resources[i].value);
	if (err == 0)
		err = resource_add(r, "os.type", "linux");
	if (err == 0 && uname(&u) == 0)
		err = resource_add(r, "host.name", u.nodename);
	if (err < 0)
		resource_set_done(r);
	return err;
}

void resource_set_done(struct resource_set *r)
{
	for (size_t i = 0; i < r->count; i++) {
		str_put(r->attributes[i].key);
		str_put(r->attributes[i].value);
	}
	r->count = 0;
}

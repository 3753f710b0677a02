// SPDX-License-Identifier: Apache-2.0
#include "process/identity.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "process/cgroup.h"
#include "process/host.h"
#include "process/service.h"
#include "process/text.h"

#define NAME_MAX_BYTES 255u
/* Room for all that can be collected before workload_get sorts and cuts. */
#define COLLECTED_MAX 64

/* The texts of an answer, bounds checked. */
struct identity_input {
	uint32_t ppid;
	struct {
		const char *s;
		size_t len;
	} text[HOST_TEXT_NR];
};

static int identity_input_split(const void *data, size_t len, struct identity_input *in)
{
	struct host_identity_text head;
	const char *at = data;

	if (len < sizeof(head))
		return -EBADMSG;
	memcpy(&head, data, sizeof(head));
	in->ppid = head.ppid;
	at += sizeof(head);
	len -= sizeof(head);
	for (int i = 0; i < HOST_TEXT_NR; i++) {
		if (head.len[i] > len)
			return -EBADMSG;
		in->text[i].s = at;
		in->text[i].len = head.len[i];
		at += head.len[i];
		len -= head.len[i];
	}
	return 0;
}

/* Value of "\nField:\tvalue\n" in /proc/PID/status. */
static bool identity_status_field(const struct identity_input *in, const char *field, char *to, size_t cap)
{
	const char *at = in->text[HOST_TEXT_STATUS].s, *end = at + in->text[HOST_TEXT_STATUS].len;
	size_t n = strlen(field);

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;

		if ((size_t)(stop - at) > n && !memcmp(at, field, n)) {
			for (at += n; at < stop && (*at == '\t' || *at == ' ');)
				at++;
			to[utf8_clean(to, cap - 1, at, (size_t)(stop - at))] = '\0';
			return true;
		}
		at = newline ? newline + 1 : end;
	}
	return false;
}

/* A zombie also has neither file nor arguments, so kernel threads are recognised by their parent, kthreadd. */
static bool identity_input_is_kernel(const struct identity_input *in)
{
	char value[16];

	if (in->text[HOST_TEXT_EXE].len || in->text[HOST_TEXT_CMDLINE].len)
		return false;
	if (identity_status_field(in, "Kthread:", value, sizeof(value)))
		return !strcmp(value, "1");
	return in->ppid == 2 || (identity_status_field(in, "Pid:", value, sizeof(value)) && !strcmp(value, "2"));
}

static struct str *identity_text_or_null(const char *s, size_t max)
{
	return s[0] ? text_str(s, strlen(s), max) : NULL;
}

static void identity_read_cgroup(struct identity *id, const char *text, size_t len)
{
	struct cgroup_facts f;

	cgroup_parse(text, len, &f);
	id->container_id = identity_text_or_null(f.container_id, NAME_MAX_BYTES);
	id->machine = identity_text_or_null(f.container_name, NAME_MAX_BYTES);
	id->container_name = str_ref(id->machine);
	id->pod_uid = identity_text_or_null(f.pod_uid, NAME_MAX_BYTES);
	id->unit = identity_text_or_null(f.unit, NAME_MAX_BYTES);
	id->unit_service = identity_text_or_null(f.service, NAME_MAX_BYTES);
	id->cgroup = identity_text_or_null(f.path, NAME_MAX_BYTES);
}

/* From the runtime; the opener has cleaned it. */
static void identity_read_container(struct identity *id, const char *name, size_t len)
{
	if (len && !id->container_name)
		id->container_name = text_str(name, len, NAME_MAX_BYTES);
}

static void identity_read_names(struct identity *id, const struct identity_input *in, const char *comm)
{
	struct service_input from = {
		.exe = in->text[HOST_TEXT_EXE].s,
		.exe_len = in->text[HOST_TEXT_EXE].len,
		.cmdline = in->text[HOST_TEXT_CMDLINE].s,
		.cmdline_len = in->text[HOST_TEXT_CMDLINE].len,
		.comm = comm,
	};
	struct service_names names;

	service_names(&from, &names);
	id->exe = identity_text_or_null(names.exe, NAME_MAX_BYTES);
	id->script = identity_text_or_null(names.script, NAME_MAX_BYTES);
}

static struct identity *identity_new(void)
{
	struct identity *id = calloc(1, sizeof(*id));

	if (id)
		id->refs = 1;
	return id;
}

static void identity_putp(struct identity **id)
{
	identity_put(*id);
}

int identity_new_kernel(struct identity **ret)
{
	struct identity *id = identity_new();

	if (!id)
		return -ENOMEM;
	id->kernel = true;
	*ret = id;
	return 0;
}

int identity_new_interrupts(struct identity **ret)
{
	int r = identity_new_kernel(ret);

	if (r == 0)
		(*ret)->interrupts = true;
	return r;
}

int identity_parse(const void *data, size_t len, const char *comm, struct identity **ret)
{
	_cleanup_(identity_putp) struct identity *id = NULL;
	struct identity_input in;
	char name[64] = "";
	int r = identity_input_split(data, len, &in);

	if (r < 0)
		return r;
	if (identity_input_is_kernel(&in))
		return identity_new_kernel(ret);
	id = identity_new();
	if (!id)
		return -ENOMEM;
	if (!comm[0] && identity_status_field(&in, "Name:", name, sizeof(name)))
		comm = name;
	identity_read_names(id, &in, comm);
	identity_read_cgroup(id, in.text[HOST_TEXT_CGROUP].s, in.text[HOST_TEXT_CGROUP].len);
	identity_read_container(id, in.text[HOST_TEXT_CONTAINER].s, in.text[HOST_TEXT_CONTAINER].len);
	r = environ_parse(in.text[HOST_TEXT_ENVIRON].s, in.text[HOST_TEXT_ENVIRON].len, &id->environ);
	if (r < 0)
		return r;
	*ret = steal_ptr(&id);
	return 0;
}

static void identity_copy_cgroup(struct identity *to, const struct identity *from)
{
	to->container_id = str_ref(from->container_id);
	to->container_name = str_ref(from->container_name);
	to->machine = str_ref(from->machine);
	to->pod_uid = str_ref(from->pod_uid);
	to->unit = str_ref(from->unit);
	to->unit_service = str_ref(from->unit_service);
	to->cgroup = str_ref(from->cgroup);
}

static void identity_copy_environ(struct environ_facts *to, const struct environ_facts *from)
{
	*to = *from;
	str_ref(to->service);
	for (uint32_t i = 0; i < to->count; i++) {
		str_ref(to->attributes[i].key);
		str_ref(to->attributes[i].value);
	}
}

int identity_guess(const struct identity *environ_from, const struct identity *cgroup_from, const char *exe,
		   const char *script, struct identity **ret)
{
	struct identity *id = identity_new();

	if (!id)
		return -ENOMEM;
	id->exe = identity_text_or_null(exe, NAME_MAX_BYTES);
	id->script = identity_text_or_null(script, NAME_MAX_BYTES);
	if (cgroup_from)
		identity_copy_cgroup(id, cgroup_from);
	if (environ_from)
		identity_copy_environ(&id->environ, &environ_from->environ);
	*ret = id;
	return 0;
}

struct identity *identity_ref(struct identity *id)
{
	if (id)
		id->refs++;
	return id;
}

struct identity *identity_put(struct identity *id)
{
	if (!id || --id->refs)
		return NULL;
	str_put(id->exe);
	str_put(id->script);
	str_put(id->container_id);
	str_put(id->container_name);
	str_put(id->machine);
	str_put(id->pod_uid);
	str_put(id->unit);
	str_put(id->unit_service);
	str_put(id->cgroup);
	environ_done(&id->environ);
	free(id);
	return NULL;
}

/* Attributes collected for a workload; keys are owned here, values borrowed. */
struct collected {
	struct attribute list[COLLECTED_MAX];
	size_t count;
};

static void identity_add(struct collected *c, const char *key, struct str *value)
{
	struct str *k = value && c->count < COLLECTED_MAX ? str_get_c(key) : NULL;

	if (k)
		c->list[c->count++] = (struct attribute){.key = k, .value = value};
}

static void identity_add_all(struct collected *c, const struct attribute *from, size_t n)
{
	for (size_t i = 0; i < n && c->count < COLLECTED_MAX; i++)
		if (strcmp(from[i].key->s, "service.name") != 0)
			c->list[c->count++] = (struct attribute){.key = str_ref(from[i].key), .value = from[i].value};
}

static void collected_done(struct collected *c)
{
	for (size_t i = 0; i < c->count; i++)
		str_put(c->list[i].key);
}

static struct str *identity_service(const struct identity *id)
{
	struct str *const order[] = {id->environ.service, id->unit_service, id->machine, id->script, id->exe};

	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		if (order[i] && order[i]->len)
			return order[i];
	return NULL;
}

static bool identity_uses_cgroup(const struct identity *id)
{
	return id->cgroup && id->cgroup->len > 1 && !id->container_id && !id->container_name && !id->unit &&
	       !strstr(id->cgroup->s, "user.slice");
}

static void identity_add_found(struct collected *c, const struct identity *id)
{
	identity_add(c, "container.id", id->container_id);
	identity_add(c, "container.name", id->container_name);
	identity_add(c, "k8s.pod.uid", id->pod_uid);
	identity_add(c, "process.executable.name", id->exe);
	identity_add(c, "otprof.systemd.unit", id->unit);
	if (identity_uses_cgroup(id))
		identity_add(c, "otprof.cgroup", id->cgroup);
}

/* Interrupts have a service of their own: without a process, only its name says what they are. */
int identity_workload(const struct identity *id, const struct attribute *resource, size_t nr_resource,
		      struct workload **ret)
{
	struct str *kernel = str_get_c(id->interrupts ? "kernel (interrupts)" : "kernel");
	struct str *kernel_exe = str_get_c(id->interrupts ? "[interrupts]" : "[kernel]"), *unknown = str_get_c("unknown");
	_cleanup_(collected_done) struct collected c = {.count = 0};
	struct str *service = id->kernel ? kernel : identity_service(id);
	int r = -ENOMEM;

	if (kernel && kernel_exe && unknown) {
		identity_add(&c, "service.name", service ? service : unknown);
		identity_add_all(&c, resource, nr_resource);
		if (id->kernel)
			identity_add(&c, "process.executable.name", kernel_exe);
		else
			identity_add_found(&c, id);
		identity_add_all(&c, id->environ.attributes, id->environ.count);
		r = workload_get(c.list, c.count, ret);
	}
	str_put(kernel);
	str_put(kernel_exe);
	str_put(unknown);
	/* Without memory for a key, service.name may be missing. */
	return r == -EINVAL ? -ENOMEM : r;
}

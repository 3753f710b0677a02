// SPDX-License-Identifier: Apache-2.0
#include "process/cgroup.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"

#define LINES_MAX      64
#define COMPONENTS_MAX 64
#define CONTAINER_ID   64
#define POD_UID        36
#define POD_HASH       32

struct piece {
	const char *s;
	size_t len;
};

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool starts_with(struct piece p, const char *prefix)
{
	size_t n = strlen(prefix);

	return p.len >= n && !memcmp(p.s, prefix, n);
}

static bool cut_suffix(struct piece *p, const char *suffix)
{
	size_t n = strlen(suffix);

	if (p->len <= n || memcmp(p->s + p->len - n, suffix, n) != 0)
		return false;
	p->len -= n;
	return true;
}

static bool cut_prefix(struct piece *p, const char *prefix)
{
	size_t n = strlen(prefix);

	if (p->len <= n || !starts_with(*p, prefix))
		return false;
	p->s += n;
	p->len -= n;
	return true;
}

static bool all_hex(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_hex(s[i]))
			return false;
	return true;
}

static void copy(char *to, size_t cap, struct piece p)
{
	size_t n = MIN(p.len, cap - 1);

	memcpy(to, p.s, n);
	to[n] = '\0';
}

/*
 * "docker-ID.scope", "crio-ID", "cri-containerd-ID.scope", "libpod-ID",
 * "SLICE:cri-containerd:ID", or "ID" alone. A conmon scope holds the
 * container's monitor, which is the host's.
 */
static bool take_container_id(struct piece p, struct cgroup_facts *f)
{
	struct piece prefix = p;

	cut_suffix(&p, ".scope");
	if (p.len < CONTAINER_ID || !all_hex(p.s + p.len - CONTAINER_ID, CONTAINER_ID))
		return false;
	prefix.len = p.len - CONTAINER_ID;
	if (prefix.len && prefix.s[prefix.len - 1] != '-' && prefix.s[prefix.len - 1] != ':')
		return false;
	if (prefix.len >= 7 && !memcmp(prefix.s + prefix.len - 7, "conmon-", 7))
		return false;
	copy(f->container_id, sizeof(f->container_id), (struct piece){p.s + p.len - CONTAINER_ID, CONTAINER_ID});
	return true;
}

/* systemd writes what its names may not hold as \xHH (systemd.unit(5)). */
static void unescape(char *to, size_t cap, struct piece p)
{
	static const char digits[] = "0123456789abcdef";
	size_t n = 0;

	for (size_t i = 0; i < p.len && n + 1 < cap; i++) {
		if (p.len - i >= 4 && p.s[i] == '\\' && p.s[i + 1] == 'x' && is_hex(p.s[i + 2]) &&
		    is_hex(p.s[i + 3])) {
			to[n++] = (char)((strchr(digits, p.s[i + 2]) - digits) << 4 |
					 (strchr(digits, p.s[i + 3]) - digits));
			i += 3;
		} else {
			to[n++] = p.s[i];
		}
	}
	to[n] = '\0';
}

/* Machines that have a name: LXC, systemd-nspawn, machined's scopes but for virtual machines. */
static bool take_container_name(struct piece p, struct cgroup_facts *f)
{
	if (starts_with(p, "machine-qemu") ||
	    !(cut_prefix(&p, "lxc.payload.") ||
	      (cut_prefix(&p, "systemd-nspawn@") && cut_suffix(&p, ".service")) ||
	      (cut_prefix(&p, "machine-") && cut_suffix(&p, ".scope"))))
		return false;
	unescape(f->container_name, sizeof(f->container_name), p);
	return true;
}

static bool is_uuid(const char *s)
{
	for (int i = 0; i < POD_UID; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? s[i] != '-' && s[i] != '_' : !is_hex(s[i]))
			return false;
	}
	return true;
}

static bool cut_to_pod(struct piece *p)
{
	const char *pod;

	if (cut_prefix(p, "pod"))
		return true;
	if (!memmem(p->s, p->len, "kubepods", 8))
		return false;
	pod = memmem(p->s, p->len, "-pod", 4);
	if (!pod)
		return false;
	p->len -= (size_t)(pod + 4 - p->s);
	p->s = pod + 4;
	return true;
}

/* "podUID" below kubepods, or "kubepods-burstable-podUID.slice" with underscores for dashes. */
static void take_pod(struct piece p, struct cgroup_facts *f)
{
	if (!cut_to_pod(&p))
		return;
	for (size_t i = 0; i < p.len; i++)
		if (p.s[i] == '.' || p.s[i] == ':')
			p.len = i;
	if (!(p.len == POD_UID && is_uuid(p.s)) && !(p.len == POD_HASH && all_hex(p.s, POD_HASH)))
		return;
	copy(f->pod_uid, sizeof(f->pod_uid), p);
	for (char *c = f->pod_uid; *c; c++)
		if (*c == '_')
			*c = '-';
}

static bool digits_to(const struct piece *p, size_t at, const char *also)
{
	for (; at < p->len; at++)
		if (!is_digit(p->s[at]) && !strchr(also, p->s[at]))
			return false;
	return true;
}

/* "run-u12", "run-p34-i56", "run-r" and 32 hex digits: named by systemd-run itself. */
static bool is_unnamed_run(struct piece p)
{
	if (!cut_prefix(&p, "run-") || p.len < 2)
		return false;
	if (p.s[0] == 'r')
		return p.len == 33 && all_hex(p.s + 1, 32);
	return (p.s[0] == 'u' || p.s[0] == 'p') && is_digit(p.s[1]) && digits_to(&p, 1, "-i");
}

/*
 * Not a user's manager, a desktop application (systemd's
 * DESKTOP_ENVIRONMENTS: "app-...") or a run without a name: there the
 * executable tells more than a number or a random string.
 */
static bool names_a_service(struct piece unit)
{
	return !starts_with(unit, "user@") && !starts_with(unit, "user-runtime-dir@") &&
	       !starts_with(unit, "app-") && !is_unnamed_run(unit);
}

static void take_unit(struct piece p, struct cgroup_facts *f)
{
	struct piece name = p;

	if (!cut_suffix(&name, ".service"))
		return;
	unescape(f->unit, sizeof(f->unit), p);
	if (names_a_service(name))
		unescape(f->service, sizeof(f->service), name);
	else
		f->service[0] = '\0';
}

static void take_component(struct piece p, struct cgroup_facts *f)
{
	take_pod(p, f);
	if (take_container_id(p, f) || take_container_name(p, f)) {
		/* A unit around the container is its manager's. */
		f->unit[0] = f->service[0] = '\0';
		return;
	}
	take_unit(p, f);
}

static bool next_piece(struct piece *rest, char separator, struct piece *ret)
{
	const char *end;

	if (!rest->len)
		return false;
	end = memchr(rest->s, separator, rest->len);
	*ret = (struct piece){rest->s, end ? (size_t)(end - rest->s) : rest->len};
	rest->len -= ret->len + (end != NULL);
	rest->s += ret->len + (end != NULL);
	return true;
}

static void parse_path(struct piece path, struct cgroup_facts *f)
{
	struct piece p;

	copy(f->path, sizeof(f->path), path);
	for (int i = 0; i < COMPONENTS_MAX && next_piece(&path, '/', &p); i++)
		if (p.len && !(p.len == 2 && !memcmp(p.s, "..", 2)))
			take_component(p, f);
}

static int facts_score(const struct cgroup_facts *f)
{
	return (f->container_id[0] != 0) * 8 + (f->pod_uid[0] != 0) * 4 + (f->container_name[0] != 0) * 4 +
	       (f->unit[0] != 0) * 2 + (f->path[0] && f->path[1]);
}

/* Hierarchies by how likely they are to be kept: v2, systemd's own, then the rest. */
static int line_rank(struct piece controllers)
{
	static const char *const order[] = {"", "name=systemd", "memory", "cpu", "cpu,cpuacct", "pids"};

	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		if (controllers.len == strlen(order[i]) && !memcmp(controllers.s, order[i], controllers.len))
			return (int)(ARRAY_SIZE(order) - i);
	return 0;
}

/* "number:controllers:path"; the path may hold colons. */
static bool split_line(struct piece line, struct piece *controllers, struct piece *path)
{
	struct piece number;

	if (!next_piece(&line, ':', &number) || !line.len)
		return false;
	if (line.s[0] == ':') {
		*controllers = (struct piece){line.s, 0};
		line.s++;
		line.len--;
	} else if (!next_piece(&line, ':', controllers)) {
		return false;
	}
	*path = line;
	return path->len && path->s[0] == '/';
}

void cgroup_parse(const char *text, size_t len, struct cgroup_facts *ret)
{
	struct piece rest = {text, len}, line, controllers, path;
	int best = -1;

	*ret = (struct cgroup_facts){0};
	for (int i = 0; i < LINES_MAX && next_piece(&rest, '\n', &line); i++) {
		struct cgroup_facts f = {0};
		int score;

		if (!split_line(line, &controllers, &path))
			continue;
		parse_path(path, &f);
		score = facts_score(&f) * 16 + line_rank(controllers);
		if (score > best) {
			best = score;
			*ret = f;
		}
	}
}

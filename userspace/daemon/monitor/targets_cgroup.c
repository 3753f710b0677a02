// SPDX-License-Identifier: Apache-2.0
/*
 * Rules of cgroups: the hierarchy of version 2 is walked at the start and
 * whenever a cgroup was created or removed, which the kernel reports by
 * inotify. A new cgroup usually has its rule before a process is moved into
 * it, since the directory is created first.
 */
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/monitor/monitor.h"
#include "daemon/monitor/target_match.h"

#define RULES_MAX   4096 /* the most rules of a sampler */
#define WATCHES_MAX 16384
#define DEPTH_MAX   32
#define DIRS_MAX    65536
#define ANYWAY_NS   (10 * NSEC_PER_SEC) /* also without an inotify event */
#define PAUSE_NS    (20 * NSEC_PER_MSEC) /* the least time between two walks */
#define PAUSE_PARTS 20			 /* and at least so many times the length of the last one */

struct walk {
	struct monitor *m;
	char path[TARGET_PATH_MAX]; /* below the root */
	uint32_t dirs;
	bool unnamed; /* the name of this cgroup's container is needed, and not resolved yet */
	bool full;
};

/* What holds for a cgroup. */
struct reach {
	uint8_t select;	  /* enum otp_select */
	unsigned int met; /* the lists of which a line matches it or a cgroup above it */
};

static const char *target_rules_name(void *ctx, const char *id)
{
	struct walk *w = ctx;
	const char *name = target_names_find(&w->m->targets.names, id, clock_now_ns());

	w->unnamed |= !name;
	return name;
}

static bool target_rules_fits_line(struct walk *w, uint32_t i)
{
	const struct config_target *t = &w->m->config->targets[i];

	return target_by_cgroup(t) && (t->kind != TARGET_CGROUP || w->m->targets.pattern[i]) &&
	       target_fits_cgroup(t, w->m->targets.pattern[i], w->path, target_rules_name, w);
}

static bool target_rules_excludes(struct walk *w)
{
	const struct config *c = w->m->config;

	for (uint32_t i = 0; i < c->nr_targets; i++)
		if (c->targets[i].exclude && target_rules_fits_line(w, i))
			return true;
	return false;
}

/* The lists of which a line matches this cgroup. */
static unsigned int target_rules_includes(struct walk *w)
{
	const struct config *c = w->m->config;
	unsigned int met = 0;

	for (uint32_t i = 0; i < c->nr_targets; i++)
		if (!(met & target_list_of(&c->targets[i])) && !c->targets[i].exclude && target_rules_fits_line(w, i))
			met |= target_list_of(&c->targets[i]);
	return met;
}

/*
 * Cgroups below an excluded one are excluded; below an included one, some may be excluded. While a container's name is
 * not resolved, a line that excludes by name may concern it: it is excluded until then.
 */
static struct reach target_rules_decide(struct walk *w, struct reach above)
{
	unsigned int lists = target_lists(w->m->config);
	struct reach r = above;

	w->unnamed = false;
	if (above.select == OTP_SELECT_NO || target_rules_excludes(w) || w->unnamed) {
		r.select = OTP_SELECT_NO;
		return r;
	}
	if (above.select != OTP_SELECT_YES)
		r.met |= target_rules_includes(w);
	r.select = lists && r.met == lists ? OTP_SELECT_YES : OTP_SELECT_UNSET;
	return r;
}

/* Anyone may make containers without a name: rules for unresolved ones get the room that the others leave. */
static void target_rules_want(struct walk *w, int fd, uint8_t select)
{
	struct target_rules *r = &w->m->targets.rules;
	struct map *to = w->unnamed && select == OTP_SELECT_NO ? &r->waiting : &r->next;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return;
	if (to->count >= RULES_MAX || map_put(to, st.st_ino, select) < 0)
		w->full = true;
}

static void target_rules_watch(struct walk *w)
{
	struct target_rules *r = &w->m->targets.rules;
	char full[sizeof(r->root) + TARGET_PATH_MAX];

	if (r->inotify_fd < 0 || w->dirs > WATCHES_MAX)
		return;
	snprintf(full, sizeof(full), "%s%s", r->root, w->path);
	inotify_add_watch(r->inotify_fd, full, IN_CREATE | IN_DELETE | IN_MOVE | IN_ONLYDIR | IN_DONT_FOLLOW);
}

static void target_rules_walk_dir(struct walk *w, int fd, int depth, struct reach above);

static void target_rules_walk_child(struct walk *w, int parent, const char *name, int depth, struct reach above)
{
	size_t len = strlen(w->path), root = len == 1 ? 0 : len;
	int fd;

	if (root + 1 + strlen(name) >= sizeof(w->path))
		return;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return; /* the cgroup is gone again */
	w->path[root] = '/';
	strcpy(w->path + root + 1, name);
	target_rules_walk_dir(w, fd, depth, above);
	w->path[len] = '\0';
	if (len == 1)
		w->path[0] = '/';
}

/* Takes ownership of fd. */
static void target_rules_walk_children(struct walk *w, int fd, int depth, struct reach above)
{
	DIR *d = fdopendir(fd);
	const struct dirent *e;

	if (!d) {
		close(fd);
		return;
	}
	target_rules_watch(w);
	while ((e = readdir(d)))
		if (e->d_type == DT_DIR && e->d_name[0] != '.' && ++w->dirs < DIRS_MAX)
			target_rules_walk_child(w, dirfd(d), e->d_name, depth + 1, above);
	closedir(d);
}

static void target_rules_walk_dir(struct walk *w, int fd, int depth, struct reach above)
{
	struct reach r = target_rules_decide(w, above);

	w->m->targets.rules.unnamed |= w->unnamed;
	if (r.select != above.select)
		target_rules_want(w, fd, r.select);
	/* The rule holds for all cgroups below, except for exclusions. */
	if (depth >= DEPTH_MAX || r.select == OTP_SELECT_NO ||
	    (r.select == OTP_SELECT_YES && !w->m->targets.rules.may_exclude)) {
		close(fd);
		return;
	}
	target_rules_walk_children(w, fd, depth, r);
}

static int target_rules_set(struct monitor *m, uint64_t id, uint8_t select)
{
	const struct otp_cgroup_rule rule = {.select = select};

	return m->sampler.source->ops->set_cgroup(m->sampler.source, id, select ? &rule : NULL);
}

static void target_rules_add_waiting(struct target_rules *r, struct walk *w)
{
	map_for_each(&r->waiting, slot)
		if (r->next.count >= RULES_MAX || map_put(&r->next, slot->key, slot->value) < 0)
			w->full = true;
	map_done(&r->waiting);
}

/* Changes the sampler's rules from set to next. */
static void target_rules_apply(struct monitor *m, struct walk *w)
{
	struct target_rules *r = &m->targets.rules;
	int err = 0;

	target_rules_add_waiting(r, w);
	map_for_each(&r->set, slot)
		if (!map_find(&r->next, slot->key))
			target_rules_set(m, slot->key, OTP_SELECT_UNSET);
	map_for_each(&r->next, slot) {
		const uint64_t *have = map_find(&r->set, slot->key);

		if (!have || *have != slot->value)
			err = MIN(err, target_rules_set(m, slot->key, (uint8_t)slot->value));
	}
	map_done(&r->set);
	r->set = r->next;
	r->next = (struct map){0};
	if ((err || w->full) && !r->logged_full) {
		r->logged_full = true;
		log_error("targets: more cgroups are selected than the sampler takes rules for (%u): some are left out",
			  RULES_MAX);
	}
}

/* Where version 2 is mounted: alone, or beside version 1. */
static void target_rules_find_root(struct target_rules *r)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	struct mntent entry, *e;
	char text[4096];

	r->root[0] = '\0';
	while (f && (e = getmntent_r(f, &entry, text, sizeof(text)))) {
		if (strcmp(e->mnt_type, "cgroup2") || strlen(e->mnt_dir) >= sizeof(r->root))
			continue;
		strcpy(r->root, e->mnt_dir);
		break;
	}
	if (f)
		endmntent(f);
}

static void target_rules_walk(struct monitor *m, uint64_t now)
{
	struct target_rules *r = &m->targets.rules;
	struct walk *w = calloc(1, sizeof(*w));
	int fd;

	if (!r->root[0])
		target_rules_find_root(r);
	r->complete = !r->root[0]; /* else once it was walked */
	fd = r->root[0] ? open(r->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (w && fd >= 0) {
		w->m = m;
		strcpy(w->path, "/");
		r->unnamed = false;
		target_rules_walk_dir(w, fd, 0, (struct reach){.select = OTP_SELECT_UNSET});
		target_rules_apply(m, w);
		r->complete = w->dirs < DIRS_MAX;
	} else if (fd >= 0) {
		close(fd);
	}
	free(w);
	r->walked_ns = clock_now_ns();
	r->took_ns = r->walked_ns - now;
	r->due_ns = r->walked_ns + MAX(ANYWAY_NS, PAUSE_PARTS * r->took_ns);
	targets_age_names(m);
}

/* At once where the last walk is long ago; else soon, so that one walk serves many events. */
static void target_rules_walk_soon(struct monitor *m)
{
	struct target_rules *r = &m->targets.rules;

	r->due_ns = MIN(r->due_ns, r->walked_ns + MAX(PAUSE_NS, PAUSE_PARTS * r->took_ns));
	target_rules_run(m, clock_now_ns());
}

void target_rules_open(struct monitor *m)
{
	struct target_rules *r = &m->targets.rules;

	r->due_ns = UINT64_MAX;
	if (!r->wanted)
		return;
	target_rules_find_root(r);
	if (!r->root[0])
		log_notice("targets: there are no cgroups of version 2 here: processes are checked one by one");
	for (uint32_t i = 0; i < m->config->nr_targets; i++)
		r->may_exclude |= m->config->targets[i].exclude && target_by_cgroup(&m->config->targets[i]);
	r->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	r->due_ns = 0;
}

void target_rules_run(struct monitor *m, uint64_t now)
{
	if (m->targets.rules.wanted && now >= m->targets.rules.due_ns)
		target_rules_walk(m, now);
}

void targets_read(struct monitor *m)
{
	struct target_rules *r = &m->targets.rules;
	char events[4096];
	bool any = false;

	while (read(r->inotify_fd, events, sizeof(events)) > 0)
		any = true;
	if (any)
		target_rules_walk_soon(m);
}

/*
 * One more walk after each that found unresolved names. Before the first sample it is made at once, so that sampling
 * begins with the whole selection.
 */
void target_rules_names_known(struct monitor *m)
{
	if (!m->targets.rules.unnamed)
		return;
	if (!m->sampler.sampling)
		m->targets.rules.due_ns = 0;
	target_rules_walk_soon(m);
}

void target_rules_close(struct monitor *m)
{
	struct target_rules *r = &m->targets.rules;

	map_for_each(&r->set, slot)
		target_rules_set(m, slot->key, OTP_SELECT_UNSET);
	map_done(&r->set);
	if (r->inotify_fd >= 0)
		close(r->inotify_fd);
}

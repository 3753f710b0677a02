// SPDX-License-Identifier: Apache-2.0
/*
 * No source: for an otprofd that shows the profiles of other hosts. Its ring
 * and its counters exist, and stay empty, so that all that reads them needs no
 * case of its own.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ring/writer.h"
#include "source/source.h"

struct source_none {
	struct source base;
	struct ring_writer ring;
	int counters_fd; /* owned */
};

static int none_probe(const struct source_config *cfg, char why[SOURCE_WHY])
{
	return 0;
}

static int none_open(struct source *s, const struct source_config *cfg, char why[SOURCE_WHY])
{
	struct source_none *n = (struct source_none *)s;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	n->counters_fd = memfd_create("otprof-counters", MFD_CLOEXEC);
	if (n->counters_fd < 0 || ftruncate(n->counters_fd, (off_t)page) < 0)
		return -errno;
	return ring_writer_open(&n->ring, page);
}

static void none_close(struct source *s)
{
	struct source_none *n = (struct source_none *)s;

	closep(&n->counters_fd);
	ring_writer_close(&n->ring);
}

static void none_layout(const struct source *s, struct source_layout *ret)
{
	const struct source_none *n = (const struct source_none *)s;

	*ret = (struct source_layout){
		.ring_fd = n->ring.ring_fd,
		.ring_bytes = (size_t)sysconf(_SC_PAGESIZE),
		.counters_fd = n->counters_fd,
		.cpus = 1,
		.counters_stride = sizeof(struct otp_cpu_counters),
		.origins = origins_of_clock(1000000000 / SOURCE_HZ_DEFAULT),
		.consumer_fd = n->ring.consumer_fd,
		.wake_fd = -1,
		.life = true,
		.fixed_rate = true,
	};
}

static int none_start(struct source *s)
{
	return 0;
}

static int none_set_defaults(struct source *s, const struct otp_defaults *d)
{
	return 0;
}

static int none_set_plan(struct source *s, uint32_t pid, const struct otp_plan *p)
{
	return 0;
}

static int none_set_cgroup(struct source *s, uint64_t id, const struct otp_cgroup_rule *r)
{
	return 0;
}

static int none_follow_cpus(struct source *s, int *ret_changed)
{
	*ret_changed = 0;
	return 0;
}

const struct source_ops source_none = {
	.name = "none",
	.size = sizeof(struct source_none),
	.probe = none_probe,
	.open = none_open,
	.close = none_close,
	.layout = none_layout,
	.start = none_start,
	.stop = none_start,
	.set_defaults = none_set_defaults,
	.set_plan = none_set_plan,
	.set_cgroup = none_set_cgroup,
	.follow_cpus = none_follow_cpus,
};

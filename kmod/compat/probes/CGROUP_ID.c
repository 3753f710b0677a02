// SPDX-License-Identifier: GPL-2.0-only
/* 5.5: a cgroup has one id of 64 bits. */
#include <linux/cgroup.h>
u64 probe(struct cgroup *c);
u64 probe(struct cgroup *c) { return cgroup_id(c); }

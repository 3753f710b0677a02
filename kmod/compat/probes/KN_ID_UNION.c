// SPDX-License-Identifier: GPL-2.0-only
/* 4.14 to 5.4: the id of a cgroup is a union in its directory, of its inode and a generation. */
#include <linux/cgroup.h>
#include <linux/kernfs.h>
u64 probe(struct cgroup *c);
u64 probe(struct cgroup *c) { return c->kn->id.ino; }

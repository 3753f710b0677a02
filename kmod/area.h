/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pages that the kernel and a process both map.
 * Called by sessions and views, where they may sleep. A mapping holds its
 * pages by itself: it may outlive the area. -ENOMEM changes nothing.
 */
#ifndef OTPROF_AREA_H
#define OTPROF_AREA_H

#include <linux/mm_types.h>
#include <linux/types.h>

struct otprof_area {
	struct page **pages; /* owned, zeroed at first */
	unsigned long nr;
	void *at; /* in the kernel */
};

/* nr pages, of which the last `twice` appear a second time behind the end. */
int otprof_area_init(struct otprof_area *a, unsigned long nr, unsigned long twice);
void otprof_area_done(struct otprof_area *a);

/* All of vma, from its offset; nr_twice as above. -EINVAL where it leads out of the area. */
int otprof_area_map(const struct otprof_area *a, unsigned long twice, struct vm_area_struct *vma);

#endif

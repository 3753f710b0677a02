/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pages that the kernel and a process both map.
 * Called by sessions and views, in process context; may sleep. A mapping holds
 * references to its pages, so it may outlive the area. -ENOMEM: nothing changed.
 */
#ifndef OTPROF_AREA_H
#define OTPROF_AREA_H

#include <linux/mm_types.h>
#include <linux/types.h>

struct otprof_area {
	struct page **pages; /* owned; zeroed when allocated */
	unsigned long nr;
	void *at; /* the kernel's mapping; owned */
};

/* nr pages; the last `twice` of them are mapped a second time behind the end. */
int otprof_area_init(struct otprof_area *a, unsigned long nr, unsigned long twice);
void otprof_area_done(struct otprof_area *a);

/* Maps all of vma, from its offset; twice as above. -EINVAL: vma exceeds the area. */
int otprof_area_map(const struct otprof_area *a, unsigned long twice, struct vm_area_struct *vma);

#endif

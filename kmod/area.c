// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/area.h"

#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "kmod/compat/compat.h"

static struct page *page_at(const struct otprof_area *a, unsigned long twice, unsigned long i)
{
	return a->pages[i < a->nr ? i : i - twice];
}

/* A ring may be large: where there is no memory it is refused, and nobody is killed to make room for it. */
#define AREA_GFP (OTPROF_GFP_MAPPED | __GFP_ZERO | __GFP_NORETRY | __GFP_NOWARN)

static int pages_alloc(struct otprof_area *a, unsigned long nr)
{
	a->pages = otprof_compat_vzalloc(nr * sizeof(*a->pages));
	if (!a->pages)
		return -ENOMEM;
	for (; a->nr < nr; a->nr++) {
		a->pages[a->nr] = alloc_page(AREA_GFP);
		if (!a->pages[a->nr])
			return -ENOMEM;
	}
	return 0;
}

/* One run of addresses, so that a record that ends beyond the data is still one piece. */
static int pages_map(struct otprof_area *a, unsigned long twice)
{
	struct page **all = otprof_compat_vzalloc((a->nr + twice) * sizeof(*all));
	unsigned long i;

	if (!all)
		return -ENOMEM;
	for (i = 0; i < a->nr + twice; i++)
		all[i] = page_at(a, twice, i);
	a->at = vmap(all, a->nr + twice, VM_MAP, PAGE_KERNEL);
	vfree(all);
	return a->at ? 0 : -ENOMEM;
}

int otprof_area_init(struct otprof_area *a, unsigned long nr, unsigned long twice)
{
	int err;

	a->nr = 0;
	a->at = NULL;
	err = pages_alloc(a, nr);
	if (!err)
		err = pages_map(a, twice);
	if (err)
		otprof_area_done(a);
	return err;
}

void otprof_area_done(struct otprof_area *a)
{
	if (a->at)
		vunmap(a->at);
	while (a->nr)
		put_page(a->pages[--a->nr]);
	vfree(a->pages);
	a->pages = NULL;
	a->at = NULL;
}

int otprof_area_map(const struct otprof_area *a, unsigned long twice, struct vm_area_struct *vma)
{
	unsigned long nr = vma_pages(vma), first = vma->vm_pgoff, i;
	int err;

	if (first > a->nr + twice || nr > a->nr + twice - first)
		return -EINVAL;
	for (i = 0; i < nr; i++) {
		err = vm_insert_page(vma, vma->vm_start + i * PAGE_SIZE, page_at(a, twice, first + i));
		if (err)
			return err;
	}
	return 0;
}

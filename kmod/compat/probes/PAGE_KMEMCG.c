// SPDX-License-Identifier: GPL-2.0-only
/* 4.8 to 5.10: a page that is charged to a memory cgroup is a type of page, noted where its mappings are counted. */
#include <linux/mm.h>
#include <linux/page-flags.h>
int probe(struct page *page);
int probe(struct page *page) { return PageKmemcg(page); }

// SPDX-License-Identifier: GPL-2.0-only
/* 5.8: __vmalloc is told no protection. */
#include <linux/gfp.h>
#include <linux/vmalloc.h>
void *probe(unsigned long bytes);
void *probe(unsigned long bytes) { return __vmalloc(bytes, GFP_KERNEL); }

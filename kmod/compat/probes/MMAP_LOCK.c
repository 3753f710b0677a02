// SPDX-License-Identifier: GPL-2.0-only
/* 5.8: the lock of mappings is taken by calls. */
#include <linux/mm.h>
#include <linux/mmap_lock.h>
int probe(struct mm_struct *mm);
int probe(struct mm_struct *mm) { return mmap_read_trylock(mm); }

// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/lifemaps.h"

#include <linux/dcache.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/kdev_t.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "kmod/compat/compat.h"

/* Mappings of a new program: a dozen, of which three to five are executable. */
#define MAPS_MAX 128

struct map_record {
	struct otp_life event;
	struct perf_event_header header;
	u32 pid, tid;
	u64 addr, len, pgoff;
	u32 maj, min;
	u64 ino, ino_generation;
	u32 prot, flags;
	char name[PATH_MAX + sizeof(struct otprof_life_tail) + 8];
};

_Static_assert(offsetof(struct map_record, name) == 80, "as perf writes it, behind the event's head");

void otprof_life_head(struct otp_life *event, struct perf_event_header *header, u32 len, u32 type, u16 misc)
{
	event->rec.type = OTP_REC_LIFE;
	event->rec.flags = 0;
	event->rec.len = len;
	header->type = type;
	header->misc = misc;
	header->size = len - sizeof(*event);
}

void otprof_life_tail(struct otprof_life_tail *tail)
{
	tail->pid = current->tgid;
	tail->tid = current->pid;
	tail->time_ns = otprof_compat_boot_ns();
}

#if defined(CONFIG_TRACEPOINTS) && !defined(OTPROF_RT)

static void record_set_file(struct map_record *r, struct file *file)
{
	const struct inode *inode = otprof_compat_file_inode(file);

	r->maj = MAJOR(inode->i_sb->s_dev);
	r->min = MINOR(inode->i_sb->s_dev);
	r->ino = inode->i_ino;
	r->ino_generation = inode->i_generation;
}

/* The name that perf uses: the path below the task's own root, or the kernel's name of the mapping. */
static const char *mapping_name(struct vm_area_struct *vma, char *buf)
{
	const char *name = NULL;

	if (vma->vm_file) {
		name = d_path(otprof_compat_file_path(vma->vm_file), buf, PATH_MAX);
		return IS_ERR(name) ? "//toolong" : name;
	}
	if (vma->vm_ops && vma->vm_ops->name)
		name = vma->vm_ops->name(vma);
	return name ? name : "//anon";
}

static u32 mapping_prot(const struct vm_area_struct *vma)
{
	return (vma->vm_flags & VM_READ ? PROT_READ : 0) | (vma->vm_flags & VM_WRITE ? PROT_WRITE : 0) | PROT_EXEC;
}

/* The name is at most PATH_MAX bytes with its end; padded with zeroes, at least one of them. */
static u32 record_finish(struct map_record *r, const char *name)
{
	size_t len = strnlen(name, PATH_MAX - 1), room = ALIGN(len + 1, 8);
	u32 bytes = offsetof(struct map_record, name) + room + sizeof(struct otprof_life_tail);

	memmove(r->name, name, len);
	memset(r->name + len, 0, room - len);
	otprof_life_head(&r->event, &r->header, bytes, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
	otprof_life_tail((struct otprof_life_tail *)(r->name + room));
	return bytes;
}

static u32 record_fill(struct map_record *r, const struct task_struct *task, struct vm_area_struct *vma)
{
	memset(r, 0, offsetof(struct map_record, name));
	r->pid = task->tgid;
	r->tid = task->pid;
	r->addr = vma->vm_start;
	r->len = vma->vm_end - vma->vm_start;
	r->pgoff = (u64)vma->vm_pgoff << PAGE_SHIFT;
	if (vma->vm_file)
		record_set_file(r, vma->vm_file);
	r->prot = mapping_prot(vma);
	r->flags = vma->vm_flags & VM_SHARED ? MAP_SHARED : MAP_PRIVATE;
	return record_finish(r, mapping_name(vma, r->name));
}

static void record_each_mapping(struct task_struct *task, struct map_record *r, otprof_life_fn *fn, void *ctx)
{
	struct vm_area_struct *vma = find_vma(task->mm, 0);
	unsigned int n;

	for (n = 0; vma && n < MAPS_MAX; n++) {
		if (vma->vm_flags & VM_EXEC)
			fn(ctx, r, record_fill(r, task, vma));
		vma = find_vma(task->mm, vma->vm_end);
	}
}

int otprof_life_maps(struct task_struct *task, otprof_life_fn *fn, void *ctx)
{
	struct map_record *r;

	if (task != current || !task->mm)
		return 0;
	r = kmalloc(sizeof(*r), GFP_ATOMIC | __GFP_NOWARN);
	if (!r)
		return -ENOMEM;
	if (!otprof_compat_mm_trylock(task->mm)) {
		kfree(r);
		return -EAGAIN;
	}
	record_each_mapping(task, r, fn, ctx);
	otprof_compat_mm_unlock(task->mm);
	kfree(r);
	return 0;
}

#else

int otprof_life_maps(struct task_struct *task, otprof_life_fn *fn, void *ctx)
{
	return 0;
}

#endif

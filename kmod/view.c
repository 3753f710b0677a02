// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/view.h"

#include <linux/anon_inodes.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/fs.h>
#include <linux/module.h>

#include "kmod/area.h"
#include "kmod/compat/compat.h"
#include "kmod/session.h"

static int view_release(struct inode *inode, struct file *file)
{
	otprof_session_put(file->private_data);
	return 0;
}

static __poll_t ring_poll(struct file *file, poll_table *wait)
{
	struct otprof_session *s = file->private_data;

	poll_wait(file, &s->readers, wait);
	return otprof_ring_avail(&s->ring) ? EPOLLIN | EPOLLRDNORM : 0;
}

/*
 * Read-only for good: without VM_MAYWRITE, mprotect cannot give back what mmap
 * refused. Stack bytes are secrets: into no core dump and no child.
 */
static int map(const struct otprof_area *a, unsigned long twice, struct vm_area_struct *vma, bool writable)
{
	if (!(vma->vm_flags & VM_SHARED) || (vma->vm_flags & VM_EXEC))
		return -EINVAL;
	if ((vma->vm_flags & VM_WRITE) && !writable)
		return -EPERM;
	otprof_compat_vm_flags(vma, VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY,
			       VM_MAYEXEC | (writable ? 0 : VM_MAYWRITE));
	return otprof_area_map(a, twice, vma);
}

static int ring_mmap(struct file *file, struct vm_area_struct *vma)
{
	const struct otprof_session *s = file->private_data;
	bool readers_page = vma->vm_pgoff == 0 && vma_pages(vma) == 1;

	return map(&s->ring_area, otprof_session_data_pages(s), vma, readers_page);
}

static int counters_mmap(struct file *file, struct vm_area_struct *vma)
{
	const struct otprof_session *s = file->private_data;

	return map(&s->counters_area, 0, vma, false);
}

static const struct file_operations ring_fops = {
	.owner = THIS_MODULE,
	.release = view_release,
	.poll = ring_poll,
	.mmap = ring_mmap,
	.llseek = noop_llseek,
};

static const struct file_operations counters_fops = {
	.owner = THIS_MODULE,
	.release = view_release,
	.mmap = counters_mmap,
	.llseek = noop_llseek,
};

int otprof_view_open(struct otprof_session *s, enum otprof_view view)
{
	const struct file_operations *fops = view == OTPROF_VIEW_RING ? &ring_fops : &counters_fops;
	int fd;

	if (view != OTPROF_VIEW_RING && view != OTPROF_VIEW_COUNTERS)
		return -EINVAL;
	fd = anon_inode_getfd(view == OTPROF_VIEW_RING ? "[otprof-ring]" : "[otprof-counters]", fops,
			      otprof_session_get(s), O_RDWR | O_CLOEXEC);
	if (fd < 0)
		otprof_session_put(s);
	return fd;
}

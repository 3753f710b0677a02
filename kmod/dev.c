// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/dev.h"

#include <linux/cred.h>
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "kmod/compat/compat.h"
#include "kmod/counter.h"
#include "kmod/life.h"
#include "kmod/session.h"
#include "kmod/timers.h"
#include "kmod/view.h"

static int group = -1;
module_param(group, int, 0444);
MODULE_PARM_DESC(group, "members of this group may profile too (number; default: CAP_PERFMON or CAP_SYS_ADMIN only)");

module_param_named(sessions_max, otprof_sessions_max, uint, 0444);
MODULE_PARM_DESC(sessions_max, "samplers at the same time (default 4)");

module_param_named(memory_max, otprof_memory_max, uint, 0444);
MODULE_PARM_DESC(memory_max, "MiB that ring and tables of one sampler may take (default 256)");

static bool dev_may_open(void)
{
	if (otprof_compat_may_profile())
		return true;
	return group >= 0 && in_egroup_p(make_kgid(&init_user_ns, group));
}

/* A sampler that was open before a lockdown goes on, as /dev/mem, perf events and BPF programs do. */
static int dev_check_open(void)
{
	if (!dev_may_open())
		return -EPERM;
	return otprof_compat_locked_down() ? -EOPNOTSUPP : 0;
}

static int dev_open(struct inode *inode, struct file *file)
{
	struct otprof_session *s;
	int err;

	err = dev_check_open();
	if (err)
		return err;
	err = otprof_session_new(&s);
	if (err)
		return err;
	file->private_data = s;
	return 0;
}

/* Called when the last descriptor is closed, however its owner ended: no tick and no event afterwards. */
static int dev_release(struct inode *inode, struct file *file)
{
	struct otprof_session *s = file->private_data;

	mutex_lock(&s->mutex);
	otprof_session_stop(s);
	mutex_unlock(&s->mutex);
	otprof_session_put(s);
	return 0;
}

static u64 dev_features(void)
{
	return OTPROF_FEATURE_PERIOD | (otprof_counter_possible() ? OTPROF_FEATURE_HARDWARE : 0) |
	       (otprof_life_possible() ? OTPROF_FEATURE_LIFE : 0);
}

static long dev_get_info(void __user *arg)
{
	struct otprof_info info = {
		.abi_version = OTP_ABI_VERSION,
		.dev_version = OTPROF_DEV_VERSION,
		.features = dev_features(),
		.cpus_nr = nr_cpu_ids,
		.page_bytes = PAGE_SIZE,
		.producer_offset = PAGE_SIZE,
		.data_offset = OTPROF_RING_HEAD_PAGES * PAGE_SIZE,
		.counters_stride = sizeof(struct otp_cpu_counters),
	};

	return copy_to_user(arg, &info, sizeof(info)) ? -EFAULT : 0;
}

static long dev_set_config(struct otprof_session *s, const void __user *arg)
{
	struct otprof_config *c = kmalloc(sizeof(*c), GFP_KERNEL);
	long err = -EFAULT;

	if (!c)
		return -ENOMEM;
	if (!copy_from_user(c, arg, sizeof(*c)))
		err = otprof_session_config(s, c);
	kfree(c);
	return err;
}

static long dev_set_defaults(struct otprof_session *s, const void __user *arg)
{
	struct otp_defaults d;

	if (copy_from_user(&d, arg, sizeof(d)))
		return -EFAULT;
	return otprof_session_set_defaults(s, &d);
}

static bool op_valid(u32 op)
{
	return op == OTPROF_SET || op == OTPROF_REMOVE;
}

static bool plan_valid(const struct otp_plan *p)
{
	return p->select <= OTP_SELECT_NO && p->any_exec <= 1 && !(p->flags & ~OTP_PLAN_FLAGS) &&
	       p->base_units <= OTP_BASE_LIMIT / OTP_BASE_UNIT && p->stack_bytes <= OTP_STACK_LIMIT &&
	       !p->pid;
}

static long dev_set_plan(struct otprof_session *s, const void __user *arg)
{
	struct otprof_set_plan p;

	if (copy_from_user(&p, arg, sizeof(p)))
		return -EFAULT;
	if (!op_valid(p.op) || (p.op == OTPROF_SET && !plan_valid(&p.plan)))
		return -EINVAL;
	return otprof_plans_set(&s->plans, p.pid, p.op == OTPROF_SET ? &p.plan : NULL);
}

static long dev_set_walks(struct otprof_session *s, const void __user *arg)
{
	struct otprof_set_walks w;

	if (copy_from_user(&w, arg, sizeof(w)))
		return -EFAULT;
	if (!op_valid(w.op) || (w.op == OTPROF_SET && !otp_walk_sound(&w.walks)))
		return -EINVAL;
	return otprof_plans_set_walks(&s->plans, w.pid, w.op == OTPROF_SET ? &w.walks : NULL);
}

static long dev_set_hint(struct otprof_session *s, const void __user *arg)
{
	struct otprof_set_hint h;

	if (copy_from_user(&h, arg, sizeof(h)))
		return -EFAULT;
	if (!op_valid(h.op) || h.reserved || h.hint.base_bytes > OTP_BASE_LIMIT ||
	    h.hint.stack_bytes > OTP_STACK_LIMIT)
		return -EINVAL;
	return otprof_plans_set_hint(&s->plans, h.comm, h.op == OTPROF_SET ? &h.hint : NULL);
}

static long dev_set_rule(struct otprof_session *s, const void __user *arg)
{
	struct otprof_set_rule r;

	if (copy_from_user(&r, arg, sizeof(r)))
		return -EFAULT;
	if (!op_valid(r.op) || r.reserved || r.rule.select > OTP_SELECT_NO ||
	    memchr_inv(r.rule.reserved, 0, sizeof(r.rule.reserved)))
		return -EINVAL;
	return otprof_plans_set_rule(&s->plans, r.cgroup_id, r.op == OTPROF_SET ? &r.rule : NULL);
}

static long dev_get_times(struct otprof_session *s, void __user *arg)
{
	struct otprof_times times;

	otprof_session_times(s, &times);
	return copy_to_user(arg, &times, sizeof(times)) ? -EFAULT : 0;
}

static long dev_get_cpus(struct otprof_session *s, void __user *arg)
{
	struct otprof_cpus cpus;

	otprof_timers_cpus(s, &cpus);
	return copy_to_user(arg, &cpus, sizeof(cpus)) ? -EFAULT : 0;
}

static long dev_set_period(struct otprof_session *s, const void __user *arg)
{
	u64 period_ns;

	if (copy_from_user(&period_ns, arg, sizeof(period_ns)))
		return -EFAULT;
	return otprof_session_set_period(s, period_ns);
}

static long dev_stop(struct otprof_session *s)
{
	otprof_session_stop(s);
	return 0;
}

static long dev_ioctl_configured(struct otprof_session *s, unsigned int cmd, unsigned long arg)
{
	void __user *at = (void __user *)arg;

	switch (cmd) {
	case OTPROF_IOC_START:
		return otprof_session_start(s);
	case OTPROF_IOC_STOP:
		return dev_stop(s);
	case OTPROF_IOC_DEFAULTS:
		return dev_set_defaults(s, at);
	case OTPROF_IOC_PLAN:
		return dev_set_plan(s, at);
	case OTPROF_IOC_WALKS:
		return dev_set_walks(s, at);
	case OTPROF_IOC_HINT:
		return dev_set_hint(s, at);
	case OTPROF_IOC_RULE:
		return dev_set_rule(s, at);
	case OTPROF_IOC_TIMES:
		return dev_get_times(s, at);
	case OTPROF_IOC_CPUS:
		return dev_get_cpus(s, at);
	case OTPROF_IOC_PERIOD:
		return dev_set_period(s, at);
	case OTPROF_IOC_VIEW:
		return otprof_view_open(s, arg);
	default:
		return -ENOTTY;
	}
}

static long dev_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct otprof_session *s = file->private_data;
	long err;

	if (cmd == OTPROF_IOC_INFO)
		return dev_get_info((void __user *)arg);
	if (mutex_lock_interruptible(&s->mutex))
		return -ERESTARTSYS;
	if (cmd == OTPROF_IOC_CONFIG)
		err = dev_set_config(s, (const void __user *)arg);
	else
		err = s->configured ? dev_ioctl_configured(s, cmd, arg) : -ENODATA;
	mutex_unlock(&s->mutex);
	return err;
}

static const struct file_operations dev_fops = {
	.owner = THIS_MODULE,
	.open = dev_open,
	.release = dev_release,
	.unlocked_ioctl = dev_ioctl,
	.llseek = noop_llseek,
};

static struct miscdevice dev = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "otprof",
	.fops = &dev_fops,
};

/* With a group, the file's mode admits everyone, and open checks the membership. */
int otprof_dev_init(void)
{
	dev.mode = group >= 0 ? 0666 : 0600;
	return misc_register(&dev);
}

void otprof_dev_done(void)
{
	misc_deregister(&dev);
}

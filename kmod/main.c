// SPDX-License-Identifier: GPL-2.0-only
/* The module's life: CPU hotplug, then the device that needs it. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/init.h>
#include <linux/module.h>

#include "kmod/dev.h"
#include "kmod/timers.h"
#include "kmod/uapi/otprof_dev.h"

static int __init otprof_init(void)
{
	int err;

	err = otprof_timers_init();
	if (err)
		return err;
	err = otprof_dev_init();
	if (err)
		goto err_timers;
	pr_info("version " OTPROF_VERSION ", records %d, device %d\n", OTP_ABI_VERSION, OTPROF_DEV_VERSION);
	return 0;

err_timers:
	otprof_timers_done();
	return err;
}

/*
 * Every descriptor, of the device and of views, holds the module, and so does
 * every mapping through its file. So nobody is left when this runs: the last
 * release of the device has stopped its timers and waited for their callbacks,
 * and whoever dropped the last reference to a session has waited for its
 * wake-up. What is still to be freed after a grace period is freed by the
 * kernel's own code (kfree_rcu), not by ours. Nobody can open the device while
 * it goes; then no session is left that CPU hotplug could know.
 */
static void __exit otprof_exit(void)
{
	otprof_dev_done();
	otprof_timers_done();
}

module_init(otprof_init);
module_exit(otprof_exit);

MODULE_DESCRIPTION("otprof sampler: stacks of what every CPU runs, for otprofd");
MODULE_AUTHOR("otprof");
MODULE_LICENSE("GPL");
MODULE_VERSION(OTPROF_VERSION);

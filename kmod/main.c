// SPDX-License-Identifier: GPL-2.0-only
/* The module's life: what sessions stand on, then the device that makes them. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/utsname.h>

#include "kmod/dev.h"
#include "kmod/life.h"
#include "kmod/timers.h"
#include "kmod/uapi/otprof_dev.h"

/* The build refuses older kernels; so does this, whoever forced the module in. */
static bool __init kernel_is_known(void)
{
	unsigned int major = 0, minor = 0;

	if (sscanf(init_utsname()->release, "%u.%u", &major, &minor) == 2 && (major << 8) + minor >= 0x404)
		return true;
	pr_err("needs Linux 4.4 or later, this is %s\n", init_utsname()->release);
	return false;
}

static int __init otprof_init(void)
{
	int err;

	if (!kernel_is_known())
		return -EOPNOTSUPP;
	otprof_life_init();
	err = otprof_timers_init();
	if (err)
		return err;
	err = otprof_dev_init();
	if (err)
		goto err_timers;
	pr_info("version %s, records %d, device %d\n", OTPROF_VERSION, OTP_ABI_VERSION, OTPROF_DEV_VERSION);
	return 0;

err_timers:
	otprof_timers_done();
	return err;
}

/*
 * Every descriptor, of the device and of views, holds the module, and so does
 * every mapping through its file: nobody has a session when this runs. In
 * which order each of them went:
 *
 *  1. The device's last release stopped the ticks. Taking the session out of
 *     hotplug cancels the timers, and a cancel waits for the callback; giving
 *     a counter back waits for the CPU that it counts on. After that no tick
 *     runs or will run, and no CPU that comes can begin one.
 *  2. Then the tracepoints were left, and everybody waited for who still was
 *     inside of one. Ticks come first only because events are announced before
 *     samples on the way in; neither needs the other.
 *  3. Only ticks and events wake the reader, so nothing queues the wake-up any
 *     more. Whoever dropped the last reference to the session has waited for
 *     the one under way, and freed what all three had used. Views may live
 *     longer than the device, which is why this waits for the last of both.
 *  4. Plans and defaults that were replaced are freed after a grace period by
 *     the kernel's own code (kfree_rcu), not by ours.
 *
 * So the device goes first: nobody can open it any more, and open is the only
 * way to a new session. Then hotplug, which has no instance left.
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
MODULE_INFO(hardware, "ticks from the CPU's cycle counter, on request only; untested until run on such hardware");

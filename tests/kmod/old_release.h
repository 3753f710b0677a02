/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stands before every file of a build of the module that is made for a test
 * only: its kernel says that it is Linux 4.3.
 */
#ifndef OTP_TESTS_KMOD_OLD_RELEASE_H
#define OTP_TESTS_KMOD_OLD_RELEASE_H

/* As the file behind this one says it, or the header's own would stay. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#include <linux/utsname.h>

static inline struct new_utsname *otp_test_old_utsname(void)
{
	static struct new_utsname old = { .release = "4.3.0-test" };

	return &old;
}
#define init_utsname otp_test_old_utsname

#endif

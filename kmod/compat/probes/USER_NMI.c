// SPDX-License-Identifier: GPL-2.0-only
/* x86: user memory from any context, without a lock. */
#include <linux/uaccess.h>
unsigned long probe(void *to, const void __user *from);
unsigned long probe(void *to, const void __user *from) { return copy_from_user_nmi(to, from, 8); }

// SPDX-License-Identifier: GPL-2.0-only
/* 4.16: poll returns a type of its own. */
#include <linux/poll.h>
int probe(void);
int probe(void) { return (int)(__force unsigned int)((__poll_t)0 | EPOLLIN); }

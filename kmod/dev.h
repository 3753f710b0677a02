/* SPDX-License-Identifier: GPL-2.0-only */
/* /dev/otprof: the boundary of trust. All that a caller passes is checked in dev.c or session.c. */
#ifndef OTPROF_DEV_H
#define OTPROF_DEV_H

int otprof_dev_init(void);
void otprof_dev_done(void);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A descriptor of a session's ring or counters that can be mapped and polled
 * and nothing else. The reader's page is the only one that can be written.
 */
#ifndef OTPROF_VIEW_H
#define OTPROF_VIEW_H

#include "kmod/uapi/otprof_dev.h"

struct otprof_session;

/* A new descriptor that holds the session, or a negative errno. The session is configured. */
int otprof_view_open(struct otprof_session *s, enum otprof_view view);

#endif

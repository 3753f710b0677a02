/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A descriptor of a session's ring or counters that can only be mapped and
 * polled. Only the reader's page can be mapped writable.
 */
#ifndef OTPROF_VIEW_H
#define OTPROF_VIEW_H

#include "kmod/uapi/otprof_dev.h"

struct otprof_session;

/* A new descriptor with a reference to the session, which must be configured; or a negative errno. */
int otprof_view_open(struct otprof_session *s, enum otprof_view view);

#endif

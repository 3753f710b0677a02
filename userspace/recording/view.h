/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of samples that a recording holds. Values of one type may be added
 * up and shown in one picture: its view. CPU samples come first, the others
 * in the order of their arrival.
 *
 * Called by code that shows or writes a recording, one thread. Views describe
 * the recording at the time of recording_views; their texts are borrowed from
 * it.
 * Units: the unit of a value is type and unit of the view ("page_faults",
 * "count"); a value is a number of samples only where the type is "samples".
 * Errors: -ENOMEM.
 */
#ifndef OTP_RECORDING_VIEW_H
#define OTP_RECORDING_VIEW_H

#include "recording/recording.h"

#define VIEW_NAME 48
#define VIEW_NONE UINT32_MAX

/* Strings of the recording. A key: no padding. */
struct rec_type {
	uint32_t type, unit, period_type, period_unit;
};

struct rec_view {
	struct rec_type type;
	char name[VIEW_NAME]; /* "cpu", "page_faults": of letters, digits, underscores; one view each */
	int64_t period;       /* of the first series with one; 0: unknown */
	bool period_mixed;    /* the periods of other series differ */
	uint64_t start_ns, end_ns;
	uint64_t value;           /* sum of all */
	uint32_t services, hosts; /* distinct */
	const char *host; /* the host's name if there is only one, else NULL */
};

struct rec_views {
	struct rec_view *list; /* owned; of an empty recording, one view without values */
	uint32_t *by_series;   /* owned: index in list, VIEW_NONE for a series without samples */
	uint32_t count;
};

int recording_views(const struct recording *r, struct rec_views *ret);
void rec_views_done(struct rec_views *v);
/* The view of that name, or of that type of sample; NULL: none. */
const struct rec_view *rec_views_find(const struct rec_views *v, const struct recording *r, const char *name);
/* The view of v whose type equals that of a view of another recording. NULL: none. */
const struct rec_view *rec_views_same(const struct rec_views *v, const struct recording *r, const struct rec_view *other,
				      const struct recording *others);

/* Drops the samples of all other views; existing views no longer describe r. */
int rec_view_keep(const struct rec_view *v, struct recording *r);
/* Whether a series is of the view's type. */
bool rec_view_has(const struct rec_view *v, const struct recording *r, uint32_t series);
/* The unit to show for a value: "samples", or the unit, such as "nanoseconds". */
const char *rec_view_unit(const struct recording *r, const struct rec_view *v);
/* Whether samples are of CPU time, each of its series' period in nanoseconds; whether values are numbers of samples. */
bool rec_view_is_cpu(const struct recording *r, const struct rec_view *v);
bool rec_view_counts_samples(const struct recording *r, const struct rec_view *v);

#endif

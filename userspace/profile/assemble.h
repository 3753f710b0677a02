/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assembles one request: distributes samples over resources and profiles, and
 * makes the dictionary that they need. A resource has a profile for each
 * origin. Depends on the data model, not on the encoding library. Used within
 * profile/ only.
 *
 * The limits of a profile are Pyroscope's (16000 samples; 2 MiB after its
 * own conversion, which copies the used part of the dictionary into each
 * profile): a larger one continues in another profile of the same resource.
 */
#ifndef OTP_PROFILE_ASSEMBLE_H
#define OTP_PROFILE_ASSEMBLE_H

#include "base/intern.h"
#include "profile/attributes.h"
#include "profile/dictionary.h"

#define PROFILE_SAMPLES_MAX 16000
#define PROFILE_BYTES_MAX   ((2u << 20) - (256u << 10))

struct out_sample {
	uint32_t stack;
	struct attribute_list attributes;
	uint64_t value;
};

/* Strings of the dictionary: the type and unit that a profile counts. */
struct out_types {
	uint32_t type, unit, period_type, period_unit;
};

struct out_profile {
	uint32_t slot;         /* of the origin */
	uint32_t first, count; /* samples */
};

struct out_resource {
	const struct workload *workload; /* borrowed from the builder */
	uint32_t first, count; /* profiles */
};

struct out_request {
	struct dictionary dict;
	struct out_sample *samples;     /* owned */
	struct out_profile *profiles;   /* owned */
	struct out_resource *resources; /* owned */
	uint32_t nr_samples, cap_samples, nr_profiles, cap_profiles, nr_resources, cap_resources;
	struct out_types types[OTP_ORIGINS_MAX]; /* by slot; zero: not needed yet */
	struct ledger_counts total;              /* samples as the ledger counts them */
	size_t bytes;                            /* upper bound, without the dictionary */
	/* Of the profile that is being filled. */
	struct intern identities; /* struct out_sample without its value -> sample */
	size_t profile_bytes;     /* as a receiver counts it, roughly */
	uint32_t *seen;           /* owned; by location: number of the last profile that contains it */
};

/* n: borrowed for the request's life. */
int out_request_init(struct out_request *q, const struct names *n);
void out_request_done(struct out_request *q);

/*
 * Adds a sample of the builder; samples of one resource are added in sequence.
 * scratch: PROFILE_FRAMES_MAX numbers. -EMSGSIZE: the request would exceed max
 * bytes; on any error the request is unchanged.
 */
int out_request_add(struct out_request *q, const struct profile_builder *b, uint32_t sample, size_t max,
		    uint32_t *scratch);

#endif

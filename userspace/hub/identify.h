/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which workload samples belong to, from the attributes of their resource and,
 * where these do not tell, of the samples: a workload of Kubernetes, a container,
 * a systemd service, else an executable by its service name.
 *
 * Called by the store for each resource of a request, one thread. Texts are
 * borrowed from the recording, "" where there is none; name and id are owned by
 * the result.
 * The id is a hash of what identifies the workload, and the same for every hub
 * and after each start, because addresses of pages contain it. It is no
 * secret and no proof: others may send the attributes of any workload.
 */
#ifndef OTP_HUB_IDENTIFY_H
#define OTP_HUB_IDENTIFY_H

#include <stdint.h>

#include "recording/recording.h"

#define WORKLOAD_NAME 256

/* X(NAME, "text in the API") */
#define WORKLOAD_KINDS(X)                  \
	X(KUBERNETES, "kubernetes")        \
	X(CONTAINER, "container")          \
	X(UNIT, "unit")                    \
	X(KERNEL, "kernel")                \
	X(EXECUTABLE, "executable")        \
	X(SERVICE, "service")

enum workload_kind {
#define X(NAME, text) WORKLOAD_##NAME,
	WORKLOAD_KINDS(X)
#undef X
};

const char *workload_kind_text(enum workload_kind kind); /* static */

struct workload_identity {
	enum workload_kind kind;
	char name[WORKLOAD_NAME];
	const char *namespace, *host, *service, *executable;
	uint64_t id; /* never 0 */
};

/* set: the attributes of samples; 0: none. */
void identify(const struct recording *r, uint32_t resource, uint32_t set, struct workload_identity *ret);
/* Whether the resource's own attributes tell, so that those of samples are not looked at. */
bool identify_by_resource(const struct workload_identity *w);

#endif

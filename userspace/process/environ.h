/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenTelemetry variables of a process' environment: OTEL_SERVICE_NAME
 * and OTEL_RESOURCE_ATTRIBUTES ("key=value,key=value", values percent-encoded;
 * OpenTelemetry specification, resource SDK). The first occurrence of a
 * variable counts, as for getenv; of equal keys the last one. A pair that
 * cannot be read is left out, the others stay.
 * Pure but for interning; bounded in number and length.
 */
#ifndef OTP_PROCESS_ENVIRON_H
#define OTP_PROCESS_ENVIRON_H

#include <stddef.h>
#include <stdint.h>

#include "process/workload.h"

#define ENVIRON_ATTRIBUTES_MAX 16
#define ENVIRON_KEY_MAX        128u
#define ENVIRON_VALUE_MAX      1024u

struct environ_facts {
	struct str *service; /* owned; NULL: not set */
	uint32_t count;
	struct attribute attributes[ENVIRON_ATTRIBUTES_MAX]; /* owned; without service.name */
};

/* text: variables, each ended by NUL. -ENOMEM leaves what was read so far. */
int environ_parse(const char *text, size_t len, struct environ_facts *ret);
void environ_done(struct environ_facts *f);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the API share: api.c finds the handler of a request,
 * api_lists.c answers with workloads, slots and limits, api_trees.c with trees,
 * api_selection.c with what is sampled.
 * Not for others.
 */
#ifndef OTP_HUB_API_INTERNAL_H
#define OTP_HUB_API_INTERNAL_H

#include <inttypes.h>

#include "hub/api.h"
#include "hub/jsonw.h"

#define MS	  1000000ULL
#define API_RANGE "%s is a whole number from %" PRIu64 " to %" PRIu64

/* One request while it is served. Everything is borrowed. */
struct api_work {
	const struct api *api;
	const struct api_call *call;
	struct api_reply *reply;
	struct workload *workload; /* of the path's id; NULL where it has none */
};

typedef void api_handler(struct api_work *w);

/* A parameter of the request; NULL: missing. */
const char *api_param(const struct api_call *c, const char *name);
/* Of a number; *ret is untouched where it is missing. False: it was refused. */
bool api_signed_param(struct api_work *w, const char *name, int64_t *ret, bool *ret_given);
bool api_number_param(struct api_work *w, const char *name, uint64_t min, uint64_t max, uint64_t *ret);
/* The workload of an id; NULL: it was refused. */
struct workload *api_find(struct api_work *w, const char *field, const char *id);
/* The workload's slot, which counts as asked for; NULL: it was refused. */
struct slot *api_slot(struct api_work *w, struct workload *of);
/* A JSON reply; end refuses with 503 where memory ran out. */
struct jsonw api_begin(struct api_work *w, unsigned int status);
void api_end(struct api_work *w);
void api_fail_errno(struct api_work *w, int err);

/* The body as an object, the caller's reference; NULL: it was refused. */
struct json_t *api_json_body(struct api_work *w);
/* How a selection names the workload; null: it cannot. */
void api_target_json(struct jsonw *j, const char *name, const struct workload *of);

void api_gone_json(struct jsonw *j, const char *name, const struct gone *g);
void api_id_json(struct jsonw *j, const char *name, uint64_t id);

api_handler api_get_status, api_get_workloads, api_get_workload, api_get_slot, api_put_slot, api_delete_slot,
	api_delete_samples, api_get_slots, api_get_limits, api_patch_limits, api_get_selection, api_put_selection,
	api_delete_selection;
api_handler api_get_tree, api_get_timeline, api_get_snapshot, api_get_diff;

#endif

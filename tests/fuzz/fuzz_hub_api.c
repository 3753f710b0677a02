// SPDX-License-Identifier: Apache-2.0
/*
 * A request to the hub's API: lines of method, path, parameters as name=value, and after an empty line the body. Answers
 * that are JSON must parse.
 */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "hub/api.h"
#include "hub/receive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOW 1790000000000000000ULL

/* A store with one workload, whose id is what seeds have in their paths, and its slot. */
static const char request[] =
	"{\"resourceProfiles\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{\"stringValue\":\"a\"}}]},"
	"\"scopeProfiles\":[{\"profiles\":[{\"timeUnixNano\":\"1789999995000000000\",\"durationNano\":\"5000000000\","
	"\"samples\":[{\"stackIndex\":1,\"values\":[5]},{\"stackIndex\":2,\"values\":[3]}]}]}]}],"
	"\"dictionary\":{\"stringTable\":[\"\",\"main\",\"work\"],\"functionTable\":[{},{\"nameStrindex\":1},{\"nameStrindex\":2}],"
	"\"locationTable\":[{},{\"lines\":[{\"functionIndex\":1}]},{\"lines\":[{\"functionIndex\":2}]}],"
	"\"stackTable\":[{},{\"locationIndices\":[1]},{\"locationIndices\":[2,1]}]}}";

static void fill(struct store *s)
{
	static const struct otlp_limits limits = {.request_bytes = 1u << 20, .memory_bytes = 16u << 20, .depth = 1024};
	struct receive_call c = {.content_type = "application/json", .body = request, .len = sizeof(request) - 1, .now_ns = NOW};
	struct api_reply reply = {0};
	const struct gone *evicted;

	receive_serve(s, &limits, &c, &reply);
	api_reply_done(&reply);
	store_open(s, s->list[0], NOW, &evicted);
	receive_serve(s, &limits, &c, &reply);
	api_reply_done(&reply);
}

static void parse(char *text, size_t size, struct api_call *c)
{
	char *line, *end = memmem(text, size, "\n\n", 2);

	c->body = "";
	if (end) {
		c->body = end + 2;
		c->body_len = size - (size_t)(end + 2 - text);
		*end = '\0';
	}
	c->method = strsep(&text, "\n");
	c->path = text ? strsep(&text, "\n") : "";
	while (text && c->nr_params < API_PARAMS_MAX && (line = strsep(&text, "\n"))) {
		c->params[c->nr_params].name = strsep(&line, "=");
		c->params[c->nr_params++].value = line ? line : "";
	}
}

/* What the monitor would be sent is a line that it can read, and says the same. */
static int take_selection(void *ctx, const struct selection *s, char why[SELECTION_WHY])
{
	_cleanup_(buf_done) struct buf line = {0};
	struct selection again;

	if (!s)
		return 0;
	selection_print(s, &line);
	if (selection_parse((const char *)line.data, line.len, &again, why) || strcmp(s->targets, again.targets) != 0)
		abort();
	*(struct selection_shown *)ctx = (struct selection_shown){.what = *s, .since_ns = NOW, .until_ns = NOW + 1};
	return 0;
}

static void serve(const struct api *api, struct api_call *c)
{
	struct api_reply reply;
	json_t *answer;

	api_serve(api, c, &reply);
	if (reply.type && strcmp(reply.type, "application/json") == 0) {
		answer = json_loadb((const char *)reply.body.data, reply.body.len, 0, NULL);
		if (!answer)
			abort();
		json_decref(answer);
	}
	api_reply_done(&reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(store_freep) struct store *s = NULL;
	_cleanup_(freep) char *text = calloc(size + 1, 1), *path = NULL;
	struct api_call c = {.content_type = "application/json", .now_ns = NOW};
	struct selection_shown shown = {0};
	const uint32_t may = 1;

	if (!text || store_new(&hub_limits_default, &s) < 0)
		return 0;
	fill(s);
	memcpy(text, data, size);
	parse(text, size, &c);
	if (asprintf(&path, API_PREFIX "%s", c.path) < 0)
		return 0;
	c.path = path;
	serve(&(struct api){.store = s, .version = "fuzz", .sampler = true, .shown = &shown, .may_select = &may,
			    .select = take_selection, .select_ctx = &shown}, &c);
	return 0;
}

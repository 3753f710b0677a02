// SPDX-License-Identifier: Apache-2.0
/* The API and the OTLP receiver without a server: calls as plain data. */
#include <check.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "hub/api.h"
#include "hub/receive.h"
#include "hub_fixture.h"

Suite *hub_api_suite(void);

static struct store *store;
static struct api api;
static const struct hf_stack stacks[] = {{"main;work;work", 5}, {"main;work;idle", 2}, {"main", 3}};
static uint64_t now_ns;

static void take(const struct hf_stack *of, size_t n, uint64_t step)
{
	struct hf_request q = {.attributes = {{"service.name", "app"}, {"host.name", "h\"1"}}, .stacks = of, .n = n,
			       .start_ns = HF_START + step * HF_STEP, .duration_ns = HF_STEP};
	_cleanup_(buf_done) struct buf b = {0};

	hf_encode(&q, &b);
	now_ns = q.start_ns + HF_STEP;
	ck_assert_int_eq(store_take(store, b.data, b.len, &hf_limits, now_ns), 0);
}

static void setup(void)
{
	ck_assert_int_eq(store_new(&hub_limits_default, &store), 0);
	api = (struct api){.store = store, .version = "test"};
	take(stacks, ARRAY_SIZE(stacks), 0);
}

static void teardown(void)
{
	store = store_free(store);
}

/* path_and_query has %s for the id of the only workload, once at most. */
static json_t *call(const char *method, const char *path_and_query, const char *body, unsigned int status)
{
	char path[1024], id[17], *query, *pair;
	struct api_call c = {.method = method, .path = path, .body = body, .body_len = strlen(body), .now_ns = now_ns,
			     .content_type = "application/json"};
	struct api_reply reply;
	json_t *answer;

	snprintf(id, sizeof(id), "%016" PRIx64, store->list[0]->id);
	snprintf(path, sizeof(path), API_PREFIX);
	for (const char *at = path_and_query; *at; at++)
		if (*at == '{')
			strcat(path, id);
		else
			strncat(path, at, 1);
	query = strchr(path, '?');
	if (query)
		*query++ = '\0';
	while (query && (pair = strsep(&query, "&"))) {
		c.params[c.nr_params].name = strsep(&pair, "=");
		c.params[c.nr_params++].value = pair ? pair : "";
	}
	api_serve(&api, &c, &reply);
	ck_assert_msg(reply.status == status, "%s %s: %u, not %u: %s", method, path_and_query, reply.status, status,
		      buf_cstr(&reply.body));
	answer = reply.body.len ? json_loadb((const char *)reply.body.data, reply.body.len, JSON_REJECT_DUPLICATES, NULL) :
				  json_object();
	ck_assert_msg(answer != NULL, "%s %s is no JSON: %s", method, path_and_query, buf_cstr(&reply.body));
	api_reply_done(&reply);
	return answer;
}

static void expect(const char *method, const char *path, const char *body, unsigned int status)
{
	json_decref(call(method, path, body, status));
}

static const struct {
	const char *method, *path, *body;
	unsigned int status;
} refusals[] = {
	{"GET", "/nothing", "", 404},
	{"GET", "/workloads/xyz", "", 422},
	{"GET", "/workloads/0000000000000000", "", 404},
	{"GET", "/workloads//tree", "", 404},
	{"GET", "/workloads/{/nothing", "", 404},
	{"GET", "/workloads/{/tree", "", 404},
	{"GET", "/workloads/{/slot", "", 404},
	{"POST", "/workloads/{/slot", "", 405},
	{"PUT", "/limits", "", 405},
	{"DELETE", "/workloads/{/samples", "", 404},
	{"DELETE", "/workloads/{/slot", "", 204},
	{"GET", "/diff", "", 422},
	{"GET", "/diff?workload={", "", 404},
	{"PATCH", "/limits", "", 400},
	{"PATCH", "/limits", "[]", 400},
	{"PATCH", "/limits", "{\"max_slots\":0}", 422},
	{"PATCH", "/limits", "{\"no\\u00e9\\\"thing\":0}", 422},
	{"PATCH", "/limits", "{}", 200},
	{"GET", "/status", "", 200},
	{"HEAD", "/status", "", 200},
};

START_TEST(api_answers_with_the_right_status)
{
	expect(refusals[_i].method, refusals[_i].path, refusals[_i].body, refusals[_i].status);
}
END_TEST

static const struct {
	const char *path;
	unsigned int status;
} asked[] = {
	{"/workloads/{/tree", 200},
	{"/workloads/{/tree?type=cpu&from=-5000&to=0", 200},
	{"/workloads/{/tree?type=heap", 404},
	{"/workloads/{/tree?from=x", 422},
	{"/workloads/{/tree?from=99999999999999999999", 422},
	{"/workloads/{/tree?from=9223372036854775807", 422},
	{"/workloads/{/tree?from=-9223372036854775808", 422},
	{"/workloads/{/tree?from=5&to=4", 422},
	{"/workloads/{/tree?after=1", 422},
	{"/workloads/{/tree?after=1&generation=99", 410},
	{"/workloads/{/tree?after=1&generation=1", 200},
	{"/workloads/{/tree?focus=(", 422},
	{"/workloads/{/tree?focus=wor&ignore=idle&hide=native", 200},
	{"/workloads/{/tree?hide=klingon", 422},
	{"/workloads/{/timeline?steps=0", 422},
	{"/workloads/{/timeline?steps=2001", 422},
	{"/workloads/{/timeline?steps=1", 200},
	{"/workloads/{/snapshot", 422},
	{"/workloads/{/snapshot?format=exe", 422},
	{"/workloads/{/snapshot?format=speedscope", 200},
	{"/diff?workload={&base_from=-1000", 200},
	{"/diff?workload={&base_workload=0", 422},
};

START_TEST(api_answers_for_a_slot_with_the_right_status)
{
	expect("PUT", "/workloads/{/slot", "", 201);
	expect("PUT", "/workloads/{/slot", "", 200);
	take(stacks, ARRAY_SIZE(stacks), 1);
	expect("GET", asked[_i].path, "", asked[_i].status);
}
END_TEST

static json_int_t number(const json_t *j, const char *name)
{
	return json_integer_value(json_object_get(j, name));
}

static json_int_t sum_of(const json_t *tree, const char *column)
{
	const json_t *list = json_object_get(json_object_get(tree, "nodes"), column);
	json_int_t sum = 0;

	for (size_t i = 0; i < json_array_size(list); i++)
		sum += json_integer_value(json_array_get(list, i));
	return sum;
}

START_TEST(api_refuses_a_query_that_is_longer_than_documented)
{
	char path[1024] = "/workloads?q=";
	size_t at = strlen(path);

	for (unsigned int n = 0; n < 256; n++, at += 2)
		memcpy(path + at, "\xc3\xa9", 2);
	path[at] = '\0';
	expect("GET", path, "", 200);
	memcpy(path + at, "x", 2);
	expect("GET", path, "", 422);
}
END_TEST

START_TEST(api_tree_has_the_samples_of_its_range)
{
	json_t *tree;

	expect("PUT", "/workloads/{/slot", "", 201);
	for (uint64_t i = 1; i <= 4; i++)
		take(stacks, i == 4 ? 1 : ARRAY_SIZE(stacks), i);
	tree = call("GET", "/workloads/{/tree", "", 200);
	ck_assert_int_eq(number(tree, "value"), 35);
	ck_assert_int_eq(sum_of(tree, "self"), 35);
	ck_assert_int_eq(number(tree, "from_ms"), (json_int_t)((HF_START + HF_STEP) / 1000000));
	ck_assert_int_eq(number(tree, "to_ms"), (json_int_t)((HF_START + 5 * HF_STEP) / 1000000));
	json_decref(tree);
	tree = call("GET", "/workloads/{/tree?from=-5000", "", 200);
	ck_assert_int_eq(number(tree, "value"), 5);
	json_decref(tree);
	tree = call("GET", "/workloads/{/tree?ignore=idle", "", 200);
	ck_assert_int_eq(number(tree, "value"), 29);
	ck_assert_int_eq(number(tree, "generation"), 0);
	json_decref(tree);
	tree = call("GET", "/diff?workload={&from=-5000&base_from=-20000&base_to=-15000", "", 200);
	ck_assert_int_eq(sum_of(tree, "self"), 5);
	ck_assert_int_eq(sum_of(tree, "base"), 10);
	json_decref(tree);
}
END_TEST

START_TEST(api_timeline_adds_up)
{
	json_t *line;
	json_int_t sum = 0;
	size_t i;
	json_t *value;

	expect("PUT", "/workloads/{/slot", "", 201);
	for (i = 1; i <= 7; i++)
		take(stacks, ARRAY_SIZE(stacks), i == 7 ? 20 : i);
	line = call("GET", "/workloads/{/timeline", "", 200);
	json_array_foreach(json_object_get(line, "values"), i, value)
		sum += json_integer_value(value);
	ck_assert_int_eq(sum, 70);
	ck_assert(json_is_null(json_array_get(json_object_get(line, "values"), 10)));
	json_decref(line);
	sum = 0;
	line = call("GET", "/workloads/{/timeline?steps=3", "", 200);
	ck_assert_uint_le(json_array_size(json_object_get(line, "values")), 3);
	json_array_foreach(json_object_get(line, "values"), i, value)
		sum += json_integer_value(value);
	ck_assert_int_eq(sum, 70);
	json_decref(line);
}
END_TEST

START_TEST(api_says_why_a_slot_is_gone)
{
	json_t *answer;

	expect("PUT", "/workloads/{/slot", "", 201);
	expect("DELETE", "/workloads/{/slot", "", 204);
	answer = call("GET", "/workloads/{/tree", "", 410);
	ck_assert_str_eq(json_string_value(json_object_get(json_object_get(json_object_get(answer, "error"), "gone"), "reason")),
			 "closed");
	json_decref(answer);
}
END_TEST

/* --- the receiver --- */

static unsigned int receive(const char *type, const char *encoding, const void *body, size_t len, struct api_reply *ret)
{
	struct receive_call c = {.content_type = type, .content_encoding = encoding, .body = body, .len = len, .now_ns = now_ns};

	receive_serve(store, &hf_limits, &c, ret);
	return ret->status;
}

static void request(struct buf *b)
{
	struct hf_request q = {.attributes = {{"service.name", "other"}}, .stacks = stacks, .n = 1, .start_ns = HF_START,
			       .duration_ns = HF_STEP};

	hf_encode(&q, b);
}

START_TEST(receiver_takes_protobuf)
{
	_cleanup_(buf_done) struct buf b = {0};
	struct api_reply r;

	request(&b);
	ck_assert_uint_eq(receive("application/x-protobuf", NULL, b.data, b.len, &r), 200);
	ck_assert_uint_eq(r.body.len, 0);
	ck_assert_uint_eq(store->count, 2);
	api_reply_done(&r);
	ck_assert_uint_eq(receive("application/x-protobuf", NULL, b.data, b.len - 1, &r), 400);
	api_reply_done(&r);
	ck_assert_uint_eq(receive("text/plain", NULL, b.data, b.len, &r), 415);
	api_reply_done(&r);
}
END_TEST

START_TEST(receiver_inflates_within_its_bound)
{
	static uint8_t zeros[1 << 16];
	struct otlp_limits small = hf_limits;
	struct receive_call c = {.content_type = "application/x-protobuf", .content_encoding = "gzip"};
	uint8_t packed[4096];
	struct api_reply r;
	z_stream z = {.next_in = zeros, .avail_in = sizeof(zeros), .next_out = packed, .avail_out = sizeof(packed)};

	ck_assert_int_eq(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
	c.body = packed;
	c.len = z.total_out;
	deflateEnd(&z);
	small.request_bytes = sizeof(zeros) - 1;
	receive_serve(store, &small, &c, &r);
	ck_assert_uint_eq(r.status, 413);
	api_reply_done(&r);
	small.request_bytes = sizeof(zeros);
	receive_serve(store, &small, &c, &r);
	ck_assert_uint_eq(r.status, 400); /* zeros are no request */
	api_reply_done(&r);
	c.len--;
	receive_serve(store, &small, &c, &r);
	ck_assert_uint_eq(r.status, 400);
	api_reply_done(&r);
}
END_TEST

#define JSON_REQUEST(index)                                                                                              \
	"{\"resourceProfiles\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{\"stringValue\":\"j\"}}]}," \
	"\"scopeProfiles\":[{\"profiles\":[{\"profileId\":\"000102030405060708090a0b0c0d0e0f\",\"period\":\"7\","            \
	"\"samples\":[{\"stackIndex\":" index ",\"values\":[\"2\",3]}],\"unknown\":{\"x\":[]}}]}]}],"                       \
	"\"dictionary\":{\"stringTable\":[\"\",\"main\"],\"functionTable\":[{},{\"nameStrindex\":1}],"                      \
	"\"locationTable\":[{},{\"lines\":[{\"functionIndex\":1}]}],\"stackTable\":[{},{\"locationIndices\":[1]}]}}"

START_TEST(receiver_takes_json)
{
	struct api_reply r;

	ck_assert_uint_eq(receive("application/json; charset=utf-8", NULL, JSON_REQUEST("1"), strlen(JSON_REQUEST("1")), &r), 200);
	ck_assert_str_eq(buf_cstr(&r.body), "{}");
	ck_assert_uint_eq(store->count, 2);
	ck_assert_str_eq(store->list[1]->name, "j");
	ck_assert_uint_eq(store->past.unwatched, 15);
	api_reply_done(&r);
}
END_TEST

START_TEST(receiver_rejects_an_index_out_of_range_by_name)
{
	struct api_reply r;

	ck_assert_uint_eq(receive("application/json", NULL, JSON_REQUEST("2"), strlen(JSON_REQUEST("2")), &r), 200);
	ck_assert_ptr_nonnull(strstr(buf_cstr(&r.body), "\"rejectedProfiles\":1"));
	ck_assert_uint_eq(store->count, 1);
	api_reply_done(&r);
}
END_TEST

static const char *const bad_json[] = {
	"", "[]", "{\"resourceProfiles\":{}}", "{\"resourceProfiles\":[1]}", "{\"dictionary\":{\"stringTable\":[1]}}",
	"{\"dictionary\":{\"linkTable\":[{\"traceId\":\"0\"}]}}", "{\"dictionary\":{\"linkTable\":[{\"traceId\":\"zz\"}]}}",
	"{\"dictionary\":{\"mappingTable\":[{\"memoryStart\":-1}]}}", "{\"dictionary\":{\"mappingTable\":[{\"memoryStart\":\"1x\"}]}}",
	"{\"dictionary\":{\"locationTable\":[{\"mappingIndex\":2147483648}]}}",
	"{\"dictionary\":{\"attributeTable\":[{\"value\":{\"bytesValue\":\"A\"}}]}}",
	"{\"dictionary\":{\"attributeTable\":[{\"value\":{\"bytesValue\":\"====\"}}]}}",
};

START_TEST(receiver_refuses_json_of_wrong_types)
{
	struct api_reply r;

	ck_assert_uint_eq(receive("application/json", NULL, bad_json[_i], strlen(bad_json[_i]), &r), 400);
	ck_assert_ptr_nonnull(strstr(buf_cstr(&r.body), "\"code\":3"));
	api_reply_done(&r);
}
END_TEST

static struct selection_shown shown;
static uint32_t may_select;
static struct selection asked_for;
static int nr_asked;

static int select_now(void *ctx, const struct selection *s, char why[SELECTION_WHY])
{
	ck_assert_ptr_eq(ctx, &shown);
	nr_asked++;
	asked_for = s ? *s : (struct selection){0};
	if (!s || !strstr(s->targets, "bad:"))
		return 0;
	snprintf(why, SELECTION_WHY, "no such kind");
	return -EINVAL;
}

static void setup_selection(void)
{
	setup();
	shown = (struct selection_shown){0};
	may_select = 1;
	nr_asked = 0;
	api.sampler = true;
	api.shown = &shown;
	api.refused = "";
	api.may_select = &may_select;
	api.select = select_now;
	api.select_ctx = &shown;
}

static const char *const bad_selections[] = {
	"{}", "{\"seconds\":5}", "{\"targets\":\"exe:a\"}", "{\"targets\":[1]}", "{\"targets\":[\"a\"]}",
	"{\"targets\":[\"exe:a b\"]}", "{\"targets\":[\"exe:a\\nb\"]}",
	"{\"targets\":[\"exe:a\"],\"seconds\":0}", "{\"targets\":[\"exe:a\"],\"seconds\":86401}",
	"{\"frequency_hz\":1001}", "{\"frequency_hz\":-1}", "{\"frequency_hz\":1.5}", "{\"stack_bytes\":1}",
	"{\"targets\":[\"bad:a\"]}", "{\"targets\":[\"exe:a\"],\"other\":1}",
	"{\"targets\":[\"stack_bytes=j:a\"],\"frequency_hz\":599}", "{\"stack\\bytes\":1}", "{\"\\u001f\\n\":1}", /* the answer has the field's name */
};

START_TEST(selection_that_is_malformed_is_not_asked_for)
{
	expect("PUT", "/selection", bad_selections[_i], 422);
	ck_assert_int_eq(nr_asked, strstr(bad_selections[_i], "bad:") != NULL);
}
END_TEST

START_TEST(selection_is_asked_for_and_shown)
{
	json_t *a;

	expect("PUT", "/selection", "{\"targets\":[\"exe:a\",\"unit:b\"],\"frequency_hz\":49,\"seconds\":60}", 202);
	ck_assert_int_eq(nr_asked, 1);
	ck_assert_str_eq(asked_for.targets, "exe:a unit:b");
	ck_assert(asked_for.hz == 49 && asked_for.seconds == 60 && !asked_for.stack_bytes);
	shown = (struct selection_shown){.what = asked_for, .since_ns = 5000000, .until_ns = 9000000, .by = "the hub"};
	a = call("GET", "/selection", "", 200);
	ck_assert(json_is_true(json_object_get(a, "on")) && json_array_size(json_object_get(a, "targets")) == 2);
	ck_assert_str_eq(json_string_value(json_array_get(json_object_get(a, "targets"), 1)), "unit:b");
	ck_assert(json_is_null(json_object_get(a, "stack_bytes")));
	ck_assert_int_eq(json_integer_value(json_object_get(a, "until_ms")), 9);
	json_decref(a);
	expect("DELETE", "/selection", "", 202);
	ck_assert_int_eq(nr_asked, 2);
	ck_assert_uint_eq(asked_for.nr_targets, 0);
}
END_TEST

START_TEST(selection_is_refused_where_the_monitor_would_not_obey)
{
	may_select = 0;
	expect("PUT", "/selection", "{\"targets\":[\"exe:a\"]}", 403);
	expect("DELETE", "/selection", "", 403);
	may_select = 1;
	api.sampler = false;
	expect("PUT", "/selection", "{\"targets\":[\"exe:a\"]}", 403);
	expect("GET", "/selection", "", 200);
	ck_assert_int_eq(nr_asked, 0);
}
END_TEST

/* What others send may have any name: a selection would mean other processes. */
START_TEST(workload_has_a_target_only_where_this_host_samples_it)
{
	json_t *a = call("GET", "/workloads/{", "", 200);

	ck_assert(json_is_null(json_object_get(a, "target")));
	json_decref(a);
	store->list[0]->near = true;
	store->list[0]->kind = WORKLOAD_UNIT;
	snprintf(store->list[0]->name, sizeof(store->list[0]->name), "nginx.service");
	a = call("GET", "/workloads/{", "", 200);
	ck_assert_str_eq(json_string_value(json_object_get(a, "target")), "unit:nginx.service");
	json_decref(a);
	snprintf(store->list[0]->name, sizeof(store->list[0]->name), "*.service");
	a = call("GET", "/workloads/{", "", 200);
	ck_assert(json_is_null(json_object_get(a, "target")));
	json_decref(a);
}
END_TEST

Suite *hub_api_suite(void)
{
	Suite *s = suite_create("hub_api");
	TCase *t = tcase_create("api");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, api_answers_with_the_right_status, 0, ARRAY_SIZE(refusals));
	tcase_add_loop_test(t, api_answers_for_a_slot_with_the_right_status, 0, ARRAY_SIZE(asked));
	tcase_add_test(t, api_refuses_a_query_that_is_longer_than_documented);
	tcase_add_test(t, api_tree_has_the_samples_of_its_range);
	tcase_add_test(t, api_timeline_adds_up);
	tcase_add_test(t, api_says_why_a_slot_is_gone);
	tcase_add_test(t, receiver_takes_protobuf);
	tcase_add_test(t, receiver_inflates_within_its_bound);
	tcase_add_test(t, receiver_takes_json);
	tcase_add_test(t, receiver_rejects_an_index_out_of_range_by_name);
	tcase_add_loop_test(t, receiver_refuses_json_of_wrong_types, 0, ARRAY_SIZE(bad_json));
	suite_add_tcase(s, t);
	t = tcase_create("selection");
	tcase_add_checked_fixture(t, setup_selection, teardown);
	tcase_add_loop_test(t, selection_that_is_malformed_is_not_asked_for, 0, ARRAY_SIZE(bad_selections));
	tcase_add_test(t, selection_is_asked_for_and_shown);
	tcase_add_test(t, selection_is_refused_where_the_monitor_would_not_obey);
	tcase_add_test(t, workload_has_a_target_only_where_this_host_samples_it);
	suite_add_tcase(s, t);
	return s;
}

// SPDX-License-Identifier: Apache-2.0
/* OTLP over gRPC: calls, statuses, and what goes wrong below them. */
#include "tests/unit/grpc_receiver.h"

#include <zlib.h>

#include "base/buf.h"
#include "export/grpc.h"
#include "export/gzip.h"
#include "export/zstd.h"
#include "export/http_url.h"
#include "export/retry.h"
#include "export/transport.h"
#include "tests/unit/export_fixture.h"
#include "tests/unit/receiver.h"

Suite *grpc_suite(void);

static struct grpc_receiver server;
static struct receiver plain;

#define OK_TRAILERS {{"grpc-status", "0"}}
#define MESSAGE(bytes) .data = (bytes), .len = sizeof(bytes) - 1
#define EMPTY_MESSAGE MESSAGE("\0\0\0\0\0")
#define CALL_OK {.kind = CALL_ANSWER, EMPTY_MESSAGE, .trailers = OK_TRAILERS}
#define CALL_FAILS(code, ...) {.kind = CALL_ANSWER, .headers = {{"grpc-status", code}, ##__VA_ARGS__}}

static void start(const struct call_step *steps, size_t n)
{
	grpc_receiver_start(&server, steps, n);
	snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%u", server.port);
	start_exporter(1);
}
#define START(...)                                           \
	static const struct call_step steps[] = {__VA_ARGS__}; \
	start(steps, ARRAY_SIZE(steps))

static void setup(void)
{
	fixture_setup();
	config[0].protocol = config[1].protocol = EXPORT_PROTOCOL_GRPC;
	server.listener = plain.listener = -1;
}

static void teardown(void)
{
	exporter = exporter_free(exporter);
	if (server.listener >= 0)
		grpc_receiver_stop(&server);
	if (plain.listener >= 0)
		receiver_stop(&plain);
}

static bool call_says(const struct call *c, const char *line)
{
	return strstr(c->head, line) != NULL;
}

/* --- the call --- */

START_TEST(call_is_a_post_of_one_message_with_a_deadline)
{
	config[0].headers[0] = "X-Scope-OrgID: tenant one";
	config[0].nr_headers = 1;
	START(CALL_OK);
	submit(7);
	run();
	ck_assert(call_says(&server.got[0], ":method: POST\n"));
	ck_assert(call_says(&server.got[0], ":scheme: http\n"));
	ck_assert(call_says(&server.got[0],
			    ":path: /opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export\n"));
	ck_assert(call_says(&server.got[0], "content-type: application/grpc\n"));
	ck_assert(call_says(&server.got[0], "te: trailers\n"));
	ck_assert(call_says(&server.got[0], "grpc-timeout: 2000m\n"));
	ck_assert(call_says(&server.got[0], "user-agent: otprof/" OTPROF_VERSION "\n"));
	ck_assert(call_says(&server.got[0], "x-scope-orgid: tenant one\n"));
	ck_assert(!call_says(&server.got[0], "grpc-encoding"));
	ck_assert_uint_eq(server.got[0].len, 5 + sizeof(TWO_PROFILES) - 1);
	ck_assert_mem_eq(server.got[0].body, "\0\0\0\0\x08" TWO_PROFILES, server.got[0].len);
	ck_assert_uint_eq(dest()->exported.of[0], 7);
	ck_assert_uint_eq(dest()->requests, 1);
	ck_assert_uint_eq(dest()->bytes, sizeof(TWO_PROFILES) - 1);
	ck_assert_uint_eq(events[EXPORT_REMARK], 0);
}
END_TEST

START_TEST(message_is_compressed_and_comes_out_whole)
{
	static char data[300000];
	struct buf back;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)("profile"[i % 7] ^ (i >> 12));
	START(CALL_OK);
	submit_as(1, data, sizeof(data), 9);
	run();
	ck_assert(call_says(&server.got[0], "grpc-encoding: gzip\n"));
	ck_assert_uint_eq(server.got[0].body[0], 1);
	ck_assert_uint_eq(server.got[0].body[3] << 8 | server.got[0].body[4], server.got[0].len - 5);
	buf_init(&back, 0);
	ck_assert_int_eq(gzip_expand(server.got[0].body + 5, server.got[0].len - 5, &back), 0);
	ck_assert_uint_eq(back.len, sizeof(data));
	ck_assert_mem_eq(back.data, data, sizeof(data));
	buf_done(&back);
}
END_TEST

/* As gRPC specifies it: UNIMPLEMENTED, and the encodings that the server has. */
START_TEST(server_without_zstd_gets_the_message_again_in_gzip)
{
	static char data[30000];
	struct buf back;

	config[0].compression = EXPORT_CODING_ZSTD;
	START(CALL_FAILS("12", {"grpc-accept-encoding", "identity,gzip"}), CALL_OK);
	submit_as(1, data, sizeof(data), 9);
	run();
	ck_assert_uint_eq(grpc_receiver_count(&server), 2);
	ck_assert(call_says(&server.got[0], "grpc-encoding: zstd\n"));
	ck_assert(call_says(&server.got[1], "grpc-encoding: gzip\n"));
	buf_init(&back, 0);
	ck_assert_int_eq(zstd_expand(server.got[0].body + 5, server.got[0].len - 5, &back), 0);
	ck_assert_uint_eq(back.len, sizeof(data));
	buf_done(&back);
	ck_assert_uint_eq(dest()->exported.of[0], 9);
	ck_assert_uint_eq(events[EXPORT_CODING_REFUSED], 1);
	ck_assert_uint_eq(dest()->zstd_refused, 1);
}
END_TEST

START_TEST(message_larger_than_every_window_arrives_whole)
{
	static char data[3 << 20];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * i >> 7);
	config[0].compression = EXPORT_CODING_NONE;
	config[0].queue_bytes = 8 << 20;
	START(CALL_OK);
	submit_as(1, data, sizeof(data), 9);
	run();
	ck_assert_uint_eq(server.got[0].len, 5 + sizeof(data));
	ck_assert_mem_eq(server.got[0].body + 5, data, sizeof(data));
	ck_assert_uint_eq(dest()->exported.of[0], 9);
}
END_TEST

START_TEST(calls_keep_their_order)
{
	char body[2] = "a";

	START(CALL_OK);
	for (int i = 0; i < 20; i++, body[0]++)
		submit_as(next_id++, body, 1, 1);
	run();
	ck_assert_uint_eq(grpc_receiver_count(&server), 20);
	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(server.got[i].body[5], 'a' + i);
	ck_assert_uint_eq(dest()->exported.of[0], 20);
}
END_TEST

/* --- what the answer adds --- */

/* partial_success, present but empty, compressed as a request was */
#define GZIP_EMPTY_PARTIAL \
	"\x1f\x8b\x08\0\0\0\0\0\0\x03\xe3\x62\0\0\x75\xfa\x36\xbb\x02\0\0\0"

static const struct {
	struct call_step step;
	uint64_t exported, unconfirmed, rejected;
	const char *text;
} successes[] = {
	{CALL_OK, 7, 0, 0, ""},
	{{.kind = CALL_ANSWER, MESSAGE("\0\0\0\0\2\x0a\0"), .trailers = OK_TRAILERS}, 7, 0, 0, ""},
	{{.kind = CALL_ANSWER, .headers = {{"grpc-encoding", "gzip"}}, MESSAGE("\1\0\0\0\x16" GZIP_EMPTY_PARTIAL),
	  .trailers = OK_TRAILERS}, 7, 0, 0, ""},
	{{.kind = CALL_ANSWER, .headers = {{"grpc-encoding", "gzip"}}, MESSAGE("\1\0\0\0\x03" "abc"),
	  .trailers = OK_TRAILERS}, 7, 0, 0, "the answer is not one message of gRPC"},
	{{.kind = CALL_ANSWER, MESSAGE("\0\0\0\0\x08\x0a\x06\x12\x04slow"), .trailers = OK_TRAILERS}, 7, 0, 0, "slow"},
	{{.kind = CALL_ANSWER, MESSAGE("\0\0\0\0\x09\x0a\x07\x08\x01\x12\x03 no"), .trailers = OK_TRAILERS},
	 0, 7, 0, " no"},
	{{.kind = CALL_ANSWER, MESSAGE("\0\0\0\0\x04\x0a\x02\x08\x02"), .trailers = OK_TRAILERS}, 0, 0, 7, ""},
	{CALL_FAILS("0"), 7, 0, 0, "the answer is not one message of gRPC"},
	{{.kind = CALL_ANSWER, MESSAGE("\0\0\0\0\1x"), .trailers = OK_TRAILERS},
	 7, 0, 0, "the answer is no OTLP message: is this an OTLP receiver?"},
};

START_TEST(status_makes_a_success_and_message_adds_to_it)
{
	start(&successes[_i].step, 1);
	submit(7);
	run();
	ck_assert_uint_eq(dest()->exported.of[0], successes[_i].exported);
	ck_assert_uint_eq(dest()->unconfirmed.of[0], successes[_i].unconfirmed);
	ck_assert_uint_eq(dest()->lost[OTP_LOSS_REJECTED].of[0], successes[_i].rejected);
	ck_assert_str_eq(last_text, successes[_i].text);
	ck_assert_uint_eq(grpc_receiver_count(&server), 1);
}
END_TEST

/* --- statuses --- */

static const struct {
	const char *value, *name;
	bool again;
} codes[] = {
	{"1", "CANCELLED", true},	     {"2", "UNKNOWN", false},	       {"3", "INVALID_ARGUMENT", false},
	{"4", "DEADLINE_EXCEEDED", true},    {"5", "NOT_FOUND", false},	       {"6", "ALREADY_EXISTS", false},
	{"7", "PERMISSION_DENIED", false},   {"8", "RESOURCE_EXHAUSTED", false}, {"9", "FAILED_PRECONDITION", false},
	{"10", "ABORTED", true},	     {"11", "OUT_OF_RANGE", true},     {"12", "UNIMPLEMENTED", false},
	{"13", "INTERNAL", false},	     {"14", "UNAVAILABLE", true},      {"15", "DATA_LOSS", true},
	{"16", "UNAUTHENTICATED", false},    {"17", "UNKNOWN", false},	       {"14.0", "UNKNOWN", false},
	{"-1", "UNKNOWN", false},	     {"4294967310", "UNKNOWN", false}, {"", "UNKNOWN", false},
};

/* Once as headers alone, once behind a message. */
START_TEST(codes_of_otlp_are_tried_again_and_no_others)
{
	const struct call_fields fields[] = {{"grpc-status", codes[_i / 2].value}, {"grpc-message", "no%20room%zz%"}};
	struct call_step steps[2] = {{.kind = CALL_ANSWER}, CALL_OK};
	char text[RESPONSE_TEXT];

	if (_i % 2)
		steps[0].data = "";
	memcpy(_i % 2 ? steps[0].trailers : steps[0].headers, fields, sizeof(fields));
	start(steps, 2);
	submit(7);
	run();
	snprintf(text, sizeof(text), "gRPC %s: no room%%zz%%", codes[_i / 2].name);
	if (codes[_i / 2].again) {
		ck_assert_uint_eq(dest()->exported.of[0], 7);
		ck_assert_uint_eq(dest()->retries, 1);
		ck_assert_uint_eq(events[EXPORT_FAILING], 1);
		ck_assert_uint_eq(events[EXPORT_BACK], 1);
		return;
	}
	ck_assert_uint_eq(dest()->lost[OTP_LOSS_REJECTED].of[0], 7);
	ck_assert_uint_eq(grpc_receiver_count(&server), 1);
	ck_assert_str_eq(dest()->last_error, text);
}
END_TEST

/* Status{8, "busy", {RetryInfo{1.25 s}}}, without the padding that it could have. */
#define RETRY_1250_MS \
	"CAgSBGJ1c3kaNQoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIJCgcIARCA5Zp3"

START_TEST(exhausted_resource_with_a_wait_is_tried_again_after_it)
{
	uint64_t begin = clock_now_ns();

	START(CALL_FAILS("8", {"grpc-status-details-bin", RETRY_1250_MS}), CALL_OK);
	submit(7);
	run();
	ck_assert_uint_eq(dest()->exported.of[0], 7);
	ck_assert_uint_ge(clock_now_ns() - begin, NSEC_PER_SEC);
}
END_TEST

START_TEST(wait_beyond_our_patience_ends_the_request_now)
{
	config[0].retry_elapsed_ns = 500 * NSEC_PER_MSEC;
	START(CALL_FAILS("14", {"grpc-status-details-bin", RETRY_1250_MS}));
	submit(7);
	run();
	ck_assert_uint_eq(dest()->lost[OTP_LOSS_RETRY_EXPIRED].of[0], 7);
	ck_assert_uint_eq(grpc_receiver_count(&server), 1);
}
END_TEST

START_TEST(unavailable_for_ever_is_lost_and_an_exceeded_deadline_unconfirmed)
{
	static const struct call_step steps[] = {CALL_FAILS("14"), CALL_FAILS("4"), CALL_FAILS("1")};

	config[0].retry_elapsed_ns = NSEC_PER_SEC;
	start(&steps[_i], 1);
	submit(7);
	run();
	ck_assert_uint_eq(dest()->lost[OTP_LOSS_RETRY_EXPIRED].of[0], _i ? 0 : 7);
	ck_assert_uint_eq(dest()->unconfirmed.of[0], _i ? 7 : 0);
	ck_assert_uint_ge(dest()->retries, 2);
}
END_TEST

/* --- answers that are not of gRPC --- */

#define HTTP_STATUS(code, ...) \
	{.kind = CALL_ANSWER, .status = (code), .type = "text/plain", .headers = {__VA_ARGS__}, MESSAGE("why\nmore")}

static const struct {
	struct call_step step;
	const char *text;
	uint64_t unconfirmed;
} strangers[] = {
	{HTTP_STATUS("400"), "HTTP 400: why", 0},
	{HTTP_STATUS("404"), "HTTP 404: is this an OTLP/gRPC receiver?: why", 0},
	{HTTP_STATUS("500"), "HTTP 500: why", 0},
	{HTTP_STATUS("301", {"location", "http://127.0.0.1:1/"}), "HTTP 301: a redirection, not followed: why", 0},
	{HTTP_STATUS("200"), "the answer has no grpc-status: is this an OTLP/gRPC receiver?", 7},
	{{.kind = CALL_ANSWER, .data = "", .zeros = 8 << 20, .trailers = OK_TRAILERS},
	 "the answer is longer than 4194304 bytes", 7},
};

START_TEST(answer_without_a_status_of_grpc_is_final)
{
	start(&strangers[_i].step, 1);
	submit(7);
	run();
	ck_assert_str_eq(dest()->last_error, strangers[_i].text);
	ck_assert_uint_eq(dest()->unconfirmed.of[0], strangers[_i].unconfirmed);
	ck_assert_uint_eq(dest()->lost[OTP_LOSS_REJECTED].of[0], 7 - strangers[_i].unconfirmed);
	ck_assert_uint_eq(grpc_receiver_count(&server), 1);
}
END_TEST

START_TEST(status_of_grpc_wins_over_that_of_http)
{
	START({.kind = CALL_ANSWER, .status = "503", .headers = {{"grpc-status", "3"}}});
	submit(7);
	run();
	ck_assert_str_eq(dest()->last_error, "gRPC INVALID_ARGUMENT");
}
END_TEST

START_TEST(server_of_http_1_gets_no_call_it_understands)
{
	static const struct step step = ANSWER("400 Bad Request", "");

	config[0].retry_elapsed_ns = 200 * NSEC_PER_MSEC;
	receiver_start(&plain, &step, 1);
	snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%u", plain.port);
	start_exporter(1);
	submit(7);
	run();
	ck_assert_uint_eq(dest()->exported.of[0], 0);
	ck_assert_ptr_nonnull(strstr(dest()->last_error, "is this an OTLP/gRPC receiver?"));
}
END_TEST

/* --- tries that fail below the call --- */

static const struct call_step faults[] = {
	{.kind = CALL_ANSWER, .status = "429", .headers = {{"retry-after", "0"}}},
	{.kind = CALL_ANSWER, .status = "502"},
	{.kind = CALL_ANSWER, .status = "503"},
	{.kind = CALL_ANSWER, .status = "504"},
	{.kind = CALL_DROP},
	{.kind = CALL_DROP, .early = true},
	{.kind = CALL_GOAWAY},
	{.kind = CALL_GOAWAY, .early = true},
	{.kind = CALL_RESET, .error = NGHTTP2_INTERNAL_ERROR},
	{.kind = CALL_RESET, .error = NGHTTP2_ENHANCE_YOUR_CALM},
	{.kind = CALL_RESET, .error = NGHTTP2_CANCEL, .early = true},
	{.kind = CALL_RESET, .error = NGHTTP2_REFUSED_STREAM},
	{.kind = CALL_RESET, .error = NGHTTP2_INTERNAL_ERROR, EMPTY_MESSAGE},
	{.kind = CALL_RESET, .error = NGHTTP2_CANCEL, MESSAGE("\0\0\0")},
	{.kind = CALL_ANSWER, EMPTY_MESSAGE, .trailers = {{"x", "y"}}},
	{.kind = CALL_ANSWER, EMPTY_MESSAGE},
	{.kind = CALL_LEAVES, EMPTY_MESSAGE, .trailers = OK_TRAILERS}, /* may be read as a success, too */
};

START_TEST(failure_below_the_call_is_tried_again)
{
	struct call_step steps[2] = {faults[_i], CALL_OK};

	start(steps, 2);
	submit(7);
	submit(5);
	run();
	ck_assert_uint_eq(dest()->exported.of[0], 12);
	ck_assert_uint_eq(dest()->unconfirmed.of[0], 0);
	ck_assert_uint_ge(grpc_receiver_count(&server), steps[0].kind == CALL_LEAVES ? 2 : 3);
}
END_TEST

START_TEST(call_without_answer_is_unconfirmed)
{
	static const struct call_step steps[] = {
		{.kind = CALL_HANG}, {.kind = CALL_DROP}, {.kind = CALL_RESET, .error = NGHTTP2_INTERNAL_ERROR}};

	config[0].timeout_ns = 200 * NSEC_PER_MSEC;
	config[0].retry_elapsed_ns = 500 * NSEC_PER_MSEC;
	start(&steps[_i], 1);
	submit(7);
	RUN_UNTIL(grpc_receiver_count(&server) >= 1);
	run();
	ck_assert_uint_eq(dest()->unconfirmed.of[0], 7);
	ck_assert_uint_ge(grpc_receiver_count(&server), 2);
}
END_TEST

/* The receiver knows by its headers that a call is too large, and does not read it. */
START_TEST(refusal_of_a_call_that_is_still_being_sent_is_read)
{
	static char data[16 << 20];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * i >> 7);
	config[0].compression = EXPORT_CODING_NONE;
	config[0].queue_bytes = 64 << 20;
	START({.kind = CALL_ANSWER, .early = true, .headers = {{"grpc-status", "8"}, {"grpc-message", "too large"}}}, CALL_OK);
	submit_as(next_id++, data, sizeof(data), 7);
	submit(5);
	run();
	ck_assert_uint_eq(dest()->lost[OTP_LOSS_REJECTED].of[0], 7);
	ck_assert_uint_eq(dest()->exported.of[0], 5);
	ck_assert_ptr_nonnull(strstr(last_text, "RESOURCE_EXHAUSTED: too large"));
}
END_TEST

/* libcurl would ask whether the socket is writable as often as it is told so. */
START_TEST(receiver_that_reads_no_further_costs_no_cpu)
{
	static char data[1 << 20];
	uint64_t end;
	int turns = 0;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * i >> 7);
	config[0].compression = EXPORT_CODING_NONE;
	config[0].queue_bytes = 8 << 20;
	config[0].timeout_ns = NSEC_PER_SEC;
	config[0].retry_elapsed_ns = NSEC_PER_SEC;
	START({.kind = CALL_STALL});
	submit_as(1, data, sizeof(data), 7);
	for (end = clock_now_ns() + NSEC_PER_SEC / 2; clock_now_ns() < end; turns++)
		turn(20);
	ck_assert_int_le(turns, 600);
	run();
	ck_assert_uint_eq(dest()->lost[OTP_LOSS_RETRY_EXPIRED].of[0], 7);
}
END_TEST

START_TEST(exporter_may_end_in_the_middle_of_a_call)
{
	START({.kind = CALL_HANG});
	submit(7);
	submit(5);
	RUN_UNTIL(grpc_receiver_count(&server) == 1);
	ck_assert_uint_eq(dest()->sending.of[0], 7);
	ck_assert_uint_eq(dest()->queued.of[0], 5);
}
END_TEST

/* --- values --- */

static const struct {
	const char *details;
	int rc;
	uint64_t ms;
} details[] = {
	{RETRY_1250_MS, 0, 1250},
	{RETRY_1250_MS "==", 0, 1250},
	{RETRY_1250_MS "," RETRY_1250_MS, 0, 1250},
	/* no delay; an empty one; -5 s; 2^62 s; 2 s behind a DebugInfo */
	{"CAgSBGJ1c3kaKgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbw", 0, 0},
	{"CAgSBGJ1c3kaLgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxICCgA=", 0, 0},
	{"CAgSBGJ1c3kaOQoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxINCgsI+///////////AQ", 0, 0},
	{"CAgSBGJ1c3kaPgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxISChAIgICAgICAgIBAEP+T69wD", 0, 3600000},
	{"CAgSBGJ1c3kaLgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLkRlYnVnSW5mbxICeHgaMAoodHlwZS5nb29nbGVhcGlzLmNvbS9n"
	 "b29nbGUucnBjLlJldHJ5SW5mbxIECgIIAg==", 0, 2000},
	/* an ErrorInfo; none; cut inside; no base64 */
	{"CAgSBGJ1c3kaHgoWeC9nb29nbGUucnBjLkVycm9ySW5mbxIECgIIAg", -ENOENT, 0},
	{"", -ENOENT, 0},
	{"CAgSBGJ1c3kaMAoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIECgI=", -EBADMSG, 0},
	{"not base64!", -EBADMSG, 0},
};

START_TEST(wait_of_a_status_is_read_or_refused)
{
	uint64_t ns = 42;

	ck_assert_int_eq(grpc_retry_info(details[_i].details, &ns), details[_i].rc);
	ck_assert_uint_eq(ns, details[_i].rc ? 42 : details[_i].ms * NSEC_PER_MSEC);
}
END_TEST

static const struct {
	const char *endpoint, *url; /* NULL: refused */
} urls[] = {
#define METHOD "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
	{"http://h:4317", "http://h:4317" METHOD},
	{"https://h/", "https://h" METHOD},
	{"http://[::1]:4317", "http://[::1]:4317" METHOD},
	{"http://h:4317/v1development/profiles", NULL},
	{"http://h:4317/?key=v", NULL},
	{"http://h:99999", NULL},
};

START_TEST(endpoint_of_grpc_has_no_path)
{
	char why[EXPORT_WHY] = "";
	char *url = NULL;

	snprintf(endpoint, sizeof(endpoint), "%s", urls[_i].endpoint);
	ck_assert_int_eq(grpc_url(endpoint, &url), urls[_i].url ? 0 : -EINVAL);
	ck_assert_int_eq(export_config_check(&config[0], why), urls[_i].url ? 0 : -EINVAL);
	if (urls[_i].url)
		ck_assert_str_eq(url, urls[_i].url);
	else
		ck_assert_ptr_nonnull(strstr(why, "gRPC"));
	free(url);
}
END_TEST

START_TEST(headers_of_grpc_itself_are_refused)
{
	static char *const headers[] = {"grpc-timeout: 1S", "TE: gzip", "Grpc-Encoding: zstd"};
	char why[EXPORT_WHY];

	snprintf(endpoint, sizeof(endpoint), "http://h");
	config[0].nr_headers = 1;
	for (size_t i = 0; i < ARRAY_SIZE(headers); i++) {
		config[0].headers[0] = headers[i];
		ck_assert_int_eq(export_config_check(&config[0], why), -EINVAL);
	}
}
END_TEST

static const struct {
	const char *bytes, *encoding;
	size_t len;
	int rc;
} messages[] = {
#define BYTES(bytes, encoding) (bytes), encoding, sizeof(bytes) - 1
	{BYTES("\0\0\0\0\0", NULL), 0},
	{BYTES("\0\0\0\0\1x", NULL), 0},
	{BYTES("\1\0\0\0\x16" GZIP_EMPTY_PARTIAL, "gzip"), 0},
	{BYTES("", NULL), -EBADMSG},
	{BYTES("\0\0\0\0", NULL), -EBADMSG},
	{BYTES("\0\0\0\0\2x", NULL), -EBADMSG},
	{BYTES("\0\0\0\0\0\0\0\0\0\0", NULL), -EBADMSG}, /* two */
	{BYTES("\2\0\0\0\0", NULL), -EBADMSG},
	{BYTES("\0\xff\xff\xff\xff", NULL), -EBADMSG},
	{BYTES("\1\0\0\0\1x", NULL), -ENOTSUP},
	{BYTES("\1\0\0\0\1x", "zstd"), -ENOTSUP},
	{BYTES("\1\0\0\0\1x", "gzip"), -EBADMSG},
	{BYTES("\1\0\0\0\x17" GZIP_EMPTY_PARTIAL "x", "gzip"), -EBADMSG},
	{BYTES("\1\0\0\0\x0c\x1f\x8b\x08\0\0\0\0\0\0\x03\xe3\x62", "gzip"), -EBADMSG},
};

START_TEST(only_one_whole_message_is_an_answer)
{
	struct grpc_message m;
	struct buf expanded;

	buf_init(&expanded, 64);
	ck_assert_int_eq(grpc_message(messages[_i].bytes, messages[_i].len, messages[_i].encoding, &expanded, &m),
			 messages[_i].rc);
	buf_done(&expanded);
}
END_TEST

START_TEST(message_that_expands_beyond_its_bound_is_refused)
{
	static const char zeros[100000];
	struct buf expanded;
	size_t len;
	void *gz;

	ck_assert_int_eq(gzip_compress(zeros, sizeof(zeros), 0, &gz, &len), 0);
	buf_init(&expanded, sizeof(zeros) - 1);
	ck_assert_int_eq(gzip_expand(gz, len, &expanded), -EFBIG);
	buf_done(&expanded);
	buf_init(&expanded, sizeof(zeros));
	ck_assert_int_eq(gzip_expand(gz, len, &expanded), 0);
	ck_assert_uint_eq(expanded.len, sizeof(zeros));
	buf_done(&expanded);
	free(gz);
}
END_TEST

Suite *grpc_suite(void)
{
	Suite *s = suite_create("grpc");
	TCase *t = tcase_create("grpc");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, call_is_a_post_of_one_message_with_a_deadline);
	tcase_add_test(t, message_is_compressed_and_comes_out_whole);
	tcase_add_test(t, server_without_zstd_gets_the_message_again_in_gzip);
	tcase_add_test(t, message_larger_than_every_window_arrives_whole);
	tcase_add_test(t, calls_keep_their_order);
	tcase_add_loop_test(t, status_makes_a_success_and_message_adds_to_it, 0, ARRAY_SIZE(successes));
	tcase_add_loop_test(t, codes_of_otlp_are_tried_again_and_no_others, 0, 2 * ARRAY_SIZE(codes));
	tcase_add_test(t, exhausted_resource_with_a_wait_is_tried_again_after_it);
	tcase_add_test(t, wait_beyond_our_patience_ends_the_request_now);
	tcase_add_loop_test(t, unavailable_for_ever_is_lost_and_an_exceeded_deadline_unconfirmed, 0, 3);
	tcase_add_loop_test(t, answer_without_a_status_of_grpc_is_final, 0, ARRAY_SIZE(strangers));
	tcase_add_test(t, status_of_grpc_wins_over_that_of_http);
	tcase_add_test(t, server_of_http_1_gets_no_call_it_understands);
	tcase_add_loop_test(t, failure_below_the_call_is_tried_again, 0, ARRAY_SIZE(faults));
	tcase_add_loop_test(t, call_without_answer_is_unconfirmed, 0, 3);
	tcase_add_test(t, refusal_of_a_call_that_is_still_being_sent_is_read);
	tcase_add_test(t, receiver_that_reads_no_further_costs_no_cpu);
	tcase_add_test(t, exporter_may_end_in_the_middle_of_a_call);
	tcase_add_loop_test(t, wait_of_a_status_is_read_or_refused, 0, ARRAY_SIZE(details));
	tcase_add_loop_test(t, endpoint_of_grpc_has_no_path, 0, ARRAY_SIZE(urls));
	tcase_add_test(t, headers_of_grpc_itself_are_refused);
	tcase_add_loop_test(t, only_one_whole_message_is_an_answer, 0, ARRAY_SIZE(messages));
	tcase_add_test(t, message_that_expands_beyond_its_bound_is_refused);
	suite_add_tcase(s, t);
	return s;
}

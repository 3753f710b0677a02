// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/receiver.h"

#include <zlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "export/export.h"
#include "export/http_url.h"
#include "export/request.h"
#include "export/response.h"
#include "export/transport.h"
#include "export/zstd.h"
#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"
#include "tests/unit/export_fixture.h"

Suite *export_suite(void);

static struct receiver server;

static void start(const struct step *steps, size_t n)
{
	receiver_start(&server, steps, n);
	snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%u", server.port);
	start_exporter(1);
}
#define START(...)                                      \
	static const struct step steps[] = {__VA_ARGS__}; \
	start(steps, ARRAY_SIZE(steps))

static void setup(void)
{
	fixture_setup();
	server.listener = -1;
}

static void teardown(void)
{
	exporter = exporter_free(exporter);
	if (server.listener >= 0)
		receiver_stop(&server);
	server.listener = -1;
}

/* --- success --- */

START_TEST(a_delivered_request_is_exported)
{
	START(ANSWER_OK);
	submit(7);
	ck_assert_uint_eq(dest()->queued.of[0], 7);
	run();
	ck_assert_uint_eq(dest()->exported.of[0], 7);
	ck_assert_uint_eq(dest()->requests, 1);
	ck_assert_uint_eq(dest()->retries, 0);
	ck_assert_uint_eq(dest()->bytes, sizeof(TWO_PROFILES) - 1);
	ck_assert_uint_eq(receiver_count(&server), 1);
}
END_TEST

START_TEST(what_does_not_shrink_goes_uncompressed_and_says_nothing)
{
	START(ANSWER_OK);
	submit(1);
	run();
	ck_assert_ptr_nonnull(strstr(server.got[0].head, "POST /v1development/profiles HTTP/1.1\r\n"));
	ck_assert_ptr_nonnull(strstr(server.got[0].head, "\r\nContent-Type: application/x-protobuf\r\n"));
	ck_assert_ptr_nonnull(strstr(server.got[0].head, "\r\nUser-Agent: otprof/" OTPROF_VERSION "\r\n"));
	ck_assert_ptr_null(strcasestr(server.got[0].head, "Content-Encoding"));
	ck_assert_ptr_null(strcasestr(server.got[0].head, "Expect"));
	ck_assert_mem_eq(server.got[0].body, TWO_PROFILES, sizeof(TWO_PROFILES) - 1);
}
END_TEST

static void inflate_into(const struct received *got, char *to, size_t len)
{
	z_stream z = {.next_in = (Bytef *)got->body, .avail_in = (uInt)got->len,
		      .next_out = (Bytef *)to, .avail_out = (uInt)len};

	ck_assert_int_eq(inflateInit2(&z, 15 + 16), Z_OK);
	ck_assert_int_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
	ck_assert_uint_eq(z.total_out, len);
	ck_assert_uint_eq(z.avail_in, 0);
	inflateEnd(&z);
}

static void fill(char *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		data[i] = (char)("profile"[i % 7] ^ (i >> 12));
}

START_TEST(a_body_is_compressed_and_comes_out_whole)
{
	static char data[300000], back[300000];

	fill(data, sizeof(data));
	START(ANSWER_OK);
	submit_as(1, data, sizeof(data), 9);
	run();
	ck_assert_ptr_nonnull(strstr(server.got[0].head, "\r\nContent-Encoding: gzip\r\n"));
	ck_assert_uint_lt(server.got[0].len, sizeof(data) / 10);
	ck_assert_uint_eq(dest()->bytes, server.got[0].len);
	inflate_into(&server.got[0], back, sizeof(back));
	ck_assert_mem_eq(data, back, sizeof(data));
}
END_TEST

static void check_zstd(const struct received *got, const char *data, size_t len)
{
	_cleanup_(buf_done) struct buf back = {0};

	ck_assert_ptr_nonnull(strstr(got->head, "\r\nContent-Encoding: zstd\r\n"));
	ck_assert_int_eq(zstd_expand(got->body, got->len, &back), 0);
	ck_assert_uint_eq(back.len, len);
	ck_assert_mem_eq(data, back.data, len);
}

static void check_gzip(const struct received *got, const char *data, size_t len)
{
	_cleanup_(freep) char *back = malloc(len);

	ck_assert_ptr_nonnull(strstr(got->head, "\r\nContent-Encoding: gzip\r\n"));
	inflate_into(got, back, len);
	ck_assert_mem_eq(data, back, len);
}

START_TEST(a_body_in_zstd_comes_out_whole)
{
	static char data[3000000];

	fill(data, sizeof(data));
	config[0].compression = EXPORT_CODING_ZSTD;
	START(ANSWER_OK);
	submit_as(1, data, sizeof(data), 9);
	run();
	check_zstd(&server.got[0], data, sizeof(data));
	ck_assert_uint_eq(dest()->bytes, server.got[0].len);
	ck_assert_uint_eq(dest()->coding, EXPORT_CODING_ZSTD);
	ck_assert_uint_eq(events[EXPORT_CODING_REFUSED], 0);
}
END_TEST

static const struct step coding_refused[] = {ANSWER("415 Unsupported Media Type", ""), ANSWER("400 Bad Request", "")};

/* The second was compressed before the first was refused. */
START_TEST(where_zstd_is_refused_all_is_sent_again_in_gzip)
{
	static char data[3][30000];
	struct step steps[] = {coding_refused[_i], ANSWER_OK, ANSWER_OK, ANSWER_OK};

	config[0].compression = EXPORT_CODING_ZSTD;
	start(steps, ARRAY_SIZE(steps));
	for (int i = 0; i < 2; i++) {
		memset(data[i], 'a' + i, sizeof(data[i]));
		submit_as((uint64_t)i + 1, data[i], sizeof(data[i]), 7);
	}
	run();
	submit_as(3, data[2], sizeof(data[2]), 7);
	run();
	ck_assert_uint_eq(receiver_count(&server), 4);
	check_zstd(&server.got[0], data[0], sizeof(data[0]));
	for (int i = 0; i < 3; i++)
		check_gzip(&server.got[i + 1], data[i], sizeof(data[i]));
	ck_assert_uint_eq(dest()->exported.of[0], 21);
	ck_assert_uint_eq(dest()->repeated.of[0], 0);
	ck_assert_uint_eq(events[EXPORT_CODING_REFUSED], 1);
	ck_assert_str_eq(last_text, _i ? "HTTP 400" : "HTTP 415");
	ck_assert_uint_eq(events[EXPORT_FAILING] + events[EXPORT_REFUSED], 0);
	ck_assert_uint_eq(dest()->coding, EXPORT_CODING_GZIP);
	ck_assert_uint_eq(dest()->zstd_refused, 1);
	ck_assert_str_eq(dest()->last_error, "");
}
END_TEST

START_TEST(a_request_that_is_refused_in_gzip_too_says_nothing_of_zstd)
{
	static char data[30000];

	config[0].compression = EXPORT_CODING_ZSTD;
	START(ANSWER("400 Bad Request", ""), ANSWER("400 Bad Request", ""), ANSWER_OK);
	submit_as(1, data, sizeof(data), 7);
	run();
	submit_as(2, data, sizeof(data), 5);
	run();
	ck_assert_uint_eq(dest()->lost[OTP_LOSS_REJECTED].of[0], 7);
	ck_assert_uint_eq(dest()->exported.of[0], 5);
	check_gzip(&server.got[1], data, sizeof(data));
	check_zstd(&server.got[2], data, sizeof(data));
	ck_assert_uint_eq(events[EXPORT_CODING_REFUSED], 0);
	ck_assert_uint_eq(dest()->zstd_refused, 0);
}
END_TEST

START_TEST(what_is_no_frame_of_zstd_is_refused_by_its_reader)
{
	_cleanup_(buf_done) struct buf back = {0};
	_cleanup_(freep) void *frame = NULL;
	static char data[30000];
	struct buf small;
	size_t len;

	ck_assert_int_eq(zstd_compress(data, sizeof(data), 0, &frame, &len), 0);
	for (size_t cut = 0; cut < len; cut++)
		ck_assert_int_eq(zstd_expand(frame, cut, &back), -EBADMSG);
	ck_assert_int_eq(zstd_expand("\x28\xb5\x2f\xfdxxxxxxxxxxxxxxxx", 20, &back), -EBADMSG);
	buf_init(&small, sizeof(data) - 1);
	ck_assert_int_eq(zstd_expand(frame, len, &small), -EFBIG);
	buf_done(&small);
	ck_assert_int_eq(zstd_compress("a", 1, 1, &frame, &len), -EFBIG);
}
END_TEST

START_TEST(without_compression_the_body_is_sent_as_it_is)
{
	static char data[300000];

	fill(data, sizeof(data));
	config[0].compression = EXPORT_CODING_NONE;
	START(ANSWER_OK);
	submit_as(1, data, sizeof(data), 9);
	run();
	ck_assert_ptr_null(strcasestr(server.got[0].head, "Content-Encoding"));
	ck_assert_uint_eq(server.got[0].len, sizeof(data));
	ck_assert_mem_eq(server.got[0].body, data, sizeof(data));
}
END_TEST

START_TEST(configured_headers_are_sent)
{
	config[0].headers[0] = "X-Scope-OrgID: tenant one";
	config[0].nr_headers = 1;
	START(ANSWER_OK);
	submit(1);
	run();
	ck_assert_ptr_nonnull(strstr(server.got[0].head, "\r\nX-Scope-OrgID: tenant one\r\n"));
}
END_TEST

START_TEST(requests_share_a_connection_and_keep_their_order)
{
	char body[2] = "a";

	START(ANSWER_OK);
	for (int i = 0; i < 20; i++, body[0]++)
		submit_as(next_id++, body, 1, 1);
	run();
	ck_assert_uint_eq(receiver_count(&server), 20);
	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(server.got[i].body[0], 'a' + i);
	ck_assert_uint_eq(dest()->exported.of[0], 20);
}
END_TEST

/* --- what the answer's body adds --- */

START_TEST(an_empty_partial_success_is_a_success)
{
	START(ANSWER("200 OK", "\x0a\x00"));
	submit(7);
	run();
	ck_assert_uint_eq(dest()->exported.of[0], 7);
	ck_assert_uint_eq(events[EXPORT_REMARK] + events[EXPORT_PARTIAL], 0);
}
END_TEST

START_TEST(a_warning_without_rejections_is_a_success_with_a_remark)
{
	START(ANSWER("200 OK", "\x0a\x06\x12\x04slow"));
	submit(7);
	run();
	ck_assert_uint_eq(dest()->exported.of[0], 7);
	ck_assert_uint_eq(events[EXPORT_REMARK], 1);
	ck_assert_str_eq(last_text, "slow");
}
END_TEST

START_TEST(some_rejected_profiles_make_the_request_unconfirmed_without_retry)
{
	START(ANSWER("200 OK", "\x0a\x07\x08\x01\x12\x03 no"));
	submit(7);
	run();
	ck_assert_uint_eq(dest()->unconfirmed.of[0], 7);
	ck_assert_uint_eq(events[EXPORT_PARTIAL], 1);
	ck_assert_str_eq(dest()->last_error, " no");
	ck_assert_uint_eq(receiver_count(&server), 1);
}
END_TEST

START_TEST(all_profiles_rejected_are_lost_without_retry)
{
	START(ANSWER("200 OK", "\x0a\x02\x08\x02"));
	submit(7);
	run();
	ck_assert_uint_eq(dest()->lost[OTP_LOSS_REJECTED].of[0], 7);
	ck_assert_uint_eq(receiver_count(&server), 1);
}
END_TEST

START_TEST(a_success_whose_body_is_no_message_is_remarked)
{
	START(ANSWER("200 OK", "<html>hello</html>"));
	submit(7);
	run();
	ck_assert_uint_eq(dest()->exported.of[0], 7);
	ck_assert_uint_eq(events[EXPORT_REMARK], 1);
}
END_TEST

START_TEST(a_success_with_an_endless_body_is_read_to_its_bound_only)
{
	START({.kind = STEP_HUGE});
	submit(7);
	run();
	ck_assert_uint_eq(dest()->exported.of[0], 7);
	ck_assert_uint_eq(events[EXPORT_REMARK], 1);
	ck_assert_ptr_nonnull(strstr(last_text, "4194304"));
}
END_TEST

START_TEST(a_success_whose_body_is_cut_off_is_a_success)
{
	START({.kind = STEP_ANSWER, .text = OTLP_HEAD("200 OK") "Content-Length: 10\r\n\r\nabc", .close = true});
	submit(7);
	run();
	ck_assert_uint_eq(dest()->exported.of[0], 7);
	ck_assert_uint_eq(events[EXPORT_REMARK], 1);
}
END_TEST

/* --- refusals --- */

static const struct step refusals[] = {
	ANSWER("400 Bad Request", "\x08\x03\x12\x07" "bad key"),
	ANSWER("401 Unauthorized", ""),
	ANSWER("404 Not Found", ""),
	ANSWER("413 Too Large", ""),
	ANSWER("415 Unsupported", ""),
	ANSWER("500 Internal", ""),
	{.kind = STEP_ANSWER, .text = "HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/\r\n", .body = ""},
	{.kind = STEP_ANSWER, .text = "HTTP/1.1 400 Bad\r\nContent-Type: text/plain; charset=utf-8\r\n",
	 .body = "no \x01\xff period\nat all", .body_len = 19},
};
static const char *const refusal_texts[] = {
	"HTTP 400: bad key", "HTTP 401", "HTTP 404: is the path of the endpoint right?", "HTTP 413", "HTTP 415",
	"HTTP 500", "HTTP 301: a redirection, not followed", "HTTP 400: no ?? period",
};

START_TEST(a_final_refusal_is_lost_at_once)
{
	uint32_t reason = _i == 3 ? OTP_LOSS_TOO_LARGE : OTP_LOSS_REJECTED;

	start(&refusals[_i], 1);
	submit(7);
	submit(5);
	run();
	ck_assert_uint_eq(dest()->lost[reason].of[0], 12);
	ck_assert_uint_eq(dest()->retries, 0);
	ck_assert_uint_eq(receiver_count(&server), 2);
	ck_assert_uint_eq(events[EXPORT_REFUSED], 2);
	ck_assert_str_eq(dest()->last_error, refusal_texts[_i]);
}
END_TEST

/* --- tries that may be repeated --- */

static const struct step passing[][2] = {
	{ANSWER("429 Slow", ""), ANSWER_OK},	     {ANSWER("502 Bad Gateway", ""), ANSWER_OK},
	{ANSWER("503 Unavailable", ""), ANSWER_OK},  {ANSWER("504 Timeout", ""), ANSWER_OK},
	{{.kind = STEP_DROP}, ANSWER_OK},	     {{.kind = STEP_DROP_HEAD}, ANSWER_OK},
	{{.kind = STEP_ANSWER, .text = "220 mail.example ESMTP\r\n", .close = true}, ANSWER_OK},
};

START_TEST(a_passing_failure_is_tried_again)
{
	start(passing[_i], 2);
	submit(7);
	submit(5);
	run();
	ck_assert_uint_eq(dest()->exported.of[0], 12);
	ck_assert_uint_eq(dest()->retries, 1);
	ck_assert_uint_eq(receiver_count(&server), 3);
	ck_assert_uint_eq(events[EXPORT_FAILING], 1);
	ck_assert_uint_eq(events[EXPORT_BACK], 1);
	ck_assert_str_eq(dest()->last_error, "");
}
END_TEST

START_TEST(a_server_wish_to_wait_is_kept)
{
	uint64_t begin = clock_now_ns();

	START({.kind = STEP_ANSWER, .text = OTLP_HEAD("429 Slow") "Retry-After: 1\r\n", .body = ""}, ANSWER_OK);
	submit(7);
	run();
	ck_assert_uint_ge(clock_now_ns() - begin, NSEC_PER_SEC);
	ck_assert_uint_eq(dest()->exported.of[0], 7);
}
END_TEST

START_TEST(a_server_wish_beyond_our_patience_ends_the_request_now)
{
	START({.kind = STEP_ANSWER, .text = OTLP_HEAD("503 Busy") "Retry-After: 600\r\n", .body = ""});
	submit(7);
	run();
	ck_assert_uint_eq(dest()->lost[OTP_LOSS_RETRY_EXPIRED].of[0], 7);
	ck_assert_uint_eq(receiver_count(&server), 1);
}
END_TEST

START_TEST(requests_wait_together_while_the_server_wants_it)
{
	START({.kind = STEP_ANSWER, .text = OTLP_HEAD("429 Slow") "Retry-After: 2\r\n", .body = ""}, ANSWER_OK);
	submit(7);
	RUN_UNTIL(dest()->queued.of[0] == 7 && receiver_count(&server) == 1);
	submit(5);
	for (int i = 0; i < 10; i++)
		turn(20);
	ck_assert_uint_eq(receiver_count(&server), 1);
	ck_assert_uint_eq(dest()->queued.of[0], 12);
	run();
	ck_assert_uint_eq(dest()->exported.of[0], 12);
}
END_TEST

START_TEST(refusals_that_pass_never_are_lost_when_retries_are_over)
{
	config[0].retry_elapsed_ns = NSEC_PER_SEC; /* a busy machine gets its retries, too */
	START(ANSWER("503 Unavailable", ""));
	submit(7);
	run();
	ck_assert_uint_eq(dest()->lost[OTP_LOSS_RETRY_EXPIRED].of[0], 7);
	ck_assert_uint_ge(dest()->retries, 2);
	ck_assert_uint_eq(events[EXPORT_DROPPED], 1);
}
END_TEST

START_TEST(without_retries_each_request_has_one_try)
{
	config[0].retry_elapsed_ns = 0;
	START(ANSWER("503 Unavailable", ""), ANSWER("503 Unavailable", ""), ANSWER_OK);
	submit(7);
	submit(5);
	submit(3);
	run();
	ck_assert_uint_eq(dest()->lost[OTP_LOSS_RETRY_EXPIRED].of[0], 12);
	ck_assert_uint_eq(dest()->exported.of[0], 3);
	ck_assert_uint_eq(dest()->retries, 0);
}
END_TEST

static void point_at_closed_port(void)
{
	receiver_start(&server, refusals, 1);
	snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%u", server.port);
	receiver_stop(&server);
	server.listener = -1;
}

START_TEST(what_never_connected_is_lost_and_not_unconfirmed)
{
	config[0].retry_elapsed_ns = 200 * NSEC_PER_MSEC;
	point_at_closed_port();
	start_exporter(1);
	submit(7);
	run();
	ck_assert_uint_eq(dest()->lost[OTP_LOSS_RETRY_EXPIRED].of[0], 7);
	ck_assert_uint_eq(dest()->unconfirmed.of[0], 0);
	ck_assert_ptr_nonnull(strstr(dest()->last_error, "connect"));
}
END_TEST

/* --- tries whose outcome nobody knows --- */

START_TEST(what_was_sent_and_never_answered_is_unconfirmed)
{
	config[0].retry_elapsed_ns = 200 * NSEC_PER_MSEC;
	START({.kind = STEP_DROP});
	submit(7);
	run();
	ck_assert_uint_eq(dest()->unconfirmed.of[0], 7);
	ck_assert_uint_ge(receiver_count(&server), 2);
}
END_TEST

START_TEST(a_timeout_is_tried_again_and_ends_unconfirmed)
{
	config[0].timeout_ns = 100 * NSEC_PER_MSEC;
	config[0].retry_elapsed_ns = 250 * NSEC_PER_MSEC;
	START({.kind = STEP_HANG});
	submit(7);
	RUN_UNTIL(receiver_count(&server) == 1);
	ck_assert_uint_eq(dest()->sending.of[0], 7);
	run();
	ck_assert_uint_eq(dest()->unconfirmed.of[0], 7);
	ck_assert_uint_ge(receiver_count(&server), 2);
}
END_TEST

START_TEST(a_body_that_did_not_leave_whole_is_not_unconfirmed)
{
	static char data[32 << 20];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * i >> 7);
	config[0].compression = EXPORT_CODING_NONE;
	config[0].queue_bytes = 64 << 20;
	config[0].retry_elapsed_ns = 100 * NSEC_PER_MSEC;
	START({.kind = STEP_DROP_HEAD});
	submit_as(1, data, sizeof(data), 7);
	run();
	ck_assert_uint_eq(dest()->lost[OTP_LOSS_RETRY_EXPIRED].of[0], 7);
}
END_TEST

START_TEST(between_tries_what_may_have_arrived_counts_as_being_sent)
{
	config[0].retry_initial_ns = config[0].retry_max_ns = 60 * NSEC_PER_SEC;
	config[0].retry_elapsed_ns = 600 * NSEC_PER_SEC;
	START({.kind = STEP_DROP}, ANSWER_OK);
	submit(7);
	submit(5);
	RUN_UNTIL(events[EXPORT_FAILING] == 1);
	ck_assert_uint_eq(dest()->sending.of[0], 7);
	ck_assert_uint_eq(dest()->queued.of[0], 5);
	exporter_stop(exporter, clock_now_ns() + 5 * NSEC_PER_SEC);
	run();
	ck_assert_uint_eq(dest()->exported.of[0], 12);
}
END_TEST

START_TEST(a_refusal_after_an_unknown_outcome_is_unconfirmed)
{
	START({.kind = STEP_DROP}, ANSWER("400 Bad", ""));
	submit(7);
	run();
	ck_assert_uint_eq(dest()->unconfirmed.of[0], 7);
}
END_TEST

START_TEST(a_reused_connection_that_closed_unanswered_leaves_the_request_unconfirmed)
{
	/* The library itself repeats this request, on a port where nobody listens any more. */
	START(ANSWER_OK, {.kind = STEP_DROP});
	config[0].retry_elapsed_ns = 0;
	submit(7);
	run();
	submit(5);
	RUN_UNTIL(receiver_count(&server) >= 2);
	receiver_stop(&server);
	server.listener = -1;
	run();
	ck_assert_uint_eq(dest()->exported.of[0], 7);
	ck_assert_uint_eq(dest()->unconfirmed.of[0], 5);
}
END_TEST

/* --- the queue --- */

START_TEST(a_full_queue_drops_its_oldest_that_is_not_being_sent)
{
	char body[2] = "a";

	config[0].queue_bytes = 4 * (4096 + 1);
	config[0].timeout_ns = 500 * NSEC_PER_MSEC;
	START({.kind = STEP_HANG}, ANSWER_OK);
	submit_as(next_id++, body, 1, 100);
	RUN_UNTIL(receiver_count(&server) == 1);
	for (body[0] = 'b'; body[0] <= 'f'; body[0]++)
		submit_as(next_id++, body, 1, (uint64_t)body[0]);
	ck_assert_uint_eq(dest()->lost[OTP_LOSS_QUEUE_FULL].of[0], 'b' + 'c');
	ck_assert_uint_eq(dest()->sending.of[0], 100);
	run();
	ck_assert_uint_eq(dest()->exported.of[0], 100 + 'd' + 'e' + 'f');
	ck_assert_int_eq(server.got[2].body[0], 'd');
}
END_TEST

START_TEST(a_request_above_the_queue_is_lost_and_costs_no_other)
{
	static char data[100000];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * i >> 7);
	config[0].queue_bytes = 65536;
	config[0].compression = EXPORT_CODING_NONE;
	START(ANSWER_OK);
	submit(7);
	submit_as(next_id++, data, sizeof(data), 5);
	run();
	ck_assert_uint_eq(dest()->lost[OTP_LOSS_QUEUE_FULL].of[0], 5);
	ck_assert_uint_eq(dest()->exported.of[0], 7);
}
END_TEST

START_TEST(a_request_sent_again_by_the_engine_is_counted_once)
{
	START(ANSWER_OK);
	submit_as(3, "x", 1, 7);
	submit_as(3, "x", 1, 7);
	submit_as(2, "x", 1, 7);
	run();
	ck_assert_uint_eq(ledger.received.of[0], 7);
	ck_assert_uint_eq(ledger.received_id, 3);
	ck_assert_uint_eq(receiver_count(&server), 1);
}
END_TEST

START_TEST(each_destination_has_its_own_equation)
{
	receiver_start(&server, passing[2] + 1, 1);
	snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%u", server.port);
	config[1].endpoint = "http://127.0.0.1:1/";
	config[1].compression = EXPORT_CODING_NONE;
	config[1].retry_elapsed_ns = 100 * NSEC_PER_MSEC;
	start_exporter(2);
	submit(7);
	run();
	ck_assert_uint_eq(ledger.dest[0].exported.of[0], 7);
	ck_assert_uint_eq(ledger.dest[1].lost[OTP_LOSS_RETRY_EXPIRED].of[0], 7);
}
END_TEST

START_TEST(a_request_that_could_not_be_taken_is_lost_everywhere)
{
	START(ANSWER_OK);
	exporter_refuse(exporter, 1, COUNTS(7), OTP_LOSS_TOO_LARGE);
	exporter_refuse(exporter, 1, COUNTS(7), OTP_LOSS_TOO_LARGE);
	ck_assert_uint_eq(dest()->lost[OTP_LOSS_TOO_LARGE].of[0], 7);
	ck_assert_uint_eq(ledger.received_id, 1);
}
END_TEST

/* --- the end --- */

static uint64_t stop_and_run(uint64_t grace_ns)
{
	uint64_t begin = clock_now_ns();

	exporter_stop(exporter, begin + grace_ns);
	run();
	return clock_now_ns() - begin;
}

START_TEST(a_stop_sends_what_waits_without_waiting_longer)
{
	config[0].retry_initial_ns = config[0].retry_max_ns = 60 * NSEC_PER_SEC;
	config[0].retry_elapsed_ns = 600 * NSEC_PER_SEC;
	START(ANSWER("503 Unavailable", ""), ANSWER_OK);
	submit(7);
	submit(5);
	RUN_UNTIL(receiver_count(&server) == 1 && dest()->sending.of[0] == 0);
	ck_assert_uint_lt(stop_and_run(5 * NSEC_PER_SEC), 2 * NSEC_PER_SEC);
	ck_assert_uint_eq(dest()->exported.of[0], 12);
}
END_TEST

START_TEST(a_stop_gives_up_a_dead_destination_soon)
{
	point_at_closed_port();
	start_exporter(1);
	submit(7);
	submit(5);
	ck_assert_uint_lt(stop_and_run(10 * NSEC_PER_SEC), 3 * NSEC_PER_SEC);
	ck_assert_uint_eq(dest()->lost[OTP_LOSS_SHUTDOWN].of[0], 12);
}
END_TEST

START_TEST(at_the_deadline_the_request_under_way_is_unconfirmed_and_the_rest_lost)
{
	config[0].timeout_ns = 60 * NSEC_PER_SEC;
	START({.kind = STEP_HANG});
	submit(7);
	submit(5);
	RUN_UNTIL(receiver_count(&server) == 1);
	ck_assert_uint_lt(stop_and_run(300 * NSEC_PER_MSEC), 2 * NSEC_PER_SEC);
	ck_assert_uint_eq(dest()->unconfirmed.of[0], 7);
	ck_assert_uint_eq(dest()->lost[OTP_LOSS_SHUTDOWN].of[0], 5);
	submit(3);
	ck_assert_uint_eq(dest()->lost[OTP_LOSS_SHUTDOWN].of[0], 8);
	ck_assert(exporter_idle(exporter));
}
END_TEST

START_TEST(an_exporter_may_end_in_the_middle_of_a_try)
{
	START({.kind = STEP_HANG});
	submit(7);
	submit(5);
	RUN_UNTIL(receiver_count(&server) == 1);
	ck_assert_uint_eq(dest()->sending.of[0], 7);
	ck_assert_uint_eq(dest()->queued.of[0], 5);
}
END_TEST

/* --- requests, URLs, answers --- */

START_TEST(only_a_sealed_memfd_of_that_size_is_a_request)
{
	struct export_request *r = NULL;

	ck_assert_int_eq(export_request_new(sealed("abc", 3, 0), 1, COUNTS(1), 3, &r), -EBADMSG);
	ck_assert_int_eq(export_request_new(sealed("abc", 3, F_SEAL_WRITE), 1, COUNTS(1), 3, &r), -EBADMSG);
	ck_assert_int_eq(export_request_new(sealed("abc", 3, SEALS), 1, COUNTS(1), 4, &r), -EBADMSG);
	ck_assert_int_eq(export_request_new(sealed("abc", 3, SEALS), 1, COUNTS(1), 2, &r), -EBADMSG);
	ck_assert_int_eq(export_request_new(sealed("", 0, SEALS), 1, COUNTS(1), 0, &r), -EBADMSG);
	ck_assert_int_eq(export_request_new(open("/dev/null", O_RDONLY), 1, COUNTS(1), 3, &r), -EBADMSG);
	ck_assert_int_eq(export_request_new(sealed("abc", 3, SEALS), 1, COUNTS(1), SIZE_MAX, &r), -EFBIG);
	ck_assert_ptr_null(r);
}
END_TEST

static const struct {
	const char *bytes;
	size_t len;
	uint64_t profiles;
} counted[] = {
	{"", 0, 0},
	{TWO_PROFILES, 8, 2},
	{TWO_PROFILES TWO_PROFILES "\x12\x00", 18, 4},
	{"\x0a\x06\x12\x04\x12\x00\x12\x01", 8, 1},	    /* the last one is cut */
	{"\x0a\x04\x0a\x00\x12\x00", 6, 0},		    /* resource, empty scope */
	{"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, 0}, /* longer than the message */
	{"\x0b\x0c", 2, 0},				    /* a group */
};

START_TEST(profiles_of_a_request_are_counted)
{
	ck_assert_uint_eq(request_count_profiles(counted[_i].bytes, counted[_i].len), counted[_i].profiles);
}
END_TEST

static const struct {
	const char *endpoint;
	bool full;
	const char *url; /* NULL: refused */
} urls[] = {
	{"http://h:4318", false, "http://h:4318/v1development/profiles"},
	{"http://h:4318/", false, "http://h:4318/v1development/profiles"},
	{"http://h/otlp", false, "http://h/otlp/v1development/profiles"},
	{"http://h/otlp//", false, "http://h/otlp/v1development/profiles"},
	{"http://h/v1development/profiles", false, "http://h/v1development/profiles"},
	{"https://u:p@h/x?k=v", false, "https://u:p@h/x/v1development/profiles?k=v"},
	{"http://[::1]:4318", false, "http://[::1]:4318/v1development/profiles"},
	{"http://h:4318/intake", true, "http://h:4318/intake"},
	{"http://", false, NULL},
	{"http://h:port", false, NULL},
	{"http://h:99999", false, NULL},
};

START_TEST(a_base_url_gets_the_path_of_profiles)
{
	char *url = NULL;
	int rc = http_url(urls[_i].endpoint, urls[_i].full, &url);

	ck_assert_int_eq(rc, urls[_i].url ? 0 : -EINVAL);
	if (urls[_i].url)
		ck_assert_str_eq(url, urls[_i].url);
	free(url);
}
END_TEST

START_TEST(a_configuration_that_cannot_work_is_refused_with_a_reason)
{
	static char *const headers[] = {"Content-Type: text/plain", "no colon", "X: a\r\nY: b", ": empty"};
	char why[EXPORT_WHY] = "";

	snprintf(endpoint, sizeof(endpoint), "http://h");
	ck_assert_int_eq(export_config_check(&config[0], why), 0);
	config[0].nr_headers = 1;
	for (size_t i = 0; i < ARRAY_SIZE(headers); i++) {
		config[0].headers[0] = headers[i];
		ck_assert_int_eq(export_config_check(&config[0], why), -EINVAL);
		ck_assert_str_ne(why, "");
	}
	config[0].nr_headers = 0;
	snprintf(endpoint, sizeof(endpoint), "ftp://h");
	ck_assert_int_eq(export_config_check(&config[0], why), -EINVAL);
	snprintf(endpoint, sizeof(endpoint), "file://relative");
	ck_assert_int_eq(export_config_check(&config[0], why), -EINVAL);
}
END_TEST

START_TEST(transport_is_found_by_scheme_and_protocol)
{
	char why[EXPORT_WHY];

	snprintf(endpoint, sizeof(endpoint), "https://h");
	ck_assert_ptr_eq(transport_find(&config[0]), &transport_https);
	ck_assert_ptr_null(export_directory(&config[0]));
	config[0].protocol = EXPORT_PROTOCOL_GRPC;
	ck_assert_ptr_eq(transport_find(&config[0]), &transport_grpcs);
	config[0].protocol = (enum export_protocol)(EXPORT_PROTOCOL_GRPC + 1);
	ck_assert_ptr_null(transport_find(&config[0]));
	ck_assert_int_eq(export_config_check(&config[0], why), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why, "protocol"));
	snprintf(endpoint, sizeof(endpoint), "file:///d");
	ck_assert_ptr_eq(transport_find(&config[0]), &transport_file);
	ck_assert_str_eq(export_directory(&config[0]), "/d");
	config[0].endpoint = NULL;
	ck_assert_ptr_null(export_directory(&config[0]));
}
END_TEST

START_TEST(answers_are_read_or_refused)
{
	static const char unknown[] = "\x0a\x0d\x08\x05\x12\x02hi\x1a\x01x\x25\x01\x02\x03\x04" "\x78\x01";
	struct response r = {.rejected = 42};

	ck_assert_int_eq(response_parse("\x0a\x05\x08", 3, &r), -EBADMSG);
	ck_assert_int_eq(response_parse("\x08\x01", 2, &r), -EBADMSG); /* partial_success is no number */
	ck_assert_int_eq(response_parse("\x0a", 1, &r), -EBADMSG);
	ck_assert_int_eq(response_parse("\x00\x01", 2, &r), -EBADMSG); /* field 0 */
	ck_assert_uint_eq(r.rejected, 42);
	ck_assert_int_eq(response_parse("", 0, &r), 0);
	ck_assert_uint_eq(r.rejected, 0);
	ck_assert_int_eq(response_parse("\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13, &r), 0);
	ck_assert_uint_eq(r.rejected, 0); /* -1 */
	ck_assert_int_eq(response_parse(unknown, 2 + 0x0d, &r), -EBADMSG); /* cut inside */
	ck_assert_int_eq(response_parse("\x0a\x06\x08\x05\x12\x02hi\x1a\x01x\x78\x01", 13, &r), 0);
	ck_assert_uint_eq(r.rejected, 5);
	ck_assert_str_eq(r.message, "hi");
}
END_TEST

/* The field numbers that are read by hand are those of our .proto files. */
#define COLLECTOR(name) Opentelemetry__Proto__Collector__Profiles__V1development__##name
#define PROFILES(name)	Opentelemetry__Proto__Profiles__V1development__##name

START_TEST(the_reader_agrees_with_the_generated_code_on_answers)
{
	COLLECTOR(ExportProfilesPartialSuccess) partial;
	COLLECTOR(ExportProfilesServiceResponse) response;
	struct response r;
	uint8_t bytes[64];
	size_t len;

	opentelemetry__proto__collector__profiles__v1development__export_profiles_partial_success__init(&partial);
	opentelemetry__proto__collector__profiles__v1development__export_profiles_service_response__init(&response);
	partial.rejected_profiles = 300;
	partial.error_message = "too old";
	response.partial_success = &partial;
	ck_assert_uint_lt(protobuf_c_message_get_packed_size(&response.base), sizeof(bytes));
	len = protobuf_c_message_pack(&response.base, bytes);
	ck_assert_int_eq(response_parse(bytes, len, &r), 0);
	ck_assert_uint_eq(r.rejected, 300);
	ck_assert_str_eq(r.message, "too old");
}
END_TEST

START_TEST(the_reader_agrees_with_the_generated_code_on_profiles)
{
	COLLECTOR(ExportProfilesServiceRequest) request;
	PROFILES(ResourceProfiles) resource, *resources[] = {&resource, &resource};
	PROFILES(ScopeProfiles) scope, *scopes[] = {&scope};
	PROFILES(Profile) profile, *profiles[] = {&profile, &profile, &profile};
	PROFILES(ProfilesDictionary) dictionary;
	uint8_t bytes[256];
	size_t len;

	opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__init(&request);
	opentelemetry__proto__profiles__v1development__resource_profiles__init(&resource);
	opentelemetry__proto__profiles__v1development__scope_profiles__init(&scope);
	opentelemetry__proto__profiles__v1development__profile__init(&profile);
	opentelemetry__proto__profiles__v1development__profiles_dictionary__init(&dictionary);
	profile.time_unix_nano = 1;
	scope.profiles = profiles;
	scope.n_profiles = 3;
	resource.scope_profiles = scopes;
	resource.n_scope_profiles = 1;
	request.resource_profiles = resources;
	request.n_resource_profiles = 2;
	request.dictionary = &dictionary;
	ck_assert_uint_lt(protobuf_c_message_get_packed_size(&request.base), sizeof(bytes));
	len = protobuf_c_message_pack(&request.base, bytes);
	ck_assert_uint_eq(request_count_profiles(bytes, len), 6);
}
END_TEST

Suite *export_suite(void)
{
	Suite *s = suite_create("export");
	TCase *t = tcase_create("export");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_delivered_request_is_exported);
	tcase_add_test(t, what_does_not_shrink_goes_uncompressed_and_says_nothing);
	tcase_add_test(t, a_body_is_compressed_and_comes_out_whole);
	tcase_add_test(t, without_compression_the_body_is_sent_as_it_is);
	tcase_add_test(t, a_body_in_zstd_comes_out_whole);
	tcase_add_loop_test(t, where_zstd_is_refused_all_is_sent_again_in_gzip, 0, ARRAY_SIZE(coding_refused));
	tcase_add_test(t, a_request_that_is_refused_in_gzip_too_says_nothing_of_zstd);
	tcase_add_test(t, what_is_no_frame_of_zstd_is_refused_by_its_reader);
	tcase_add_test(t, configured_headers_are_sent);
	tcase_add_test(t, requests_share_a_connection_and_keep_their_order);
	tcase_add_test(t, an_empty_partial_success_is_a_success);
	tcase_add_test(t, a_warning_without_rejections_is_a_success_with_a_remark);
	tcase_add_test(t, some_rejected_profiles_make_the_request_unconfirmed_without_retry);
	tcase_add_test(t, all_profiles_rejected_are_lost_without_retry);
	tcase_add_test(t, a_success_whose_body_is_no_message_is_remarked);
	tcase_add_test(t, a_success_with_an_endless_body_is_read_to_its_bound_only);
	tcase_add_test(t, a_success_whose_body_is_cut_off_is_a_success);
	tcase_add_loop_test(t, a_final_refusal_is_lost_at_once, 0, ARRAY_SIZE(refusals));
	tcase_add_loop_test(t, a_passing_failure_is_tried_again, 0, ARRAY_SIZE(passing));
	tcase_add_test(t, a_server_wish_to_wait_is_kept);
	tcase_add_test(t, a_server_wish_beyond_our_patience_ends_the_request_now);
	tcase_add_test(t, requests_wait_together_while_the_server_wants_it);
	tcase_add_test(t, refusals_that_pass_never_are_lost_when_retries_are_over);
	tcase_add_test(t, without_retries_each_request_has_one_try);
	tcase_add_test(t, what_never_connected_is_lost_and_not_unconfirmed);
	tcase_add_test(t, what_was_sent_and_never_answered_is_unconfirmed);
	tcase_add_test(t, a_timeout_is_tried_again_and_ends_unconfirmed);
	tcase_add_test(t, a_body_that_did_not_leave_whole_is_not_unconfirmed);
	tcase_add_test(t, between_tries_what_may_have_arrived_counts_as_being_sent);
	tcase_add_test(t, a_refusal_after_an_unknown_outcome_is_unconfirmed);
	tcase_add_test(t, a_reused_connection_that_closed_unanswered_leaves_the_request_unconfirmed);
	tcase_add_test(t, a_full_queue_drops_its_oldest_that_is_not_being_sent);
	tcase_add_test(t, a_request_above_the_queue_is_lost_and_costs_no_other);
	tcase_add_test(t, a_request_sent_again_by_the_engine_is_counted_once);
	tcase_add_test(t, each_destination_has_its_own_equation);
	tcase_add_test(t, a_request_that_could_not_be_taken_is_lost_everywhere);
	tcase_add_test(t, a_stop_sends_what_waits_without_waiting_longer);
	tcase_add_test(t, a_stop_gives_up_a_dead_destination_soon);
	tcase_add_test(t, at_the_deadline_the_request_under_way_is_unconfirmed_and_the_rest_lost);
	tcase_add_test(t, an_exporter_may_end_in_the_middle_of_a_try);
	tcase_add_test(t, only_a_sealed_memfd_of_that_size_is_a_request);
	tcase_add_loop_test(t, profiles_of_a_request_are_counted, 0, ARRAY_SIZE(counted));
	tcase_add_loop_test(t, a_base_url_gets_the_path_of_profiles, 0, ARRAY_SIZE(urls));
	tcase_add_test(t, a_configuration_that_cannot_work_is_refused_with_a_reason);
	tcase_add_test(t, transport_is_found_by_scheme_and_protocol);
	tcase_add_test(t, answers_are_read_or_refused);
	tcase_add_test(t, the_reader_agrees_with_the_generated_code_on_answers);
	tcase_add_test(t, the_reader_agrees_with_the_generated_code_on_profiles);
	suite_add_tcase(s, t);
	return s;
}

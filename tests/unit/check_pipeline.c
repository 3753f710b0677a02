// SPDX-License-Identifier: Apache-2.0
/* The way of a sample: one process that runs one stripped file, whose names do not come unless a test says so. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/engine/pipeline.h"
#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"
#include "tests/lib/tiny_elf.h"

#define REQUEST(name)  Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest##name
#define PROFILES(name) Opentelemetry__Proto__Profiles__V1development__##name
#define unpack_request \
	opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__unpack
#define free_request \
	opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__free_unpacked

#define PID   77
#define CGROUP 9
#define BASE  0x7f0000000000ULL
#define ANON  0x7e0000000000ULL
#define STACK 0x7fff00000000ULL

Suite *pipeline_suite(void);

static struct config *config;
static struct ledger_engine *ledger;
static struct pipeline *pipeline;
static struct batch batch;
static REQUEST() *request; /* the last one */

#define ANON_LINE "7e0000000000-7e0000001000 r-xp 00000000 00:00 0 \n"
#define FILE_LINE "7f0000000000-7f0000003000 r-xp 00000000 00:00 0 /bin/tiny\n"

static const char *maps;
static bool maps_are_late;
static int file_error, files_asked;
static struct late_answer { host_answer_fn *fn; void *ctx; } late; /* the one that a test gives */

/* --- the host: identity unknown, mappings (unless a test says so) and files at once, an index never --- */

static int file_fd(void)
{
	_cleanup_(freep) struct tiny *t = malloc(sizeof(*t));
	int fd = memfd_create("tiny", MFD_CLOEXEC);

	ck_assert_ptr_nonnull(t);
	tiny_init(t, 62, TINY_NO_HDR | TINY_NO_SECTIONS);
	ck_assert_int_eq(write(fd, t->image, sizeof(t->image)), (ssize_t)sizeof(t->image));
	return fd;
}

static int answer(struct host *h, const struct host_request *req, host_answer_fn *fn, void *ctx)
{
	ck_assert_uint_eq(req->group, req->kind == HOST_SCAN ? 0 : CGROUP);
	if (req->kind == HOST_READ_MAPS && maps_are_late)
		late = (struct late_answer){fn, ctx};
	else if (req->kind == HOST_READ_MAPS)
		fn(ctx, 0, -1, maps, strlen(maps));
	else if (req->kind == HOST_OPEN_MAPPED)
		files_asked++, fn(ctx, file_error, file_error ? -1 : file_fd(), NULL, 0);
	else if (req->kind != HOST_OPEN_INDEX)
		fn(ctx, -ESRCH, -1, NULL, 0);
	return 0;
}

static void cancel(struct host *h, void *ctx)
{
}

static const struct host_ops host_ops = {.ask = answer, .cancel = cancel};
static struct host host = {.ops = &host_ops};

/* --- whom the pipeline tells --- */

static int on_request(void *ctx, const void *data, size_t len, const struct ledger_counts *samples)
{
	if (request)
		free_request(request, NULL);
	request = unpack_request(NULL, len, data);
	ck_assert_ptr_nonnull(request);
	return 0;
}

static void on_plan(void *ctx, uint32_t pid, const struct otp_plan *plan)
{
}

static void on_hint(void *ctx, const char comm[OTP_COMM_LEN], const struct otp_hint *h)
{
}

static const struct pipeline_ops ops = {.request = on_request, .plan = on_plan, .hint = on_hint};

static struct config *parse(const char *text)
{
	struct config_text of = {.name = "t", .text = text, .len = strlen(text)};
	struct config *c = NULL;

	ck_assert_int_eq(config_parse_texts(&of, 1, NULL, NULL, &c), 0);
	return c;
}

static void set_up(void)
{
	struct pipeline_config cfg = {.host = &host, .origins = origins_of_clock(50000000), .ops = &ops};

	config = parse("");
	ledger = calloc(1, sizeof(*ledger));
	cfg.config = config;
	cfg.ledger = ledger;
	maps = ANON_LINE FILE_LINE;
	maps_are_late = false;
	file_error = files_asked = 0;
	ck_assert_int_eq(pipeline_new(&cfg, &pipeline), 0);
	batch_init(&batch);
}

static void tear_down(void)
{
	pipeline = pipeline_free(pipeline);
	batch_done(&batch);
	if (request)
		free_request(request, NULL);
	request = NULL;
	free(ledger);
	config_free(config);
}

/* --- samples --- */

struct test_sample {
	struct otp_sample head;
	struct otp_section regs_sec;
	uint64_t valid, reg[OTP_REGS_X86_64];
	struct otp_section stack_sec;
	uint64_t stack_addr, stack[4];
	struct otp_section kernel_sec;
	uint64_t kernel[2];
};

/* In the kernel, called from pc; thread tid. */
static void take(uint64_t pc, uint32_t tid, uint64_t now_ns)
{
	struct test_sample s = {
		.head = {.rec = {.type = OTP_REC_SAMPLE, .len = sizeof(s)}, .time_ns = now_ns, .seq = tid, .pid = PID,
			 .tid = tid, .start_ns = 5, .cgroup_id = CGROUP, .arch = OTP_ARCH_X86_64, .nr_sections = 3, .comm = "tiny"},
		.regs_sec = {.type = OTP_SEC_REGS, .len = 8 + sizeof(s.reg)},
		.valid = 0x1ffff,
		.stack_sec = {.type = OTP_SEC_USTACK, .len = 8 + sizeof(s.stack)},
		.stack_addr = STACK,
		.kernel_sec = {.type = OTP_SEC_KSTACK, .len = sizeof(s.kernel)},
		.kernel = {0xffffffff81000100, 0xffffffff81000200},
	};

	s.reg[7] = STACK; /* the stack pointer, as DWARF numbers registers */
	s.reg[16] = pc;
	batch_reset(&batch);
	ck_assert_int_eq(batch_add_ring(&batch, &s.head.rec), 0);
	batch_sort(&batch);
	pipeline_batch(pipeline, &batch, now_ns);
}

static void flush(void)
{
	pipeline_flush(pipeline, 1700000000000000000, 1700000005000000000);
}

/* A number that is an attribute of the samples, in no order: "1 2 ". */
static const char *attributes(const char *key)
{
	const PROFILES(Profile) *p = request->resource_profiles[0]->scope_profiles[0]->profiles[0];
	const PROFILES(ProfilesDictionary) *d = request->dictionary;
	static char text[256];

	text[0] = '\0';
	for (size_t i = 0; i < p->n_samples; i++)
		for (size_t k = 0; k < p->samples[i]->n_attribute_indices; k++) {
			const PROFILES(KeyValueAndUnit) *a = d->attribute_table[p->samples[i]->attribute_indices[k]];
			size_t len = strlen(text);

			if (strcmp(d->string_table[a->key_strindex], key) == 0)
				snprintf(text + len, sizeof(text) - len, "%d ", (int)a->value->int_value);
		}
	return text;
}

/* "leaf;caller;root" of the first sample. */
static const char *stack_text(void)
{
	const PROFILES(Sample) *s = request->resource_profiles[0]->scope_profiles[0]->profiles[0]->samples[0];
	const PROFILES(ProfilesDictionary) *d = request->dictionary;
	const PROFILES(Stack) *st = d->stack_table[s->stack_index];
	static char text[4096];

	text[0] = '\0';
	for (size_t i = 0; i < st->n_location_indices; i++) {
		const PROFILES(Line) *l = d->location_table[st->location_indices[i]]->lines[0];

		strcat(text, i ? ";" : "");
		strcat(text, d->string_table[d->function_table[l->function_index]->name_strindex]);
	}
	return text;
}

START_TEST(sample_waits_for_names_of_its_file)
{
	take(BASE + TINY_CODE, 1, NSEC_PER_SEC);
	flush();
	ck_assert_ptr_null(request);
	ck_assert_uint_eq(ledger->held.of[0], 1);
	pipeline_end_wait(pipeline);
	flush();
	ck_assert_ptr_nonnull(request);
	ck_assert_uint_eq(ledger->read.of[0], 1);
}
END_TEST

/* Code without a file has no names to wait for. */
START_TEST(stack_is_kernel_then_user_then_marker)
{
	take(ANON + 0x10, 1, NSEC_PER_SEC);
	flush();
	ck_assert_ptr_nonnull(request);
	ck_assert_ptr_nonnull(strstr(stack_text(), "[kernel];[anon];[cut: "));
	ck_assert_uint_eq(ledger->frames, 2);
	ck_assert_uint_eq(ledger->kinds[KIND_KERNEL], 1);
	ck_assert_uint_eq(ledger->kinds[KIND_NATIVE], 1);
}
END_TEST

START_TEST(a_file_that_could_not_be_opened_is_tried_again)
{
	file_error = -ETIMEDOUT;
	take(BASE + TINY_CODE, 1, NSEC_PER_SEC);
	take(BASE + TINY_CODE, 2, NSEC_PER_SEC + NSEC_PER_MSEC);
	ck_assert_int_eq(files_asked, 1);
	flush();
	ck_assert_ptr_nonnull(strstr(stack_text(), "[cut: file not readable]"));
	file_error = 0;
	take(BASE + TINY_CODE, 3, 5 * NSEC_PER_SEC);
	ck_assert_int_ge(files_asked, 2);
	pipeline_end_wait(pipeline);
	flush();
	ck_assert_ptr_null(strstr(stack_text(), "[cut: file not readable]"));
}
END_TEST

/* Parked samples are tried again at any answer, such as another process' mappings. */
START_TEST(sample_waits_for_its_own_process_mappings)
{
	maps_are_late = true;
	take(ANON + 0x10, 1, NSEC_PER_SEC);
	ck_assert_uint_eq(pipeline_parked(pipeline), 1);
	pipeline_retry(pipeline, NSEC_PER_SEC, false);
	ck_assert_uint_eq(pipeline_parked(pipeline), 1);
	late.fn(late.ctx, 0, -1, maps, strlen(maps));
	pipeline_retry(pipeline, NSEC_PER_SEC, false);
	ck_assert_uint_eq(pipeline_parked(pipeline), 0);
	flush();
	ck_assert_ptr_nonnull(strstr(stack_text(), "[kernel];[anon];[cut: "));
}
END_TEST

#define UNCOVERED    (BASE + 0x10000)
#define AGAIN_NS     (NSEC_PER_SEC + 200 * NSEC_PER_MSEC) /* mappings may be read again */
#define OTHER_LINE   "7d0000000000-7d0000001000 r-xp 00000000 00:00 0 /bin/other\n"
#define COVERED_LINE "7f0000010000-7f0000013000 r-xp 00000000 00:00 0 /bin/later\n"

static const struct { const char *maps; uint64_t pc; uint8_t end; } moments[] = {
	{OTHER_LINE, UNCOVERED, UNWIND_UNMAPPED},
	{OTHER_LINE, BASE + TINY_CODE, UNWIND_NO_RULE}, /* no table has this code: perhaps another file is mapped there now */
};

/* The answer arrives while the sample is unwound, and replaces the mappings of its process. */
START_TEST(sample_keeps_the_mappings_that_it_is_unwound_by)
{
	take(moments[_i].pc, 1, NSEC_PER_SEC);
	ck_assert_uint_eq(ledger->cut[moments[_i].end], 1);
	maps = moments[_i].maps;
	take(moments[_i].pc, 1, AGAIN_NS);
	ck_assert_uint_eq(ledger->cut[moments[_i].end], 2);
	pipeline_end_wait(pipeline);
	flush();
	ck_assert_uint_eq(request->resource_profiles[0]->scope_profiles[0]->profiles[0]->n_samples, 1); /* twice the same */
}
END_TEST

START_TEST(sample_is_unwound_by_mappings_that_answer_at_once)
{
	take(UNCOVERED, 1, NSEC_PER_SEC);
	maps = ANON_LINE FILE_LINE COVERED_LINE;
	take(UNCOVERED, 1, AGAIN_NS);
	ck_assert_uint_eq(ledger->cut[UNWIND_UNMAPPED], 1);
	ck_assert_uint_eq(ledger->cut[UNWIND_NO_RULE], 1);
}
END_TEST

START_TEST(sample_that_waits_is_unwound_by_the_mappings_that_it_waited_for)
{
	take(UNCOVERED, 1, NSEC_PER_SEC);
	maps_are_late = true;
	take(UNCOVERED, 1, AGAIN_NS);
	ck_assert_uint_eq(pipeline_parked(pipeline), 1);
	late.fn(late.ctx, 0, -1, COVERED_LINE, strlen(COVERED_LINE));
	pipeline_turn(pipeline, AGAIN_NS + 1);
	ck_assert_uint_eq(pipeline_parked(pipeline), 0);
	ck_assert_uint_eq(ledger->cut[UNWIND_UNMAPPED], 1);
	ck_assert_uint_eq(ledger->cut[UNWIND_NO_RULE], 1);
}
END_TEST

START_TEST(attributes_of_a_new_configuration_are_those_of_samples_that_wait_too)
{
	struct config *now = parse("[profile]\nsample_attributes = thread.id\n");

	flush();
	ck_assert_int_eq(pipeline_reload(pipeline, now), 0);
	take(BASE + TINY_CODE, 11, NSEC_PER_SEC); /* waits */
	take(ANON + 0x10, 12, NSEC_PER_SEC + 1); /* does not */
	pipeline_end_wait(pipeline);
	flush();
	ck_assert_ptr_nonnull(request);
	ck_assert(strcmp(attributes("thread.id"), "11 12 ") == 0 || strcmp(attributes("thread.id"), "12 11 ") == 0);
	ck_assert_str_eq(attributes("process.executable.name"), "");
	pipeline = pipeline_free(pipeline);
	config_free(now);
}
END_TEST

Suite *pipeline_suite(void)
{
	Suite *s = suite_create("pipeline");
	TCase *t = tcase_create("pipeline");

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, sample_waits_for_names_of_its_file);
	tcase_add_test(t, stack_is_kernel_then_user_then_marker);
	tcase_add_test(t, a_file_that_could_not_be_opened_is_tried_again);
	tcase_add_test(t, sample_waits_for_its_own_process_mappings);
	tcase_add_loop_test(t, sample_keeps_the_mappings_that_it_is_unwound_by, 0, (int)ARRAY_SIZE(moments));
	tcase_add_test(t, sample_is_unwound_by_mappings_that_answer_at_once);
	tcase_add_test(t, sample_that_waits_is_unwound_by_the_mappings_that_it_waited_for);
	tcase_add_test(t, attributes_of_a_new_configuration_are_those_of_samples_that_wait_too);
	suite_add_tcase(s, t);
	return s;
}

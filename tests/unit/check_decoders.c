// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/disposable/decode_serve.h"
#include "daemon/engine/capture.h"
#include "daemon/engine/decoders_state.h"
#include "daemon/engine/replay_decoded.h"
#include "fake_runtime.h"

Suite *decoders_suite(void);

#define PLAYED 8

static struct decoders *ds;
static struct binary *binary;
static struct decoders_target target;
static struct ipc_message message;
static struct fake_code codes[3] = {{"one", 10, 2}, {"two", 20, 0}, {"three", 30, 4}};
static struct capture *capture;

/* --- the host: each question is for a decoder that the test plays --- */

static struct played {
	host_answer_fn *fn;
	void *ctx;
	struct host_request req;
	struct decode_serve *serve; /* as a real one does; NULL: not answered yet */
	bool ended;
} played[PLAYED];
static int asked, ask_err;
static uint64_t ended;

static int host_on_ask(struct host *h, const struct host_request *req, host_answer_fn *fn, void *ctx)
{
	if (ask_err)
		return ask_err;
	ck_assert_int_lt(asked, PLAYED);
	ck_assert(req->kind == HOST_OPEN_DECODER || req->kind == HOST_OPEN_MAPPED);
	played[asked++] = (struct played){.fn = fn, .ctx = ctx, .req = *req};
	return 0;
}

static void host_on_cancel(struct host *h, void *ctx)
{
	for (int i = 0; i < asked; i++)
		if (played[i].ctx == ctx)
			played[i].fn = NULL;
}

static const struct host_ops host_ops = {.ask = host_on_ask, .cancel = host_on_cancel};
static struct host host = {.ops = &host_ops};

static void on_end(void *ctx, uint64_t id)
{
	ended = id;
	played[id - 1].ended = true;
}

/* --- the caller --- */

static struct {
	int attached, attach_err, functions, err[8];
	char why[RUNTIME_WHY_MAX], name[8][32], version[32];
	struct decoder *last, *drop;
	size_t again; /* frames to ask in the first answer */
} heard;

static void on_attached(void *ctx, struct decoder *d, int err, const struct runtime_attached *a, const char *why)
{
	heard.attached++;
	heard.attach_err = err;
	heard.last = d;
	snprintf(heard.why, sizeof(heard.why), "%s", why);
	if (!err)
		snprintf(heard.version, sizeof(heard.version), "%s", a->version);
	ck_assert_ptr_eq(decoder_owner(d), &heard);
}

static void on_function(void *ctx, struct decoder *d, const struct runtime_frame *f, int err,
			const struct runtime_function *fn)
{
	const struct runtime_frame more[2] = {fake_frame(&codes[1]), fake_frame(&codes[2])};
	int i = heard.functions++;
	size_t again = heard.again;

	ck_assert_int_lt(i, 8);
	heard.err[i] = err;
	if (!err)
		snprintf(heard.name[i], sizeof(heard.name[i]), "%.31s", fn->name);
	heard.again = 0;
	if (again)
		ck_assert_uint_eq(decoders_decode(d, more, again), again);
	if (heard.drop == d)
		decoders_drop(d);
}

static const struct decoders_ops ops = {.attached = on_attached, .function = on_function};

/* --- one that the test plays --- */

static struct decode_mapping mapping_of_code(void)
{
	const struct binary_segment *s = binary->segments;

	while (!(s->flags & 1 /* PF_X */))
		s++;
	return (struct decode_mapping){.start = 0x10000 + ALIGN_DOWN(s->vaddr, 4096ull),
				       .offset = ALIGN_DOWN(s->offset, 4096ull)};
}

/* The host answers: there is a socket to it. */
static void open_decoder(int i)
{
	const struct decode_opened opened = {.id = (uint64_t)i + 1};
	int pair[2];

	ck_assert_int_lt(i, asked);
	ck_assert_int_eq(ipc_pair(pair), 0);
	played[i].serve = calloc(1, sizeof(*played[i].serve));
	decode_serve_init(played[i].serve, pair[1]);
	played[i].serve->memory_fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	played[i].fn(played[i].ctx, 0, pair[0], &opened, sizeof(opened));
}

/* It takes ATTACH with the file, and answers. */
static void let_attach(int i, int err)
{
	struct decode_serve *s = played[i].serve;
	const struct decode_mapping at = mapping_of_code();
	const struct decode_attach *a = (const void *)message.data;

	ck_assert_int_eq(ipc_receive(s->sock, &message), 1);
	ck_assert_uint_eq(message.head.type, IPC_ATTACH);
	ck_assert(ipc_fits(&message, sizeof(*a), 1));
	ipc_close_fds(&message);
	s->file.binary = binary;
	if (a->found)
		ck_assert_int_eq(decode_serve_attach_found(s, err, &at, &a->as), 0);
	else
		ck_assert_int_eq(decode_serve_attach(s, err, &at, a->reads), 0);
	decoders_read(ds);
}

static void attach_decoder(int i)
{
	open_decoder(i);
	let_attach(i, 0);
}

/* It answers one batch; the engine reads. */
static void let_decode(int i)
{
	ck_assert_int_eq(ipc_receive(played[i].serve->sock, &message), 1);
	ck_assert_int_eq(decode_serve_take(played[i].serve, &message), 0);
	decoders_read(ds);
}

static void end_decoder(int i)
{
	if (!played[i].serve)
		return;
	close(played[i].serve->sock);
	close(played[i].serve->memory_fd);
	free(played[i].serve);
	played[i].serve = NULL;
}

static int epoll = -1;

static void setup(void)
{
	struct decoders_config cfg = {.host = &host, .end = on_end, .capture = capture};

	fake_begin();
	memset(&heard, 0, sizeof(heard));
	memset(played, 0, sizeof(played));
	asked = ask_err = 0;
	ended = 0;
	cfg.epoll = epoll = epoll_create1(EPOLL_CLOEXEC);
	ck_assert_int_eq(binary_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "program", &binary), 0);
	target = (struct decoders_target){.pid = 42, .start_ns = 1, .exec_id = 2, .group = 7, .binary = binary,
					  .start = 0x1000, .end = 0x2000};
	ck_assert_int_eq(decoders_new(&cfg, &ds), 0);
	decoders_listen(ds, &ops, NULL);
}

static void teardown(void)
{
	ds = decoders_free(ds);
	for (int i = 0; i < PLAYED; i++)
		end_decoder(i);
	binary_set_page_hook(NULL, NULL);
	binary_put(binary);
	close(epoll);
	decode_set_runtimes(NULL, NULL);
}

static struct decoder *want(uint64_t group)
{
	target.group = group;
	target.pid++;
	return decoders_attach(ds, &target, &heard);
}

static void run_after(uint64_t ns)
{
	decoders_run(ds, clock_now_ns() + ns);
}

static struct decoders_figures figures(void)
{
	struct decoders_figures f;

	decoders_count(ds, &f);
	return f;
}

#define MS NSEC_PER_MSEC
#define S  NSEC_PER_SEC

START_TEST(a_decoder_attaches_and_decodes)
{
	const struct runtime_frame frames[3] = {fake_frame(&codes[0]), {.key = 8}, fake_frame(&codes[2])};
	struct decoder *d = decoders_attach(ds, &target, &heard);

	ck_assert_int_eq(asked, 1);
	ck_assert_uint_eq(played[0].req.pid, 42);
	ck_assert_uint_eq(played[0].req.end, 0x2000);
	ck_assert_uint_eq(decoders_decode(d, frames, 3), 0);
	attach_decoder(0);
	ck_assert_int_eq(heard.attached, 1);
	ck_assert_str_eq(heard.version, "1.2.3");
	ck_assert(decoder_is_attached(d));
	ck_assert_uint_eq(decoders_decode(d, frames, 3), 3);
	let_decode(0);
	ck_assert_int_eq(heard.functions, 3);
	ck_assert_str_eq(heard.name[0], "one");
	ck_assert_int_eq(heard.err[1], -EFAULT);
	ck_assert_str_eq(heard.name[2], "three");
}
END_TEST

START_TEST(files_of_lines_are_counted_by_what_became_of_them)
{
	const struct runtime_frame frames[2] = {fake_frame(&codes[0]), {.key = 8}};
	struct decoder *d = decoders_attach(ds, &target, &heard);
	struct decoders_figures f;

	fake_line_file = RUNTIME_LINES_OTHER_BUILD;
	attach_decoder(0);
	decoders_decode(d, frames, 2);
	let_decode(0);
	ck_assert_int_eq(heard.functions, 2);
	decoders_count(ds, &f);
	for (uint32_t i = 0; i < RUNTIME_LINE_FILES_NR; i++)
		ck_assert_uint_eq(f.line_files[i], i == RUNTIME_LINES_OTHER_BUILD);
}
END_TEST

static int code_is_still_there(const struct runtime_attached *a, struct memory *m, uint64_t pc, struct runtime_code_made *ret)
{
	return pc == 0x5000 ? -EALREADY : -ENOENT;
}

START_TEST(code_that_is_still_there_did_not_fail)
{
	const struct runtime_ops ops_with_code = {.name = "fake", .label = "Fake", .attach = fake_attach,
						  .decode = fake_decode, .code = code_is_still_there};
	const struct runtime_ops *const list[] = {&ops_with_code, NULL};
	const struct runtime_frame frames[] = {{.key = 0x5000, .flags = RUNTIME_CODE}, {.key = 0x6000, .flags = RUNTIME_CODE},
					       {.key = 8}};
	struct decoder *d = decoders_attach(ds, &target, &heard);

	decode_set_runtimes(fake_of_file, list);
	attach_decoder(0);
	ck_assert_uint_eq(decoders_decode(d, frames, ARRAY_SIZE(frames)), ARRAY_SIZE(frames));
	let_decode(0);
	ck_assert_uint_eq(figures().functions, 1);
	ck_assert_uint_eq(figures().failed, 2);
}
END_TEST

START_TEST(an_answer_may_ask_for_more)
{
	const struct runtime_frame frame = fake_frame(&codes[0]);
	struct decoder *d = decoders_attach(ds, &target, &heard);

	attach_decoder(0);
	heard.again = 2;
	decoders_decode(d, &frame, 1);
	let_decode(0);
	let_decode(0);
	ck_assert_int_eq(heard.functions, 3);
	ck_assert_str_eq(heard.name[2], "three");
}
END_TEST

START_TEST(more_frames_than_a_batch_are_several_batches)
{
	struct runtime_frame *frames = calloc(DECODER_QUEUE + 1, sizeof(*frames));
	struct decoder *d = decoders_attach(ds, &target, &heard);

	attach_decoder(0);
	ck_assert_uint_eq(decoders_decode(d, frames, DECODER_QUEUE + 1), DECODER_QUEUE);
	ck_assert_uint_eq(decoders_decode(d, frames, 1), 0);
	ck_assert_int_eq(ipc_receive(played[0].serve->sock, &message), 1);
	ck_assert_uint_eq(((struct decode_batch *)(void *)message.data)->count, DECODE_FRAMES);
	ck_assert_int_eq(ipc_receive(played[0].serve->sock, &message), -EAGAIN);
	free(frames);
}
END_TEST

START_TEST(an_idle_decoder_ends_and_another_is_started_for_the_next_frame)
{
	const struct runtime_frame frame = fake_frame(&codes[0]);
	struct decoder *d = decoders_attach(ds, &target, &heard);

	attach_decoder(0);
	run_after(S);
	ck_assert_uint_eq(ended, 0);
	run_after(3 * S);
	ck_assert_uint_eq(ended, 1);
	ck_assert_uint_eq(figures().live, 0);
	ck_assert_uint_eq(decoders_decode(d, &frame, 1), 1);
	run_after(3 * S);
	ck_assert_int_eq(asked, 2);
	attach_decoder(1);
	let_decode(1);
	ck_assert_int_eq(heard.attached, 1); /* once */
	ck_assert_str_eq(heard.name[0], "one");
}
END_TEST

START_TEST(another_process_for_one_that_was_attached_waits_until_it_is_paid_for)
{
	const struct runtime_frame frame = fake_frame(&codes[0]);
	struct decoder *d = decoders_attach(ds, &target, &heard);

	ds->cfg.repeats = 2;
	attach_decoder(0);
	ck_assert_uint_eq(ds->paid_ns, 0); /* its first one */
	run_after(3 * S);
	for (int i = 0; i < 4; i++)
		want(7); /* three have a process, and one waits for their places */
	ck_assert_int_eq(asked, DECODERS_LIVE);
	attach_decoder(1);
	run_after(60 * MS);
	ck_assert_uint_eq(ended, 2);
	attach_decoder(2);
	attach_decoder(3);
	attach_decoder(4);
	ds->paid_ns = clock_now_ns() + (4 + 1) * S; /* all that may be ahead, and a second */
	ck_assert_uint_eq(decoders_decode(d, &frame, 1), 1);
	run_after(900 * MS);
	ck_assert_uint_eq(ended, 2); /* nothing is won by the end of those that are idle */
	ck_assert_uint_le(decoders_next_ns(ds), clock_now_ns() + S);
	run_after(1100 * MS);
	ck_assert_uint_gt(ended, 2);
	ck_assert_int_eq(asked, 6);
	ck_assert_uint_gt(ds->paid_ns, clock_now_ns() + (4 + 1) * S);
}
END_TEST

/* The monitor would end it some seconds later, and a question with it. */
START_TEST(an_old_decoder_ends_between_two_questions)
{
	const struct runtime_frame frame = fake_frame(&codes[0]);
	struct decoder *d = decoders_attach(ds, &target, &heard);

	attach_decoder(0);
	ck_assert_uint_eq(decoders_decode(d, &frame, 1), 1);
	run_after(0);
	ck_assert_uint_eq(ended, 0);
	let_decode(0);
	d->used_ns += 21 * S;
	run_after(19 * S);
	ck_assert_uint_eq(ended, 0);
	run_after(21 * S);
	ck_assert_uint_eq(ended, 1);
	ck_assert_uint_eq(figures().died, 0);
}
END_TEST

static const struct runtime_ops lasting = {.name = "fake", .label = "Fake", .attach = fake_attach,
					   .decode = fake_decode, .found_lasts = true};
static const struct runtime_ops *const lasting_list[] = {&lasting, NULL};

static int failing_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
			  char why[RUNTIME_WHY_MAX])
{
	return -ENOTSUP;
}

/* The second one could not find it again. */
START_TEST(what_a_former_decoder_has_found_is_not_sought_again)
{
	static const struct runtime_ops gone = {.name = "fake", .label = "Fake", .attach = failing_attach,
						.decode = fake_decode, .found_lasts = true};
	static const struct runtime_ops *const gone_list[] = {&gone, NULL};
	const struct runtime_frame frame = fake_frame(&codes[0]);
	struct decoder *d;

	decode_set_runtimes(fake_of_file, lasting_list);
	d = decoders_attach(ds, &target, &heard);
	attach_decoder(0);
	run_after(3 * S);
	ck_assert_uint_eq(ended, 1);
	decode_set_runtimes(fake_of_file, gone_list);
	ck_assert_uint_eq(decoders_decode(d, &frame, 1), 1);
	run_after(3 * S);
	attach_decoder(1);
	let_decode(1);
	ck_assert_str_eq(heard.name[0], "one");
}
END_TEST

START_TEST(a_runtime_that_has_not_started_is_asked_again_after_pauses_that_double)
{
	decoders_attach(ds, &target, &heard);
	fake_state = 0;
	attach_decoder(0);
	ck_assert_int_eq(heard.attached, 0);
	run_after(50 * MS);
	ck_assert_int_eq(asked, 1);
	run_after(100 * MS);
	ck_assert_int_eq(asked, 2);
	attach_decoder(1);
	run_after(150 * MS);
	ck_assert_int_eq(asked, 2);
	fake_state = FAKE_STARTED;
	run_after(200 * MS);
	attach_decoder(2);
	ck_assert_int_eq(heard.attached, 1);
	ck_assert_int_eq(heard.attach_err, 0);
}
END_TEST

START_TEST(a_runtime_that_is_not_known_while_it_begins_is_read_once_more)
{
	decoders_attach(ds, &target, &heard);
	fake_attach_err = -ENOTSUP;
	attach_decoder(0);
	ck_assert_int_eq(heard.attached, 0);
	fake_attach_err = 0;
	run_after(100 * MS);
	ck_assert_int_eq(asked, 2);
	attach_decoder(1);
	ck_assert_int_eq(heard.attached, 1);
	ck_assert_int_eq(heard.attach_err, 0);
}
END_TEST

START_TEST(an_unknown_version_is_reported_once_with_its_reason)
{
	const struct runtime_frame frame = fake_frame(&codes[0]);
	struct decoder *d = decoders_attach(ds, &target, &heard);

	fake_attach_err = -ENOTSUP;
	attach_decoder(0);
	run_after(100 * MS);
	attach_decoder(1);
	ck_assert_int_eq(heard.attach_err, -ENOTSUP);
	ck_assert_str_eq(heard.why, "a version of tomorrow");
	ck_assert_uint_eq(decoders_decode(d, &frame, 1), 0);
	run_after(3600 * S);
	ck_assert_int_eq(asked, 2);
}
END_TEST

/* A copy of this program: another file, the same build. */
static int copy_of_program(void)
{
	char path[] = "/tmp/otprof-decoders-XXXXXX";
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = mkostemp(path, O_CLOEXEC);

	unlink(path);
	while (copy_file_range(from, NULL, to, NULL, 1u << 30, 0) > 0)
		;
	close(from);
	return to;
}

/* The process maps another file than the one that the decoder shows. */
static void meet_another_file(void)
{
	decoders_attach(ds, &target, &heard);
	open_decoder(0);
	let_attach(0, -ESTALE);
	ck_assert_uint_eq(ended, 1);
	ck_assert_int_eq(asked, 2);
	ck_assert_uint_eq(played[1].req.kind, HOST_OPEN_MAPPED);
	ck_assert_uint_eq(played[1].req.pid, 42);
	ck_assert_uint_eq(played[1].req.pid_start_ns, 1);
	ck_assert_uint_eq(played[1].req.start, 0x1000);
	ck_assert_uint_eq(played[1].req.end, 0x2000);
	ck_assert_int_eq(heard.attached, 0);
}

START_TEST(a_process_with_another_file_of_the_same_build_has_that_opened)
{
	const struct host_ticket ticket = {.opaque = {5}};
	struct stat own, shown;
	int fd = copy_of_program();

	meet_another_file();
	ck_assert_int_eq(fstat(fd, &own), 0);
	played[1].fn(played[1].ctx, 0, fd, &ticket, sizeof(ticket));
	run_after(0);
	ck_assert_int_eq(asked, 3);
	ck_assert_uint_eq(played[2].req.kind, HOST_OPEN_DECODER);
	ck_assert_int_eq(fstat(played[2].req.elf_fd, &shown), 0);
	ck_assert_uint_eq(shown.st_ino, own.st_ino);
	ck_assert_uint_eq(played[2].req.ticket->opaque[0], 5);
	attach_decoder(2);
	ck_assert_int_eq(heard.attached, 1);
	ck_assert_int_eq(heard.attach_err, 0);
}
END_TEST

START_TEST(a_file_that_changes_again_is_not_opened_again)
{
	meet_another_file();
	played[1].fn(played[1].ctx, 0, copy_of_program(), NULL, 0);
	run_after(0);
	open_decoder(2);
	let_attach(2, -ESTALE);
	run_after(3600 * S);
	ck_assert_int_eq(asked, 3);
	ck_assert_int_eq(heard.attach_err, -ESTALE);
}
END_TEST

START_TEST(a_file_of_another_build_is_refused)
{
	meet_another_file();
	played[1].fn(played[1].ctx, 0, open("/bin/true", O_RDONLY | O_CLOEXEC), NULL, 0);
	ck_assert_int_eq(heard.attached, 1);
	ck_assert_int_eq(heard.attach_err, -ESTALE);
}
END_TEST

/* -ENOENT of attach says that the file holds no runtime, which is not known. */
START_TEST(a_file_that_cannot_be_had_is_refused_or_tried_again)
{
	meet_another_file();
	played[1].fn(played[1].ctx, _i ? -ETIMEDOUT : -ENOENT, -1, NULL, 0);
	ck_assert_int_eq(heard.attached, !_i);
	ck_assert_int_eq(heard.attach_err, _i ? 0 : -ESTALE);
	run_after(S);
	ck_assert_int_eq(asked, _i ? 3 : 2);
}
END_TEST

START_TEST(a_decoder_that_does_not_answer_loses_one_frame)
{
	const struct runtime_frame frames[2] = {fake_frame(&codes[0]), fake_frame(&codes[1])};
	struct decoder *d = decoders_attach(ds, &target, &heard);

	attach_decoder(0);
	decoders_decode(d, frames, 2);
	run_after(S);
	ck_assert_int_eq(heard.functions, 0);
	run_after(3 * S);
	ck_assert_uint_eq(ended, 1);
	ck_assert_int_eq(heard.functions, 1);
	ck_assert_int_eq(heard.err[0], -ETIMEDOUT);
	run_after(4 * S);
	ck_assert_int_eq(asked, 2);
	attach_decoder(1);
	let_decode(1);
	ck_assert_int_eq(heard.functions, 2);
	ck_assert_str_eq(heard.name[1], "two");
	ck_assert_uint_eq(figures().late, 1);
}
END_TEST

START_TEST(one_that_never_attaches_is_given_up)
{
	decoders_attach(ds, &target, &heard);
	for (int i = 0; i < PLAYED; i++) {
		open_decoder(i);
		end_decoder(i);
		decoders_read(ds);
		ck_assert_int_eq(heard.attached, i == PLAYED - 1);
		run_after(600 * S);
	}
	ck_assert_int_eq(heard.attach_err, -EIO);
	ck_assert_int_eq(asked, PLAYED);
}
END_TEST

START_TEST(a_message_that_breaks_the_rules_ends_the_decoder)
{
	static const uint32_t types[] = {IPC_ATTACHED, IPC_FUNCTION, IPC_READ, IPC_BEAT};
	const struct runtime_frame frame = fake_frame(&codes[0]);
	struct decoder *d = decoders_attach(ds, &target, &heard);

	attach_decoder(0);
	decoders_decode(d, &frame, 1);
	ck_assert_int_eq(ipc_send(played[0].serve->sock, types[_i], 1, "nonsense", 8, NULL, 0), 0);
	decoders_read(ds);
	ck_assert_uint_eq(ended, 1);
	ck_assert_int_eq(heard.err[0], -EBADMSG);
}
END_TEST

START_TEST(a_descriptor_from_a_decoder_ends_it)
{
	const struct runtime_frame frame = fake_frame(&codes[0]);
	struct decoder *d = decoders_attach(ds, &target, &heard);
	int fd = STDERR_FILENO;

	attach_decoder(0);
	decoders_decode(d, &frame, 1);
	ck_assert_int_eq(ipc_send(played[0].serve->sock, IPC_FUNCTION, 1, NULL, 0, &fd, 1), 0);
	decoders_read(ds);
	ck_assert_uint_eq(ended, 1);
}
END_TEST

START_TEST(one_group_leaves_processes_to_others)
{
	for (int i = 0; i < 20; i++)
		want(7);
	ck_assert_int_eq(asked, DECODERS_LIVE - 1);
	want(8);
	ck_assert_int_eq(asked, DECODERS_LIVE);
	ck_assert_uint_eq(played[asked - 1].req.group, 8);
	/* The next place is that of the other group, though others wait longer. */
	want(8);
	attach_decoder(0);
	run_after(60 * MS); /* others wait: an idle one ends sooner */
	ck_assert_uint_eq(ended, 1);
	ck_assert_int_eq(asked, DECODERS_LIVE + 1);
	ck_assert_uint_eq(played[asked - 1].req.group, 8);
}
END_TEST

START_TEST(one_group_has_half_of_the_objects)
{
	for (int i = 0; i < DECODERS_MAX / 2; i++)
		ck_assert_ptr_nonnull(want(7));
	ck_assert_ptr_null(want(7));
	for (int i = 0; i < DECODERS_MAX / 2; i++)
		ck_assert_ptr_nonnull(want(8 + (uint64_t)i % 4));
	ck_assert_ptr_null(want(99));
}
END_TEST

START_TEST(one_may_be_dropped_in_its_own_call)
{
	const struct runtime_frame frames[2] = {fake_frame(&codes[0]), fake_frame(&codes[1])};
	struct decoder *d = decoders_attach(ds, &target, &heard);

	attach_decoder(0);
	decoders_decode(d, frames, 2);
	heard.drop = d;
	let_decode(0);
	ck_assert_int_eq(heard.functions, 1);
	ck_assert_uint_eq(figures().decoders, 0);
	ck_assert_uint_eq(ended, 1);
}
END_TEST

START_TEST(a_busy_host_is_asked_again)
{
	ask_err = -EBUSY;
	decoders_attach(ds, &target, &heard);
	ck_assert_int_eq(asked, 0);
	ask_err = 0;
	run_after(200 * MS);
	ck_assert_int_eq(asked, 1);
	ck_assert_int_eq(heard.attached, 0);
}
END_TEST

/* --- captures --- */

/* Records of this type, to replay_decoded. */
static void add_records(struct replay_decoded *r, const uint8_t *data, size_t len)
{
	struct capture_record rec;

	for (size_t at = sizeof(struct capture_head); at + sizeof(rec) <= len; at += sizeof(rec) + ALIGN_UP(rec.len, 8u)) {
		memcpy(&rec, data + at, sizeof(rec));
		if (rec.type == CAPTURE_DECODED)
			ck_assert_int_eq(replay_decoded_add(r, data + at + sizeof(rec), rec.len), 0);
	}
}

static struct replay_decoded replayed;

static int replay_on_ask(struct host *h, const struct host_request *req, host_answer_fn *fn, void *ctx)
{
	fn(ctx, 0, -1, &replayed.as, sizeof(replayed.as));
	return 0;
}

static const struct host_ops replay_ops = {.ask = replay_on_ask, .cancel = host_on_cancel};
static struct host replay_host = {.ops = &replay_ops};

static int capture_fd = -1;

static void setup_capture(void)
{
	const struct origins origins = origins_of_clock(1000000);

	capture_fd = memfd_create("capture", MFD_CLOEXEC);
	ck_assert_int_eq(capture_new(dup(capture_fd), &origins, &capture), 0);
	setup();
}

static void teardown_capture(void)
{
	capture = capture_free(capture);
	closep(&capture_fd);
	teardown();
}

/* Two functions, of which the memory then changes; -EAGAIN before. */
static uint8_t *make_capture(size_t *ret_len)
{
	const struct runtime_frame frames[2] = {fake_frame(&codes[0]), fake_frame(&codes[2])};
	struct decoder *d = decoders_attach(ds, &target, &heard);
	uint8_t *data = malloc(1 << 20);
	ssize_t n;

	fake_state = 0;
	attach_decoder(0);
	fake_state = FAKE_STARTED;
	run_after(S);
	attach_decoder(1);
	decoders_decode(d, frames, 2);
	let_decode(1);
	ck_assert_int_eq(heard.functions, 2);
	ds = decoders_free(ds);
	capture = capture_free(capture);
	n = pread(capture_fd, data, 1 << 20, 0);
	ck_assert_int_gt(n, 0);
	*ret_len = (size_t)n;
	return data;
}

static void begin_replay(void)
{
	const struct decoders_config cfg = {.host = &replay_host, .epoll = -1};

	ds = decoders_free(ds);
	memset(&heard, 0, sizeof(heard));
	ck_assert_int_eq(decoders_new(&cfg, &ds), 0);
	decoders_listen(ds, &ops, NULL);
}

START_TEST(a_replay_decodes_without_the_process)
{
	const struct runtime_frame frames[3] = {fake_frame(&codes[2]), fake_frame(&codes[0]), fake_frame(&codes[1])};
	struct fake_code before = codes[0];
	struct decoder *d;
	size_t len;
	uint8_t *data = make_capture(&len);

	replay_decoded_init(&replayed);
	add_records(&replayed, data, len);
	strcpy(codes[0].name, "changed");
	fake_state = 0;
	begin_replay();
	d = decoders_attach(ds, &target, &heard);
	ck_assert_int_eq(heard.attached, 1);
	ck_assert_int_eq(heard.attach_err, 0);
	heard.again = 1;
	ck_assert_uint_eq(decoders_decode(d, frames, 3), 3);
	ck_assert_int_eq(heard.functions, 4);
	ck_assert_str_eq(heard.name[0], "three");
	ck_assert_str_eq(heard.name[1], "one");
	ck_assert_int_eq(heard.err[2], -ENOENT); /* it was not asked for */
	codes[0] = before;
	ds = decoders_free(ds);
	replay_decoded_done(&replayed);
	free(data);
}
END_TEST

/* Its name is in a file, which an opener has sent. */
static void capture_named_by_a_file(void)
{
	const struct runtime_frame frame = fake_frame(&codes[0]);
	const struct ipc_answer answer = {0};
	struct decoder *d = decoders_attach(ds, &target, &heard);
	int pair[2], fd = memfd_create("beside", MFD_CLOEXEC);

	attach_decoder(0);
	ck_assert_int_eq(ipc_pair(pair), 0);
	ck_assert_int_eq(write(fd, "of the file", 11), 11);
	ck_assert_int_eq(ipc_send(pair[0], IPC_ANSWER, 1, &answer, sizeof(answer), &fd, 1), 0);
	played[0].serve->monitor = pair[1];
	fake_beside = "a.pdb";
	decoders_decode(d, &frame, 1);
	let_decode(0);
	ck_assert_str_eq(heard.name[0], "of the file");
	close(fd);
	close(pair[0]);
	close(pair[1]);
}

START_TEST(a_replay_has_the_files_that_functions_needed)
{
	const struct runtime_frame frame = fake_frame(&codes[0]);
	static uint8_t data[1 << 16];
	ssize_t len;

	capture_named_by_a_file();
	ds = decoders_free(ds);
	capture = capture_free(capture);
	len = pread(capture_fd, data, sizeof(data), 0);
	ck_assert_int_gt(len, 0);
	replay_decoded_init(&replayed);
	add_records(&replayed, data, (size_t)len);
	begin_replay();
	ck_assert_uint_eq(decoders_decode(decoders_attach(ds, &target, &heard), &frame, 1), 1);
	ck_assert_str_eq(heard.name[0], "of the file");
	ds = decoders_free(ds);
	replay_decoded_done(&replayed);
}
END_TEST

START_TEST(a_process_that_was_not_captured_has_no_runtime)
{
	replay_decoded_init(&replayed);
	begin_replay();
	ck_assert_ptr_nonnull(decoders_attach(ds, &target, &heard));
	ck_assert_int_eq(heard.attach_err, -ENOENT);
	ds = decoders_free(ds);
	replay_decoded_done(&replayed);
}
END_TEST

Suite *decoders_suite(void)
{
	Suite *s = suite_create("decoders");
	TCase *live = tcase_create("live"), *captures = tcase_create("captures");

	tcase_add_checked_fixture(live, setup, teardown);
	tcase_add_test(live, a_decoder_attaches_and_decodes);
	tcase_add_test(live, files_of_lines_are_counted_by_what_became_of_them);
	tcase_add_test(live, code_that_is_still_there_did_not_fail);
	tcase_add_test(live, an_answer_may_ask_for_more);
	tcase_add_test(live, more_frames_than_a_batch_are_several_batches);
	tcase_add_test(live, an_idle_decoder_ends_and_another_is_started_for_the_next_frame);
	tcase_add_test(live, an_old_decoder_ends_between_two_questions);
	tcase_add_test(live, another_process_for_one_that_was_attached_waits_until_it_is_paid_for);
	tcase_add_test(live, what_a_former_decoder_has_found_is_not_sought_again);
	tcase_add_test(live, a_runtime_that_has_not_started_is_asked_again_after_pauses_that_double);
	tcase_add_test(live, a_runtime_that_is_not_known_while_it_begins_is_read_once_more);
	tcase_add_test(live, an_unknown_version_is_reported_once_with_its_reason);
	tcase_add_test(live, a_process_with_another_file_of_the_same_build_has_that_opened);
	tcase_add_test(live, a_file_that_changes_again_is_not_opened_again);
	tcase_add_test(live, a_file_of_another_build_is_refused);
	tcase_add_loop_test(live, a_file_that_cannot_be_had_is_refused_or_tried_again, 0, 2);
	tcase_add_test(live, a_decoder_that_does_not_answer_loses_one_frame);
	tcase_add_test(live, one_that_never_attaches_is_given_up);
	tcase_add_loop_test(live, a_message_that_breaks_the_rules_ends_the_decoder, 0, 4);
	tcase_add_test(live, a_descriptor_from_a_decoder_ends_it);
	tcase_add_test(live, one_group_leaves_processes_to_others);
	tcase_add_test(live, one_group_has_half_of_the_objects);
	tcase_add_test(live, one_may_be_dropped_in_its_own_call);
	tcase_add_test(live, a_busy_host_is_asked_again);
	suite_add_tcase(s, live);
	tcase_add_checked_fixture(captures, setup_capture, teardown_capture);
	tcase_add_test(captures, a_replay_decodes_without_the_process);
	tcase_add_test(captures, a_replay_has_the_files_that_functions_needed);
	tcase_add_test(captures, a_process_that_was_not_captured_has_no_runtime);
	suite_add_tcase(s, captures);
	return s;
}

// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/disposable/decode_serve.h"
#include "fake_runtime.h"
#include "process/beside.h"

Suite *decode_suite(void);

static struct ipc_message message;
static struct runtime_function function, got;

/* --- messages --- */

static void message_of(uint32_t type, size_t len)
{
	message.head = (struct ipc_head){.type = type, .len = (uint32_t)len};
	for (int i = 0; i < IPC_FDS_MAX; i++)
		message.fds[i] = -1;
}

static void make_function(uint32_t rows)
{
	memset(&function, 0, sizeof(function));
	strcpy(function.name, "Class.method");
	strcpy(function.file, "/srv/app.py");
	function.start_line = 7;
	function.nr_lines = rows;
	for (uint32_t i = 0; i < MIN(rows, (uint32_t)RUNTIME_LINES_MAX); i++)
		function.lines[i] = (struct runtime_line){i, 7 + i};
}

static int unpack(uint32_t index, int *err)
{
	return decode_function_unpack(&message, index, err, &got);
}

START_TEST(a_function_arrives_whole)
{
	int err = 1;

	make_function(100);
	function.has_columns = function.is_bounded = true;
	message_of(IPC_FUNCTION, decode_function_pack(0, 3, &function, message.data));
	ck_assert_int_eq(unpack(3, &err), 0);
	ck_assert(got.has_columns);
	ck_assert(got.is_bounded);
	ck_assert_int_eq(err, 0);
	ck_assert_str_eq(got.name, "Class.method");
	ck_assert_str_eq(got.file, "/srv/app.py");
	ck_assert_uint_eq(got.start_line, 7);
	ck_assert_uint_eq(got.nr_lines, 100);
	ck_assert_int_eq(memcmp(got.lines, function.lines, 100 * sizeof(got.lines[0])), 0);
}
END_TEST

START_TEST(the_largest_function_fits_and_a_larger_one_is_cut)
{
	int err;

	make_function(RUNTIME_LINES_MAX + 1);
	memset(function.name, 'n', sizeof(function.name));
	memset(function.file, 'f', sizeof(function.file));
	message_of(IPC_FUNCTION, decode_function_pack(0, 0, &function, message.data));
	ck_assert_uint_le(message.head.len, IPC_DATA_MAX);
	ck_assert_int_eq(unpack(0, &err), 0);
	ck_assert_uint_eq(got.nr_lines, RUNTIME_LINES_MAX);
	ck_assert_uint_eq(strlen(got.name), RUNTIME_NAME_MAX - 1);
	ck_assert_uint_eq(strlen(got.file), RUNTIME_PATH_MAX - 1);
}
END_TEST

START_TEST(a_function_that_could_not_be_decoded_is_its_error)
{
	int err;

	message_of(IPC_FUNCTION, decode_function_pack(-ESTALE, 5, NULL, message.data));
	ck_assert_int_eq(unpack(5, &err), 0);
	ck_assert_int_eq(err, -ESTALE);
}
END_TEST

START_TEST(lines_out_of_order_are_left_out)
{
	int err;

	make_function(4);
	function.lines[2].position = 0;
	message_of(IPC_FUNCTION, decode_function_pack(0, 0, &function, message.data));
	ck_assert_int_eq(unpack(0, &err), 0);
	ck_assert_uint_eq(got.nr_lines, 3);
	ck_assert_uint_eq(got.lines[2].position, 3);
}
END_TEST

static struct runtime_code_made code, got_code;

static void make_code(uint32_t functions, uint32_t nodes, uint32_t rows, uint32_t more)
{
	code.code = (struct runtime_code){.start = 0x1000, .end = 0x9000, .nr_functions = functions, .nr_nodes = nodes,
					  .nr_rows = rows, .nr_more = more, .name = "[stub]"};
	for (uint32_t i = 0; i < functions; i++)
		code.functions[i] = (struct runtime_frame){.key = i + 1};
	for (uint32_t i = 0; i < nodes; i++)
		code.nodes[i] = (struct runtime_code_node){.function = 0, .outer = (uint16_t)i, .position = i};
	for (uint32_t i = 0; i < rows; i++)
		code.rows[i] = (struct runtime_code_row){.offset = 2 * i, .node = 0};
	for (uint32_t i = 0; i < more; i++)
		code.more[i] = 7 * i + 1;
}

START_TEST(a_region_of_code_arrives_whole)
{
	int err = 1;

	make_code(RUNTIME_CODE_FUNCTIONS, RUNTIME_CODE_NODES, RUNTIME_CODE_ROWS, RUNTIME_CODE_MORE);
	message_of(IPC_CODE, decode_code_pack(0, 3, &code, message.data));
	ck_assert_int_eq(decode_code_unpack(&message, 3, 0x1000, &err, &got_code), 0);
	ck_assert_int_eq(err, 0);
	ck_assert_int_eq(memcmp(&got_code, &code, sizeof(code)), 0);
}
END_TEST

START_TEST(a_region_of_code_that_is_elsewhere_or_not_sound_is_refused)
{
	int err;

	make_code(1, 2, 2, 0);
	message_of(IPC_CODE, decode_code_pack(0, 0, &code, message.data));
	ck_assert_int_eq(decode_code_unpack(&message, 0, 0xfff, &err, &got_code), -EBADMSG);
	ck_assert_int_eq(decode_code_unpack(&message, 0, 0x9000, &err, &got_code), -EBADMSG);
	ck_assert_int_eq(decode_code_unpack(&message, 1, 0x1000, &err, &got_code), -EBADMSG);
	code.nodes[1].function = 1;
	message_of(IPC_CODE, decode_code_pack(0, 0, &code, message.data));
	ck_assert_int_eq(decode_code_unpack(&message, 0, 0x1000, &err, &got_code), -EBADMSG);
	message_of(IPC_CODE, decode_code_pack(-ENOENT, 0, NULL, message.data));
	ck_assert_int_eq(decode_code_unpack(&message, 0, 0x1000, &err, &got_code), 0);
	ck_assert_int_eq(err, -ENOENT);
}
END_TEST

START_TEST(a_region_of_code_of_any_wrong_length_is_refused)
{
	size_t len;
	int err;

	make_code(1, 2, 3, 5);
	len = decode_code_pack(0, 0, &code, message.data);
	for (size_t n = 0; n <= len + 8; n++) {
		message_of(IPC_CODE, n);
		ck_assert_int_eq(decode_code_unpack(&message, 0, 0x1000, &err, &got_code), n == len ? 0 : -EBADMSG);
	}
}
END_TEST

START_TEST(a_function_of_any_wrong_length_is_refused)
{
	size_t len;
	int err;

	make_function(2);
	len = decode_function_pack(0, 0, &function, message.data);
	for (size_t n = 0; n <= len + 8; n++) {
		message_of(IPC_FUNCTION, n);
		ck_assert_int_eq(unpack(0, &err), n == len ? 0 : -EBADMSG);
	}
}
END_TEST

/* What a decoder that was taken over may claim. */
static void lie(int which, struct decode_function *f)
{
	struct runtime_line *lines = (void *)(f + 1);

	switch (which) {
	case 0: f->index = 1; break;
	case 1: f->err = 1; break;
	case 2: f->err = INT32_MIN; break;
	case 3: f->nr_lines = UINT32_MAX; break;
	case 4: f->nr_lines = 0x20000000u; break; /* times 8 is 0 */
	case 5: f->name_len = UINT32_MAX; break;
	case 6: f->file_len = RUNTIME_PATH_MAX; break;
	case 7: f->err = -EFAULT; break; /* and yet a function */
	case 8: lines[0].position = 9; break;
	case 9: f->line_file = RUNTIME_LINE_FILES_NR; break;
	}
}

START_TEST(a_function_that_lies_is_refused)
{
	int err = 77;

	make_function(2);
	message_of(IPC_FUNCTION, decode_function_pack(0, 0, &function, message.data));
	lie(_i, (void *)message.data);
	ck_assert_int_eq(unpack(0, &err), -EBADMSG);
	ck_assert_int_eq(err, 77);
}
END_TEST

START_TEST(what_attach_found_is_checked)
{
	struct runtime_attached a = {.version = "3.11"};
	struct decode_attached ret;

	message_of(IPC_ATTACHED, decode_attached_pack(0, 4096, &a, "", message.data));
	ck_assert_int_eq(decode_attached_unpack(&message, &ret), 0);
	ck_assert_uint_eq(ret.bias, 4096);
	ck_assert_str_eq(ret.attached.version, "3.11");
	((struct decode_attached *)(void *)message.data)->attached.nr_loops = RUNTIME_LOOPS + 1;
	ck_assert_int_eq(decode_attached_unpack(&message, &ret), -EBADMSG);
	message.head.len--;
	ck_assert_int_eq(decode_attached_unpack(&message, &ret), -EBADMSG);
}
END_TEST

START_TEST(a_reason_always_ends)
{
	struct decode_attached ret;

	message_of(IPC_ATTACHED, decode_attached_pack(-ENOTSUP, 0, NULL, "version 99", message.data));
	memset(((struct decode_attached *)(void *)message.data)->why, 'x', RUNTIME_WHY_MAX);
	ck_assert_int_eq(decode_attached_unpack(&message, &ret), 0);
	ck_assert_int_eq(ret.err, -ENOTSUP);
	ck_assert_uint_eq(strlen(ret.why), RUNTIME_WHY_MAX - 1);
}
END_TEST

START_TEST(a_batch_has_as_many_frames_as_it_says)
{
	const struct runtime_frame frames[2] = {{.key = 1}, {.key = 2}}, *ret;
	size_t len = decode_batch_pack(frames, 2, message.data);
	struct decode_batch *b = (void *)message.data;
	uint32_t count;

	message_of(IPC_DECODE, len);
	ck_assert_int_eq(decode_batch_unpack(&message, &ret, &count), 0);
	ck_assert_uint_eq(count, 2);
	ck_assert_uint_eq(ret[1].key, 2);
	for (size_t n = 0; n < len; n++) {
		message_of(IPC_DECODE, n);
		ck_assert_int_eq(decode_batch_unpack(&message, &ret, &count), -EBADMSG);
	}
	b->count = DECODE_FRAMES + 1;
	message_of(IPC_DECODE, sizeof(*b) + b->count * sizeof(frames[0]));
	ck_assert_int_eq(decode_batch_unpack(&message, &ret, &count), -EBADMSG);
}
END_TEST

START_TEST(a_read_has_the_bytes_that_it_says)
{
	struct decode_read r;
	const uint8_t *bytes;
	size_t len = decode_read_pack(DECODE_MEMORY, 64, "bytes", 5, message.data);

	message_of(IPC_READ, len);
	ck_assert_int_eq(decode_read_unpack(&message, &r, &bytes), 0);
	ck_assert_uint_eq(r.addr, 64);
	ck_assert_int_eq(memcmp(bytes, "bytes", 5), 0);
	for (size_t n = 0; n < len; n++) {
		message_of(IPC_READ, n);
		ck_assert_int_eq(decode_read_unpack(&message, &r, &bytes), -EBADMSG);
	}
	message_of(IPC_READ, len);
	((struct decode_read *)(void *)message.data)->source = DECODE_SOURCES;
	ck_assert_int_eq(decode_read_unpack(&message, &r, &bytes), -EBADMSG);
}
END_TEST

/* --- a decoder, of this process --- */

static struct decode_serve *serve;
static int engine = -1;
static struct fake_code codes[3] = {{"one", 10, 2}, {"two", 20, 0}, {"three", 30, 4}};
static struct decode_mapping at;
extern const char __executable_start; /* the linker's: where the first segment is */

/* Of the code that runs here. */
static void find_mapping(void)
{
	_cleanup_(fclosep) FILE *maps = fopen("/proc/self/maps", "re");
	uint64_t here = (uint64_t)(uintptr_t)decode_suite, start, end, offset;
	char line[4096];

	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 && here >= start && here < end)
			at = (struct decode_mapping){start, offset};
}

static void setup(void)
{
	int pair[2];

	fake_begin();
	find_mapping();
	ck_assert_int_eq(ipc_pair(pair), 0);
	engine = pair[0];
	serve = calloc(1, sizeof(*serve));
	decode_serve_init(serve, pair[1]);
	serve->memory_fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(binary_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "", &serve->file.binary), 0);
}

static void teardown(void)
{
	binary_set_page_hook(NULL, NULL);
	binary_put(serve->file.binary);
	close(serve->memory_fd);
	close(serve->sock);
	close(engine);
	free(serve);
	decode_set_runtimes(NULL, NULL);
}

static int receive(uint32_t type)
{
	int r = ipc_receive_plain(engine, &message);

	if (r == 1)
		ck_assert_uint_eq(message.head.type, type);
	return r;
}

static int attach(int err)
{
	struct decode_attached a;

	ck_assert_int_eq(decode_serve_attach(serve, err, &at, false), 0);
	ck_assert_int_eq(receive(IPC_ATTACHED), 1);
	ck_assert_int_eq(decode_attached_unpack(&message, &a), 0);
	if (!a.err)
		ck_assert_uint_eq(a.attached.param[0], a.bias);
	return a.err;
}

static int decode(const struct runtime_frame *frames, uint32_t n)
{
	message_of(IPC_DECODE, decode_batch_pack(frames, n, message.data));
	return decode_serve_take(serve, &message);
}

static int answer(uint32_t index)
{
	int err;

	ck_assert_int_eq(receive(IPC_FUNCTION), 1);
	ck_assert_int_eq(unpack(index, &err), 0);
	return err;
}

START_TEST(a_batch_is_answered_in_order)
{
	const struct runtime_frame frames[3] = {fake_frame(&codes[0]), {.key = 8}, fake_frame(&codes[2])};

	ck_assert_int_eq(attach(0), 0);
	ck_assert_int_eq(decode(frames, 3), 0);
	ck_assert_int_eq(answer(0), 0);
	ck_assert_str_eq(got.name, "one");
	ck_assert_int_eq(answer(1), -EFAULT);
	ck_assert_int_eq(answer(2), 0);
	ck_assert_str_eq(got.file, "/srv/three.fake");
	ck_assert_uint_eq(got.lines[3].line, 33);
}
END_TEST

START_TEST(the_bias_is_that_of_the_mapping)
{
	uint64_t bias;

	ck_assert_int_eq(decode_bias(serve->file.binary, &at, &bias), 0);
	ck_assert_uint_eq(bias, (uint64_t)(uintptr_t)&__executable_start - serve->file.binary->segments[0].vaddr);
	at.offset = UINT64_MAX / 2;
	ck_assert_int_eq(decode_bias(serve->file.binary, &at, &bias), -EFAULT);
}
END_TEST

/* Who says what was found may be taken over: no walk is reported. */
START_TEST(what_was_found_before_serves_without_its_walks)
{
	struct runtime_attached found;
	int pair[2];

	ck_assert_int_eq(attach(0), 0);
	found = serve->as;
	found.walk.start = OTP_WALK_AT;
	ck_assert_int_eq(ipc_pair(pair), 0);
	serve->monitor = pair[0];
	fake_attach_err = -ENOTSUP;
	ck_assert_int_eq(decode_serve_attach_found(serve, 0, &at, &found), 0);
	ck_assert_int_eq(receive(IPC_ATTACHED), 1);
	ck_assert(serve->attached);
	ck_assert_int_eq(ipc_receive_plain(pair[1], &message), -EAGAIN);
	ck_assert_int_eq(decode_serve_attach_found(serve, -ESRCH, &at, &found), 0);
	ck_assert(!serve->attached);
	found.runtime = 1; /* the file is not of that one */
	ck_assert_int_eq(decode_serve_attach_found(serve, 0, &at, &found), 0);
	ck_assert(!serve->attached);
	close(pair[0]);
	close(pair[1]);
}
END_TEST

START_TEST(an_attach_that_failed_says_why)
{
	fake_attach_err = -ENOTSUP;
	ck_assert_int_eq(attach(0), -ENOTSUP);
	ck_assert_str_eq(((struct decode_attached *)(void *)message.data)->why, "a version of tomorrow");
	ck_assert_int_eq(decode(&(struct runtime_frame){0}, 1), -EBADMSG);
}
END_TEST

START_TEST(a_runtime_that_has_not_started_is_asked_again)
{
	fake_state = 0;
	ck_assert_int_eq(attach(0), -EAGAIN);
}
END_TEST

START_TEST(without_memory_or_file_nothing_is_read)
{
	ck_assert_int_eq(attach(-ESRCH), -ESRCH);
	ck_assert_uint_eq(serve->memory.reads, 0);
	ck_assert_int_eq(decode(&(struct runtime_frame){0}, 1), -EBADMSG);
}
END_TEST

START_TEST(a_question_before_attach_breaks_the_rules)
{
	ck_assert_int_eq(decode(&(struct runtime_frame){0}, 1), -EBADMSG);
}
END_TEST

START_TEST(what_was_read_for_an_answer_precedes_it)
{
	const struct runtime_frame frame = fake_frame(&codes[1]);
	struct decode_read r;
	const uint8_t *bytes;

	ck_assert_int_eq(decode_serve_attach(serve, 0, &at, true), 0);
	ck_assert_int_eq(receive(IPC_READ), 1);
	ck_assert_int_eq(decode_read_unpack(&message, &r, &bytes), 0);
	ck_assert_uint_eq(r.addr, (uint64_t)(uintptr_t)&fake_state);
	ck_assert_int_eq(receive(IPC_ATTACHED), 1);
	ck_assert_int_eq(decode(&frame, 1), 0);
	ck_assert_int_eq(receive(IPC_READ), 1);
	ck_assert_int_eq(decode_read_unpack(&message, &r, &bytes), 0);
	ck_assert_uint_eq(r.len, sizeof(codes[1]));
	ck_assert_int_eq(memcmp(bytes, &codes[1], sizeof(codes[1])), 0);
	ck_assert_int_eq(answer(0), 0);
}
END_TEST

START_TEST(an_engine_that_is_gone_ends_the_decoder)
{
	const struct runtime_frame frame = fake_frame(&codes[0]);

	ck_assert_int_eq(attach(0), 0);
	close(engine);
	engine = -1;
	ck_assert_int_eq(decode(&frame, 1), -EPIPE);
}
END_TEST

/* --- files beside mapped ones: the test plays the monitor, or an opener --- */

static int monitor = -1;

static void setup_monitor(void)
{
	int pair[2];

	setup();
	ck_assert_int_eq(ipc_pair(pair), 0);
	monitor = pair[0];
	serve->monitor = pair[1];
}

static void teardown_monitor(void)
{
	closep(&monitor);
	monitor = -1;
	close(serve->monitor);
	teardown();
}

/* The answer is there before the question: err, or a file. */
static void answer_beside(uint64_t tag, int err, bool has_file)
{
	const struct ipc_answer a = {.err = err};
	int fd = has_file ? open("/proc/self/exe", O_RDONLY | O_CLOEXEC) : -1;

	ck_assert_int_eq(ipc_send(monitor, IPC_ANSWER, tag, &a, sizeof(a), &fd, has_file), 0);
	closep(&fd);
}

static int ask_beside(const char *name)
{
	int fd = -1, err = memory_beside(&serve->memory, 0x7000, name, &fd);

	ck_assert_int_eq(fd >= 0, err == 0);
	closep(&fd);
	return err;
}

START_TEST(a_file_comes_from_who_the_monitor_asks)
{
	const struct ipc_beside *b = (const void *)message.data;

	answer_beside(1, 0, true);
	ck_assert_int_eq(ask_beside("App.pdb"), 0);
	ck_assert_int_eq(ipc_receive(monitor, &message), 1);
	ck_assert_uint_eq(message.head.type, IPC_BESIDE);
	ck_assert_uint_eq(message.head.tag, 1);
	ck_assert_uint_eq(message.head.len, sizeof(*b) + 7);
	ck_assert_uint_eq(b->address, 0x7000);
	ck_assert_mem_eq(b + 1, "App.pdb", 7);
	answer_beside(2, -ENOENT, false);
	ck_assert_int_eq(ask_beside("b.pdb"), -ENOENT);
}
END_TEST

/* As it is now; of one that is too large for a capture, nothing. */
START_TEST(a_file_is_reported_for_a_capture)
{
	static uint8_t file[DECODE_BYTES + 5], got_bytes[sizeof(file)];
	const struct ipc_answer a = {0};
	struct decode_read r;
	const uint8_t *bytes;
	int fd = memfd_create("pdb", MFD_CLOEXEC);

	file[DECODE_BYTES] = 7;
	serve->reports = true;
	ck_assert_int_eq(write(fd, file, sizeof(file)), sizeof(file));
	ck_assert_int_eq(ipc_send(monitor, IPC_ANSWER, 1, &a, sizeof(a), &fd, 1), 0);
	ck_assert_int_eq(ask_beside("App.pdb"), 0);
	for (size_t done = 0; done < sizeof(file); done += r.len) {
		ck_assert_int_eq(receive(IPC_READ), 1);
		ck_assert_int_eq(decode_read_unpack(&message, &r, &bytes), 0);
		ck_assert_uint_eq(r.source, DECODE_BESIDE);
		ck_assert_uint_eq(r.addr, done);
		memcpy(got_bytes + done, bytes, r.len);
	}
	ck_assert_mem_eq(got_bytes, file, sizeof(file));
	ck_assert_int_eq(ftruncate(fd, 3 << 20), 0);
	ck_assert_int_eq(ipc_send(monitor, IPC_ANSWER, 2, &a, sizeof(a), &fd, 1), 0);
	ck_assert_int_eq(ask_beside("App.pdb"), 0);
	ck_assert_int_eq(receive(IPC_READ), -EAGAIN);
	close(fd);
}
END_TEST

START_TEST(answers_to_other_questions_are_not_taken)
{
	answer_beside(7, 0, true);
	answer_beside(0, -EACCES, false);
	ck_assert_int_eq(ipc_send(monitor, IPC_START, 1, NULL, 0, NULL, 0), 0);
	answer_beside(1, -EFBIG, false);
	ck_assert_int_eq(ask_beside("App.pdb"), -EFBIG);
}
END_TEST

START_TEST(an_answer_that_makes_no_sense_is_no_file)
{
	answer_beside(1, 0, false);
	ck_assert_int_eq(ask_beside("App.pdb"), -EBADMSG);
	answer_beside(2, 5, false);
	ck_assert_int_eq(ask_beside("App.pdb"), -EBADMSG);
}
END_TEST

START_TEST(one_that_is_late_is_the_last)
{
	uint64_t began = clock_now_ns(), took;

	ck_assert_int_eq(ask_beside("App.pdb"), -ETIMEDOUT);
	took = clock_now_ns() - began;
	ck_assert_uint_ge(took, DECODE_FILE_PATIENCE * NSEC_PER_MSEC);
	ck_assert_uint_lt(took, 10 * DECODE_FILE_PATIENCE * NSEC_PER_MSEC);
	answer_beside(1, 0, true);
	answer_beside(2, 0, true);
	ck_assert_int_eq(ask_beside("b.pdb"), -ETIMEDOUT);
	ck_assert_int_eq(ipc_receive(monitor, &message), 1);
	ck_assert_int_eq(ipc_receive(monitor, &message), -EAGAIN);
}
END_TEST

START_TEST(without_a_monitor_there_is_no_file)
{
	closep(&monitor);
	ck_assert_int_lt(ask_beside("App.pdb"), 0);
	ck_assert_int_eq(ask_beside("App.pdb"), -ETIMEDOUT);
}
END_TEST

START_TEST(only_sound_names_are_asked_for)
{
	ck_assert_int_eq(ask_beside("../App.pdb"), -EPERM);
	ck_assert_int_eq(ask_beside("App.dll"), -EPERM);
	ck_assert_int_eq(ipc_receive(monitor, &message), -EAGAIN);
}
END_TEST

START_TEST(so_many_are_asked_for_and_no_more)
{
	for (uint32_t i = 1; i <= BESIDE_FILES_MAX; i++) {
		answer_beside(i, -ENOENT, false);
		ck_assert_int_eq(ask_beside("App.pdb"), -ENOENT);
		ck_assert_int_eq(ipc_receive(monitor, &message), 1);
	}
	ck_assert_int_eq(ask_beside("App.pdb"), -E2BIG);
	ck_assert_int_eq(ipc_receive(monitor, &message), -EAGAIN);
}
END_TEST

Suite *decode_suite(void)
{
	Suite *s = suite_create("decode");
	TCase *messages = tcase_create("messages"), *decoder = tcase_create("decoder");

	tcase_add_test(messages, a_function_arrives_whole);
	tcase_add_test(messages, the_largest_function_fits_and_a_larger_one_is_cut);
	tcase_add_test(messages, a_function_that_could_not_be_decoded_is_its_error);
	tcase_add_test(messages, lines_out_of_order_are_left_out);
	tcase_add_test(messages, a_region_of_code_arrives_whole);
	tcase_add_test(messages, a_region_of_code_that_is_elsewhere_or_not_sound_is_refused);
	tcase_add_test(messages, a_region_of_code_of_any_wrong_length_is_refused);
	tcase_add_test(messages, a_function_of_any_wrong_length_is_refused);
	tcase_add_loop_test(messages, a_function_that_lies_is_refused, 0, 10);
	tcase_add_test(messages, what_attach_found_is_checked);
	tcase_add_test(messages, a_reason_always_ends);
	tcase_add_test(messages, a_batch_has_as_many_frames_as_it_says);
	tcase_add_test(messages, a_read_has_the_bytes_that_it_says);
	suite_add_tcase(s, messages);
	tcase_add_checked_fixture(decoder, setup, teardown);
	tcase_add_test(decoder, a_batch_is_answered_in_order);
	tcase_add_test(decoder, the_bias_is_that_of_the_mapping);
	tcase_add_test(decoder, what_was_found_before_serves_without_its_walks);
	tcase_add_test(decoder, an_attach_that_failed_says_why);
	tcase_add_test(decoder, a_runtime_that_has_not_started_is_asked_again);
	tcase_add_test(decoder, without_memory_or_file_nothing_is_read);
	tcase_add_test(decoder, a_question_before_attach_breaks_the_rules);
	tcase_add_test(decoder, what_was_read_for_an_answer_precedes_it);
	tcase_add_test(decoder, an_engine_that_is_gone_ends_the_decoder);
	suite_add_tcase(s, decoder);
	decoder = tcase_create("beside");
	tcase_add_checked_fixture(decoder, setup_monitor, teardown_monitor);
	tcase_add_test(decoder, a_file_comes_from_who_the_monitor_asks);
	tcase_add_test(decoder, a_file_is_reported_for_a_capture);
	tcase_add_test(decoder, answers_to_other_questions_are_not_taken);
	tcase_add_test(decoder, an_answer_that_makes_no_sense_is_no_file);
	tcase_add_test(decoder, one_that_is_late_is_the_last);
	tcase_add_test(decoder, without_a_monitor_there_is_no_file);
	tcase_add_test(decoder, only_sound_names_are_asked_for);
	tcase_add_test(decoder, so_many_are_asked_for_and_no_more);
	suite_add_tcase(s, decoder);
	return s;
}

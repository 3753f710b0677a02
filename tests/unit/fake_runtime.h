/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A runtime that is made up, for tests of decoders: its frames' keys are
 * addresses of struct fake_code in this process. Chosen by decode_set_runtimes.
 */
#ifndef OTP_TESTS_FAKE_RUNTIME_H
#define OTP_TESTS_FAKE_RUNTIME_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/decode.h"

#define FAKE_STARTED 0x6661b3u

struct fake_code {
	char name[32];
	uint32_t line, rows;
};

/* What attach reads, at this address: whether the runtime has started. */
static uint64_t fake_state = FAKE_STARTED;
static int fake_attach_err; /* what attach answers then */
static uint64_t fake_base = 4096; /* where its plan begins */
static uint64_t fake_loop;  /* 0: none */
static enum runtime_compiled fake_compiled;
static uint32_t fake_line_file; /* what decode says of it */
static const char *fake_beside; /* a file that has the name; NULL: none */

static int fake_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
		       char why[RUNTIME_WHY_MAX])
{
	uint64_t state;
	int err = memory_u64(m, (uint64_t)(uintptr_t)&fake_state, &state);

	if (err)
		return err;
	if (state != FAKE_STARTED)
		return -EAGAIN;
	snprintf(why, RUNTIME_WHY_MAX, "%s", fake_attach_err ? "a version of tomorrow" : "");
	strcpy(ret->version, "1.2.3");
	ret->walk = (struct otp_walk){.start = OTP_WALK_AT, .step = OTP_WALK_LINK, .nr_chain = 1, .base = fake_base,
				      .frames_max = 64, .keep = 1};
	ret->param[0] = file->bias;
	ret->loop[0] = fake_loop;
	ret->nr_loops = fake_loop != 0;
	ret->compiled = (uint16_t)fake_compiled;
	return fake_attach_err;
}

static inline void fake_read_name(struct memory *m, uint64_t addr, struct runtime_function *ret)
{
	char text[32] = "";
	int fd = -1;

	if (memory_beside(m, addr, fake_beside, &fd) == 0 && pread(fd, text, sizeof(text) - 1, 0) >= 0)
		snprintf(ret->name, sizeof(ret->name), "%s", text);
	if (fd >= 0)
		close(fd);
}

static int fake_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
		       struct runtime_function *ret)
{
	struct fake_code code;
	int err = memory_read(m, f->key, &code, sizeof(code));

	if (err)
		return err;
	if (f->cookie[0] != code.line)
		return -ESTALE;
	snprintf(ret->name, sizeof(ret->name), "%s", code.name);
	snprintf(ret->file, sizeof(ret->file), "/srv/%s.fake", code.name);
	ret->start_line = code.line;
	ret->line_file = fake_line_file;
	ret->nr_lines = code.rows;
	for (uint32_t i = 0; i < code.rows && i < RUNTIME_LINES_MAX; i++)
		ret->lines[i] = (struct runtime_line){.position = 2 * i, .line = code.line + i};
	if (fake_beside)
		fake_read_name(m, f->key, ret);
	return 0;
}

static int fake_of_file(struct binary *b)
{
	return b->is_elf ? 0 : -ENOENT;
}

static const struct runtime_ops fake_ops = {.name = "fake", .label = "Fake", .attach = fake_attach, .found_lasts = true, .decode = fake_decode};
static const struct runtime_ops *const fake_list[] = {&fake_ops, NULL};

static inline void fake_begin(void)
{
	fake_state = FAKE_STARTED;
	fake_attach_err = 0;
	fake_line_file = RUNTIME_LINES_NOT_SOUGHT;
	fake_beside = NULL;
	fake_base = 4096;
	fake_loop = 0;
	fake_compiled = RUNTIME_NOT_COMPILED;
	decode_set_runtimes(fake_of_file, fake_list);
}

static inline struct runtime_frame fake_frame(const struct fake_code *code)
{
	return (struct runtime_frame){.key = (uint64_t)(uintptr_t)code, .cookie[0] = code->line};
}

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * A Lua that means harm: a sound one of some version, over whose memory the input
 * is laid in pieces, or which is its code. Attaching, the walk by what was found,
 * frames and names of it.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORLD_BYTES (256u << 10)
#include "tests/lib/world.h"

#include "base/cleanup.h"
#include "tests/lib/code_world.h"
#include "tests/lib/puclua_world.h"
#include "tests/lib/walked.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint32_t versions[] = {50105, 50200, 50204, 50300, 50306, 50400, 50404, 50408};

static void walk(const struct runtime_attached *a, const uint8_t *data)
{
	static struct otp_walker w;
	static union { struct otp_regs regs; uint64_t room[1 + OTP_REGS_MAX]; } sampled;
	struct otp_walked head;
	struct runtime_words words = {.regs = &sampled.regs, .arch = OTP_ARCH_X86_64};

	sampled.regs.valid = 0xffff;
	sampled.regs.reg[13] = PW_CODE(PW_LEAF) + data[1];
	memset(&w, 0, sizeof(w));
	w.sp = PW_STACK + data[1];
	otp_walk_prepare(&w.ready, &a->walk);
	otp_walk_run(&w, 0, 1, 0);
	memcpy(&head, w.out, sizeof(head));
	for (uint32_t i = 0; i < head.frames; i++) {
		struct runtime_frame f = {0};

		walked_words(&w, &head, i, &words);
		if (puclua_frame(a, &words, &f) == 0 && f.key)
			world_decode(&runtime_puclua, a, &f);
	}
}

/* A coroutine that main has resumed. */
static void resume(void)
{
	pw_put_ci(0, 3, PW_C_FN, 0, false);
	pw_put_ci(1, 0, PW_NIL, 0, false);
	pw_put_ci(1, 1, PW_LEAF, 1, true);
	pw_put_state(1, PW_CO, 2, PW_CO_CALL);
	pw_put_call(PW_CO_CALL, PW_CO);
}

/* A file of such code; its memory is sound. */
static void attach_code(uint32_t version, const uint8_t *code, size_t len)
{
	static struct runtime_attached a;
	char why[RUNTIME_WHY_MAX];
	struct binary *b;

	pw_code = code;
	pw_code_len = len;
	b = pw_open_file(pw_ident(versions[version]), EM_X86_64);
	pw_code_len = 0;
	if (pw_attach(b, NULL, &a, why) == 0 && (!otp_walk_plan_sound(&a.walk) || !runtime_attached_sound(&a)))
		abort();
	binary_put(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct runtime_seen seen = {.nr = 3, .word = {PW_STACK, PW_CO, PW_MAIN}};
	static struct runtime_attached a;
	static struct binary *files[ARRAY_SIZE(versions)];
	uint32_t version;
	char why[RUNTIME_WHY_MAX];

	if (size < 2)
		return 0;
	version = data[0] / 2 % ARRAY_SIZE(versions);
	if (!files[version])
		files[version] = pw_open_file(pw_ident(versions[version]), EM_X86_64);
	memset(world, 0, sizeof(world));
	pw = puclua_layout_find(versions[version]);
	pw_make();
	if (data[0] & 1)
		resume();
	if (data[0] & 128) {
		attach_code(version, data + 2, size - 2);
		return 0;
	}
	for (size_t i = 2; i < size;)
		i += world_lay(data + i, size - i);
	if (pw_attach(files[version], &seen, &a, why))
		return 0;
	if (!otp_walk_plan_sound(&a.walk) || !runtime_attached_sound(&a))
		abort();
	walk(&a, data);
	return 0;
}

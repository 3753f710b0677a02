// SPDX-License-Identifier: Apache-2.0
/*
 * The version of Lua in a file, and the plan to walk whichever states run. Which
 * frame luaD_rawrunprotected makes is read in its code (puclua_call.c), or else
 * where a state was running: its errorJmp lies in that frame, next to the state's
 * own address, above the return address of the call that the function makes.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/puclua.h"

#define STATE_BYTES 176u /* of lua_State: as far as it is read */
#define FRAME_BYTES 256u /* below errorJmp, in which the call is sought */
#define BUFFER_BYTES 64u /* above it: the link of struct lua_longjmp, and seven of the jump buffer's words */
#define CALL_BYTES  7u   /* of the longest instruction that calls through a pointer */
#define RODATA_MAX  (16u << 20) /* of a file in which the version is sought */
#define IDENT_MAX   64u

struct puclua_attaching {
	const struct runtime_file *file;
	struct memory *m;
	const struct puclua_layout *l;
	uint64_t state, jump; /* a lua_State that runs, and its errorJmp */
	struct puclua_call call;
};

/* --- version --- */

/* "$LuaVersion: Lua 5.4.4  Copyright", or "$Lua: Lua 5.1.5 Copyright", is lua_ident. Returns its version, or NULL. */
static const char *puclua_ident(const char *text, size_t len)
{
	static const char *const names[] = {"$LuaVersion: Lua ", "$Lua: Lua "};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *at = memmem(text, len, names[i], strlen(names[i]));

		if (at && (size_t)(text + len - at) >= strlen(names[i]) + RUNTIME_VERSION_MAX)
			return at + strlen(names[i]);
	}
	return NULL;
}

/* "5.4.4" to 50404, and its text. 0: it is none. */
static uint32_t puclua_take_version(const char *at, char to[RUNTIME_VERSION_MAX])
{
	size_t n = strspn(at, "0123456789.");
	unsigned part[3];

	if (n >= RUNTIME_VERSION_MAX)
		return 0;
	memcpy(to, at, n);
	to[n] = '\0';
	if (sscanf(to, "%2u.%2u.%2u", &part[0], &part[1], &part[2]) != 3)
		return 0;
	return 10000 * part[0] + 100 * part[1] + part[2];
}

static uint32_t puclua_version(const struct runtime_file *file, char to[RUNTIME_VERSION_MAX])
{
	const struct binary_section *s = binary_section(file->binary, ".rodata");
	char text[4096];
	const char *found;
	ssize_t n;

	/* Pieces overlap, so that no version lies across two. */
	for (uint64_t at = 0; s && at < MIN(s->size, (uint64_t)RODATA_MAX); at += sizeof(text) - 2 * IDENT_MAX) {
		n = binary_read(file->binary, s->offset + at, text, MIN(sizeof(text), s->size - at));
		if (n <= 0)
			return 0;
		found = puclua_ident(text, (size_t)n);
		if (found)
			return puclua_take_version(found, to);
	}
	return 0;
}

/* --- a state that runs --- */

static uint64_t puclua_word(const uint8_t *bytes, size_t at)
{
	uint64_t v;

	memcpy(&v, bytes + at, sizeof(v));
	return v;
}

/* Whether a lua_State is there that has been entered. */
static bool puclua_find_state(struct puclua_attaching *a, uint64_t at)
{
	uint8_t l[STATE_BYTES];
	uint64_t jump, ci;

	if (memory_read(a->m, at, l, sizeof(l)) || l[PUCLUA_TAG] != PUCLUA_THREAD)
		return false;
	jump = puclua_word(l, a->l->l_jump);
	ci = puclua_word(l, a->l->l_ci);
	if (!jump || jump % 8 || !ci || ci % 8)
		return false;
	a->state = at;
	a->jump = jump;
	return true;
}

/* Whether a call through a pointer ends there: ff /2, of a register or of memory (Intel SDM, volume 2, CALL). */
static bool puclua_is_after_call(const struct puclua_attaching *a, uint64_t pc)
{
	uint64_t vaddr = pc - a->file->bias;
	uint8_t code[CALL_BYTES];

	if (!binary_is_code(a->file->binary, vaddr - 1) ||
	    binary_read_vaddr(a->file->binary, vaddr - sizeof(code), code, sizeof(code)) != sizeof(code))
		return false;
	for (size_t len = 2; len <= sizeof(code); len++) {
		const uint8_t *insn = code + sizeof(code) - len;

		if (insn[0] == 0xff && (insn[1] >> 3 & 7) == 2 && (insn[1] >> 6 == 3) == (len == 2))
			return true;
	}
	return false;
}

/*
 * The innermost word below errorJmp that is such a return address. The state's address lies above it, perhaps in the
 * jump buffer, among the registers that functions preserve.
 */
static bool puclua_find_call(struct puclua_attaching *a)
{
	uint8_t frame[FRAME_BYTES + BUFFER_BYTES];
	uint64_t again, kept = 0;

	if (memory_read(a->m, a->jump - FRAME_BYTES, frame, sizeof(frame)))
		return false;
	for (uint32_t at = sizeof(frame) - 8; at; at -= 8) {
		uint64_t word = puclua_word(frame, at);

		if (word == a->state)
			kept = at;
		if (!kept || at >= FRAME_BYTES || !puclua_is_after_call(a, word))
			continue;
		a->call = (struct puclua_call){.back = word - a->file->bias, .kept = (int16_t)(kept - at),
					       .jump = (int16_t)(FRAME_BYTES - at)};
		return memory_u64(a->m, a->state + a->l->l_jump, &again) == 0 && again == a->jump;
	}
	return false;
}

static bool puclua_find_running(struct puclua_attaching *a)
{
	uint32_t seen = a->file->seen ? MIN(a->file->seen->nr, (uint32_t)RUNTIME_SEEN) : 0;

	for (uint32_t i = 0; i < seen; i++)
		if (puclua_find_state(a, a->file->seen->word[i]) && puclua_find_call(a))
			return true;
	return false;
}

/* --- the plan --- */

static void puclua_plan_subs(const struct puclua_layout *l, struct otp_walk *w)
{
	uint16_t keep[PUCLUA_ROWS];

	puclua_keep(l, keep);
	w->keep = keep[PUCLUA_ROW_CI];
	w->nr_subs = PUCLUA_ROW_LAST;
	w->sub[0] = (struct otp_walk_sub){.at = l->ci_bytes ? 1 : 0, .keep = keep[PUCLUA_ROW_VALUE]}; /* func */
	w->sub[1] = (struct otp_walk_sub){.from = PUCLUA_ROW_VALUE, .keep = keep[PUCLUA_ROW_CLOSURE]};
	w->sub[2] = (struct otp_walk_sub){.from = PUCLUA_ROW_CLOSURE, .at = l->closure_p / 8, .keep = keep[PUCLUA_ROW_PROTO]};
	if (puclua_row_last_is_code(l))
		w->sub[3] = (struct otp_walk_sub){.at = l->ci_savedpc / 8, .off = -8, .keep = keep[PUCLUA_ROW_LAST]};
	else
		w->sub[3] = (struct otp_walk_sub){.from = PUCLUA_ROW_PROTO, .at = l->pt.source / 8, .off = PUCLUA_STRING_HEAD,
						  .keep = keep[PUCLUA_ROW_LAST]};
	w->kinds = l->status_lua;
	w->kind_word = l->status_lua ? l->ci_status / 8 : 0;
	w->kind_shift = l->status_lua ? l->status_shift : 0;
}

static void puclua_plan(const struct puclua_attaching *a, struct otp_walk *w)
{
	const struct puclua_layout *l = a->l;

	w->start = OTP_WALK_CALL;
	w->base = a->call.back + a->file->bias;
	w->call_root = a->call.kept;
	w->call_proof = l->l_jump;
	w->call_at = a->call.jump;
	w->frames_max = OTP_WALK_FRAMES;
	if (l->ci_bytes) {
		w->step = OTP_WALK_ARRAY;
		w->stride = -(int32_t)l->ci_bytes;
		w->first.at = l->l_ci;
		w->last.at = l->l_base_ci;
	} else {
		w->step = OTP_WALK_LINK;
		w->nr_chain = 1;
		w->chain[0] = l->l_ci;
		w->link = l->ci_previous / 8;
	}
	puclua_plan_subs(l, w);
}

/*
 * Where lua_resume has a copy of its own, the plan finds those states alone that another function has entered. Which of
 * them is the main thread, its global_State tells: l_G, in front of ci, is the root's word.
 */
static void puclua_add_resume(const struct puclua_attaching *a, struct runtime_attached *ret)
{
	struct runtime_symbol resume;

	if (runtime_symbol(a->file->binary, "lua_resume", &resume) < 0)
		return;
	ret->resume = a->file->bias + resume.value;
	ret->unseen = !puclua_call_is_resumes(a->file->binary, a->l, resume.value, a->call.back);
	if (!ret->unseen)
		return;
	ret->walk.root_off = a->l->l_ci - 8;
	ret->walk.root_keep = 1;
}

/* --- all --- */

static int puclua_refuse(const char *version, const char *text, char why[RUNTIME_WHY_MAX])
{
	snprintf(why, RUNTIME_WHY_MAX, "Lua %s%s", version, text);
	return -ENOTSUP;
}

int puclua_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
		  char why[RUNTIME_WHY_MAX])
{
	struct puclua_attaching a = {.file = file, .m = m};
	uint32_t version = puclua_version(file, ret->version);

	if (!version)
		return puclua_refuse("", "of a version that its file does not tell", why);
	a.l = puclua_layout_find(version);
	if (!a.l)
		return puclua_refuse(ret->version, " is not known", why);
	if (file->binary->machine != EM_X86_64)
		return puclua_refuse(ret->version, ": its frames are known on x86-64 only", why);
	if (!puclua_add_loop(file, a.l, ret))
		return puclua_refuse(ret->version, ": the function that runs its code was not found", why);
	if (!puclua_find_protected(file->binary, a.l, &a.call) && !puclua_find_running(&a))
		return -EAGAIN;
	ret->param[PUCLUA_PARAM_LAYOUT] = puclua_layout_index(a.l);
	ret->param[PUCLUA_PARAM_STATE] = a.state;
	puclua_plan(&a, &ret->walk);
	puclua_add_resume(&a, ret);
	return 0;
}

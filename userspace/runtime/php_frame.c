// SPDX-License-Identifier: Apache-2.0
/* What the copied words of a PHP frame mean: its function, its place there, and whether the loop began with it. */
#include "runtime/php.h"

#include <errno.h>

#include "base/cleanup.h"

#define CALL_CODE (1u << 16) /* of This.u1.type_info: a file's or eval's code, no function */
#define CALL_TOP  (1u << 17) /* execute_ex was called with it */

/* fn_flags of copies from traits and of closures, those of 7.4 and those of later versions; a superset harms nothing. */
#define FLAGS_FLOATING (1u << 27 | 1u << 20 | 1u << 22)

#define TYPE_OBJECT 8 /* of This: a generator */

#define STACK_BYTES (256u << 10) /* of a page of frames */

/* Registers in which execute_ex and compiled code hold frame and opline: r14, r15; x27, x28. */
static const struct php_registers { uint32_t frame, opline; } php_registers[] = {
	[OTP_ARCH_X86_64] = {14, 15},
	[OTP_ARCH_ARM64] = {27, 28},
};

enum php_function_type php_function_type(const uint64_t *word)
{
	return (enum php_function_type)(word[PHP_TYPE] & 0xff);
}

uint32_t php_function_last(const struct php_layout *l, const uint64_t *word)
{
	return (uint32_t)(word[PHP_LAST] >> (l->last % 8 * 8));
}

uint64_t php_place(uint64_t lines, uint32_t opcodes)
{
	uint32_t first = (uint32_t)lines, end = (uint32_t)(lines >> 32), more = end > first ? end - first : 0;

	return first | (uint64_t)MIN(opcodes, (uint32_t)UINT16_MAX) << 32 |
	       (uint64_t)MIN(more, (uint32_t)UINT16_MAX) << 48;
}

/* --- where in the function --- */

/* One more than the opcode's index; 0: the pointer is to no opcode of the function. */
static uint32_t php_position(const struct php_layout *l, const uint64_t *word, uint64_t opline)
{
	uint64_t at = opline - word[PHP_OPCODES];

	if (opline < word[PHP_OPCODES] || at % PHP_OP_BYTES || at / PHP_OP_BYTES >= php_function_last(l, word))
		return 0;
	return (uint32_t)(at / PHP_OP_BYTES) + 1;
}

/*
 * execute_ex keeps the opline in a register and writes it to the frame only
 * before what may throw. A native function that it calls may use the registers;
 * while a callee is torn down they are still the callee's, whose frame lies above.
 */
static uint32_t php_register_position(const struct php_layout *l, const struct runtime_words *w)
{
	uint64_t opline, above;

	if (w->index || !w->regs || w->arch >= sizeof(php_registers) / sizeof(php_registers[0]) ||
	    !php_registers[w->arch].opline || !(w->regs->valid >> php_registers[w->arch].opline & 1))
		return 0;
	opline = w->regs->reg[php_registers[w->arch].opline];
	above = w->regs->reg[php_registers[w->arch].frame] - w->address;
	return above && above < STACK_BYTES ? 0 : php_position(l, w->word, opline);
}

/*
 * Code that opcache has compiled writes the opline only before it calls what may look at it: while it runs itself, the
 * function's first line stands for the one that is not known.
 */
static bool php_place_is_stale(const struct runtime_words *w)
{
	return w->compiled && !w->index;
}

/* While an exception is on its way, the frame's opline is one of executor_globals, which keep the real one. */
static uint32_t php_frame_position(const struct php_layout *l, const struct runtime_words *w)
{
	uint32_t position = 0;

	if (php_place_is_stale(w))
		return 0;
	position = php_register_position(l, w);
	if (!position)
		position = php_position(l, w->word, w->word[PHP_OPLINE]);
	if (!position && w->nr_root)
		position = php_position(l, w->word, w->root[0]);
	return position;
}

/* --- frames --- */

static bool php_is_address(uint64_t word)
{
	return word <= OTP_WALK_ADDRESS && word % 8 == 0;
}

static bool php_type_is_known(enum php_function_type type)
{
	return type == PHP_INTERNAL || type == PHP_USER || type == PHP_EVAL;
}

static void php_identify_native(const uint64_t *word, struct runtime_frame *ret)
{
	ret->key = word[PHP_FUNC] | PHP_KEY_NATIVE;
	ret->cookie[PHP_COOKIE_CHECK] = php_check(0, word[PHP_NAME_HASH]);
}

/*
 * The name of eval's file is freed when eval returns. It is made of the caller's
 * place, which lives longer.
 */
static void php_identify_caller(const struct runtime_words *w, struct runtime_frame *ret)
{
	const uint64_t *caller = w->word + w->count + 1;

	if (!w->nr_outer || php_function_type(caller) == PHP_INTERNAL || !caller[PHP_FUNC] || !caller[PHP_FILENAME])
		return;
	ret->cookie[PHP_COOKIE_FILENAME] = caller[PHP_FILENAME];
	ret->cookie[PHP_COOKIE_CALLER] = caller[PHP_OPLINE];
}

/* What the sampler could not copy is 0. */
static void php_identify_user(const struct php_layout *l, const struct runtime_words *w, struct runtime_frame *ret)
{
	const uint64_t *word = w->word;
	uint32_t info = (uint32_t)word[PHP_CALL_INFO];

	ret->key = word[PHP_OPCODES];
	if ((info & CALL_CODE) && !(info & CALL_TOP))
		ret->key |= PHP_KEY_INCLUDED;
	if (word[PHP_SCOPE] && word[PHP_TYPE] >> 32 & FLAGS_FLOATING)
		ret->key |= PHP_KEY_FLOATING;
	ret->cookie[PHP_COOKIE_FILENAME] = word[PHP_FILENAME];
	if (w->missing >> PHP_SUB_LINES & 1)
		ret->cookie[PHP_COOKIE_FILENAME] = word[PHP_FUNC] | PHP_FILENAME_MISSED;
	ret->cookie[PHP_COOKIE_PLACE] = php_place(word[PHP_LINES], php_function_last(l, word));
	ret->cookie[PHP_COOKIE_CHECK] = php_check(word[PHP_FILE_HASH], word[PHP_NAME_HASH]);
	if (php_function_type(word) != PHP_EVAL)
		return;
	ret->key |= PHP_KEY_EVAL;
	php_identify_caller(w, ret);
}

/* The flags of a function may change in its life: they are no part of it. */
static void php_identify(const struct php_layout *l, const struct runtime_words *w, struct runtime_frame *ret)
{
	*ret = (struct runtime_frame){.cookie = {[PHP_COOKIE_NAME] = w->word[PHP_NAME],
						 [PHP_COOKIE_SCOPE] = w->word[PHP_SCOPE]}};
	if (php_function_type(w->word) == PHP_INTERNAL)
		php_identify_native(w->word, ret);
	else
		php_identify_user(l, w, ret);
}

/* A native function without a name is the root of a fiber. */
static void php_frame_native(const uint64_t *word, struct runtime_frame *ret)
{
	ret->flags = RUNTIME_NATIVE;
	if (word[PHP_NAME])
		return;
	ret->flags |= RUNTIME_HIDDEN;
	ret->key = 0;
}

/*
 * Calls from outside of any function have a frame without one: there is nothing
 * to show. So have generators that run another one by "yield from": the frame
 * stands for all of theirs, which lie elsewhere. The list leads past them.
 */
static void php_frame_without_function(const uint64_t *word, struct runtime_frame *ret)
{
	*ret = (struct runtime_frame){.flags = RUNTIME_HIDDEN};
	if ((word[PHP_CALL_INFO] & 0xff) == TYPE_OBJECT)
		*ret = (struct runtime_frame){.key = PHP_KEY_DELEGATE, .flags = RUNTIME_NATIVE};
}

int php_frame(const struct runtime_attached *a, const struct runtime_words *w, struct runtime_frame *ret)
{
	const struct php_layout *l = php_layout_at(a->param[PHP_LAYOUT]);
	const uint64_t *word = w->word;

	if (!l || w->count != PHP_WORDS || !php_is_address(word[PHP_FUNC]))
		return -EBADMSG;
	if (!word[PHP_FUNC]) {
		php_frame_without_function(word, ret);
		return 0;
	}
	if (!php_type_is_known(php_function_type(word)))
		return -EBADMSG;
	if (php_function_type(word) != PHP_INTERNAL && !php_is_address(word[PHP_OPCODES]))
		return -EBADMSG;
	php_identify(l, w, ret);
	if (php_function_type(word) == PHP_INTERNAL) {
		php_frame_native(word, ret);
		return 0;
	}
	ret->position = php_frame_position(l, w);
	if (word[PHP_CALL_INFO] & CALL_TOP)
		ret->flags = RUNTIME_ENTRY;
	return 0;
}

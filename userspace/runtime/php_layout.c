// SPDX-License-Identifier: Apache-2.0
/*
 * Where PHP's structures have their fields, by version, and the plan that
 * follows from it. The numbers are offsetof() in the headers of each version
 * (Zend/zend_globals.h, zend_compile.h, zend.h); debug and thread-safe builds
 * have the same ones.
 */
#include "runtime/php.h"

#include "base/cleanup.h"

#define KEEP(byte) ((uint16_t)(1u << ((byte) / 8)))

/* The same in all versions. */
#define DATA_OPLINE 0 /* zend_execute_data */
#define DATA_FUNC   24
#define DATA_INFO   40 /* This.u1, This.u2 */
#define DATA_PREV   48
#define FUNC_TYPE   0  /* zend_function */
#define FUNC_NAME   8
#define FUNC_SCOPE  16
#define STRING_HASH 8  /* zend_string */

static const struct php_layout php_layouts[] = {
	{20190902, "7.4", 488, 880, 60, 64, 136},
	/* 8.0 from its sources' structs, which are 7.4's with attributes; it has not been run here. */
	{20200930, "8.0", 488, 880, 68, 72, 144},
	{20210902, "8.1", 488, 880, 68, 72, 144},
	{20220829, "8.2", 488, 880, 80, 88, 152},
	{20230831, "8.3", 488, 880, 76, 80, 144},
	{20240924, "8.4", 488, 952, 96, 104, 168},
	{20250925, "8.5", 512, 976, 96, 104, 168},
	{20260924, "8.6", 512, 1016, 96, 104, 168}, /* 8.6.0RC3 */
};

const struct php_layout *php_layout_of_api(uint32_t api)
{
	for (size_t i = 0; i < ARRAY_SIZE(php_layouts); i++)
		if (php_layouts[i].api == api)
			return &php_layouts[i];
	return NULL;
}

const struct php_layout *php_layout_at(uint64_t index)
{
	return index < ARRAY_SIZE(php_layouts) ? &php_layouts[index] : NULL;
}

uint64_t php_layout_index(const struct php_layout *l)
{
	return (uint64_t)(l - php_layouts);
}

static void plan_subs(const struct php_layout *l, struct otp_walk_sub sub[OTP_WALK_SUBS])
{
	sub[PHP_SUB_FUNCTION] = (struct otp_walk_sub){
		.at = DATA_FUNC / 8,
		.keep = KEEP(FUNC_TYPE) | KEEP(FUNC_NAME) | KEEP(FUNC_SCOPE) | KEEP(l->last) | KEEP(l->opcodes),
	};
	/* Beyond the end of a function that is native: its words are not looked at. */
	sub[PHP_SUB_LINES] = (struct otp_walk_sub){
		.at = DATA_FUNC / 8, .off = (int16_t)l->filename, .keep = KEEP(0) | KEEP(8)};
	sub[PHP_SUB_FILE] = (struct otp_walk_sub){.from = 1 + PHP_SUB_LINES, .off = STRING_HASH, .keep = KEEP(0)};
	sub[PHP_SUB_NAME] = (struct otp_walk_sub){
		.from = 1 + PHP_SUB_FUNCTION, .at = FUNC_NAME / 8, .off = STRING_HASH, .keep = KEEP(0)};
}

void php_plan(const struct php_layout *l, struct otp_walk *ret)
{
	*ret = (struct otp_walk){
		.step = OTP_WALK_LINK,
		.link = DATA_PREV / 8,
		.below = 1, /* frames lie on the stack of PHP's own */
		.root_keep = KEEP(0),
		.frames_max = OTP_WALK_FRAMES,
		.keep = KEEP(DATA_OPLINE) | KEEP(DATA_FUNC) | KEEP(DATA_INFO),
		.nr_subs = PHP_SUBS,
	};
	plan_subs(l, ret->sub);
}

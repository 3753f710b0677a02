// SPDX-License-Identifier: Apache-2.0
/* PHP inside of other programs: variables that the program holds, and processes that serve many requests. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/php.h"
#include "tests/lib/symbols_elf.h"

Suite *runtime_php_embedded_suite(void);

#define WORLD	    0x7f0000000000ULL
#define WORLD_BYTES 0x4000u

enum {
	CLASS = 0x100, CLASS_NAME = 0x200, NAME = 0x300, FILE_NAME = 0x400, OPS = 0x500, /* what a frame leads to */
	GLOBALS = 0x1000, COPY = 0x1800, SLOT = 0x1f00,
	REGISTRY = 0x2000, BUCKET = 0x2100, MODULE = 0x2200, MODULE_NAME = 0x2300, SAPI = 0x2400, SAPI_NAME = 0x2500,
};

#define STAYS (1u << 7) /* a class that opcache keeps */
#define CLONE (1u << 20) /* a method that was copied from a trait */

static uint8_t world[WORLD_BYTES];
static struct runtime_attached attached;
static struct runtime_function function;

static int world_read(struct memory *m, uint64_t addr, void *to, size_t len)
{
	(void)m;
	if (addr < WORLD || addr - WORLD > WORLD_BYTES || len > WORLD_BYTES - (addr - WORLD))
		return -EFAULT;
	memcpy(to, world + (addr - WORLD), len);
	return 0;
}

static struct memory memory = {.read = world_read};

static void put(uint32_t at, const void *from, size_t len)
{
	memcpy(world + at, from, len);
}

static void put64(uint32_t at, uint64_t v)
{
	put(at, &v, sizeof(v));
}

/* A zend_string; returns its hash. */
static uint64_t put_string(uint32_t at, const char *text)
{
	uint64_t hash = 5381;

	for (size_t i = 0; text[i]; i++)
		hash = hash * 33 + (uint8_t)text[i];
	hash |= 1ULL << 63;
	put64(at, 6ULL << 32);
	put64(at + 8, hash);
	put64(at + 16, strlen(text));
	put(at + 24, text, strlen(text));
	return hash;
}

static void put_text(uint32_t at, uint32_t pointer, const char *text)
{
	put64(pointer, WORLD + at);
	put(at, text, strlen(text) + 1);
}

/* One module, which says that this is PHP 8.2, in a host of that name. */
static void world_begin(const char *host)
{
	memset(world, 0, sizeof(world));
	put64(REGISTRY + 16, WORLD + BUCKET);
	put64(REGISTRY + 24, 1);
	put64(BUCKET, WORLD + MODULE);
	put64(MODULE, 168 | 20220829ULL << 32);
	put_text(MODULE_NAME, MODULE + 32, "standard");
	put_text(MODULE_NAME + 32, MODULE + 88, "8.2.1");
	put_text(SAPI_NAME, SAPI, host);
}

static int attach(const struct symbols_elf *e)
{
	struct runtime_file file = {.binary = symbols_elf_open(e), .bias = WORLD};
	char why[RUNTIME_WHY_MAX] = "";
	int r;

	attached = (struct runtime_attached){0};
	memory_question(&memory);
	r = runtime_php.attach(&file, &memory, &attached, why);
	binary_put(file.binary);
	return r;
}

static void library(struct symbols_elf *e, uint16_t machine)
{
	symbols_elf_init(e, machine);
	symbols_elf_add(e, "module_registry", REGISTRY);
	symbols_elf_add(e, "sapi_module", SAPI);
	symbols_elf_add(e, "executor_globals", GLOBALS);
}

/* --- variables --- */

static const struct { uint16_t machine; uint32_t relocation; uint64_t base; } slots[] = {
	{EM_X86_64, R_X86_64_GLOB_DAT, WORLD + COPY},
	{EM_AARCH64, R_AARCH64_GLOB_DAT, WORLD + COPY},
	{EM_X86_64, R_X86_64_JUMP_SLOT, WORLD + GLOBALS},
};

START_TEST(globals_are_where_the_library_looks_for_them)
{
	struct symbols_elf e;

	world_begin("embed");
	put64(SLOT, WORLD + COPY);
	library(&e, slots[_i].machine);
	symbols_elf_slot(&e, slots[_i].relocation, SLOT);
	ck_assert_int_eq(attach(&e), 0);
	ck_assert_uint_eq(attached.walk.base, slots[_i].base);
}
END_TEST

START_TEST(slot_that_cannot_be_read_is_an_error)
{
	struct symbols_elf e;

	world_begin("embed");
	library(&e, EM_X86_64);
	symbols_elf_slot(&e, R_X86_64_GLOB_DAT, WORLD_BYTES);
	ck_assert_int_eq(attach(&e), -EFAULT);
}
END_TEST

START_TEST(program_around_the_library_holds_no_php)
{
	struct symbols_elf e;

	world_begin("embed");
	symbols_elf_init(&e, EM_X86_64);
	symbols_elf_add(&e, "executor_globals", GLOBALS);
	ck_assert_int_eq(attach(&e), -ENOENT);
}
END_TEST

/* --- classes --- */

/* A method of App\User in /srv/t.php, by its flags and its class'. */
static void decode_method(const char *host, uint32_t flags, uint32_t class_flags)
{
	uint64_t word[PHP_WORDS] = {[PHP_FUNC] = WORLD + 0x3000, [PHP_TYPE] = PHP_USER | (uint64_t)flags << 32,
				    [PHP_NAME] = WORLD + NAME, [PHP_SCOPE] = WORLD + CLASS, [PHP_OPCODES] = WORLD + OPS,
				    [PHP_FILENAME] = WORLD + FILE_NAME, [PHP_LINES] = 3 | 9ULL << 32};
	struct runtime_words w = {.word = word, .count = PHP_WORDS, .index = 1};
	struct symbols_elf e;
	struct runtime_frame f;

	world_begin(host);
	library(&e, EM_X86_64);
	ck_assert_int_eq(attach(&e), 0);
	put64(CLASS, 2);
	put64(CLASS + 8, WORLD + CLASS_NAME);
	put64(CLASS + 24, (uint64_t)class_flags << 32);
	put_string(CLASS_NAME, "App\\User");
	word[PHP_NAME_HASH] = put_string(NAME, "find");
	word[PHP_FILE_HASH] = put_string(FILE_NAME, "/srv/t.php");
	ck_assert_int_eq(runtime_php.frame(&attached, &w, &f), 0);
	memory_question(&memory);
	ck_assert_int_eq(runtime_php.decode(&attached, &memory, &f, &function), 0);
	ck_assert_str_eq(function.file, "/srv/t.php");
}

/* Another request may have another class there, with the same trait. */
static const struct { const char *host; uint32_t flags, class_flags; const char *name; } methods[] = {
	{"fpm-fcgi", CLONE, 0, "find"},
	{"apache2handler", CLONE, 0, "find"},
	{"cli-server", CLONE, 0, "find"},
	{"cli", CLONE, 0, "App\\User::find"},
	{"fpm-fcgi", CLONE, STAYS, "App\\User::find"},
	{"fpm-fcgi", 0, 0, "App\\User::find"},
};

START_TEST(class_of_a_copied_method_is_named_where_classes_stay)
{
	decode_method(methods[_i].host, methods[_i].flags, methods[_i].class_flags);
	ck_assert_str_eq(function.name, methods[_i].name);
}
END_TEST

Suite *runtime_php_embedded_suite(void)
{
	Suite *s = suite_create("runtime_php_embedded");
	TCase *t = tcase_create("embedded");

	tcase_add_loop_test(t, globals_are_where_the_library_looks_for_them, 0, ARRAY_SIZE(slots));
	tcase_add_test(t, slot_that_cannot_be_read_is_an_error);
	tcase_add_test(t, program_around_the_library_holds_no_php);
	tcase_add_loop_test(t, class_of_a_copied_method_is_named_where_classes_stay, 0, ARRAY_SIZE(methods));
	suite_add_tcase(s, t);
	return s;
}

// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "process/space.h"

Suite *space_suite(void);

static struct space *space;
static struct mapped_file *file, *other, *anon;

static void setup(void)
{
	space = space_new();
	file = mapped_file_new(MAPPED_FILE, "/bin/a", 6);
	other = mapped_file_new(MAPPED_FILE, "/bin/b", 6);
	anon = mapped_file_new(MAPPED_ANON, "//anon", 6);
}

static void teardown(void)
{
	space_put(space);
	ck_assert_uint_eq(file->refs, 1);
	ck_assert_uint_eq(other->refs, 1);
	ck_assert_uint_eq(anon->refs, 1);
	mapped_file_put(file);
	mapped_file_put(other);
	mapped_file_put(anon);
	ck_assert_uint_eq(space_total(), 0);
}

static void map(uint64_t start, uint64_t end, uint64_t offset, struct mapped_file *f)
{
	ck_assert_int_ge(space_map(&space, start, end, offset, f), 0);
}

static void expect(uint32_t i, uint64_t start, uint64_t end, uint64_t offset, const struct mapped_file *f)
{
	ck_assert_uint_lt(i, space->count);
	ck_assert_uint_eq(space->maps[i].start, start);
	ck_assert_uint_eq(space->maps[i].end, end);
	ck_assert_uint_eq(space->maps[i].offset, offset);
	ck_assert_ptr_eq(space->maps[i].file, f);
}

START_TEST(an_address_finds_its_mapping)
{
	map(0x2000, 0x3000, 0, file);
	map(0x5000, 0x6000, 0x1000, other);
	ck_assert_ptr_null(space_find(space, 0x1fff));
	ck_assert_ptr_eq(space_find(space, 0x2000)->file, file);
	ck_assert_ptr_eq(space_find(space, 0x2fff)->file, file);
	ck_assert_ptr_null(space_find(space, 0x3000));
	ck_assert_ptr_eq(space_find(space, 0x5fff)->file, other);
	ck_assert_ptr_null(space_find(space, UINT64_MAX));
}
END_TEST

START_TEST(a_mapping_in_the_middle_splits_the_older_one)
{
	map(0x1000, 0x9000, 0x100000, file);
	map(0x4000, 0x5000, 0, other);
	ck_assert_uint_eq(space->count, 3);
	expect(0, 0x1000, 0x4000, 0x100000, file);
	expect(1, 0x4000, 0x5000, 0, other);
	expect(2, 0x5000, 0x9000, 0x104000, file);
}
END_TEST

START_TEST(a_mapping_cuts_both_neighbours_and_swallows_what_lies_between)
{
	map(0x1000, 0x3000, 0, file);
	map(0x3000, 0x4000, 0, anon);
	map(0x5000, 0x6000, 0, anon);
	map(0x7000, 0x9000, 0x7000, file);
	map(0x2000, 0x8000, 0, other);
	ck_assert_uint_eq(space->count, 3);
	expect(0, 0x1000, 0x2000, 0, file);
	expect(1, 0x2000, 0x8000, 0, other);
	expect(2, 0x8000, 0x9000, 0x8000, file);
	ck_assert_uint_eq(anon->refs, 1);
}
END_TEST

START_TEST(unmapping_leaves_the_rest)
{
	map(0x1000, 0x9000, 0, file);
	ck_assert_int_eq(space_unmap(&space, 0x3000, 0x4000), 0);
	ck_assert_uint_eq(space->count, 2);
	ck_assert_ptr_null(space_find(space, 0x3800));
	expect(1, 0x4000, 0x9000, 0x3000, file);
	ck_assert_int_eq(space_unmap(&space, 0, UINT64_MAX), 0);
	ck_assert_uint_eq(space->count, 0);
	ck_assert_int_eq(space_unmap(&space, 5, 5), -EINVAL);
}
END_TEST

START_TEST(the_same_mapping_said_twice_changes_nothing)
{
	uint32_t generation;

	map(0x1000, 0x2000, 0, file);
	generation = space->generation;
	map(0x1000, 0x2000, 0, file);
	ck_assert_uint_eq(space->generation, generation);
	map(0x1000, 0x2000, 0, other);
	ck_assert_uint_ne(space->generation, generation);
	ck_assert_int_eq(space_map(&space, 0x2000, 0x2000, 0, file), -EINVAL);
	ck_assert_int_eq(space_map(&space, 0x3000, 0x2000, 0, file), -EINVAL);
}
END_TEST

START_TEST(a_shared_space_is_copied_when_it_changes)
{
	struct space *old;

	map(0x1000, 0x2000, 0, file);
	old = space_ref(space);
	map(0x1000, 0x2000, 0, file); /* no change, no copy */
	ck_assert_ptr_eq(old, space);
	map(0x3000, 0x4000, 0, other);
	ck_assert_ptr_ne(old, space);
	ck_assert_uint_eq(old->count, 1);
	ck_assert_uint_eq(space->count, 2);
	ck_assert_uint_eq(old->refs, 1);
	ck_assert_ptr_null(space_find(old, 0x3000));
	space_put(old);
}
END_TEST

START_TEST(a_full_space_lets_the_oldest_generated_code_go)
{
	map(0x1000, 0x2000, 0, file);
	for (uint64_t i = 1; i < SPACE_MAPPINGS_MAX + 100; i++)
		map(i * 0x10000, i * 0x10000 + 0x1000, 0, anon);
	ck_assert_uint_le(space->count, SPACE_MAPPINGS_MAX);
	ck_assert_ptr_nonnull(space_find(space, 0x1000));
	ck_assert_ptr_null(space_find(space, 0x10000));
	ck_assert_ptr_nonnull(space_find(space, (SPACE_MAPPINGS_MAX + 99) * 0x10000));
}
END_TEST

START_TEST(an_address_is_given_in_the_file_s_own_terms)
{
	struct {
		Elf64_Ehdr head;
		Elf64_Phdr ph;
	} image = {.head = {.e_phoff = sizeof(Elf64_Ehdr), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 1},
		   .ph = {.p_type = PT_LOAD, .p_flags = PF_X, .p_offset = 0x2000, .p_vaddr = 0x403000,
			  .p_filesz = 0x1000, .p_memsz = 0x1000}};
	struct mapping m = {.start = 0x7f0000, .end = 0x7f2000, .offset = 0x2000, .file = file};

	ck_assert_uint_eq(mapping_address(&m, 0x7f0010), 0x2010);
	memcpy(image.head.e_ident, ELFMAG, SELFMAG);
	image.head.e_ident[EI_CLASS] = ELFCLASS64;
	image.head.e_ident[EI_DATA] = ELFDATA2LSB;
	image.head.e_ident[EI_VERSION] = EV_CURRENT;
	ck_assert_int_eq(binary_open_memory(&image, sizeof(image), "x", &file->binary), 0);
	ck_assert_uint_eq(mapping_address(&m, 0x7f0010), 0x403010);
	ck_assert_uint_eq(mapping_address(&m, 0x7f1010), 0x3010); /* behind the segment */
	ck_assert(!mapping_is_generated(&m, 0x7f0010) && mapping_is_generated(&m, 0x7f1010));
	m.file = anon;
	ck_assert_uint_eq(mapping_address(&m, 0x7f0010), 0x7f0010);
}
END_TEST

START_TEST(random_changes_agree_with_a_page_table)
{
	enum { PAGES = 256 };
	struct mapped_file *const files[] = {NULL, file, other, anon};
	uint8_t owner[PAGES] = {0};
	uint32_t offset[PAGES] = {0};
	uint32_t seed = 1;

	for (int round = 0; round < 20000; round++) {
		uint32_t a = (seed = seed * 1103515245 + 12345) >> 16 & 0xff, n = 1 + ((seed >> 8) & 0x1f);
		uint32_t b = MIN(a + n, (uint32_t)PAGES), who = seed >> 28 & 3;

		if (who)
			map(a * 0x1000, b * 0x1000, (uint64_t)round << 12, files[who]);
		else
			ck_assert_int_eq(space_unmap(&space, a * 0x1000, b * 0x1000), 0);
		for (uint32_t p = a; p < b; p++) {
			owner[p] = (uint8_t)who;
			offset[p] = (uint32_t)round + (p - a);
		}
		for (uint32_t i = 1; i < space->count; i++)
			ck_assert(space->maps[i - 1].end <= space->maps[i].start);
		for (uint32_t p = a > 2 ? a - 2 : 0; p < MIN(b + 2, (uint32_t)PAGES); p++) {
			const struct mapping *m = space_find(space, p * 0x1000 + 5);

			ck_assert_ptr_eq(m ? m->file : NULL, files[owner[p]]);
			if (m)
				ck_assert_uint_eq((m->offset + p * 0x1000 - m->start) >> 12, offset[p]);
		}
	}
}
END_TEST

Suite *space_suite(void)
{
	Suite *s = suite_create("space");
	TCase *t = tcase_create("space");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, an_address_finds_its_mapping);
	tcase_add_test(t, a_mapping_in_the_middle_splits_the_older_one);
	tcase_add_test(t, a_mapping_cuts_both_neighbours_and_swallows_what_lies_between);
	tcase_add_test(t, unmapping_leaves_the_rest);
	tcase_add_test(t, the_same_mapping_said_twice_changes_nothing);
	tcase_add_test(t, a_shared_space_is_copied_when_it_changes);
	tcase_add_test(t, a_full_space_lets_the_oldest_generated_code_go);
	tcase_add_test(t, an_address_is_given_in_the_file_s_own_terms);
	tcase_add_test(t, random_changes_agree_with_a_page_table);
	suite_add_tcase(s, t);
	return s;
}

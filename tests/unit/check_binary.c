// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "process/binary.h"
#include "process/sha256.h"

Suite *binary_suite(void);

/* A small file of every kind of table; tests break one thing at a time. */
struct image {
	Elf64_Ehdr head;
	Elf64_Phdr ph[5];
	struct {
		Elf64_Nhdr n;
		char name[4];
		uint8_t id[20];
	} note;
	char text[64];
	char strings[48];
	Elf64_Shdr sh[4];
};

static const char names[] = "\0.text\0.shstrtab\0.note.gnu.build-id";

static void image_init(struct image *i)
{
	memset(i, 0, sizeof(*i));
	memcpy(i->head.e_ident, ELFMAG, SELFMAG);
	i->head.e_ident[EI_CLASS] = ELFCLASS64;
	i->head.e_ident[EI_DATA] = ELFDATA2LSB;
	i->head.e_ident[EI_VERSION] = EV_CURRENT;
	i->head.e_type = ET_DYN;
	i->head.e_machine = EM_X86_64;
	i->head.e_entry = 0x1040;
	i->head.e_phoff = offsetof(struct image, ph);
	i->head.e_phentsize = sizeof(Elf64_Phdr);
	i->head.e_phnum = 5;
	i->head.e_shoff = offsetof(struct image, sh);
	i->head.e_shentsize = sizeof(Elf64_Shdr);
	i->head.e_shnum = 4;
	i->head.e_shstrndx = 2;
	i->ph[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R, .p_offset = 0, .p_vaddr = 0, .p_filesz = 0x200,
				.p_memsz = 0x200};
	i->ph[1] = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = offsetof(struct image, text),
				.p_vaddr = 0x1000, .p_filesz = 64, .p_memsz = 128};
	i->ph[2] = (Elf64_Phdr){.p_type = PT_NOTE, .p_offset = offsetof(struct image, note),
				.p_filesz = sizeof(i->note), .p_memsz = sizeof(i->note), .p_align = 4};
	i->ph[3] = (Elf64_Phdr){.p_type = PT_GNU_EH_FRAME, .p_vaddr = 0x1020, .p_memsz = 0x10};
	i->ph[4] = (Elf64_Phdr){.p_type = PT_DYNAMIC, .p_vaddr = 0x1030, .p_memsz = 0x8};
	i->note.n = (Elf64_Nhdr){.n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID};
	memcpy(i->note.name, "GNU", 4);
	for (int k = 0; k < 20; k++)
		i->note.id[k] = (uint8_t)(k + 1);
	for (int k = 0; k < 64; k++)
		i->text[k] = (char)k;
	memcpy(i->strings, names, sizeof(names));
	i->sh[1] = (Elf64_Shdr){.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_addr = 0x1000, .sh_size = 64,
				.sh_offset = offsetof(struct image, text)};
	i->sh[2] = (Elf64_Shdr){.sh_name = 7, .sh_type = SHT_STRTAB, .sh_size = sizeof(i->strings),
				.sh_offset = offsetof(struct image, strings)};
	i->sh[3] = (Elf64_Shdr){.sh_name = 17, .sh_type = SHT_NOTE, .sh_size = sizeof(i->note),
				.sh_offset = offsetof(struct image, note)};
}

static struct binary *open_image(const struct image *i, size_t len)
{
	struct binary *b = NULL;

	ck_assert_int_eq(binary_open_memory(i, len, "test", &b), 0);
	return b;
}

static int temp_file(const void *data, size_t len)
{
	int fd = memfd_create("check", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, data, len), (ssize_t)len);
	return fd;
}

START_TEST(sha256_agrees_with_the_standard)
{
	/* FIPS 180-2, appendix B.1 and B.2 */
	static const struct {
		const char *text, *digest;
	} cases[] = {
		{"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
	};
	uint8_t out[SHA256_LEN];
	char hex[2 * SHA256_LEN + 1];
	struct sha256 s;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		sha256_init(&s);
		for (const char *c = cases[i].text; *c; c++)
			sha256_add(&s, c, 1);
		sha256_end(&s, out);
		for (int k = 0; k < SHA256_LEN; k++)
			snprintf(hex + 2 * k, 3, "%02x", out[k]);
		ck_assert_str_eq(hex, cases[i].digest);
	}
}
END_TEST

START_TEST(headers_are_read)
{
	struct image i;
	struct binary *b;

	image_init(&i);
	b = open_image(&i, sizeof(i));
	ck_assert(b->is_elf && b->is_64);
	ck_assert_int_eq(b->machine, EM_X86_64);
	ck_assert_int_eq(b->type, ET_DYN);
	ck_assert_uint_eq(b->entry, 0x1040);
	ck_assert_int_eq(b->nr_segments, 2);
	ck_assert_int_eq(b->nr_sections, 4);
	ck_assert_uint_eq(b->eh_frame_hdr, 0x1020);
	ck_assert_int_eq(b->build_id_len, 20);
	ck_assert_int_eq(b->build_id[19], 20);
	ck_assert_ptr_nonnull(binary_section(b, ".text"));
	ck_assert_uint_eq(binary_section(b, ".text")->addr, 0x1000);
	ck_assert_ptr_null(binary_section(b, ".bss"));
	binary_put(b);
}
END_TEST

START_TEST(addresses_and_offsets_translate)
{
	const uint64_t text = offsetof(struct image, text);
	struct image i;
	struct binary *b;
	uint64_t to = 0;

	image_init(&i);
	b = open_image(&i, sizeof(i));
	ck_assert(binary_offset_to_vaddr(b, text + 5, &to));
	ck_assert_uint_eq(to, 0x1005);
	/* Shown by both segments: code is meant. */
	ck_assert(text + 5 < 0x200);
	ck_assert(!binary_offset_to_vaddr(b, 1u << 20, &to));
	ck_assert(binary_is_code(b, 0x1050));
	ck_assert(!binary_is_code(b, 0x1080));
	ck_assert(!binary_is_code(b, 0x10));
	binary_put(b);
}
END_TEST

START_TEST(reads_stay_within_segment_and_file)
{
	struct image i;
	struct binary *b;
	uint8_t to[256];

	image_init(&i);
	b = open_image(&i, sizeof(i));
	ck_assert_int_eq(binary_read_vaddr(b, 0x1030, to, sizeof(to)), 16);
	ck_assert_int_eq(to[15], 0x3f);
	ck_assert_int_eq(binary_read_vaddr(b, 0x1040, to, 1), -EFAULT);
	ck_assert_int_eq(binary_read_vaddr(b, UINT64_MAX, to, 1), -EFAULT);
	ck_assert_int_eq(binary_read(b, sizeof(i) - 4, to, sizeof(to)), 4);
	ck_assert_int_eq(binary_read(b, sizeof(i), to, 1), 0);
	ck_assert_int_eq(binary_read(b, UINT64_MAX, to, 1), 0);
	binary_put(b);
}
END_TEST

static void make_big_endian(struct image *i) { i->head.e_ident[EI_DATA] = ELFDATA2MSB; }
static void make_no_class(struct image *i) { i->head.e_ident[EI_CLASS] = 7; }
static void make_no_magic(struct image *i) { i->head.e_ident[1] = 'X'; }
static void make_future(struct image *i) { i->head.e_ident[EI_VERSION] = 2; }

static void (*const no_elf[])(struct image *) = {make_big_endian, make_no_class, make_no_magic, make_future};

START_TEST(what_is_no_little_endian_elf_is_still_a_binary)
{
	struct image i;
	struct binary *b;

	image_init(&i);
	no_elf[_i](&i);
	b = open_image(&i, sizeof(i));
	ck_assert(!b->is_elf);
	ck_assert_int_eq(b->nr_segments, 0);
	ck_assert_int_eq(binary_read(b, 0, &i, 16), 16);
	binary_put(b);
}
END_TEST

static void break_phoff(struct image *i) { i->head.e_phoff = UINT64_MAX - 8; }
static void break_phentsize(struct image *i) { i->head.e_phentsize = 1; }
static void break_phnum(struct image *i) { i->head.e_phnum = 0xffff; }
static void break_shoff(struct image *i) { i->head.e_shoff = UINT64_MAX - 8; }
static void break_shnum(struct image *i) { i->head.e_shnum = 0xfeff; }
static void break_strings(struct image *i) { i->sh[2].sh_offset = UINT64_MAX - 4; }
static void break_name(struct image *i) { i->sh[1].sh_name = UINT32_MAX; }
static void break_segment(struct image *i) { i->ph[1].p_vaddr = UINT64_MAX - 8; }
static void break_filesz(struct image *i) { i->ph[1].p_filesz = 1u << 30; }
static void break_note(struct image *i) { i->note.n.n_namesz = UINT32_MAX; }
static void break_note_desc(struct image *i) { i->note.n.n_descsz = UINT32_MAX - 2; }
static void break_note_size(struct image *i) { i->ph[2].p_filesz = UINT64_MAX; }
static void break_section(struct image *i) { i->sh[1].sh_size = UINT64_MAX; }
static void break_extended(struct image *i) { i->head.e_shnum = 0; i->sh[0].sh_size = UINT64_MAX; }

static void (*const broken[])(struct image *) = {
	break_phoff, break_phentsize, break_phnum,     break_shoff,     break_shnum,   break_strings,  break_name,
	break_segment, break_filesz,  break_note,      break_note_desc, break_note_size, break_section, break_extended,
};

START_TEST(a_broken_table_leaves_a_poorer_binary)
{
	struct image i;
	struct binary *b;
	uint8_t to[4096];

	image_init(&i);
	broken[_i](&i);
	b = open_image(&i, sizeof(i));
	ck_assert(b->is_elf);
	ck_assert_int_le(b->nr_sections, BINARY_SECTIONS_MAX);
	for (int k = 0; k < b->nr_sections; k++)
		ck_assert_uint_ge(b->sections[k].offset + b->sections[k].size, b->sections[k].offset);
	for (int k = 0; k < b->nr_segments; k++)
		ck_assert_int_le(binary_read_vaddr(b, b->segments[k].vaddr, to, sizeof(to)), (ssize_t)sizeof(to));
	binary_put(b);
}
END_TEST

START_TEST(every_cut_of_a_file_opens)
{
	struct image i;

	image_init(&i);
	for (size_t len = 0; len < sizeof(i); len++)
		binary_put(open_image(&i, len));
	ck_assert_uint_eq(binary_count(), 0);
}
END_TEST

START_TEST(a_build_id_is_found_in_its_section_too)
{
	struct image i;
	struct binary *b;

	image_init(&i);
	i.ph[2].p_type = PT_NULL;
	b = open_image(&i, sizeof(i));
	ck_assert_int_eq(b->build_id_len, 20);
	binary_put(b);
}
END_TEST

START_TEST(a_32_bit_header_is_recognised)
{
	struct {
		Elf32_Ehdr head;
		Elf32_Phdr ph;
	} i = {.head = {.e_type = ET_EXEC, .e_machine = EM_386, .e_phoff = sizeof(Elf32_Ehdr),
			.e_phentsize = sizeof(Elf32_Phdr), .e_phnum = 1},
	       .ph = {.p_type = PT_LOAD, .p_flags = PF_X, .p_vaddr = 0x8048000, .p_filesz = 16, .p_memsz = 16}};
	struct binary *b;

	memcpy(i.head.e_ident, ELFMAG, SELFMAG);
	i.head.e_ident[EI_CLASS] = ELFCLASS32;
	i.head.e_ident[EI_DATA] = ELFDATA2LSB;
	i.head.e_ident[EI_VERSION] = EV_CURRENT;
	ck_assert_int_eq(binary_open_memory(&i, sizeof(i), "i386", &b), 0);
	ck_assert(b->is_elf && !b->is_64);
	ck_assert_int_eq(b->nr_segments, 1);
	ck_assert(binary_is_code(b, 0x8048008));
	binary_put(b);
}
END_TEST

START_TEST(a_file_opened_twice_is_one_object)
{
	struct image i;
	struct binary *a, *b;
	int fd;

	image_init(&i);
	fd = temp_file(&i, sizeof(i));
	ck_assert_int_eq(binary_open(dup(fd), "/a", &a), 0);
	ck_assert_int_eq(binary_open(fd, "/a", &b), 0);
	ck_assert_ptr_eq(a, b);
	ck_assert_int_eq(a->refs, 2);
	ck_assert_str_eq(a->path->s, "/a");
	ck_assert_uint_eq(binary_count(), 1);
	binary_put(a);
	binary_put(b);
	ck_assert_uint_eq(binary_count(), 0);
	ck_assert_uint_eq(binary_cache_used(), 0);
}
END_TEST

/* A mount can put it below any path: its first user may not choose how others' frames are called. */
START_TEST(file_has_the_path_below_which_it_was_opened)
{
	struct binary *a, *b;
	struct image i;
	int fd;

	image_init(&i);
	fd = temp_file(&i, sizeof(i));
	ck_assert_int_eq(binary_open(dup(fd), "/tmp/evil", &a), 0);
	ck_assert_int_eq(binary_open(fd, "/usr/bin/good", &b), 0);
	ck_assert_str_eq(a->path->s, "/tmp/evil");
	ck_assert_str_eq(b->path->s, "/usr/bin/good");
	ck_assert(a != b && binary_is_same_file(a, b));
	b->ctime_ns++; /* it was written to in between */
	ck_assert(!binary_is_same_file(a, b));
	b->ctime_ns--;
	binary_put(a);
	binary_put(b);
	ck_assert_uint_eq(binary_count(), 0);
}
END_TEST

START_TEST(a_file_that_is_no_regular_one_is_refused_and_closed)
{
	int fd = open("/dev/null", O_RDONLY);
	struct binary *b = NULL;

	ck_assert_int_eq(binary_open(fd, "/dev/null", &b), -EIO);
	ck_assert_ptr_null(b);
	ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
	ck_assert_int_eq(binary_open(-1, "", &b), -EIO);
}
END_TEST

START_TEST(the_hash_covers_head_tail_and_length)
{
	uint8_t data[10000], digest[SHA256_LEN];
	const uint8_t length[8] = {0, 0, 0, 0, 0, 0, 0x27, 0x10};
	struct sha256 s;
	struct binary *b;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	sha256_init(&s);
	sha256_add(&s, data, 4096);
	sha256_add(&s, data + sizeof(data) - 4096, 4096);
	sha256_add(&s, length, 8);
	sha256_end(&s, digest);
	ck_assert_int_eq(binary_open(temp_file(data, sizeof(data)), "/data", &b), 0);
	ck_assert_mem_eq(b->htlhash, digest, 16);
	binary_put(b);
}
END_TEST

START_TEST(the_cache_stays_within_its_bound_and_reads_right)
{
	static uint8_t data[64 * 4096];
	uint8_t to[9000];
	struct binary *b;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i >> 8 ^ i);
	ck_assert_int_eq(binary_open(temp_file(data, sizeof(data)), "/data", &b), 0);
	binary_cache_limit(8 * 4400);
	for (size_t at = 0; at + sizeof(to) <= sizeof(data); at += 3001) {
		ck_assert_int_eq(binary_read(b, at, to, sizeof(to)), (ssize_t)sizeof(to));
		ck_assert_mem_eq(to, data + at, sizeof(to));
		ck_assert_uint_le(binary_cache_used(), 8 * 4400);
	}
	ck_assert_uint_gt(binary_cache_used(), 0);
	binary_put(b);
	ck_assert_uint_eq(binary_cache_used(), 0);
	binary_cache_limit(4u << 20);
}
END_TEST

START_TEST(a_file_cut_under_us_costs_a_short_read)
{
	static uint8_t data[3 * 4096];
	uint8_t to[4096];
	struct binary *b;
	int fd = temp_file(data, sizeof(data));
	int mine = dup(fd);

	ck_assert_int_eq(binary_open(fd, "/data", &b), 0);
	ck_assert_int_eq(ftruncate(mine, 4096), 0);
	ck_assert_int_eq(binary_read(b, 4096, to, sizeof(to)), 0);
	ck_assert_int_eq(binary_read(b, 0, to, sizeof(to)), 4096);
	close(mine);
	binary_put(b);
}
END_TEST

struct pages {
	int count;
	uint64_t last;
	const uint8_t *data;
	size_t len;
};

static void on_page(void *ctx, const struct binary *b, uint64_t offset, const void *data, size_t len)
{
	struct pages *p = ctx;

	p->count++;
	p->last = offset;
}

START_TEST(the_hook_sees_each_page_once)
{
	static uint8_t data[4 * 4096];
	struct pages pages = {0};
	uint8_t to[8];
	struct binary *b;

	binary_set_page_hook(on_page, &pages);
	ck_assert_int_eq(binary_open(temp_file(data, sizeof(data)), "/data", &b), 0);
	ck_assert_int_eq(pages.count, 2); /* head and tail */
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(binary_read(b, 4096 + 100 * i, to, 8), 8);
	ck_assert_int_eq(pages.count, 3);
	ck_assert_uint_eq(pages.last, 4096);
	binary_set_page_hook(NULL, NULL);
	binary_put(b);
}
END_TEST

static ssize_t replay_read(void *ctx, uint64_t offset, void *to, size_t len)
{
	struct pages *p = ctx;

	if (offset >= p->len)
		return 0;
	len = MIN(len, p->len - offset);
	memcpy(to, p->data + offset, len);
	return (ssize_t)len;
}

START_TEST(a_replayed_file_reads_like_the_file)
{
	struct image i;
	struct pages pages = {.data = (const uint8_t *)&i, .len = sizeof(i)};
	struct binary_replay replay = {1, 2, sizeof(i), 3, replay_read, &pages};
	struct binary *a, *b;

	image_init(&i);
	ck_assert_int_eq(binary_open_replay(&replay, "/r", &a), 0);
	ck_assert(a->is_elf);
	ck_assert_int_eq(a->build_id_len, 20);
	ck_assert_int_eq(binary_open_replay(&replay, "/r", &b), 0);
	ck_assert_ptr_eq(a, b);
	binary_put(a);
	binary_put(b);
}
END_TEST

static int slots_freed;
static void slot_freed(void *p)
{
	slots_freed += *(int *)p;
}

START_TEST(slots_go_with_the_binary)
{
	struct image i;
	struct binary *b;
	int value = 5;

	image_init(&i);
	b = open_image(&i, sizeof(i));
	b->slot[BINARY_SLOT_SYMBOLS] = &value;
	b->slot_free[BINARY_SLOT_SYMBOLS] = slot_freed;
	slots_freed = 0;
	binary_put(binary_ref(b));
	ck_assert_int_eq(slots_freed, 0);
	binary_put(b);
	ck_assert_int_eq(slots_freed, 5);
}
END_TEST

Suite *binary_suite(void)
{
	Suite *s = suite_create("binary");
	TCase *t = tcase_create("elf");

	tcase_add_test(t, sha256_agrees_with_the_standard);
	tcase_add_test(t, headers_are_read);
	tcase_add_test(t, addresses_and_offsets_translate);
	tcase_add_test(t, reads_stay_within_segment_and_file);
	tcase_add_loop_test(t, what_is_no_little_endian_elf_is_still_a_binary, 0, ARRAY_SIZE(no_elf));
	tcase_add_loop_test(t, a_broken_table_leaves_a_poorer_binary, 0, ARRAY_SIZE(broken));
	tcase_add_test(t, every_cut_of_a_file_opens);
	tcase_add_test(t, a_build_id_is_found_in_its_section_too);
	tcase_add_test(t, a_32_bit_header_is_recognised);
	suite_add_tcase(s, t);
	t = tcase_create("files");
	tcase_add_test(t, a_file_opened_twice_is_one_object);
	tcase_add_test(t, file_has_the_path_below_which_it_was_opened);
	tcase_add_test(t, a_file_that_is_no_regular_one_is_refused_and_closed);
	tcase_add_test(t, the_hash_covers_head_tail_and_length);
	tcase_add_test(t, the_cache_stays_within_its_bound_and_reads_right);
	tcase_add_test(t, a_file_cut_under_us_costs_a_short_read);
	tcase_add_test(t, the_hook_sees_each_page_once);
	tcase_add_test(t, a_replayed_file_reads_like_the_file);
	tcase_add_test(t, slots_go_with_the_binary);
	suite_add_tcase(s, t);
	return s;
}

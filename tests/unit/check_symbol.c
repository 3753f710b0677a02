// SPDX-License-Identifier: Apache-2.0
/* Names of addresses in ELF files, from files made here and from this program itself. */
#include <check.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "symbol/cache.h"
#include "symbol/symbol.h"

#define TEXT  0x1000 /* section .text, one page, address and offset alike */
#define PLT   0x2000 /* section .plt, in the same segment */
#define GOT   0x9000

/* Sections of the file, in this order. */
enum { NONE, S_TEXT, S_PLT, S_SYMTAB, S_STRTAB, S_DYNSYM, S_DYNSTR, S_RELA, S_SHSTRTAB, SECTIONS };

#define ABSOLUTE 0x80

struct symbol_row {
	const char *name;
	uint64_t value, size;
	uint8_t bind, type; /* with ABSOLUTE: in no section */
};

struct elf_file {
	struct buf image, names, dynnames;
	Elf64_Shdr sections[SECTIONS];
	struct binary *binary;
};

static struct symbolizer *symbols;
static struct elf_file elf;

static uint32_t add_name(struct buf *b, const char *name)
{
	uint32_t at = (uint32_t)b->len;

	buf_add(b, name, strlen(name) + 1);
	return at;
}

static void pad_to(struct buf *b, size_t len)
{
	while (b->len < len)
		buf_add(b, "\xcc", 1);
}

static void add_symbols(const struct symbol_row *rows, size_t n)
{
	Elf64_Sym none = {0};

	buf_add(&elf.image, &none, sizeof(none));
	for (size_t i = 0; i < n; i++) {
		Elf64_Sym s = {.st_name = add_name(&elf.names, rows[i].name), .st_value = rows[i].value,
			       .st_size = rows[i].size, .st_shndx = rows[i].type & ABSOLUTE ? SHN_ABS : S_TEXT,
			       .st_info = ELF64_ST_INFO(rows[i].bind, rows[i].type & 0xf)};

		buf_add(&elf.image, &s, sizeof(s));
	}
}

/* jmp *GOT+8(%rip) at the second stub, push 0 and a jump at the third. */
static void add_plt(struct buf *b)
{
	static const uint8_t first[] = {0xff, 0x35, 0, 0, 0, 0, 0xff, 0x25, 0, 0, 0, 0};
	uint8_t jump[] = {0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0, 0, 0, 0};
	static const uint8_t lazy[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x68, 1, 0, 0, 0, 0xe9, 0, 0, 0, 0};
	int32_t disp = GOT + 8 - (PLT + 16 + 10);

	memcpy(jump + 6, &disp, sizeof(disp));
	pad_to(b, PLT);
	buf_add(b, first, sizeof(first));
	pad_to(b, PLT + 16);
	buf_add(b, jump, sizeof(jump));
	pad_to(b, PLT + 32);
	buf_add(b, lazy, sizeof(lazy));
	pad_to(b, PLT + 48);
}

static void add_dynamic(void)
{
	Elf64_Sym syms[] = {{0},
			    {.st_name = add_name(&elf.dynnames, "malloc"), .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)},
			    {.st_name = add_name(&elf.dynnames, "free"), .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)},
			    {.st_name = add_name(&elf.dynnames, "exported"), .st_value = TEXT + 0xf00, .st_size = 16,
			     .st_shndx = S_TEXT, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)}};
	Elf64_Rela relas[] = {{.r_offset = GOT + 8, .r_info = ELF64_R_INFO(1ULL, R_X86_64_JUMP_SLOT)},
			      {.r_offset = GOT + 16, .r_info = ELF64_R_INFO(2ULL, R_X86_64_JUMP_SLOT)}};

	elf.sections[S_DYNSYM] = (Elf64_Shdr){.sh_type = SHT_DYNSYM, .sh_offset = elf.image.len, .sh_size = sizeof(syms),
					      .sh_entsize = sizeof(*syms), .sh_link = S_DYNSTR};
	buf_add(&elf.image, syms, sizeof(syms));
	elf.sections[S_RELA] = (Elf64_Shdr){.sh_type = SHT_RELA, .sh_offset = elf.image.len, .sh_size = sizeof(relas),
					    .sh_entsize = sizeof(*relas), .sh_link = S_DYNSYM};
	buf_add(&elf.image, relas, sizeof(relas));
	elf.sections[S_DYNSTR] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = elf.image.len, .sh_size = elf.dynnames.len};
	buf_add(&elf.image, elf.dynnames.data, elf.dynnames.len);
}

static void add_section_headers(void)
{
	static const char *const names[SECTIONS] = {"", ".text", ".plt", ".symtab", ".strtab",
						    ".dynsym", ".dynstr", ".rela.plt", ".shstrtab"};
	_cleanup_(buf_done) struct buf text = {0};
	Elf64_Ehdr head;

	for (int i = 0; i < SECTIONS; i++)
		elf.sections[i].sh_name = add_name(&text, names[i]);
	elf.sections[S_SHSTRTAB].sh_type = SHT_STRTAB;
	elf.sections[S_SHSTRTAB].sh_offset = elf.image.len;
	elf.sections[S_SHSTRTAB].sh_size = text.len;
	buf_add(&elf.image, text.data, text.len);
	while (elf.image.len % 8)
		buf_add(&elf.image, "", 1);
	memcpy(&head, elf.image.data, sizeof(head));
	head.e_shoff = elf.image.len;
	memcpy(elf.image.data, &head, sizeof(head));
	buf_add(&elf.image, elf.sections, sizeof(elf.sections));
}

static void add_head(void)
{
	Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT}, .e_type = ET_DYN,
			   .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_phoff = sizeof(head),
			   .e_ehsize = sizeof(head), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 1,
			   .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = SECTIONS, .e_shstrndx = S_SHSTRTAB};
	Elf64_Phdr load = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = TEXT, .p_vaddr = TEXT,
			   .p_filesz = 0x1100, .p_memsz = 0x1100, .p_align = 0x1000};

	buf_add(&elf.image, &head, sizeof(head));
	buf_add(&elf.image, &load, sizeof(load));
	pad_to(&elf.image, TEXT);
	elf.sections[S_TEXT] = (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
					    .sh_addr = TEXT, .sh_offset = TEXT, .sh_size = 0x1000};
	elf.sections[S_PLT] = (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = PLT,
					   .sh_offset = PLT, .sh_size = 48, .sh_entsize = 16};
}

static void make_elf(const struct symbol_row *rows, size_t n)
{
	add_name(&elf.names, "");
	add_name(&elf.dynnames, "");
	add_head();
	add_plt(&elf.image);
	elf.sections[S_SYMTAB] = (Elf64_Shdr){.sh_type = SHT_SYMTAB, .sh_offset = elf.image.len,
					      .sh_size = (n + 1) * sizeof(Elf64_Sym), .sh_entsize = sizeof(Elf64_Sym),
					      .sh_link = S_STRTAB};
	add_symbols(rows, n);
	elf.sections[S_STRTAB] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = elf.image.len, .sh_size = elf.names.len};
	buf_add(&elf.image, elf.names.data, elf.names.len);
	add_dynamic();
	add_section_headers();
}

static void open_elf(void)
{
	ck_assert_int_eq(binary_open_memory(elf.image.data, elf.image.len, "/opt/lib/libmade.so", &elf.binary), 0);
	ck_assert(elf.binary->is_elf);
}

static void set_up(void)
{
	ck_assert_int_eq(symbolizer_new(&(struct symbol_limits){0}, &symbols), 0);
}

static void tear_down(void)
{
	elf.binary = binary_put(elf.binary);
	symbols = symbolizer_free(symbols);
	buf_done(&elf.image);
	buf_done(&elf.names);
	buf_done(&elf.dynnames);
	elf = (struct elf_file){0};
}

static const struct symbol_row rows[] = {
	/* Local ones come first in each table. */
	{"a_label_of_first", TEXT + 0x000, 0, STB_LOCAL, STT_NOTYPE},
	{"first", TEXT + 0x000, 0x20, STB_GLOBAL, STT_FUNC},
	/* Aliases: what people know, whatever comes first in the table. */
	{"__read", TEXT + 0x100, 0x20, STB_GLOBAL, STT_FUNC},
	{"local_read", TEXT + 0x100, 0x20, STB_LOCAL, STT_FUNC},
	{"read", TEXT + 0x100, 0x20, STB_WEAK, STT_FUNC},
	{"__libc_read", TEXT + 0x100, 0x20, STB_GLOBAL, STT_FUNC},
	/* A sized function with labels inside; the labels never win. */
	{"outer", TEXT + 0x200, 0x100, STB_GLOBAL, STT_FUNC},
	{"label_inside", TEXT + 0x240, 0, STB_LOCAL, STT_NOTYPE},
	{"inner", TEXT + 0x280, 0x10, STB_LOCAL, STT_FUNC},
	/* Assembly without sizes. */
	{"asm_entry", TEXT + 0x400, 0, STB_GLOBAL, STT_NOTYPE},
	{"$x", TEXT + 0x410, 0, STB_LOCAL, STT_NOTYPE},
	{".annobin_of_asm.c", TEXT + 0x412, 0, STB_LOCAL, STT_NOTYPE},
	/* A number that happens to be an address of code. */
	{"_binary_picture_size", TEXT + 0x414, 0, STB_GLOBAL, STT_NOTYPE | ABSOLUTE},
	{"asm_next", TEXT + 0x440, 0, STB_GLOBAL, STT_FUNC},
	{"versioned@@V_2", TEXT + 0x600, 0x10, STB_GLOBAL, STT_FUNC},
	{"_ZN3foo3barEi", TEXT + 0x700, 0x10, STB_GLOBAL, STT_FUNC},
	{"indirect", TEXT + 0x800, 0x10, STB_GLOBAL, STT_GNU_IFUNC},
	{"an_object", TEXT + 0x900, 0x10, STB_GLOBAL, STT_OBJECT},
	{"last_in_text", TEXT + 0xff0, 0, STB_GLOBAL, STT_NOTYPE},
};

static const struct {
	uint64_t vaddr;
	const char *name, *resolver;
} finds[] = {
	{TEXT + 0x000, "first", "symtab"},
	{TEXT + 0x01f, "first", "symtab"},
	{TEXT + 0x020, "libmade.so+0x1020", NULL},
	{TEXT + 0x110, "read", "symtab"},
	{TEXT + 0x248, "outer", "symtab"},
	{TEXT + 0x288, "inner", "symtab"},
	{TEXT + 0x290, "outer", "symtab"},
	{TEXT + 0x2ff, "outer", "symtab"},
	{TEXT + 0x300, "libmade.so+0x1300", NULL},
	{TEXT + 0x405, "asm_entry", "symtab"},
	{TEXT + 0x413, "asm_entry", "symtab"},
	{TEXT + 0x415, "asm_entry", "symtab"},
	{TEXT + 0x45f, "asm_next", "symtab"},
	{TEXT + 0x608, "versioned", "symtab"},
	{TEXT + 0x708, "foo::bar", "symtab"},
	{TEXT + 0x808, "indirect", "symtab"},
	{TEXT + 0x908, "libmade.so+0x1908", NULL},
	{TEXT + 0xf08, "exported", "dynsym"},
	{TEXT + 0xfff, "last_in_text", "symtab"},
	/* A symbol without size ends with its section. */
	{PLT + 0x000, "libmade.so+0x2000", NULL},
	{PLT + 0x018, "malloc@plt", "plt"},
	{PLT + 0x028, "free@plt", "plt"},
	{0, "libmade.so+0x0", NULL},
	{UINT64_MAX, "libmade.so+0xffffffffffffffff", NULL},
};

START_TEST(address_has_the_name_that_people_know)
{
	struct symbol_result r;

	make_elf(rows, ARRAY_SIZE(rows));
	open_elf();
	/* Twice: found, then cached. */
	for (int i = 0; i < 2; i++) {
		symbol_find(symbols, elf.binary, "unused", finds[_i].vaddr, &r);
		ck_assert_uint_eq(r.count, 1);
		ck_assert_str_eq(str_c(r.lines[0].name), finds[_i].name);
		ck_assert_str_eq(r.resolver ? r.resolver : "", finds[_i].resolver ? finds[_i].resolver : "");
		symbol_result_done(&r);
	}
}
END_TEST

START_TEST(file_without_binary_is_named_by_its_path)
{
	struct symbol_result r;

	symbol_find(symbols, NULL, "/usr/bin/gone", 0x1234, &r);
	ck_assert_str_eq(str_c(r.lines[0].name), "gone+0x1234");
	symbol_result_done(&r);
	symbol_find(symbols, NULL, NULL, 0x10, &r);
	ck_assert_str_eq(str_c(r.lines[0].name), "[unknown]+0x10");
	symbol_result_done(&r);
}
END_TEST

static int start_of_block(struct binary *b, uint64_t vaddr, uint64_t *ret)
{
	*ret = vaddr & ~0xffULL;
	return vaddr < TEXT ? -ENOENT : 0;
}

START_TEST(addresses_of_one_unnamed_function_have_one_name)
{
	static const struct symbol_row none[] = {{"an_object", TEXT, 0x10, STB_GLOBAL, STT_OBJECT}};
	static const uint64_t at[] = {TEXT + 0x311, TEXT + 0x3ff};
	struct symbol_result r;

	symbols = symbolizer_free(symbols);
	ck_assert_int_eq(symbolizer_new(&(struct symbol_limits){.function_start = start_of_block}, &symbols), 0);
	make_elf(none, 1);
	open_elf();
	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		symbol_find(symbols, elf.binary, "", at[i], &r);
		ck_assert_str_eq(str_c(r.lines[0].name), "libmade.so+0x1300");
		ck_assert_ptr_null(r.resolver);
		symbol_result_done(&r);
	}
	symbol_find(symbols, elf.binary, "", 0x10, &r);
	ck_assert_str_eq(str_c(r.lines[0].name), "libmade.so+0x10");
	symbol_result_done(&r);
}
END_TEST

static void lie(int section, size_t field, uint64_t value)
{
	Elf64_Shdr *h = (Elf64_Shdr *)(elf.image.data + ((Elf64_Ehdr *)elf.image.data)->e_shoff);
	bool word = field == offsetof(Elf64_Shdr, sh_link);

	memcpy((uint8_t *)&h[section] + field, &value, word ? 4 : 8);
}

/* Section headers that lie: names are lost, nothing else. */
static const struct {
	int section;
	size_t field;
	uint64_t value;
} lies[] = {
	{S_SYMTAB, offsetof(Elf64_Shdr, sh_offset), UINT64_MAX - 8},
	{S_SYMTAB, offsetof(Elf64_Shdr, sh_entsize), 0},
	{S_SYMTAB, offsetof(Elf64_Shdr, sh_entsize), 1},
	{S_SYMTAB, offsetof(Elf64_Shdr, sh_link), 0xffffffff},
	{S_SYMTAB, offsetof(Elf64_Shdr, sh_link), S_SYMTAB},
	{S_STRTAB, offsetof(Elf64_Shdr, sh_offset), 1ULL << 62},
	{S_STRTAB, offsetof(Elf64_Shdr, sh_size), 0},
};

START_TEST(lying_section_header_costs_names_only)
{
	struct symbol_result r;

	make_elf(rows, ARRAY_SIZE(rows));
	lie(lies[_i].section, lies[_i].field, lies[_i].value);
	open_elf();
	symbol_find(symbols, elf.binary, "", TEXT + 0x10, &r);
	ck_assert_str_eq(str_c(r.lines[0].name), "libmade.so+0x1010");
	symbol_result_done(&r);
}
END_TEST

START_TEST(symbol_table_longer_than_the_file_is_read_to_its_end)
{
	struct symbol_result r;

	make_elf(rows, ARRAY_SIZE(rows));
	lie(S_SYMTAB, offsetof(Elf64_Shdr, sh_size), UINT64_MAX / 2);
	open_elf();
	symbol_find(symbols, elf.binary, "", TEXT + 0x10, &r);
	symbol_result_done(&r);
}
END_TEST

START_TEST(too_large_table_loses_its_smallest_functions)
{
	struct symbol_row many[200];
	static char names[200][16];
	struct symbol_result r;
	struct symbol_stats st;

	for (int i = 0; i < 200; i++) {
		snprintf(names[i], sizeof(names[i]), "f%d", i);
		many[i] = (struct symbol_row){names[i], TEXT + (uint64_t)i * 20, i % 4 ? 4 : 16, STB_GLOBAL, STT_FUNC};
	}
	symbols = symbolizer_free(symbols);
	ck_assert_int_eq(symbolizer_new(&(struct symbol_limits){.index_bytes = 2048}, &symbols), 0);
	make_elf(many, 200);
	open_elf();
	symbol_find(symbols, elf.binary, "", TEXT + 40 * 20 + 2, &r);
	ck_assert_str_eq(str_c(r.lines[0].name), "f40");
	symbol_result_done(&r);
	symbol_find(symbols, elf.binary, "", TEXT + 41 * 20 + 2, &r);
	ck_assert_str_eq(str_c(r.lines[0].name), "libmade.so+0x1336");
	symbol_result_done(&r);
	symbolizer_stats(symbols, &st);
	ck_assert_uint_le(st.index_bytes, 2048);
}
END_TEST

START_TEST(least_recently_used_index_is_forgotten_and_made_again)
{
	struct binary *twin = NULL;
	struct symbol_result r;
	struct symbol_stats st;

	symbols = symbolizer_free(symbols);
	ck_assert_int_eq(symbolizer_new(&(struct symbol_limits){.index_bytes = 600, .cached = 1}, &symbols), 0);
	make_elf(rows, ARRAY_SIZE(rows));
	open_elf();
	elf.image.data[elf.image.len - 1] ^= 1;
	ck_assert_int_eq(binary_open_memory(elf.image.data, elf.image.len, "/twin", &twin), 0);
	for (int i = 0; i < 4; i++) {
		symbol_find(symbols, i % 2 ? twin : elf.binary, "", TEXT + 0x10, &r);
		ck_assert_str_eq(str_c(r.lines[0].name), "first");
		symbol_result_done(&r);
	}
	symbolizer_stats(symbols, &st);
	ck_assert_uint_ge(st.indexes_evicted, 2);
	ck_assert_uint_eq(st.cache_hits, 0);
	binary_put(twin);
}
END_TEST

START_TEST(symbolizer_may_go_before_its_files)
{
	struct symbol_result r;

	make_elf(rows, ARRAY_SIZE(rows));
	open_elf();
	symbol_find(symbols, elf.binary, "", TEXT, &r);
	symbol_result_done(&r);
	symbols = symbolizer_free(symbols);
	ck_assert_ptr_null(elf.binary->slot[BINARY_SLOT_SYMBOLS]);
}
END_TEST

START_TEST(cache_forgets_what_was_used_longest_ago)
{
	size_t strings = str_count();
	struct symbol_result in = {.count = 1, .lines[0].name = str_get_c("name")}, out;
	struct symbol_cache c;

	symbol_cache_init(&c, 3);
	for (uint64_t i = 0; i < 3; i++)
		symbol_cache_put(&c, 1, i, &in);
	ck_assert(symbol_cache_find(&c, 1, 0, &out));
	symbol_result_done(&out);
	symbol_cache_put(&c, 2, 0, &in);
	ck_assert(!symbol_cache_find(&c, 1, 1, &out));
	ck_assert(symbol_cache_find(&c, 1, 0, &out));
	symbol_result_done(&out);
	symbol_cache_done(&c);
	symbol_result_done(&in);
	ck_assert_uint_eq(str_count(), strings);
}
END_TEST

START_TEST(cache_is_bounded_by_bytes_too)
{
	_cleanup_(freep) char *long_name = malloc(1001);
	struct symbol_result in = {.count = 1};
	struct symbol_cache c;

	memset(long_name, 'a', 1000);
	long_name[1000] = '\0';
	in.lines[0].name = str_get_c(long_name);
	symbol_cache_init(&c, 10);
	for (uint64_t i = 0; i < 10; i++)
		symbol_cache_put(&c, 1, i, &in);
	ck_assert_uint_le(c.bytes, 3840);
	ck_assert_uint_ge(c.map.count, 3);
	symbol_cache_done(&c);
	symbol_result_done(&in);
}
END_TEST

/* This program: a real linker's tables. */
extern const char __ehdr_start[];

static __attribute__((noinline)) int own_function(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 3;
}

START_TEST(own_program_is_named)
{
	uint64_t vaddr = (uint64_t)(uintptr_t)own_function - (uint64_t)(uintptr_t)__ehdr_start;
	struct symbol_result r;

	ck_assert_int_eq(own_function(2), 6);
	ck_assert_int_eq(binary_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "/proc/self/exe", &elf.binary), 0);
	symbol_find(symbols, elf.binary, "", vaddr + 1, &r);
	ck_assert_str_eq(str_c(r.lines[0].name), "own_function");
	symbol_result_done(&r);
}
END_TEST

static bool ends_with_plt(const char *s)
{
	size_t n = strlen(s);

	return n > 4 && strcmp(s + n - 4, "@plt") == 0;
}

START_TEST(own_stubs_are_named)
{
	static const char *const names[] = {".plt", ".plt.sec", ".plt.got"};
	unsigned stubs = 0, named = 0;
	struct symbol_result r;

	ck_assert_int_eq(binary_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "/proc/self/exe", &elf.binary), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct binary_section *plt = binary_section(elf.binary, names[i]);

		for (uint64_t at = 0; plt && at + 8 <= plt->size; at += 16) {
			symbol_find(symbols, elf.binary, "", plt->addr + at, &r);
			named += ends_with_plt(str_c(r.lines[0].name));
			stubs++;
			symbol_result_done(&r);
		}
	}
	/* All but the common first one, and padding. */
	ck_assert_uint_gt(stubs, 4);
	ck_assert_uint_ge(named + 3, stubs);
}
END_TEST

Suite *symbol_suite(void);
Suite *symbol_suite(void)
{
	Suite *s = suite_create("symbol");
	TCase *t = tcase_create("find"), *c = tcase_create("cache");

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_loop_test(t, address_has_the_name_that_people_know, 0, (int)ARRAY_SIZE(finds));
	tcase_add_test(t, file_without_binary_is_named_by_its_path);
	tcase_add_test(t, addresses_of_one_unnamed_function_have_one_name);
	tcase_add_loop_test(t, lying_section_header_costs_names_only, 0, (int)ARRAY_SIZE(lies));
	tcase_add_test(t, symbol_table_longer_than_the_file_is_read_to_its_end);
	tcase_add_test(t, too_large_table_loses_its_smallest_functions);
	tcase_add_test(t, least_recently_used_index_is_forgotten_and_made_again);
	tcase_add_test(t, symbolizer_may_go_before_its_files);
	tcase_add_test(t, own_program_is_named);
	tcase_add_test(t, own_stubs_are_named);
	suite_add_tcase(s, t);
	tcase_add_test(c, cache_forgets_what_was_used_longest_ago);
	tcase_add_test(c, cache_is_bounded_by_bytes_too);
	suite_add_tcase(s, c);
	return s;
}

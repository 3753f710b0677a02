// SPDX-License-Identifier: Apache-2.0
/* Runtimes of static programs, by the names in their symbol tables; thread-local variables of programs. */
#include <check.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "process/binary.h"
#include "runtime/runtime.h"
#include "runtime/thread_local.h"
#include "tests/lib/symbols_elf.h"

Suite *runtime_symbols_suite(void);

#define STRINGS 4096
#define SYMBOLS 8

/* A program of one static symbol table. */
static struct {
	Elf64_Ehdr head;
	Elf64_Phdr text;
	Elf64_Shdr section[3];
	Elf64_Sym symbol[SYMBOLS];
	char strings[STRINGS];
} file;

static struct binary *binary;
static uint64_t number_in_memory = 5; /* what the loader wrote */

static int read_number(struct memory *m, uint64_t addr, void *to, size_t len)
{
	(void)m;
	if (addr != 0x7f0000000000 + 0x900 || len != sizeof(number_in_memory))
		return -EFAULT;
	memcpy(to, &number_in_memory, len);
	return 0;
}

static struct memory memory = {.read = read_number};
static uint32_t nr_symbols;
static size_t nr_strings;

static void setup(void)
{
	memset(&file, 0, sizeof(file));
	file.head = (Elf64_Ehdr){.e_type = ET_EXEC, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
				 .e_phoff = offsetof(__typeof__(file), text), .e_shoff = offsetof(__typeof__(file), section),
				 .e_ehsize = sizeof(Elf64_Ehdr), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 1,
				 .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 3,
				 .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT}};
	file.text = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = 0x400000, .p_filesz = 4096,
				 .p_memsz = 4096, .p_align = 4096};
	file.section[1] = (Elf64_Shdr){.sh_type = SHT_SYMTAB, .sh_offset = offsetof(__typeof__(file), symbol), .sh_link = 2,
				       .sh_size = sizeof(file.symbol), .sh_entsize = sizeof(Elf64_Sym)};
	file.section[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = offsetof(__typeof__(file), strings),
				       .sh_size = sizeof(file.strings)};
	nr_symbols = 1;
	nr_strings = 1;
}

static void teardown(void)
{
	binary = binary_put(binary);
}

static uint32_t add_string(const char *text)
{
	uint32_t at = (uint32_t)nr_strings;

	strcpy(file.strings + at, text);
	nr_strings += strlen(text) + 1;
	return at;
}

static void add_symbol(uint32_t name, uint16_t section, uint64_t value)
{
	file.symbol[nr_symbols++] = (Elf64_Sym){.st_name = name, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
						.st_shndx = section, .st_value = value, .st_size = 8};
}

static struct binary *opened(void)
{
	int fd = memfd_create("program", MFD_CLOEXEC);

	ck_assert_int_eq(write(fd, &file, sizeof(file)), sizeof(file));
	ck_assert_int_eq(binary_open(fd, "program", &binary), 0);
	return binary;
}

static const char *found(void)
{
	int i = runtime_of_file(opened());

	return i < 0 ? "" : runtime_list[i]->name;
}

START_TEST(static_program_with_a_marker_has_its_runtime)
{
	add_symbol(add_string("main"), 1, 0x400000);
	add_symbol(add_string("ruby_run_node"), 1, 0x400100);
	ck_assert_str_eq(found(), "ruby");
}
END_TEST

START_TEST(marker_that_is_only_wanted_is_none)
{
	add_symbol(add_string("ruby_run_node"), SHN_UNDEF, 0);
	ck_assert_str_eq(found(), "");
}
END_TEST

START_TEST(name_without_a_symbol_is_none)
{
	add_string("ruby_run_node");
	add_symbol(add_string("main"), 1, 0x400000);
	ck_assert_str_eq(found(), "");
}
END_TEST

START_TEST(openj9_is_known_and_refused_in_words)
{
	struct runtime_file f = {0};
	struct runtime_attached attached = {0};
	char why[RUNTIME_WHY_MAX] = "";
	int i;

	add_symbol(add_string("J9_CreateJavaVM"), 1, 0x400000);
	i = runtime_of_file(opened());
	ck_assert_int_ge(i, 0);
	ck_assert_str_eq(runtime_list[i]->name, "jvm");
	f.binary = binary;
	ck_assert_int_eq(runtime_list[i]->attach(&f, NULL, &attached, why), -ENOTSUP);
	ck_assert_ptr_nonnull(strstr(why, "OpenJ9"));
}
END_TEST

START_TEST(several_names_are_found_at_once)
{
	static const char *const names[] = {"here", "not_here", "there", "wanted"};
	struct runtime_symbol s[4];

	add_symbol(add_string("there"), 1, 0x400010);
	add_symbol(add_string("here"), 1, 0x400000);
	add_symbol(add_string("wanted"), SHN_UNDEF, 0x400020);
	runtime_static_symbols(opened(), names, 4, s);
	ck_assert_uint_eq(s[0].value, 0x400000);
	ck_assert_uint_eq(s[1].value, 0);
	ck_assert_uint_eq(s[2].value, 0x400010);
	ck_assert_uint_eq(s[3].value, 0);
}
END_TEST

/* Linkers store a name that is the end of another once. */
START_TEST(name_may_be_the_end_of_another)
{
	uint32_t at = add_string("my_PyRuntime");
	struct runtime_symbol s;

	add_symbol(at, 1, 0x400000);
	add_symbol(at + 2, 1, 0x400008);
	ck_assert_str_eq(found(), "cpython");
	ck_assert_int_eq(runtime_symbol(binary, "_PyRuntime", &s), 0);
	ck_assert_uint_eq(s.value, 0x400008);
	ck_assert_int_eq(runtime_symbol(binary, "Runtime", &s), -ENOENT);
}
END_TEST

START_TEST(longer_name_is_another)
{
	add_symbol(add_string("_PyRuntime_Initialize"), 1, 0x400000);
	add_symbol(add_string("not_PyRuntime"), 1, 0x400000);
	ck_assert_str_eq(found(), "");
}
END_TEST

START_TEST(of_two_runtimes_the_first_of_the_list_is_taken)
{
	add_symbol(add_string("Perl_runops_standard"), 1, 0x400000);
	add_symbol(add_string("_PyRuntime"), 1, 0x400008);
	ck_assert_str_eq(found(), "cpython");
}
END_TEST

#ifdef __x86_64__
extern _Thread_local uint64_t *runtime_symbols_pointer;
_Thread_local uint64_t *runtime_symbols_pointer;
static _Thread_local char first[] __attribute__((used)) = "what else is in the block";

/* Of this very program. */
START_TEST(a_thread_local_variable_lies_below_the_thread_pointer)
{
	struct runtime_file of = {0};
	struct otp_walk walk = {0};
	uint64_t thread;

	__asm__("mov %%fs:0, %0" : "=r"(thread));
	ck_assert_int_eq(binary_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "exe", &binary), 0);
	of.binary = binary;
	ck_assert_int_eq(thread_local_chain(&of, &memory, "runtime_symbols_suite", &walk), -ENOENT);
	ck_assert_int_eq(thread_local_chain(&of, &memory, "runtime_symbols_pointer", &walk), 0);
	ck_assert_uint_eq(walk.start, OTP_WALK_TLS);
	ck_assert_uint_eq(thread + walk.base, (uintptr_t)&runtime_symbols_pointer);
	ck_assert_uint_eq(walk.nr_chain, 1);
}
END_TEST
#endif

/* Its block is elsewhere in each process. */
START_TEST(a_library_that_tells_no_number_has_no_such_place)
{
	struct runtime_file of = {0};
	struct otp_walk walk = {0};

	file.head.e_type = ET_DYN;
	file.text.p_type = PT_TLS;
	add_symbol(add_string("pointer"), 1, 8);
	file.symbol[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_TLS);
	found();
	of.binary = binary;
	ck_assert_int_eq(thread_local_chain(&of, &memory, "pointer", &walk), -ENOTSUP);
	ck_assert_uint_eq(walk.start, OTP_WALK_NONE);
}
END_TEST

/* A library of glibc's, with a variable at 0x30, whose relocation is of this type. */
static int library_chain(uint32_t type, const char *needed, struct otp_walk *ret)
{
	static struct symbols_elf elf;
	struct runtime_file of = {.bias = 0x7f0000000000};

	symbols_elf_init(&elf, EM_X86_64);
	symbols_elf_need(&elf, needed);
	symbols_elf_add(&elf, "other", 0x10);
	symbols_elf_add(&elf, "pointer", 0x30);
	elf.symbol[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_TLS);
	symbols_elf_slot(&elf, type, 0x900);
	elf.segment = (Elf64_Phdr){.p_type = PT_TLS, .p_memsz = 0x40, .p_align = 8};
	of.binary = symbols_elf_open(&elf);
	*ret = (struct otp_walk){0};
	int err = thread_local_chain(&of, &memory, "pointer", ret);
	binary_put(of.binary);
	return err;
}

START_TEST(a_librarys_variable_is_found_by_the_table_of_blocks)
{
	struct otp_walk walk;

	ck_assert_int_eq(library_chain(R_X86_64_DTPMOD64, "libc.so.6", &walk), 0);
	ck_assert_uint_eq(walk.start, OTP_WALK_TLS);
	ck_assert_uint_eq(walk.base, 0);
	ck_assert_uint_eq(walk.nr_chain, 3);
	ck_assert_int_eq(walk.chain[0], 8);
	ck_assert_int_eq(walk.chain[1], 5 * 16);
	ck_assert_int_eq(walk.chain[2], 0x30);
}
END_TEST

START_TEST(a_number_of_another_library_or_none_is_not_taken)
{
	struct otp_walk walk;

	ck_assert_int_eq(library_chain(R_X86_64_DTPOFF64, "libc.so.6", &walk), -ENOTSUP);
	ck_assert_int_eq(library_chain(R_X86_64_DTPMOD64, "libc.musl-x86_64.so.1", &walk), -ENOTSUP);
	number_in_memory = 0; /* not loaded whole yet */
	ck_assert_int_eq(library_chain(R_X86_64_DTPMOD64, "libc.so.6", &walk), -ENOTSUP);
	number_in_memory = 1 << 20;
	ck_assert_int_eq(library_chain(R_X86_64_DTPMOD64, "libc.so.6", &walk), -ENOTSUP);
	number_in_memory = 5;
}
END_TEST

Suite *runtime_symbols_suite(void)
{
	Suite *s = suite_create("runtime_symbols");
	TCase *t = tcase_create("runtime_symbols");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, static_program_with_a_marker_has_its_runtime);
	tcase_add_test(t, marker_that_is_only_wanted_is_none);
	tcase_add_test(t, name_without_a_symbol_is_none);
	tcase_add_test(t, openj9_is_known_and_refused_in_words);
	tcase_add_test(t, several_names_are_found_at_once);
	tcase_add_test(t, name_may_be_the_end_of_another);
	tcase_add_test(t, longer_name_is_another);
	tcase_add_test(t, of_two_runtimes_the_first_of_the_list_is_taken);
#ifdef __x86_64__
	tcase_add_test(t, a_thread_local_variable_lies_below_the_thread_pointer);
#endif
	tcase_add_test(t, a_library_that_tells_no_number_has_no_such_place);
	tcase_add_test(t, a_librarys_variable_is_found_by_the_table_of_blocks);
	tcase_add_test(t, a_number_of_another_library_or_none_is_not_taken);
	suite_add_tcase(s, t);
	return s;
}

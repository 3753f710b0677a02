// SPDX-License-Identifier: Apache-2.0
/*
 * Pythons of memory alone: a file with the symbols that attach looks for, and the
 * structures of a process that runs two frames.
 */
#include <check.h>
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/memory.h"

static struct memory *walked;

static int walk_read(void *to, size_t len, uint64_t from)
{
	return memory_read(walked, from, to, len);
}

#define OTP_WALK_READ(to, len, from) walk_read(to, len, from)
#define OTP_WALK_OPAQUE(x)
#include "kmod/uapi/otprof_walk.h"

#include "runtime/cpython.h"

Suite *runtime_cpython_suite(void);

#define BIAS	   0x400000ULL /* of the file */
#define HEAP	   0x7f0000000000ULL
#define IMAGE_SIZE 0x4000
#define HEAP_SIZE  0xa000

/* In the file; addresses are offsets. */
enum { FILE_SECTIONS = 0x100, FILE_SYMBOLS = 0x400, FILE_STRINGS = 0x800, FILE_RODATA = 0xa00, FILE_HEX = 0xb00,
       FILE_RUNTIME = 0x1000, FILE_CODE_TYPE = 0x1800, FILE_FRAME_TYPE = 0x1a00, FILE_TYPE_NAMES = 0x1c00,
       FILE_LOOP = 0x2000, FILE_COLD = 0x3000, FILE_STATE = 0x3800, FILE_SLOT = 0x3900 };
/* In the heap. */
enum { AT_INTERP = 0x0, AT_STATE = 0x1000, AT_CFRAME = 0x1200, AT_FRAME = 0x2000, AT_CODE = 0x3000, AT_TEXT = 0x4000,
       AT_TABLE = 0x6000, AT_PTHREAD = 0x7000, AT_BLOCK = 0x8000, AT_DTV = 0x8800, AT_OTHER_INTERP = 0x9000 };
enum { FRAME_STEP = 0x100, SLOT_KEY = 3, SLOTS = 0x310, LOOP_SIZE = 0x200, LOCAL = -0x28 };

/* --- the file and the memory --- */

struct fake {
	struct memory memory; /* first */
	uint8_t image[IMAGE_SIZE], heap[HEAP_SIZE];
	struct binary *binary;
	uint32_t nr_symbols, strings;
	uint32_t stale_after; /* reads, after which the inner code object is another one; 0: never */
	uint64_t stale_at;
};

static struct fake fake;

static int fake_read(struct memory *m, uint64_t addr, void *to, size_t len)
{
	struct fake *f = (void *)m;

	if (f->stale_after && m->reads > f->stale_after)
		f->heap[f->stale_at - HEAP] ^= 1, f->stale_after = 0;
	if (addr - BIAS < IMAGE_SIZE && len <= BIAS + IMAGE_SIZE - addr)
		memcpy(to, f->image + (addr - BIAS), len);
	else if (addr - HEAP < HEAP_SIZE && len <= HEAP + HEAP_SIZE - addr)
		memcpy(to, f->heap + (addr - HEAP), len);
	else
		return -EFAULT;
	return 0;
}

static void put(uint64_t addr, uint64_t v, size_t len)
{
	if (addr >= HEAP)
		memcpy(fake.heap + (addr - HEAP), &v, len);
	else
		memcpy(fake.image + addr, &v, len);
}

static void put64(uint64_t addr, uint64_t v)
{
	put(addr, v, 8);
}

static void fake_symbol(const char *name, uint64_t value, uint64_t size)
{
	Elf64_Sym s = {.st_name = fake.strings, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), .st_shndx = 1,
		       .st_value = value, .st_size = size};

	strcpy((char *)fake.image + FILE_STRINGS + fake.strings, name);
	fake.strings += (uint32_t)strlen(name) + 1;
	memcpy(fake.image + FILE_SYMBOLS + ++fake.nr_symbols * sizeof(s), &s, sizeof(s));
}

static void fake_section(uint32_t i, const char *name, uint32_t type, uint64_t at, uint64_t size, uint32_t link)
{
	Elf64_Shdr s = {.sh_name = fake.strings, .sh_type = type, .sh_offset = at, .sh_addr = at, .sh_size = size,
			.sh_link = link, .sh_entsize = type == SHT_SYMTAB ? sizeof(Elf64_Sym) : 0};

	strcpy((char *)fake.image + FILE_STRINGS + fake.strings, name);
	fake.strings += (uint32_t)strlen(name) + 1;
	memcpy(fake.image + FILE_SECTIONS + i * sizeof(s), &s, sizeof(s));
}

static void fake_close(uint16_t machine)
{
	Elf64_Ehdr head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			   .e_type = ET_DYN, .e_machine = machine, .e_version = EV_CURRENT, .e_phoff = sizeof(head),
			   .e_shoff = FILE_SECTIONS, .e_ehsize = sizeof(head), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 1,
			   .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 4, .e_shstrndx = 2};
	Elf64_Phdr load = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = IMAGE_SIZE, .p_memsz = IMAGE_SIZE};

	memcpy(fake.image, &head, sizeof(head));
	memcpy(fake.image + sizeof(head), &load, sizeof(load));
	fake_section(1, ".symtab", SHT_SYMTAB, FILE_SYMBOLS, (fake.nr_symbols + 1) * sizeof(Elf64_Sym), 2);
	fake_section(3, ".rodata", SHT_PROGBITS, FILE_RODATA, 0x200, 0);
	fake_section(2, ".strtab", SHT_STRTAB, FILE_STRINGS, 0x200, 0);
	ck_assert_int_eq(binary_open_memory(fake.image, sizeof(fake.image), "python", &fake.binary), 0);
}

/* --- Pythons --- */

/* Facts of a release, as offsetof() gave them. */
struct world {
	const char *version, *inner_name;
	uint32_t hex; /* 0: before 3.11 */
	uint32_t entry; /* enum cpython_entry */
	uint16_t state_frame, cframe_frame, interp_threads, thread_id, runtime_head;
	uint16_t back, code, instr, owner;
	uint16_t first_line, file, name, table, bytes, base_size;
	uint16_t text;
	bool local; /* the state is in a variable, and the outermost frame is the thread's own */
};

static const struct world worlds[] = {
	{"3.9.18", "inner", 0, CPYTHON_ENTRY_EVERY, 24, 0, 8, 176, 32, 24, 32, 104, 0, 40, 104, 112, 120, 0, 176, 48, false},
	{"3.11.7", "Outer.inner", 0x030b07f0, CPYTHON_ENTRY_FLAG, 56, 8, 16, 152, 40, 48, 32, 56, 68, 72, 112, 128, 136, 184,
	 184, 48, false},
	{"3.13.0", "Outer.inner", 0x030d00f0, CPYTHON_ENTRY_SHIM, 80, 0, 0x800, 144, 1200, 16, 8, 64, 78, 68, 112, 128, 136, 200,
	 200, 40, false}, /* with a table of its own, which differs from that of the release */
	{"3.15.2", "Outer.inner", 0x030f02f0, CPYTHON_ENTRY_SHIM, 80, 0, 0x800, 152, 1200, 16, 8, 64, 78, 68, 112, 128, 136, 200,
	 200, 40, true},
};

static uint64_t fake_text(uint32_t i, uint32_t state, const void *data, size_t length, size_t bytes, uint16_t head)
{
	uint64_t at = HEAP + AT_TEXT + i * 0x100;

	put64(at + 16, length);
	put(at + 32, state, 4);
	memcpy(fake.heap + (at + head - HEAP), data, bytes);
	return at;
}

static uint64_t fake_ascii(const struct world *w, uint32_t i, const char *s)
{
	return fake_text(i, 1u << 2 | 1u << 5 | 1u << 6, s, strlen(s), strlen(s), w->text);
}

static uint64_t fake_table(uint32_t i, const void *data, size_t len)
{
	uint64_t at = HEAP + AT_TABLE + i * 0x100;

	put64(at + 16, len);
	memcpy(fake.heap + (at + 32 - HEAP), data, len);
	return at;
}

/* Two lines: the first one and the next; the second from byte 4 on. */
static uint64_t fake_lines(const struct world *w, uint32_t i)
{
	static const uint8_t old[] = {4, 1}, locations[] = {0x80 | 10 << 3 | 1, 0, 0, 0x80 | 11 << 3 | 7, 0, 0};

	return w->hex ? fake_table(i, locations, sizeof(locations)) : fake_table(i, old, sizeof(old));
}

static uint64_t fake_code(const struct world *w, uint32_t i, const char *name, uint32_t line)
{
	uint64_t at = HEAP + AT_CODE + i * 0x400;

	put64(at, 3);
	put64(at + 8, BIAS + FILE_CODE_TYPE);
	put(at + w->first_line, line, 4);
	put64(at + w->file, fake_ascii(w, 2 * i, "/srv/app.py"));
	put64(at + w->name, fake_ascii(w, 2 * i + 1, name));
	put64(at + w->table, fake_lines(w, i));
	return at;
}

static uint64_t fake_frame(const struct world *w, uint32_t i, uint64_t code, uint32_t position, uint8_t owner)
{
	uint64_t at = HEAP + AT_FRAME + i * FRAME_STEP;

	put64(at + w->code, code);
	put64(at + w->instr, w->hex ? code + w->bytes + position : position);
	if (w->owner)
		put(at + w->owner, owner, 1);
	return at;
}

static void fake_link(const struct world *w, uint64_t from, uint64_t to)
{
	put64(from + w->back, to);
}

static void fake_type(uint64_t at, const char *name, uint64_t name_at, uint64_t size)
{
	put64(at + 24, BIAS + name_at);
	put64(at + 32, size);
	strcpy((char *)fake.image + name_at, name);
}

/* Words as they are in 3.15.2's table. */
static void fake_words_3_15(const struct world *w, uint64_t *word)
{
	word[24] = 8, word[25] = 16, word[26] = w->state_frame, word[30] = w->thread_id;
	word[40] = w->back, word[41] = w->code, word[42] = w->instr, word[44] = w->owner;
	word[48] = w->file, word[50] = w->name, word[51] = w->table, word[52] = w->first_line, word[56] = w->bytes;
	word[59] = 8, word[61] = 24, word[87] = 16, word[88] = 32, word[90] = 32, word[91] = 16, word[92] = w->text;
}

/* And in 3.13.0's. */
static void fake_words_3_13(const struct world *w, uint64_t *word)
{
	word[21] = 8, word[22] = 16, word[23] = w->state_frame, word[24] = w->thread_id;
	word[29] = w->back, word[30] = w->code, word[31] = w->instr, word[33] = w->owner;
	word[35] = w->file, word[37] = w->name, word[38] = w->table, word[39] = w->first_line, word[43] = w->bytes;
	word[45] = 8, word[47] = 24, word[65] = 16, word[66] = 32, word[68] = 32, word[69] = 16, word[70] = w->text;
}

static void fake_published(const struct world *w)
{
	uint64_t word[128] = {0};

	memcpy(word, "xdebugpy", 8);
	word[1] = w->hex;
	word[5] = w->runtime_head, word[8] = 0x700, word[9] = w->interp_threads;
	(w->local ? fake_words_3_15 : fake_words_3_13)(w, word);
	memcpy(fake.image + FILE_RUNTIME, word, sizeof(word));
	put64(FILE_RUNTIME + w->runtime_head, HEAP + AT_INTERP);
}

/* glibc of x86-64: the first block of slots, and the table of blocks, whose first entry is that one. */
static void fake_pthread(uint64_t self, uint64_t slots, uint64_t state)
{
	put64(self, self);
	put64(self + 16, self);
	put64(self + slots + 512, self + slots);
	put64(self + slots + SLOT_KEY * 16, 1);
	put64(self + slots + SLOT_KEY * 16 + 8, state);
}

/* A program's PyGILState_GetThisThreadState: endbr64; mov %fs:LOCAL,%rax; ret */
static const uint8_t local_code[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x64, 0x48, 0x8b, 0x04, 0x25, 0xd8, 0xff, 0xff, 0xff, 0xc3};

static void fake_symbols(const struct world *w)
{
	fake.strings = 1;
	fake_symbol("_PyRuntime", FILE_RUNTIME, 0x800);
	fake_symbol("PyCode_Type", FILE_CODE_TYPE, 0x100);
	fake_symbol("PyFrame_Type", FILE_FRAME_TYPE, 0x100);
	fake_symbol("_PyEval_EvalFrameDefault", FILE_LOOP, LOOP_SIZE);
	fake_symbol("PyGILState_GetThisThreadState", FILE_STATE, sizeof(local_code));
	memcpy(fake.image + FILE_STATE, local_code, sizeof(local_code));
	if (w->hex)
		fake_symbol("Py_Version", FILE_HEX, 4);
	else
		fake_symbol("PyObject_CallNoArgs", FILE_LOOP, 4);
	put(FILE_HEX, w->hex, 4);
	memcpy(fake.image + FILE_RODATA + 3, "\0003.9\0""3.9.18\0", 12);
	fake_type(FILE_CODE_TYPE, "code", FILE_TYPE_NAMES, w->base_size);
	fake_type(FILE_FRAME_TYPE, "frame", FILE_TYPE_NAMES + 16, 368);
}

/* The outer frame entered the loop; the inner one runs in it too, from 3.11 on. */
static void fake_frames(const struct world *w)
{
	uint64_t state = HEAP + AT_STATE, outer, inner, shim;

	outer = fake_frame(w, 0, fake_code(w, 0, "<module>", 1), 2, w->entry == CPYTHON_ENTRY_FLAG);
	inner = fake_frame(w, 1, fake_code(w, 1, w->inner_name, 10), 6, 0);
	shim = fake_frame(w, 2, 0, 0, 3);
	fake_link(w, inner, outer);
	if (w->entry == CPYTHON_ENTRY_SHIM)
		fake_link(w, outer, shim);
	if (w->local)
		fake_link(w, shim, fake_frame(w, 3, 0, 0, 3));
	put64(state + 16, HEAP + AT_INTERP);
	put64(state + w->thread_id, HEAP + AT_PTHREAD);
	put64(state + w->state_frame, w->cframe_frame ? HEAP + AT_CFRAME : inner);
	if (w->cframe_frame)
		put64(HEAP + AT_CFRAME + w->cframe_frame, inner);
}

static void fake_python(const struct world *w, uint16_t machine)
{
	memset(&fake, 0, sizeof(fake));
	fake.memory.read = fake_read;
	fake_symbols(w);
	fake_frames(w);
	if (w->entry == CPYTHON_ENTRY_SHIM)
		fake_published(w);
	else
		put64(FILE_RUNTIME + w->runtime_head, HEAP + AT_INTERP);
	put64(HEAP + AT_INTERP + w->interp_threads, HEAP + AT_STATE);
	if (w->local)
		put64(HEAP + AT_PTHREAD + (uint64_t)LOCAL, HEAP + AT_STATE);
	else
		fake_pthread(HEAP + AT_PTHREAD, SLOTS, HEAP + AT_STATE);
	fake_close(machine);
}

static void fake_done(void)
{
	fake.binary = binary_put(fake.binary);
}

static int fake_attach(struct runtime_attached *a, char why[RUNTIME_WHY_MAX])
{
	struct runtime_file file = {.binary = fake.binary, .bias = BIAS};

	*a = (struct runtime_attached){0};
	memory_question(&fake.memory);
	return runtime_cpython.attach(&file, &fake.memory, a, why);
}

/* --- walking --- */

static struct otp_walker walker;

static uint32_t walk(const struct runtime_attached *a)
{
	memory_question(&fake.memory);
	walked = &fake.memory;
	otp_walk_prepare(&walker.ready, &a->walk);
	walker.taken = 0;
	otp_walk_run(&walker, HEAP + AT_PTHREAD, 1, 0);
	return walker.frames;
}

static int frame_at(const struct runtime_attached *a, uint32_t i, struct runtime_frame *ret)
{
	uint32_t words = otp_walk_frame_words(&a->walk);
	const uint64_t *at = (const void *)&walker.out[2 + walker.root_words + i * words];
	struct runtime_words w = {.address = *at & OTP_WALK_ADDRESS, .missing = (uint32_t)(*at >> 56), .count = words - 1,
				  .word = at + 1, .root = (const void *)&walker.out[2], .nr_root = walker.root_words, .index = i,
				  .last = i + 1 == walker.frames && walker.end == OTP_WALK_END_DONE};

	return runtime_cpython.frame(a, &w, ret);
}

static int function_at(const struct runtime_attached *a, const struct runtime_frame *f, struct runtime_function *ret)
{
	memory_question(&fake.memory);
	return runtime_cpython.decode(a, &fake.memory, f, ret);
}

static uint32_t line_at(const struct runtime_function *fn, uint32_t position)
{
	uint32_t line = 0;

	for (uint32_t i = 0; i < fn->nr_lines && fn->lines[i].position <= position; i++)
		line = fn->lines[i].line;
	return line;
}

static struct runtime_function function; /* large */

/* What most tests begin with: frame 0 is the inner one. */
static void attach_and_walk(const struct world *w, struct runtime_attached *a, struct runtime_frame *inner)
{
	char why[RUNTIME_WHY_MAX];

	fake_python(w, EM_X86_64);
	ck_assert_int_eq(fake_attach(a, why), 0);
	ck_assert_uint_ge(walk(a), 2);
	ck_assert_int_eq(frame_at(a, 0, inner), 0);
}

/* Its own frames begin where the interpreter that made it called; those are in the list of another state. */
START_TEST(outermost_frame_of_a_sub_interpreter_says_so)
{
	struct runtime_attached a;
	struct runtime_frame f;
	uint32_t last, entry = worlds[_i].local ? 0 : RUNTIME_ENTRY;

	attach_and_walk(&worlds[_i], &a, &f);
	last = walker.frames - 1;
	ck_assert_int_eq(frame_at(&a, last, &f), 0);
	ck_assert_uint_eq(f.flags & (RUNTIME_INNER | RUNTIME_ENTRY), entry);
	put64(HEAP + AT_STATE + (uint16_t)a.walk.root_off, HEAP + AT_OTHER_INTERP);
	ck_assert_uint_eq(walk(&a), last + 1);
	ck_assert_int_eq(frame_at(&a, last, &f), 0);
	ck_assert_uint_eq(f.flags & (RUNTIME_INNER | RUNTIME_ENTRY), RUNTIME_INNER | entry);
	ck_assert_int_eq(frame_at(&a, 0, &f), 0);
	ck_assert(!(f.flags & RUNTIME_INNER));
	fake_done();
}
END_TEST

/* New interpreters stand before older ones. */
START_TEST(main_interpreter_is_the_last_of_the_list)
{
	const struct world *w = &worlds[1];
	struct cpython_layout l;
	struct runtime_attached a;
	char why[RUNTIME_WHY_MAX];

	fake_python(w, EM_X86_64);
	ck_assert_int_eq(fake_attach(&a, why), 0);
	ck_assert(cpython_layout_of(&a, &l));
	ck_assert_uint_eq(l.interp_main, HEAP + AT_INTERP);
	put64(FILE_RUNTIME + w->runtime_head, HEAP + AT_OTHER_INTERP);
	put64(HEAP + AT_OTHER_INTERP + l.interp_next, HEAP + AT_INTERP);
	ck_assert_int_eq(fake_attach(&a, why), 0);
	ck_assert(cpython_layout_of(&a, &l));
	ck_assert_uint_eq(l.interp_main, HEAP + AT_INTERP);
	put64(HEAP + AT_INTERP + l.interp_next, HEAP + AT_OTHER_INTERP); /* a circle */
	ck_assert_int_eq(fake_attach(&a, why), 0);
	ck_assert(cpython_layout_of(&a, &l));
	ck_assert_uint_eq(l.interp_main, 0);
	fake_done();
}
END_TEST

START_TEST(frames_of_each_layout_are_named)
{
	const struct world *w = &worlds[_i];
	struct runtime_attached a;
	struct runtime_frame inner, outer;

	attach_and_walk(w, &a, &inner);
	ck_assert_str_eq(a.version, w->version);
	ck_assert(runtime_attached_sound(&a));
	ck_assert_int_eq(walker.end, OTP_WALK_END_DONE);
	ck_assert_uint_eq(walker.frames, 2 + (w->entry == CPYTHON_ENTRY_SHIM) + w->local);
	ck_assert_uint_eq(inner.position, 6);
	ck_assert_int_eq(function_at(&a, &inner, &function), 0);
	ck_assert_str_eq(function.name, w->inner_name);
	ck_assert_str_eq(function.file, "/srv/app.py");
	ck_assert_uint_eq(function.start_line, 10);
	ck_assert_uint_eq(line_at(&function, inner.position), 11);
	ck_assert_int_eq(frame_at(&a, 1, &outer), 0);
	ck_assert_int_eq(function_at(&a, &outer, &function), 0);
	ck_assert_str_eq(function.name, "<module>");
	ck_assert_uint_eq(line_at(&function, outer.position), 1);
	fake_done();
}
END_TEST

START_TEST(entries_are_where_the_loop_began)
{
	const struct world *w = &worlds[_i];
	struct runtime_attached a;
	struct runtime_frame inner, outer, shim;

	attach_and_walk(w, &a, &inner);
	ck_assert_int_eq(frame_at(&a, 1, &outer), 0);
	ck_assert_uint_eq(inner.flags, w->entry == CPYTHON_ENTRY_EVERY ? RUNTIME_ENTRY : 0);
	ck_assert_uint_eq(outer.flags, w->entry == CPYTHON_ENTRY_SHIM ? 0 : RUNTIME_ENTRY);
	if (w->entry == CPYTHON_ENTRY_SHIM) {
		ck_assert_int_eq(frame_at(&a, 2, &shim), 0);
		ck_assert_uint_eq(shim.flags, RUNTIME_ENTRY | RUNTIME_HIDDEN);
		ck_assert_uint_eq(shim.key, 0);
	}
	if (w->local) {
		ck_assert_int_eq(frame_at(&a, 3, &shim), 0);
		ck_assert_uint_eq(shim.flags, RUNTIME_HIDDEN);
	}
	fake_done();
}
END_TEST

START_TEST(a_helper_of_the_program_itself_is_hidden)
{
	struct runtime_attached a;
	struct runtime_frame f;
	struct cpython_layout l;

	attach_and_walk(&worlds[2], &a, &f);
	ck_assert(cpython_layout_of(&a, &l));
	/* _Py_InitCleanup: no first line, in the file. Another code without a line is a function. */
	walker.out[2 + walker.root_words + 1 + l.word_first] &= UINT32_MAX;
	ck_assert_int_eq(frame_at(&a, 0, &f), 0);
	ck_assert_uint_eq(f.flags, 0);
	walker.out[2 + walker.root_words + 1 + l.word_code] = BIAS + FILE_CODE_TYPE;
	ck_assert_int_eq(frame_at(&a, 0, &f), 0);
	ck_assert_uint_eq(f.flags, RUNTIME_HIDDEN);
	fake_done();
}
END_TEST

START_TEST(a_frame_without_its_code_ends_the_walk)
{
	struct runtime_attached a;
	struct runtime_frame f;

	attach_and_walk(&worlds[_i], &a, &f);
	walker.out[2 + walker.root_words] |= OTP_WALK_MISSING(0);
	ck_assert_int_eq(frame_at(&a, 0, &f), -EBADMSG);
	fake_done();
}
END_TEST

/* --- attaching --- */

START_TEST(a_runtime_that_has_not_started_is_asked_again)
{
	const struct world *w = &worlds[_i];
	struct runtime_attached a;
	char why[RUNTIME_WHY_MAX];

	fake_python(w, EM_X86_64);
	put64(FILE_RUNTIME + w->runtime_head, 0);
	ck_assert_int_eq(fake_attach(&a, why), -EAGAIN);
	put64(FILE_RUNTIME + w->runtime_head, HEAP + AT_INTERP);
	put64(HEAP + AT_PTHREAD + (w->local ? (uint64_t)LOCAL : SLOTS + SLOT_KEY * 16 + 8), 0);
	ck_assert_int_eq(fake_attach(&a, why), -EAGAIN);
	fake_done();
}
END_TEST

static const struct { uint32_t hex; const char *why; } refused[] = {
	{0x031000f0, "Python 3.16.0 is not known"},
	{0x030e00a3, "Python 3.14.0a3 is not known"},
	{0x040000f0, "Python 4.0.0 is not known"},
};

START_TEST(a_version_that_is_not_known_is_refused_in_words)
{
	struct world w = worlds[2];
	struct runtime_attached a;
	char why[RUNTIME_WHY_MAX];

	w.hex = refused[_i].hex;
	fake_python(&w, EM_X86_64);
	ck_assert_int_eq(fake_attach(&a, why), -ENOTSUP);
	ck_assert_str_eq(why, refused[_i].why);
	fake_done();
}
END_TEST

START_TEST(a_build_without_the_gil_is_refused_in_words)
{
	struct runtime_attached a;
	char why[RUNTIME_WHY_MAX];

	fake_python(&worlds[2], EM_X86_64);
	put64(FILE_RUNTIME + 16, 1);
	ck_assert_int_eq(fake_attach(&a, why), -ENOTSUP);
	ck_assert_ptr_nonnull(strstr(why, "free-threaded"));
	fake_done();
}
END_TEST

START_TEST(a_type_of_another_size_is_refused)
{
	struct runtime_attached a;
	char why[RUNTIME_WHY_MAX];

	fake_python(&worlds[_i], EM_X86_64);
	put64(FILE_CODE_TYPE + 32, worlds[_i].base_size + 16);
	ck_assert_int_eq(fake_attach(&a, why), -ENOTSUP);
	ck_assert_ptr_nonnull(strstr(why, worlds[_i].version));
	fake_done();
}
END_TEST

START_TEST(published_offsets_out_of_bounds_are_refused)
{
	static const uint16_t word[] = {29, 31, 33, 37, 38, 39, 43, 65, 70, 9, 24};
	struct runtime_attached a;
	char why[RUNTIME_WHY_MAX];

	fake_python(&worlds[2], EM_X86_64);
	put64(FILE_RUNTIME + word[_i] * 8, _i % 2 ? UINT64_MAX : 40000);
	ck_assert_int_eq(fake_attach(&a, why), -EBADMSG);
	fake_done();
}
END_TEST

/* --- slots --- */

static void slot_memory(void)
{
	memset(&fake, 0, sizeof(fake));
	fake.memory.read = fake_read;
}

/* What a walk by the chain finds, from the thread pointer. */
static uint64_t slot_follow(const struct otp_walk *w, uint64_t tp)
{
	uint64_t at = tp + w->base;

	for (int i = 0; i < w->nr_chain; i++)
		ck_assert_int_eq(memory_u64(&fake.memory, at + (uint64_t)(int64_t)w->chain[i], &at), 0);
	return at;
}

START_TEST(slots_of_glibc_are_found)
{
	struct otp_walk w = {0};
	uint64_t self = HEAP + AT_PTHREAD, state = HEAP + AT_STATE;

	slot_memory();
	fake_pthread(self, SLOTS, state);
	ck_assert_int_eq(cpython_slot_find(&fake.memory, EM_X86_64, self, state, &w), 0);
	ck_assert_int_eq(w.chain[0], SLOTS + SLOT_KEY * 16 + 8);
	ck_assert_uint_eq(slot_follow(&w, self), state);
	/* The 36th key: in the second block. */
	put64(self + SLOTS + SLOT_KEY * 16 + 8, 0);
	ck_assert_int_eq(cpython_slot_find(&fake.memory, EM_X86_64, self, state, &w), -ENOENT);
	put64(self + SLOTS + 512 + 8, HEAP + AT_BLOCK);
	put64(HEAP + AT_BLOCK + 4 * 16, 1);
	put64(HEAP + AT_BLOCK + 4 * 16 + 8, state);
	ck_assert_int_eq(cpython_slot_find(&fake.memory, EM_X86_64, self, state, &w), 0);
	ck_assert_uint_eq(w.nr_chain, 2);
	ck_assert_uint_eq(slot_follow(&w, self), state);
}
END_TEST

/* The thread pointer lies after struct pthread there. */
START_TEST(slots_of_glibc_on_arm64_are_found)
{
	struct otp_walk w = {0};
	uint64_t self = HEAP + AT_PTHREAD, state = HEAP + AT_STATE, tp = self + 0x740;

	slot_memory();
	fake_pthread(self, 0x110, state);
	put64(tp, HEAP + AT_DTV + 16);
	put64(HEAP + AT_DTV, 64);
	put64(HEAP + AT_DTV + 32, tp + 0x20);
	ck_assert_int_eq(cpython_slot_find(&fake.memory, EM_AARCH64, self, state, &w), 0);
	ck_assert_uint_eq(slot_follow(&w, tp), state);
}
END_TEST

/* Of which the main thread's lies at any word. */
START_TEST(slots_of_musl_are_found)
{
	struct otp_walk w = {0};
	uint64_t self = HEAP + AT_PTHREAD + 8, state = HEAP + AT_STATE;

	slot_memory();
	put64(self, self);
	put64(self + 0x80, HEAP + AT_BLOCK);
	put64(HEAP + AT_BLOCK + 5 * 8, state);
	ck_assert_int_eq(cpython_slot_find(&fake.memory, EM_X86_64, self, state, &w), 0);
	ck_assert_uint_eq(slot_follow(&w, self), state);
	put64(self + 0x70, HEAP + AT_BLOCK);
	ck_assert_int_eq(cpython_slot_find(&fake.memory, EM_AARCH64, self, state, &w), 0);
	ck_assert_uint_eq(slot_follow(&w, self + 0xc8), state);
}
END_TEST

/* --- the variable of 3.15 --- */

/* Code of each form, and where it says that the variable is. */
static const struct local_form {
	uint16_t machine;
	uint8_t code[64];
	int r;
	struct cpython_local local;
} local_forms[] = {
	/* Debian's python3.15 */
	{EM_X86_64, {0xf3, 0x0f, 0x1e, 0xfa, 0x64, 0x48, 0x8b, 0x04, 0x25, 0xd8, 0xff, 0xff, 0xff, 0xc3}, 0, {false, 0, -0x28}},
	/* Debian's libpython3.15: push %rbp; mov %rsp,%rbp; lea slot(%rip),%rdi; call; pop %rbp; mov 0x28(%rax),%rax; ret */
	{EM_X86_64, {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x48, 0x8d, 0x3d, 0xf1, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0x5d,
		     0x48, 0x8b, 0x40, 0x28, 0xc3}, 0, {true, 5, 0x28}},
	/* the offset itself in the slot: mov slot(%rip),%rax; mov %fs:(%rax),%rax; ret */
	{EM_X86_64, {0x48, 0x8b, 0x05, 0x09, 1, 0, 0, 0x64, 0x48, 0x8b, 0, 0xc3}, 0, {false, 0, -0x40}},
	/* To 3.14: a key of pthread_getspecific. */
	{EM_X86_64, {0xf3, 0x0f, 0x1e, 0xfa, 0x83, 0x3d, 0x3b, 0x49, 0x77, 0, 0, 0x74, 0x0a, 0xbf, 0xe0, 0x10, 0xba, 0, 0xe9},
	 -ENOTSUP, {0}},
	/* Debian's python3.15 of arm64, and as compilers write it without frames */
	{EM_AARCH64, {0x5f, 0x24, 0x03, 0xd5, 0x40, 0xd0, 0x3b, 0xd5, 0x3f, 0x23, 0x03, 0xd5, 0xfd, 0x7b, 0xbf, 0xa9,
		      0x1f, 0x20, 0x03, 0xd5, 0x00, 0x80, 0x00, 0x91, 0xfd, 0x03, 0x00, 0x91, 0xfd, 0x7b, 0xc1, 0xa8,
		      0xbf, 0x23, 0x03, 0xd5, 0x00, 0x00, 0x40, 0xf9, 0xc0, 0x03, 0x5f, 0xd6}, 0, {false, 0, 0x20}},
	{EM_AARCH64, {0x40, 0xd0, 0x3b, 0xd5, 0x00, 0x04, 0x40, 0x91, 0x00, 0x08, 0x40, 0xf9, 0xc0, 0x03, 0x5f, 0xd6}, 0,
	 {false, 0, 0x1010}},
};

START_TEST(the_variable_of_a_thread_is_where_the_code_says)
{
	const struct local_form *form = &local_forms[_i];
	struct cpython_local l = {0};

	slot_memory();
	fake_symbols(&worlds[3]);
	memcpy(fake.image + FILE_STATE, form->code, sizeof(form->code));
	put64(FILE_SLOT, 5);
	put64(FILE_SLOT + 8, 0);
	put64(FILE_SLOT + 16, (uint64_t)-0x40);
	fake_close(form->machine);
	ck_assert_int_eq(cpython_local_read(&(struct runtime_file){.binary = fake.binary, .bias = BIAS}, &fake.memory, &l),
			 form->r);
	ck_assert_int_eq(l.shared, form->local.shared);
	ck_assert_uint_eq(l.module, form->local.module);
	ck_assert_int_eq(l.offset, form->local.offset);
	fake_done();
}
END_TEST

/* glibc's vector of blocks has two words for a block, musl's one. */
START_TEST(a_thread_shows_whose_blocks_they_are)
{
	const struct cpython_local l = {.shared = true, .module = 5, .offset = 0x28};
	uint64_t self = HEAP + AT_PTHREAD, state = HEAP + AT_STATE;
	struct otp_walk w = {0};

	for (int entry = 8; entry <= 16; entry += 8) {
		slot_memory();
		ck_assert_int_eq(cpython_local_find(&fake.memory, EM_X86_64, &l, self, state, &w), -ENOENT);
		put64(self + 8, HEAP + AT_DTV);
		put64(HEAP + AT_DTV + 5 * entry, HEAP + AT_BLOCK);
		ck_assert_int_eq(cpython_local_find(&fake.memory, EM_X86_64, &l, self, state, &w), -ENOENT);
		put64(HEAP + AT_BLOCK + 0x28, state);
		ck_assert_int_eq(cpython_local_find(&fake.memory, EM_X86_64, &l, self, state, &w), 0);
		ck_assert_uint_eq(slot_follow(&w, self), state);
	}
}
END_TEST

/* --- loops --- */

START_TEST(rare_code_of_the_loop_is_found_by_its_jumps)
{
	const struct runtime_file file = {.binary = NULL, .bias = BIAS};
	struct runtime_file f = file;
	struct runtime_attached a = {0};

	fake_python(&worlds[1], EM_X86_64);
	fake_done();
	for (uint32_t i = 0; i < 8; i++) {
		uint64_t at = FILE_LOOP + i * 16;

		put(at, 0x840f, 2);
		put(at + 2, (uint32_t)(FILE_COLD + i * 8 - at - 6), 4);
	}
	fake.strings = 0x100;
	fake_close(EM_X86_64);
	f.binary = fake.binary;
	runtime_add_loop(&f, "_PyEval_EvalFrameDefault", &a);
	ck_assert_uint_eq(a.nr_loops, 2);
	ck_assert_uint_eq(a.loop[0], BIAS + FILE_LOOP);
	ck_assert_uint_ge(a.loop[1], BIAS + FILE_COLD);
	ck_assert_uint_lt(a.loop[1], BIAS + FILE_COLD + 64);
	fake_done();
}
END_TEST

/* --- hostile memory --- */

START_TEST(another_object_at_the_address_is_stale)
{
	const struct world *w = &worlds[_i];
	const uint64_t at[] = {8, w->first_line, w->name, w->table};
	struct runtime_attached a;
	struct runtime_frame f;

	attach_and_walk(w, &a, &f);
	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		fake.heap[f.key + at[i] - HEAP] ^= 1;
		ck_assert_int_eq(function_at(&a, &f, &function), -ESTALE);
		fake.heap[f.key + at[i] - HEAP] ^= 1;
	}
	ck_assert_int_eq(function_at(&a, &f, &function), 0);
	fake_done();
}
END_TEST

static const struct { uint64_t first_word; int err; } counts[] = {
	{1, 0}, {999999999, 0}, {UINT32_MAX, 0}, {5ULL << 48 | 3ULL << 30, 0}, /* 3.11, 3.12, 3.14: of objects that stay */
	{0, -ESTALE}, {HEAP + AT_CODE, -ESTALE}, {0x560000001230ULL, -ESTALE},
};

/* But for its first word, the block of a freed object is as it was. */
START_TEST(an_object_that_was_freed_is_stale)
{
	struct runtime_attached a;
	struct runtime_frame f;

	attach_and_walk(&worlds[1], &a, &f);
	put64(f.key, counts[_i].first_word);
	ck_assert_int_eq(function_at(&a, &f, &function), counts[_i].err);
	fake_done();
}
END_TEST

START_TEST(the_code_of_a_module_that_was_freed_has_a_name)
{
	struct runtime_attached a;
	struct runtime_frame f;

	attach_and_walk(&worlds[_i], &a, &f);
	put64(f.key, 0);
	f.cookie[1] = fake_ascii(&worlds[_i], 6, "<module>");
	ck_assert_int_eq(function_at(&a, &f, &function), 0);
	ck_assert_str_eq(function.name, "<module>");
	ck_assert_str_eq(function.file, "");
	ck_assert_uint_eq(function.start_line, 0);
	ck_assert_uint_eq(function.nr_lines, 0);
	f.cookie[1] = fake_ascii(&worlds[_i], 7, "<modules>");
	ck_assert_int_eq(function_at(&a, &f, &function), -ESTALE);
	fake_done();
}
END_TEST

START_TEST(an_object_that_changes_while_it_is_read_is_stale)
{
	struct runtime_attached a;
	struct runtime_frame f;

	attach_and_walk(&worlds[1], &a, &f);
	fake.stale_after = 4;
	fake.stale_at = f.key + worlds[1].name;
	ck_assert_int_eq(function_at(&a, &f, &function), -ESTALE);
	fake_done();
}
END_TEST

static const struct { uint32_t state; const char *data; size_t length, bytes; const char *name; bool wide; int err; } texts[] = {
	{1u << 2 | 1u << 5, "gr\xf6\xdf" "e", 5, 5, "gr\xc3\xb6\xc3\x9f" "e", true, 0},
	{2u << 2 | 1u << 5, "\x14\x20x\0", 2, 4, "\xe2\x80\x94x", true, 0},
	{4u << 2 | 1u << 5, "\x00\xf6\x01\0", 1, 4, "\xf0\x9f\x98\x80", true, 0},
	{4u << 2 | 1u << 5, "\xff\xff\xff\xff", 1, 4, "\xef\xbf\xbd", true, 0},
	{1u << 2 | 1u << 6, "old", 3, 3, "", false, -EBADMSG},
	{3u << 2 | 1u << 5, "abc", 1, 3, "", true, -EBADMSG},
	{1u << 2 | 1u << 5 | 1u << 6, "", 0, 0, "", false, 0},
	{1u << 2 | 1u << 5 | 1u << 6, "x", (size_t)-1, 1, "", false, -EBADMSG},
};

START_TEST(text_of_each_width_becomes_utf8)
{
	const struct world *w = &worlds[1];
	struct runtime_attached a;
	struct runtime_frame f;

	attach_and_walk(w, &a, &f);
	memset(fake.heap + AT_TEXT + 3 * 0x100, 0, 0x100);
	fake_text(3, texts[_i].state, texts[_i].data, texts[_i].length, texts[_i].bytes, texts[_i].wide ? 72 : 48);
	ck_assert_int_eq(function_at(&a, &f, &function), texts[_i].err);
	ck_assert_str_eq(function.name, texts[_i].name);
	fake_done();
}
END_TEST

START_TEST(a_long_name_is_cut_at_a_character)
{
	struct runtime_attached a;
	struct runtime_frame f;

	attach_and_walk(&worlds[1], &a, &f);
	memset(fake.heap + AT_TEXT + 3 * 0x100 + 72, 0xe4, 0x800);
	fake_text(3, 1u << 2 | 1u << 5, "", 1 << 30, 0, 72);
	ck_assert_int_eq(function_at(&a, &f, &function), 0);
	ck_assert_uint_eq(strlen(function.name), RUNTIME_NAME_MAX - 2);
	fake_done();
}
END_TEST

START_TEST(a_table_that_claims_too_much_is_refused)
{
	struct runtime_attached a;
	struct runtime_frame f;

	attach_and_walk(&worlds[1], &a, &f);
	put64(HEAP + AT_TABLE + 0x100 + 16, 1ULL << 40);
	ck_assert_int_eq(function_at(&a, &f, &function), -E2BIG);
	put64(HEAP + AT_TABLE + 0x100 + 16, 1 << 18);
	ck_assert_int_eq(function_at(&a, &f, &function), -EFAULT);
	fake_done();
}
END_TEST

START_TEST(params_out_of_bounds_are_refused)
{
	struct runtime_attached a;
	struct runtime_frame f;

	attach_and_walk(&worlds[2], &a, &f);
	memset(a.param, 0xff, sizeof(a.param));
	ck_assert_int_eq(function_at(&a, &f, &function), -EBADMSG);
	ck_assert_int_eq(frame_at(&a, 0, &f), -EBADMSG);
	fake_done();
}
END_TEST

/* --- line tables, as releases made them of one function --- */

/*
 * 1 def f(x):
 * 2     if x:
 * 3         y = (1 +
 * 4              g(x))
 * 6     try:
 * 7         g(y)
 * 8     except KeyError:
 * 9         return 0
 * 10    finally:
 * 11        h()
 * 12    return y
 */
static const uint8_t lnotab_38[] = {0, 1, 4, 1, 2, 1, 6, 255, 4, 3, 4, 1, 12, 1, 14, 1, 16, 2, 8, 1};
static const struct runtime_line rows_38[] = {{0, 2}, {4, 3}, {6, 4}, {12, 3}, {16, 6}, {20, 7}, {32, 8}, {46, 9}, {62, 11},
					      {70, 12}};
static const uint8_t linetable_310[] = {4, 1, 2, 1, 6, 1, 4, 255, 4, 3, 12, 1, 12, 1, 4, 1, 10, 2, 2, 253, 2, 255, 6, 4, 4, 1,
					8, 255};
static const struct runtime_line rows_310[] = {{0, 2}, {4, 3}, {6, 4}, {12, 3}, {16, 6}, {20, 7}, {32, 8}, {44, 9}, {48, 11},
					       {58, 8}, {60, 7}, {62, 11}, {68, 12}, {72, 11}};
static const uint8_t locations_311[] = {
	128, 0, 216, 7, 8, 240, 0, 2, 5, 19, 216, 13, 14, 221, 13, 14, 136, 113, 137, 84, 140, 84, 241, 3, 1, 14, 18, 136, 1,
	240, 6, 5, 5, 12, 221, 8, 9, 136, 33, 137, 4, 140, 4, 136, 4, 136, 4, 248, 221, 11, 19, 240, 0, 1, 5, 17, 240, 0, 1, 5,
	17, 240, 0, 1, 5, 17, 216, 15, 16, 229, 8, 9, 137, 3, 140, 3, 136, 3, 136, 3, 136, 3, 240, 7, 1, 5, 17, 248, 248, 248,
	240, 3, 0, 9, 13, 245, 8, 0, 9, 10, 137, 3, 140, 3, 136, 3, 136, 3, 248, 141, 1, 137, 3, 140, 3, 136, 3, 136, 3, 248,
	248, 248, 216, 11, 12, 128, 72};
static const struct runtime_line rows_311[] = {{0, 1}, {2, 2}, {6, 3}, {8, 4}, {36, 3}, {42, 6}, {44, 7}, {76, 0}, {78, 8},
					       {96, 9}, {98, 11}, {130, 8}, {132, 0}, {138, 7}, {140, 11}, {170, 0}, {172, 11},
					       {202, 0}, {208, 12}};

static const struct {
	enum cpython_lines kind;
	const uint8_t *table;
	size_t len;
	const struct runtime_line *rows;
	uint32_t nr_rows;
} tables[] = {
	{CPYTHON_LNOTAB, lnotab_38, sizeof(lnotab_38), rows_38, ARRAY_SIZE(rows_38)},
	{CPYTHON_LINETABLE, linetable_310, sizeof(linetable_310), rows_310, ARRAY_SIZE(rows_310)},
	{CPYTHON_LOCATIONS, locations_311, sizeof(locations_311), rows_311, ARRAY_SIZE(rows_311)},
};

START_TEST(lines_are_those_of_the_release)
{
	cpython_lines_decode(tables[_i].kind, tables[_i].table, tables[_i].len, 1, &function);
	for (uint32_t i = 0; i < MIN(function.nr_lines, tables[_i].nr_rows); i++) {
		ck_assert_uint_eq(function.lines[i].position, tables[_i].rows[i].position);
		ck_assert_uint_eq(function.lines[i].line, tables[_i].rows[i].line);
	}
	ck_assert_uint_eq(function.nr_lines, tables[_i].nr_rows);
}
END_TEST

START_TEST(lines_beyond_the_last_row_are_unknown)
{
	static uint8_t table[4 * RUNTIME_LINES_MAX];

	for (size_t i = 0; i < sizeof(table); i += 2) {
		table[i] = 2;
		table[i + 1] = 1;
	}
	cpython_lines_decode(CPYTHON_LNOTAB, table, sizeof(table), 1, &function);
	ck_assert_uint_eq(function.nr_lines, RUNTIME_LINES_MAX);
	ck_assert_uint_eq(function.lines[RUNTIME_LINES_MAX - 2].line, RUNTIME_LINES_MAX - 1);
	ck_assert_uint_eq(function.lines[RUNTIME_LINES_MAX - 1].line, 0);
}
END_TEST

START_TEST(a_function_that_was_just_entered_is_at_its_first_line)
{
	static const uint8_t locations[] = {0x80 | 15 << 3, 0x80 | 11 << 3, 0, 0, 0x80 | 15 << 3};
	static const uint8_t linetable[] = {2, 128, 2, 1, 2, 128};

	for (int i = 0; i < 2; i++) {
		cpython_lines_decode(i ? CPYTHON_LOCATIONS : CPYTHON_LINETABLE, i ? locations : linetable,
				     i ? sizeof(locations) : sizeof(linetable), 7, &function);
		ck_assert_uint_eq(line_at(&function, 0), 7);
		ck_assert_uint_eq(line_at(&function, 2), 8);
		ck_assert_uint_eq(line_at(&function, 4), 0);
	}
}
END_TEST

Suite *runtime_cpython_suite(void)
{
	Suite *s = suite_create("runtime_cpython");
	TCase *t = tcase_create("runtime_cpython");
	const int nr = (int)ARRAY_SIZE(worlds);

	tcase_add_loop_test(t, frames_of_each_layout_are_named, 0, nr);
	tcase_add_loop_test(t, outermost_frame_of_a_sub_interpreter_says_so, 0, nr);
	tcase_add_test(t, main_interpreter_is_the_last_of_the_list);
	tcase_add_loop_test(t, entries_are_where_the_loop_began, 0, nr);
	tcase_add_test(t, a_helper_of_the_program_itself_is_hidden);
	tcase_add_loop_test(t, a_frame_without_its_code_ends_the_walk, 0, nr);
	tcase_add_loop_test(t, a_runtime_that_has_not_started_is_asked_again, 0, nr);
	tcase_add_loop_test(t, a_version_that_is_not_known_is_refused_in_words, 0, (int)ARRAY_SIZE(refused));
	tcase_add_test(t, a_build_without_the_gil_is_refused_in_words);
	tcase_add_loop_test(t, a_type_of_another_size_is_refused, 0, nr);
	tcase_add_loop_test(t, published_offsets_out_of_bounds_are_refused, 0, 11);
	tcase_add_test(t, slots_of_glibc_are_found);
	tcase_add_test(t, slots_of_glibc_on_arm64_are_found);
	tcase_add_test(t, slots_of_musl_are_found);
	tcase_add_loop_test(t, the_variable_of_a_thread_is_where_the_code_says, 0, (int)ARRAY_SIZE(local_forms));
	tcase_add_test(t, a_thread_shows_whose_blocks_they_are);
	tcase_add_test(t, rare_code_of_the_loop_is_found_by_its_jumps);
	tcase_add_loop_test(t, another_object_at_the_address_is_stale, 0, nr);
	tcase_add_loop_test(t, an_object_that_was_freed_is_stale, 0, (int)ARRAY_SIZE(counts));
	tcase_add_loop_test(t, the_code_of_a_module_that_was_freed_has_a_name, 0, nr);
	tcase_add_test(t, an_object_that_changes_while_it_is_read_is_stale);
	tcase_add_loop_test(t, text_of_each_width_becomes_utf8, 0, (int)ARRAY_SIZE(texts));
	tcase_add_test(t, a_long_name_is_cut_at_a_character);
	tcase_add_test(t, a_table_that_claims_too_much_is_refused);
	tcase_add_test(t, params_out_of_bounds_are_refused);
	tcase_add_loop_test(t, lines_are_those_of_the_release, 0, (int)ARRAY_SIZE(tables));
	tcase_add_test(t, lines_beyond_the_last_row_are_unknown);
	tcase_add_test(t, a_function_that_was_just_entered_is_at_its_first_line);
	suite_add_tcase(s, t);
	return s;
}

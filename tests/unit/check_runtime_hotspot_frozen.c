// SPDX-License-Identifier: Apache-2.0
/* HotSpot's frames in the heap: how the plan that copies them is found in a made-up libjvm, and what copied chunks mean. */
#include <check.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/world.h"

#include "base/cleanup.h"
#include "runtime/hotspot.h"

Suite *runtime_hotspot_frozen_suite(void);

#define VARIABLES WORLD /* libjvm is mapped there */
#define BARRIER	  (WORLD + 0x2000)
#define RETURN	  (WORLD + 0x2100)
#define LOW	  (WORLD + 0x2000)
#define HIGH	  (WORLD + 0x4000)
#define TLS	  (WORLD + 0x5000)
#define THREAD	  (WORLD + 0x6000)
#define ENTRY	  (WORLD + 0x7000)
#define OWNER	  (WORLD + 0x8000)
#define CHUNK(i)  (WORLD + 0x10000 + 0x4000ULL * (i))
#define PC(i)	  (LOW + 0x800 + 0x10ULL * (i))

/* The offsets of OpenJDK 21, with compressed pointers. */
static const struct variable { const char *name; uint32_t size; uint64_t value, more; } variables[] = {
	{"_ZL11_thread_key", 4, 2, 0},
	{"_ZN12StubRoutines19_cont_returnBarrierE", 8, BARRIER, 0},
	{"_ZN17ContinuationEntry10_return_pcE", 8, RETURN, 0},
	{"_ZN28jdk_internal_vm_Continuation12_tail_offsetE", 4, 32, 0},
	{"_ZN26jdk_internal_vm_StackChunk14_parent_offsetE", 4, 40, 0},
	{"_ZN26jdk_internal_vm_StackChunk12_size_offsetE", 4, 12, 0},
	{"_ZN26jdk_internal_vm_StackChunk10_sp_offsetE", 4, 24, 0},
	{"_ZN26jdk_internal_vm_StackChunk14_bottom_offsetE", 4, 28, 0},
	{"_ZN26jdk_internal_vm_StackChunk10_pc_offsetE", 4, 16, 0},
	{"_ZN26jdk_internal_vm_StackChunk12_cont_offsetE", 4, 44, 0},
	{"_ZN23InstanceStackChunkKlass16_offset_of_stackE", 4, 48, 0},
	{"UseCompressedOops", 1, 1, 0},
	{"UseZGC", 1, 0, 0},
	{"_ZN14CompressedOops11_narrow_oopE", 16, WORLD, 3},
	{"__libc_setup_tls", 0, 0, 0}, /* glibc's: it finds values of keys */
};
#define NR ARRAY_SIZE(variables)

static struct {
	Elf64_Ehdr head;
	Elf64_Shdr section[3];
	Elf64_Sym symbol[1 + NR];
	char strings[1024];
} image;

static struct binary *binary;
static struct runtime_attached attached;
static struct hotspot *h;
static struct otp_walker walker;
static struct runtime_frozen frozen;

static uint64_t place(size_t i)
{
	return 0x40 + 0x20 * i;
}

static void make_image(void)
{
	size_t at = 1;

	memset(&image, 0, sizeof(image));
	image.head = (Elf64_Ehdr){.e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
				  .e_shoff = offsetof(__typeof__(image), section), .e_ehsize = sizeof(Elf64_Ehdr),
				  .e_phentsize = sizeof(Elf64_Phdr), .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 3,
				  .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT}};
	image.section[1] = (Elf64_Shdr){.sh_type = SHT_SYMTAB, .sh_offset = offsetof(__typeof__(image), symbol), .sh_link = 2,
					.sh_size = sizeof(image.symbol), .sh_entsize = sizeof(Elf64_Sym)};
	image.section[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = offsetof(__typeof__(image), strings),
					.sh_size = sizeof(image.strings)};
	for (size_t i = 0; i < NR; i++) {
		strcpy(image.strings + at, variables[i].name);
		image.symbol[1 + i] = (Elf64_Sym){.st_name = (uint32_t)at, .st_shndx = 1, .st_value = place(i),
						  .st_size = variables[i].size,
						  .st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT)};
		at += strlen(variables[i].name) + 1;
		put64(VARIABLES + place(i), variables[i].value);
		put64(VARIABLES + place(i) + 8, variables[i].more);
	}
}

static int attach(void)
{
	const struct runtime_file file = {.binary = binary, .bias = VARIABLES};

	attached.more = (struct otp_walk){0};
	memory_question(&memory);
	return hotspot_frozen_attach(&file, &memory, h, &attached.more);
}

static void setup(void)
{
	static const uint8_t code[] = {0x49, 0x8b, 0xa7, 0x38, 0x05, 0, 0}; /* mov rsp, [r15 + 0x538] */
	int fd = memfd_create("libjvm", MFD_CLOEXEC);

	memset(world, 0, sizeof(world));
	memset(&attached, 0, sizeof(attached));
	h = (void *)attached.param;
	h->version = 21;
	h->thread_anchor = 0x400;
	h->anchor_sp = 8;
	h->low = LOW;
	h->high = HIGH;
	make_image();
	put(BARRIER, code, sizeof(code));
	ck_assert_int_eq(write(fd, &image, sizeof(image)), sizeof(image));
	ck_assert_int_eq(binary_open(fd, "libjvm", &binary), 0);
}

static void teardown(void)
{
	binary = binary_put(binary);
}

/* --- attaching --- */

START_TEST(the_way_to_the_heap_is_found_by_symbols_and_the_barriers_code)
{
	const struct otp_walk *w = &attached.more;

	ck_assert_int_eq(attach(), 0);
	ck_assert(otp_walk_plan_sound(w));
	ck_assert_uint_eq(w->step, OTP_WALK_CHUNKS);
	ck_assert_uint_eq(w->start, OTP_WALK_TLS);
	ck_assert_uint_eq(w->nr_chain, 2);
	ck_assert_int_eq(w->chain[0], 0x310 + 16 * 2 + 8);
	ck_assert_int_eq(w->chain[1], 0x538);
	ck_assert_uint_eq(w->root_at, 1);
	ck_assert_int_eq(w->root_off, 0x408);
	ck_assert_uint_eq(w->chunks.base, WORLD);
	ck_assert_uint_eq(w->chunks.shift, 3);
	ck_assert_uint_eq(w->chunks.wide, 0);
	ck_assert_int_eq(w->chunks.chunk, 32);
	ck_assert_uint_eq(h->barrier, BARRIER);
	ck_assert_uint_eq(w->chunks.also, VARIABLES + place(2));
}
END_TEST

static size_t variable(const char *name)
{
	for (size_t i = 0; i < NR; i++)
		if (!strcmp(variables[i].name, name))
			return i;
	ck_abort();
}

/* A collector that moves objects as the thread runs, a barrier of other code, an offset of nothing. */
START_TEST(what_is_not_understood_is_not_copied)
{
	switch (_i) {
	case 0: put64(VARIABLES + place(variable("UseZGC")), 1); break;
	case 1: put64(BARRIER, 0); break;
	case 2: put64(VARIABLES + place(variable("_ZN26jdk_internal_vm_StackChunk10_sp_offsetE")), 0x7fffffff); break;
	case 3: put64(VARIABLES + place(variable("_ZN26jdk_internal_vm_StackChunk10_pc_offsetE")), 128); break;
	case 4: put64(VARIABLES + place(variable("_ZN14CompressedOops11_narrow_oopE")) + 8, 77); break;
	case 5: h->version = 20; break;
	case 6: put64(VARIABLES + place(variable("_ZN12StubRoutines19_cont_returnBarrierE")), WORLD - 8); break;
	case 7: put64(VARIABLES + place(variable("_ZL11_thread_key")), 5000); break;
	case 8: h->thread_anchor = HOTSPOT_NONE; break;
	}
	ck_assert_int_eq(attach(), 0);
	ck_assert_uint_eq(attached.more.start, OTP_WALK_NONE);
	ck_assert_uint_eq(h->barrier, 0);
}
END_TEST

/* The first virtual thread is what makes the code that they begin in. */
START_TEST(where_virtual_threads_return_to_may_be_known_later)
{
	put64(VARIABLES + place(variable("_ZN17ContinuationEntry10_return_pcE")), 0);
	ck_assert_int_eq(attach(), 0);
	ck_assert_uint_eq(attached.more.step, OTP_WALK_CHUNKS);
	put64(VARIABLES + place(variable("_ZN12StubRoutines19_cont_returnBarrierE")), 0);
	h->barrier = 0;
	ck_assert_int_eq(attach(), 0);
	ck_assert_uint_eq(attached.more.start, OTP_WALK_NONE);
}
END_TEST

START_TEST(a_machine_that_starts_is_asked_again)
{
	put64(VARIABLES + place(variable("_ZN26jdk_internal_vm_StackChunk14_parent_offsetE")), 0);
	ck_assert_int_eq(attach(), -EAGAIN);
}
END_TEST

/* --- chunks --- */

/* Words 8 * i of a chunk's stack are i, but for its innermost frame's return address and frame pointer. */
static void make_chunk(uint32_t i, uint32_t sp, uint32_t bottom, uint64_t saved, bool last)
{
	const uint64_t stack = CHUNK(i) + 48;

	put32(CHUNK(i) + 12, bottom + 2);
	put64(CHUNK(i) + 16, PC(i));
	put32(CHUNK(i) + 24, sp);
	put32(CHUNK(i) + 28, bottom);
	put32(CHUNK(i) + 40, last ? 0 : (uint32_t)((CHUNK(i + 1) - WORLD) >> 3));
	put32(CHUNK(i) + 44, (uint32_t)((OWNER - WORLD) >> 3));
	for (uint64_t k = 0; k < bottom + 2; k++)
		put64(stack + 8 * k, k);
	put64(stack + 8 * sp - 8, PC(i));
	put64(stack + 8 * sp - 16, saved);
}

static struct runtime_copied last;

static int copied(void)
{
	const struct otp_walked *w = (const void *)walker.out;
	ck_assert_int_eq(attach(), 0);
	put64(TLS + 0x310 + 16 * 2 + 8, THREAD);
	put64(THREAD + 0x538, ENTRY);
	put64(ENTRY + 16, OWNER);
	put32(OWNER + 32, (uint32_t)((CHUNK(0) - WORLD) >> 3));
	otp_walk_prepare(&walker.ready, &attached.more);
	walker.taken = 0;
	otp_walk_run(&walker, TLS, 1, 1);
	last = (struct runtime_copied){.root = (const void *)(walker.out + OTP_WALK_HEAD), .nr_root = w->root_words,
				       .frames = (const void *)(walker.out + OTP_WALK_HEAD + w->root_words),
				       .nr_frames = w->frames, .frame_words = w->frame_words, .cut = w->end != OTP_WALK_END_DONE};
	frozen = (struct runtime_frozen){0};
	return hotspot_frozen(&attached, &last, &frozen);
}

START_TEST(chunks_are_parts_that_lead_back_to_the_entry)
{
	make_chunk(0, 30, 100, 5, false);
	make_chunk(1, 60, 60, 0, false); /* empty */
	make_chunk(2, 4, 20, 0x7fff12345678, true);
	ck_assert_int_eq(copied(), 0);
	ck_assert_uint_eq(frozen.nr, 2);
	ck_assert_uint_eq(frozen.part[0].pc, PC(0));
	ck_assert_uint_eq(frozen.part[0].sp, CHUNK(0) + 48 + 8 * 30);
	ck_assert_uint_eq(frozen.part[0].fp, CHUNK(0) + 48 + 8 * (28 + 5));
	ck_assert_uint_eq(frozen.part[0].first, 1);
	ck_assert_uint_eq(frozen.part[1].pc, PC(2));
	ck_assert_uint_eq(frozen.part[1].fp, 0); /* an object of compiled code */
	ck_assert_uint_eq(frozen.part[1].first, frozen.part[0].nr + 4); /* behind the empty one's arguments */
	ck_assert_uint_eq(frozen.high, ENTRY);
	ck_assert_uint_lt(frozen.low, ENTRY);
	ck_assert_uint_eq(frozen.back_pc, RETURN);
	ck_assert_uint_eq(frozen.back_sp, ENTRY);
}
END_TEST

/* Another thread's, moved meanwhile, half written: its words do not agree. */
START_TEST(a_chunk_whose_words_do_not_agree_is_none)
{
	make_chunk(0, 30, 100, 5, true);
	ck_assert_int_eq(copied(), 0);
	switch (_i) {
	case 0: put32(CHUNK(0) + 44, 8); break;
	case 1: put64(CHUNK(0) + 16, PC(1)); break;
	case 2: put32(CHUNK(0) + 24, 31); break;
	case 3:
		put64(CHUNK(0) + 16, WORLD);
		put64(CHUNK(0) + 48 + 8 * 29, WORLD);
		break;
	}
	ck_assert_int_eq(copied(), -EBADMSG);
}
END_TEST

/* They are on the stack as well. */
START_TEST(frames_that_are_being_put_into_the_heap_are_not_callers)
{
	make_chunk(0, 30, 100, 5, true);
	put64(THREAD + 0x408, ENTRY - 0x100);
	ck_assert_int_eq(copied(), 0);
	put64(THREAD + 0x408, ENTRY);
	ck_assert_int_eq(copied(), -EBADMSG);
}
END_TEST

START_TEST(a_thread_with_nothing_in_the_heap_has_no_parts)
{
	make_chunk(0, 60, 60, 0, true);
	ck_assert_int_eq(copied(), -ENOENT);
}
END_TEST

/* Its head is the last that was copied. */
START_TEST(a_chunk_whose_frames_were_not_copied_is_none)
{
	make_chunk(0, 30, 100, 5, true);
	put32(CHUNK(0) + 12, 30); /* its size: it ends where they begin */
	ck_assert_int_eq(copied(), -EBADMSG);
}
END_TEST

START_TEST(fields_that_lie_out_of_a_chunks_head_are_not_read)
{
	make_chunk(0, 30, 100, 5, true);
	ck_assert_int_eq(copied(), 0);
	for (int i = 0; i < 4; i++) {
		const struct runtime_attached kept = attached;

		*(uint16_t *[]){&h->chunk_pc, &h->chunk_owner, &h->chunk_bottom, (uint16_t *)&attached.more.chunks.sp}[i] = 0x7ff8;
		ck_assert_int_eq(hotspot_frozen(&attached, &last, &frozen), -EBADMSG);
		attached = kept;
	}
}
END_TEST

/* What is not copied is not passed over: there is no way back. */
START_TEST(chunks_that_were_not_all_copied_lead_nowhere)
{
	make_chunk(0, 30, 1800, 5, true);
	ck_assert_int_eq(copied(), 0);
	ck_assert_uint_eq(frozen.nr, 1);
	ck_assert_uint_eq(frozen.back_pc, RETURN);
	make_chunk(0, 30, 2040, 5, false);
	ck_assert_int_eq(copied(), 0);
	ck_assert_uint_eq(frozen.nr, 1);
	ck_assert_uint_eq(frozen.back_pc, 0);
}
END_TEST

Suite *runtime_hotspot_frozen_suite(void)
{
	Suite *s = suite_create("runtime_hotspot_frozen");
	TCase *t = tcase_create("frozen");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, the_way_to_the_heap_is_found_by_symbols_and_the_barriers_code);
	tcase_add_loop_test(t, what_is_not_understood_is_not_copied, 0, 9);
	tcase_add_test(t, where_virtual_threads_return_to_may_be_known_later);
	tcase_add_test(t, a_machine_that_starts_is_asked_again);
	tcase_add_test(t, chunks_are_parts_that_lead_back_to_the_entry);
	tcase_add_loop_test(t, a_chunk_whose_words_do_not_agree_is_none, 0, 4);
	tcase_add_test(t, frames_that_are_being_put_into_the_heap_are_not_callers);
	tcase_add_test(t, a_thread_with_nothing_in_the_heap_has_no_parts);
	tcase_add_test(t, chunks_that_were_not_all_copied_lead_nowhere);
	tcase_add_test(t, a_chunk_whose_frames_were_not_copied_is_none);
	tcase_add_test(t, fields_that_lie_out_of_a_chunks_head_are_not_read);
	suite_add_tcase(s, t);
	return s;
}

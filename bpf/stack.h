/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copies user memory upward from an address; never sleeps, never faults pages
 * in.
 */
#ifndef OTP_BPF_STACK_H
#define OTP_BPF_STACK_H

/* Mappings begin and end at multiples of this on every architecture. */
#define PAGE 4096ULL

/* Pages that a copy may touch: its own, and one more for an unaligned start. */
#define PIECES (OTP_HEAD_STACK / PAGE + 1)

/* The highest offset of stack bytes in the scratch area: the sections before them are small, but for those of walks. */
#define STACK_AT_MAX (8192 + OTP_WALK_BYTES)
_Static_assert(STACK_AT_MAX + OTP_HEAD_STACK + PAGE <= OTP_SCRATCH, "a copy fits the scratch area");

/*
 * The functions with loops are global ones: the verifier checks each once, for
 * any arguments, instead of once per path that leads to a call. Their arguments
 * may only be numbers (5.10), so they look up the scratch area themselves.
 */

/* Bit in the result of a copy, besides the bytes up to the last readable one: some before it were not readable. */
#define COPY_HOLES (1ULL << 63)

/* Copies a page or a part of one into this CPU's scratch area at that offset. Returns all bits set on success. */
__noinline u64 copy_page(u64 at, u64 want, u64 addr)
{
	u32 nr = bpf_get_smp_processor_id();
	struct scratch *s = bpf_map_lookup_elem(&scratch, &nr);

	opaque(at);
	opaque(want);
	if (!s || at > STACK_AT_MAX + OTP_HEAD_STACK || want > PAGE)
		return 0;
	return bpf_probe_read_user(s->byte + at, want, (const void *)addr) ? 0 : ~0ULL;
}

/*
 * A failed read leaves only zeros, so it is repeated page by page, which copies
 * every readable page. Big arrays leave pages between frames that were never
 * touched; they become zeros. No branch depends on the result of a read:
 * otherwise the verifier would follow each combination of nine pages.
 */
static __always_inline u64 copy_pages(u64 at, u64 want, u64 addr)
{
	u64 got = 0, end = 0, holes = 0;

	for (u32 i = 0; i < PIECES; i++) {
		u64 piece = PAGE - ((addr + got) & (PAGE - 1)), there;

		if (got >= want)
			break;
		if (piece > want - got)
			piece = want - got;
		there = copy_page(at + got, piece, addr + got);
		holes |= (end ^ got) & there;
		end = (end & ~there) | ((got + piece) & there);
		got += piece;
	}
	return end | (holes ? COPY_HOLES : 0);
}

/* Copies into this CPU's scratch area at that offset. */
__noinline u64 copy_user(u64 at, u64 want, u64 addr)
{
	u32 nr = bpf_get_smp_processor_id();
	struct scratch *s = bpf_map_lookup_elem(&scratch, &nr);

	opaque(at);
	opaque(want);
	if (!s || at > STACK_AT_MAX || want > OTP_HEAD_STACK)
		return 0;
	if (!bpf_probe_read_user(s->byte + at, want, (const void *)addr))
		return want;
	return copy_pages(at, want, addr);
}

#endif

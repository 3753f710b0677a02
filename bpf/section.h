/* SPDX-License-Identifier: GPL-2.0-only */
/* Sections of a sample, in the scratch area or in the ring. */
#ifndef OTP_BPF_SECTION_H
#define OTP_BPF_SECTION_H

/* At that offset of the sample; its payload follows, written by the caller. */
static __always_inline void section_begin(u8 *s, u64 at, u16 type, u32 len)
{
	struct otp_section *section = (void *)(s + at);

	section->type = type;
	section->flags = 0;
	section->len = len;
	((struct otp_sample *)s)->nr_sections++;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a file that came from elsewhere is what was asked for: a whole ELF
 * file of this build-id, with names or debug information in it.
 *
 * Called by the fetcher, before the file is kept. It catches servers that err,
 * not those that forge: who makes an index of the file trusts none of its
 * bytes either. Reads the ELF header, its tables and notes only.
 */
#ifndef OTP_SYMBOL_DEBUG_VERIFY_H
#define OTP_SYMBOL_DEBUG_VERIFY_H

struct binary;

enum debug_verdict {
	DEBUG_IS_GOOD,
	DEBUG_IS_NO_ELF,
	DEBUG_IS_CUT,	   /* sections lie beyond its end */
	DEBUG_IS_ANOTHERS, /* another build-id, or none */
	DEBUG_IS_EMPTY,	   /* no debug information and no symbols */
};

/* fd is borrowed; id: the build-id, in lower-case hexadecimal. */
enum debug_verdict debug_verify(int fd, const char *id);
enum debug_verdict debug_verify_binary(struct binary *b, const char *id);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that a downloaded file is the requested one: a whole ELF file of this
 * build-id, with symbols or debug information.
 *
 * Called by the fetcher, before the file is kept. Detects a server's mistakes,
 * not forgery: the indexer trusts none of the file's bytes either. Reads the
 * ELF header, its tables and notes only.
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

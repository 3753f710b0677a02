/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that lie beside one which a process has mapped: a portable PDB beside
 * its assembly. The process' mappings say in which directory; of what names the
 * file there only the last part counts, which hostile memory may have chosen.
 *
 * Called by decoders, the monitor and openers, each of which checks the name;
 * pure.
 */
#ifndef OTP_PROCESS_BESIDE_H
#define OTP_PROCESS_BESIDE_H

#include <stdbool.h>
#include <stddef.h>

#define BESIDE_NAME_MAX	 256u	      /* bytes, with the NUL */
#define BESIDE_BYTES_MAX (16u << 20) /* of a file */
#define BESIDE_FILES_MAX 256u	      /* that one decoder may ask for */

/* Whether len bytes name a portable PDB in whatever directory: one part of a path, which ends in ".pdb". */
bool beside_name_is_sound(const char *name, size_t len);

#endif

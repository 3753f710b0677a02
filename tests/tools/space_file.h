/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A space made from the text of /proc/PID/maps, for tools and tests that look
 * at one process by themselves: files are opened at once, as they are here.
 */
#ifndef OTP_TESTS_SPACE_FILE_H
#define OTP_TESTS_SPACE_FILE_H

#include "process/space.h"

/*
 * One line of maps; lines that are not executable are skipped. vdso: image of
 * the vDSO, may be NULL. Negative errno on memory or format.
 */
int space_add_line(struct space **slot, const char *line, const void *vdso, size_t vdso_len);

#endif

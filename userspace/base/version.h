/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What --version prints: the version, the compiler and the libraries.
 * Called by the programs' main files.
 */
#ifndef OTP_BASE_VERSION_H
#define OTP_BASE_VERSION_H

void version_print(const char *program); /* to stdout */

#endif

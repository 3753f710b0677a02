/* SPDX-License-Identifier: Apache-2.0 */
/* So many samples of the CPU clock, where a count by origin is wanted. */
#ifndef OTP_TESTS_LIB_COUNTS_H
#define OTP_TESTS_LIB_COUNTS_H

#include "base/ledger.h"

#define COUNTS(n) (&(const struct ledger_counts){.of = {(n)}})

#endif

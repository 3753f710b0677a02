/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A selection in words, for the verbs that show it. One thread.
 */
#ifndef OTP_CLI_SELECT_H
#define OTP_CLI_SELECT_H

#include <jansson.h>

#include "base/buf.h"

/* s: the status' member "selection", borrowed. Appends what is sampled, uncleaned, without an end. */
void select_sentence(const json_t *s, struct buf *to);

#endif

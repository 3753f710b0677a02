/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name for generated code that no map and no runtime describes: the file
 * whose code called it, which most likely made it.
 *
 * Called by the pipeline for each such frame; one thread, no state.
 */
#ifndef OTP_DAEMON_ENGINE_MAKER_H
#define OTP_DAEMON_ENGINE_MAKER_H

#include <stdbool.h>

#include "unwind/unwind.h"

/*
 * Turns the frame, that of index in the stack, into one that names itself and
 * owns a reference to that name. false: no caller is known; it is unchanged.
 */
bool maker_name_frame(const struct unwind_stack *stack, uint32_t index, struct frame *f);

#endif

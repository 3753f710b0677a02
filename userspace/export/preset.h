/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Presets of a destination: which attributes of resources and samples it gets.
 * A preset only leaves out what the engine's requests have.
 *
 * Called by shape.c. Pure. Names and lines of frames, build ids and values are
 * the same in every preset. Addresses of frames that have names, and that is all
 * of otprof's, are a fifth of a compressed request; Pyroscope drops them itself.
 *
 * otlp       all attributes, and addresses
 * pyroscope  those that a store which makes a series of each set of labels can
 *            bear: without the ones that are new with each start of a container
 *            or process, and those that say the same as another one
 * minimal    service.namespace and service.name: one series a service and type
 */
#ifndef OTP_EXPORT_PRESET_H
#define OTP_EXPORT_PRESET_H

#include <stdbool.h>

#include "export/export.h"
#include "recording/recording.h"

bool preset_keeps_resource(enum export_preset preset, const char *key);
bool preset_keeps_sample(enum export_preset preset, const char *key);
/* Whether frames that have names have no address besides. */
bool preset_drops_addresses(enum export_preset preset);
/* Applies a preset to all that r holds. Errors as of recording_narrow. */
int preset_apply(enum export_preset preset, struct recording *r);

#endif

// SPDX-License-Identifier: Apache-2.0
#include "cli/limits.h"

const struct recording_limits cli_recording_limits = {
	.request = {
		.request_bytes = 64u << 20, /* OTLP's own limit */
		.memory_bytes = 1u << 30,
		.depth = 8192,
	},
	.entries = 8u << 20,
	.bytes = 2ULL << 30,
	.total = (1ULL << 53) - 1, /* exact in JavaScript too */
	.frames = 1ULL << 28,
};

const struct tree_limits cli_tree_limits = {
	.nodes = 4u << 20,
	.depth = 8192,
	.names = 8u << 20,
	.name_bytes = 2ULL << 30,
};

// SPDX-License-Identifier: Apache-2.0
/* Any bytes as what a debuginfod server sent: a debug file, its build-id, a URL that it leads to, and its proxy. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/disposable/fetch_address.h"
#include "daemon/disposable/fetch_proxy.h"
#include "daemon/fetch.h"
#include "process/binary.h"
#include "symbol/debug_verify.h"

#define ID "00112233445566778899aabbccddeeff00112233"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* What is taken for good has this id, and no other. */
static void verify(struct binary *b)
{
	enum debug_verdict first = debug_verify_binary(b, ID), other = debug_verify_binary(b, "ff");

	if (first == DEBUG_IS_GOOD && other == DEBUG_IS_GOOD)
		abort();
	if (first == DEBUG_IS_GOOD && b->build_id_len != strlen(ID) / 2)
		abort();
}

static void read_text(const uint8_t *data, size_t len)
{
	_cleanup_(freep) char *text = malloc(len + 1);

	if (!text)
		return;
	memcpy(text, data, len);
	text[len] = '\0';
	if (fetch_id_is_sound(text) && (strchr(text, '/') || strlen(text) >= FETCH_ID_MAX))
		abort();
	fetch_state_find(text);
	fetch_address_is_same_place("https://example.org/buildid/" ID "/debuginfo", text);
	fetch_address_is_same_place(text, text);
	fetch_proxy_of(text);
	fetch_proxy_is_excepted(text, "example.org");
	fetch_proxy_is_excepted("10.0.0.0/8, [fd00::]/8, .example.org", text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct binary *b;

	read_text(data, len);
	if (binary_open_memory(data, len, "fuzz", &b) < 0)
		return 0;
	verify(b);
	binary_put(b);
	return 0;
}

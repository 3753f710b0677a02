// SPDX-License-Identifier: Apache-2.0
#include "process/beside.h"

#include <string.h>

#define SUFFIX	   ".pdb"
#define SUFFIX_LEN (sizeof(SUFFIX) - 1)

bool beside_name_is_sound(const char *name, size_t len)
{
	return len > SUFFIX_LEN && len < BESIDE_NAME_MAX && !memchr(name, '/', len) && !memchr(name, '\0', len) &&
	       !memcmp(name + len - SUFFIX_LEN, SUFFIX, SUFFIX_LEN);
}

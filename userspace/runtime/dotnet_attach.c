// SPDX-License-Identifier: Apache-2.0
/*
 * What the runtime's file tells of its version, and its table for debuggers of
 * where the map of code is. The file is libcoreclr.so, or the program itself
 * where all is one file.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/dotnet.h"

#define VERSION	    "@(#)Version " /* "@(#)Version 8.0.424.16909 @Commit: ..." */
#define VERSION_LEN (sizeof(VERSION) - 1)
#define TEXT_MAX    64u
#define PIECE	    4096u
#define DATA_MAX    (1u << 20)

#define HELPERS 7 /* hlpDynamicFuncTable, by dacvars.h of 8, 9 and 10 */

/* Where in a piece of the file's data the version stands; NULL: not there. */
static const char *dotnet_version_in(const char *piece, size_t len)
{
	const char *found = memmem(piece, len, VERSION, VERSION_LEN);

	return found && (size_t)(found - piece) + TEXT_MAX <= len ? found + VERSION_LEN : NULL;
}

/* The third number is 100 times that of the release, and one of the build. */
static int dotnet_version_parse(const char *text, uint32_t *ret_major, char version[RUNTIME_VERSION_MAX])
{
	unsigned major, minor, build;

	if (sscanf(text, "%3u.%3u.%6u", &major, &minor, &build) != 3)
		return -ENOTSUP;
	snprintf(version, RUNTIME_VERSION_MAX, "%u.%u.%u", major, minor, build / 100);
	*ret_major = major;
	return 0;
}

static int dotnet_version(const struct runtime_file *file, uint32_t *ret_major, char version[RUNTIME_VERSION_MAX])
{
	const struct binary_section *data = binary_section(file->binary, ".data");
	uint64_t size = data ? MIN(data->size, (uint64_t)DATA_MAX) : 0;
	char piece[PIECE + TEXT_MAX + 1];

	for (uint64_t at = 0; at < size; at += PIECE) {
		ssize_t n = binary_read(file->binary, data->offset + at, piece, sizeof(piece) - 1);
		const char *found;

		if (n <= 0)
			break;
		piece[n] = '\0';
		found = dotnet_version_in(piece, (size_t)n);
		if (found)
			return dotnet_version_parse(found, ret_major, version);
	}
	return -ENOTSUP;
}

static int dotnet_attach_row(uint32_t major, struct dotnet *d, char why[RUNTIME_WHY_MAX])
{
	for (d->row = 0; dotnet_rows[d->row].major; d->row++)
		if (dotnet_rows[d->row].major == major)
			return 0;
	snprintf(why, RUNTIME_WHY_MAX, "version %u is not known", major);
	return -ENOTSUP;
}

int dotnet_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
		  char why[RUNTIME_WHY_MAX])
{
	struct dotnet *d = (void *)ret->param;
	uint64_t table;
	uint32_t major;
	int err = runtime_address(file, "g_dacTable", &table);

	if (err)
		return err;
	if (file->binary->machine != EM_X86_64) {
		snprintf(why, RUNTIME_WHY_MAX, "it is read on x86-64 alone");
		return -ENOTSUP;
	}
	if (dotnet_version(file, &major, ret->version)) {
		snprintf(why, RUNTIME_WHY_MAX, "it does not tell its version");
		return -ENOTSUP;
	}
	err = dotnet_attach_row(major, d, why);
	if (err)
		return err;
	/* ExecutionManager::g_codeRangeMap is the first of all; the table is filled when the runtime starts. */
	if (memory_u64(m, table, &d->code_map) || memory_u64(m, table + 8 * HELPERS, &d->helpers))
		return -EFAULT;
	if (!d->code_map)
		return -EAGAIN;
	dotnet_hijack_attach(file, ret);
	return 0;
}

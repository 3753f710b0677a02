// SPDX-License-Identifier: Apache-2.0
/*
 * A spool directory of any content: the position, then a segment, then another.
 * What is opened is read to its end, in order, and holds what it says to hold.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "export/spool.h"
#include "export/spool_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define POSITION_BYTES 544u /* both places of it */
#define RECORDS_MAX    100000u

static struct export_spool place = {.dir = -1, .origins = {0, 1, 2, 255, 255, 255, 255, 255}};
static int dir = -1; /* of the spool itself */

static char top[] = "/tmp/otprof-fuzz-spool-XXXXXX";

static void remove_directories(void)
{
	unlinkat(dir, "position", 0);
	unlinkat(place.dir, "s", AT_REMOVEDIR);
	rmdir(top);
}

static void make_directories(void)
{

	if (!mkdtemp(top))
		abort();
	place.dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (mkdirat(place.dir, "s", 0700) < 0)
		abort();
	dir = openat(place.dir, "s", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	atexit(remove_directories);
}

static void put_file(const char *name, const uint8_t *data, size_t len)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || file_write(fd, data, len) < 0)
		abort();
	close(fd);
}

/* Mutations do not find checksums: those of a part of the inputs are made right. */
static void make_right(uint8_t *data, size_t len)
{
	struct spool_header h;
	struct spool_record r = {0};

	for (size_t at = 0; len - at >= sizeof(h); at += sizeof(h) + h.body_len) {
		memcpy(&h, data + at, sizeof(h));
		r.number = h.number;
		r.id = h.id;
		r.coding = h.flags & SPOOL_ZSTD ? EXPORT_CODING_ZSTD : EXPORT_CODING_GZIP;
		r.len = MIN(h.body_len, len - at - sizeof(h));
		memcpy(r.samples.of, h.samples, sizeof(r.samples.of));
		spool_header_make(&r, data + at + sizeof(h), h.origins, &h);
		memcpy(data + at, &h, sizeof(h));
	}
}

static void make_position_right(uint8_t *data, size_t len)
{
	struct spool_position p;

	if (len < sizeof(p))
		return;
	memcpy(&p, data, sizeof(p));
	spool_position_make(&p);
	memcpy(data, &p, sizeof(p));
}

static void put_files(const uint8_t *data, size_t size)
{
	_cleanup_(freep) uint8_t *copy = malloc(size + 1);
	size_t position = MIN(size, POSITION_BYTES), half = (size - position) / 2;
	bool right = size && data[size - 1] & 1;

	if (!copy)
		abort();
	memcpy(copy, data, size);
	if (size && data[size - 1] & 2)
		make_position_right(copy, position);
	put_file("position", copy, position);
	if (right) {
		make_right(copy + position, half);
		make_right(copy + position + half, size - position - half);
	}
	put_file("0000000000000001.seg", copy + position, half);
	put_file("0000000000000003.seg", copy + position + half, size - position - half);
}

/* Number of records taken; the oldest is dropped in one way or the other until there is none. */
static uint64_t take_all(struct spool *s)
{
	struct ledger_counts lost;
	struct spool_record r;
	uint64_t n = 0, before = 0;
	int rc;

	while ((rc = spool_peek(s, &r)) && n++ < RECORDS_MAX) {
		_cleanup_(freep) void *body = rc == 1 ? malloc(r.len) : NULL;

		if (rc < 0) {
			spool_drop_damaged(s, &lost);
			continue;
		}
		if (r.number <= before || !r.len || r.len > EXPORT_REQUEST_MAX)
			abort();
		before = r.number;
		if (body)
			spool_read(s, &r, body);
		spool_drop(s);
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct spool_record r = {.id = 1, .len = 1};
	struct spool *s;
	uint64_t has;

	if (dir < 0)
		make_directories();
	put_files(data, size);
	if (spool_open(&place, "s", true, &s) < 0)
		return 0;
	has = spool_content(s)->records;
	if (has && spool_append(s, &r, "x", 1 << 20, NULL) == 0)
		has++;
	if (take_all(s) != has && !spool_content(s)->torn)
		abort();
	if (spool_content(s)->records || spool_content(s)->bytes)
		abort();
	spool_close(s);
	unlinkat(dir, "0000000000000001.seg", 0);
	unlinkat(dir, "0000000000000003.seg", 0);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Numbers: segments hold [first, next) each, in ascending order; the oldest
 * record that was not taken is s->next, in the first segment; s->end is the
 * number of the next record to append. A number is used once.
 */
#include "export/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "export/spool_record.h"
#include "export/spool_sync.h"

#define SPOOL_NAME_MAX	   32
#define SPOOL_SEGMENTS_MAX 65536u
/* Dropping the oldest segment costs a small part of the whole. */
#define SPOOL_SEGMENTS_AIM 64u
#define SPOOL_SEGMENT_MIN  (64u << 10)
#define SPOOL_SEGMENT_BIG  (64u << 20)
#define SPOOL_POSITION_GAP 512u /* between the two places of the position: a sector's size */

struct spool_segment {
	uint64_t first, next; /* numbers of its records */
	uint64_t bytes;	      /* of its file */
	uint64_t start;	      /* where the oldest record begins that was not taken */
	uint64_t records;     /* not taken */
	struct ledger_counts samples; /* of them */
};

struct spool {
	int lock; /* never duplicated: the lock ends when it is closed */
	int dir, position;
	int reads, writes; /* the first segment, and the last one; -1: to be opened, or a new one to be begun */
	unsigned long sync_key; /* of the last segment */
	uint8_t origins[OTP_ORIGINS_MAX];
	struct spool_segment *segments; /* owned; the oldest first */
	uint32_t count, cap;
	uint64_t next, end, maybe;
	uint64_t turn; /* of the position */
	struct spool_header head; /* of the oldest record, once spool_peek has returned it */
	struct spool_content content;
};

static void spool_segment_name(uint64_t first, char name[SPOOL_NAME_MAX])
{
	snprintf(name, SPOOL_NAME_MAX, "%016llx.seg", (unsigned long long)first);
}

/* Only names that we would make ourselves are ours. */
static bool spool_segment_is(const char *name, uint64_t *ret_first)
{
	unsigned long long first;
	char again[SPOOL_NAME_MAX];

	if (sscanf(name, "%16llx", &first) != 1)
		return false;
	spool_segment_name(first, again);
	*ret_first = first;
	return first && !strcmp(name, again);
}

uint64_t spool_bytes_of(size_t len)
{
	return sizeof(struct spool_header) + len;
}

/* --- the position --- */

/* One that cannot be written leaves an older one: what was taken since is sent again by the next process. */
static void spool_write_position(struct spool *s)
{
	struct spool_position p = {.turn = ++s->turn, .next = s->next, .maybe = s->maybe};

	spool_position_make(&p);
	(void)file_write_at(s->position, &p, sizeof(p), (s->turn & 1) * SPOOL_POSITION_GAP);
}

static int spool_open_position(struct spool *s)
{
	struct spool_position p;

	s->position = openat(s->dir, "position", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (s->position < 0)
		return -errno;
	for (uint64_t place = 0; place < 2; place++) {
		if (file_read_at(s->position, &p, sizeof(p), place * SPOOL_POSITION_GAP) < 0 || !spool_position_is(&p) ||
		    p.turn < s->turn)
			continue;
		s->turn = p.turn;
		s->next = p.next;
		s->maybe = p.maybe;
	}
	return 0;
}

/* --- what a segment holds --- */

/* Counts the record at the end of what was read of a segment; false: there is none. */
static bool spool_scan_record(struct spool *s, int fd, uint64_t size, uint64_t *at, struct spool_segment *seg)
{
	struct spool_header h;
	struct spool_record r;

	if (size - *at < sizeof(h) || file_read_at(fd, &h, sizeof(h), *at) < 0 ||
	    spool_header_read(&h, seg->next, s->origins, &r) < 0 || r.len > size - *at - sizeof(h))
		return false;
	*at += spool_bytes_of(r.len);
	seg->next++;
	if (r.number < s->next) {
		seg->start = *at;
		return true;
	}
	seg->records++;
	ledger_counts_add(&seg->samples, &r.samples);
	return true;
}

/*
 * The end of a segment from which no record can be read is cut off, so that it is counted once; not where the disk
 * itself failed, which may pass.
 */
static void spool_cut_torn(struct spool *s, const char *name, int fd, uint64_t good, struct spool_segment *seg)
{
	struct spool_header h;
	_cleanup_(closep) int writes = -1;

	if (good == seg->bytes)
		return;
	s->content.torn++;
	if (seg->bytes - good >= sizeof(h) && file_read_at(fd, &h, sizeof(h), good) < 0)
		return;
	writes = openat(s->dir, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (writes >= 0 && ftruncate(writes, (off_t)good) == 0)
		seg->bytes = good;
}

/* 0: a segment with records that were not taken; -ENODATA: without. */
static int spool_scan_segment(struct spool *s, const char *name, uint64_t first, struct spool_segment *ret)
{
	_cleanup_(closep) int fd = openat(s->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	uint64_t at = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	*ret = (struct spool_segment){.first = first, .next = first, .bytes = (uint64_t)st.st_size};
	while (spool_scan_record(s, fd, ret->bytes, &at, ret))
		;
	spool_cut_torn(s, name, fd, at, ret);
	return ret->records ? 0 : -ENODATA;
}

static int spool_add_segment(struct spool *s, const struct spool_segment *seg)
{
	int err = array_reserve(&s->segments, s->count, &s->cap, sizeof(*s->segments));

	if (err)
		return err;
	s->segments[s->count++] = *seg;
	s->content.bytes += seg->bytes;
	s->content.records += seg->records;
	ledger_counts_add(&s->content.samples, &seg->samples);
	return 0;
}

/* --- opening --- */

struct spool_names {
	uint64_t *first; /* owned */
	uint32_t count, cap;
};

static int spool_list(const struct spool *s, struct spool_names *names)
{
	int fd = openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(closedirp) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	uint64_t first;

	if (!dir) {
		int err = -errno;

		closep(&fd);
		return err;
	}
	while (names->count < SPOOL_SEGMENTS_MAX && (entry = readdir(dir))) {
		if (!spool_segment_is(entry->d_name, &first))
			continue;
		if (array_reserve(&names->first, names->count, &names->cap, sizeof(*names->first)) < 0)
			return -ENOMEM;
		names->first[names->count++] = first;
	}
	return 0;
}

static int spool_compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* A segment without records to take is removed; so is one whose numbers another has, which is not ours. */
static int spool_take_in(struct spool *s, uint64_t first)
{
	char name[SPOOL_NAME_MAX];
	struct spool_segment seg;
	int err = -ENODATA;

	spool_segment_name(first, name);
	if (first >= s->end)
		err = spool_scan_segment(s, name, first, &seg);
	if (err) {
		if (err == -ENODATA || err == -EBADMSG)
			unlinkat(s->dir, name, 0);
		return err == -ENODATA || err == -EBADMSG ? 0 : err;
	}
	s->end = seg.next;
	return spool_add_segment(s, &seg);
}

static int spool_take_in_all(struct spool *s)
{
	struct spool_names names = {0};
	int err = spool_list(s, &names);

	if (names.count)
		qsort(names.first, names.count, sizeof(*names.first), spool_compare);
	for (uint32_t i = 0; i < names.count && !err; i++)
		err = spool_take_in(s, names.first[i]);
	free(names.first);
	s->next = s->count ? MAX(s->next, s->segments[0].first) : s->next;
	s->end = MAX(s->end, s->next);
	return err;
}

static int spool_open_dir(struct spool *s, int place, const char *name, bool create)
{
	if (!*name || *name == '.' || strchr(name, '/'))
		return -EINVAL;
	if (create && mkdirat(place, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	s->dir = openat(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->dir < 0)
		return -errno;
	s->lock = openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->lock < 0)
		return -errno;
	return flock(s->lock, LOCK_EX | LOCK_NB) < 0 ? errno == EWOULDBLOCK ? -EBUSY : -errno : 0;
}

int spool_open(const struct export_spool *place, const char *name, bool create, struct spool **ret)
{
	struct spool *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	*s = (struct spool){.lock = -1, .dir = -1, .position = -1, .reads = -1, .writes = -1,
			   .next = 1, .end = 1};
	memcpy(s->origins, place->origins, sizeof(s->origins));
	err = spool_open_dir(s, place->dir, name, create);
	if (!err)
		err = spool_open_position(s);
	if (!err)
		err = spool_take_in_all(s);
	if (err) {
		spool_close(s);
		return err;
	}
	spool_write_position(s);
	*ret = s;
	return 0;
}

struct spool *spool_close(struct spool *s)
{
	if (!s)
		return NULL;
	closep(&s->lock);
	closep(&s->dir);
	closep(&s->position);
	closep(&s->reads);
	closep(&s->writes);
	free(s->segments);
	free(s);
	return NULL;
}

const struct spool_content *spool_content(const struct spool *s)
{
	return &s->content;
}

/* --- appending --- */

static uint64_t spool_segment_aim(uint64_t max_bytes)
{
	return MIN(MAX(max_bytes / SPOOL_SEGMENTS_AIM, SPOOL_SEGMENT_MIN), SPOOL_SEGMENT_BIG);
}

static int spool_begin_segment(struct spool *s, struct spool_sync *sync)
{
	const struct spool_segment seg = {.first = s->end, .next = s->end};
	char name[SPOOL_NAME_MAX];
	int err;

	if (s->count == SPOOL_SEGMENTS_MAX)
		return -EFBIG;
	closep(&s->writes);
	spool_segment_name(s->end, name);
	s->writes = openat(s->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (s->writes < 0)
		return -errno;
	err = spool_add_segment(s, &seg);
	if (err) {
		close(steal_fd(&s->writes));
		unlinkat(s->dir, name, 0);
		return err;
	}
	s->sync_key++;
	spool_sync_want(sync, s->dir, 0);
	return 0;
}

/* The last segment, which has room for that many bytes more; a record that exceeds the aim has one for itself. */
static int spool_reach_segment(struct spool *s, uint64_t bytes, uint64_t aim, struct spool_sync *sync)
{
	const struct spool_segment *last = s->count ? &s->segments[s->count - 1] : NULL;

	if (s->writes >= 0 && last && (!last->bytes || last->bytes + bytes <= aim))
		return 0;
	return spool_begin_segment(s, sync);
}

/* A part that was written is cut off; where it cannot be, a new segment follows, and the part is a torn record. */
static void spool_undo_append(struct spool *s, const struct spool_segment *seg)
{
	char name[SPOOL_NAME_MAX];

	if (seg->bytes) {
		if (ftruncate(s->writes, (off_t)seg->bytes) < 0)
			close(steal_fd(&s->writes));
		return;
	}
	close(steal_fd(&s->writes));
	spool_segment_name(seg->first, name);
	unlinkat(s->dir, name, 0);
	s->count--;
}

int spool_append(struct spool *s, const struct spool_record *r, const void *data, uint64_t max_bytes,
		 struct spool_sync *sync)
{
	struct spool_record record = *r;
	struct spool_segment *seg;
	struct spool_header h;
	int err = spool_reach_segment(s, spool_bytes_of(r->len), spool_segment_aim(max_bytes), sync);

	if (err)
		return err;
	seg = &s->segments[s->count - 1];
	record.number = s->end;
	spool_header_make(&record, data, s->origins, &h);
	err = file_write_at(s->writes, &h, sizeof(h), seg->bytes);
	if (!err)
		err = file_write_at(s->writes, data, r->len, seg->bytes + sizeof(h));
	if (err) {
		spool_undo_append(s, seg);
		return err;
	}
	if (s->count == 1 && !seg->records)
		s->next = record.number;
	s->end = ++seg->next;
	seg->bytes += spool_bytes_of(r->len);
	seg->records++;
	ledger_counts_add(&seg->samples, &r->samples);
	s->content.bytes += spool_bytes_of(r->len);
	s->content.records++;
	ledger_counts_add(&s->content.samples, &r->samples);
	spool_sync_want(sync, s->writes, s->sync_key);
	return 0;
}

/* --- taking --- */

static int spool_open_oldest(struct spool *s)
{
	char name[SPOOL_NAME_MAX];

	if (s->reads >= 0)
		return 0;
	spool_segment_name(s->segments[0].first, name);
	s->reads = openat(s->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return s->reads < 0 ? -errno : 0;
}

int spool_peek(struct spool *s, struct spool_record *ret)
{
	int err;

	if (!s->count || !s->segments[0].records)
		return 0;
	err = spool_open_oldest(s);
	if (!err)
		err = file_read_at(s->reads, &s->head, sizeof(s->head), s->segments[0].start);
	if (!err)
		err = spool_header_read(&s->head, s->next, s->origins, ret);
	if (err)
		return err;
	ret->maybe |= s->maybe == ret->number;
	return 1;
}

int spool_read(struct spool *s, const struct spool_record *r, void *to)
{
	int err = file_read_at(s->reads, to, r->len, s->segments[0].start + sizeof(s->head));

	return err ? err : spool_body_is(&s->head, to) ? 0 : -EBADMSG;
}

void spool_mark(struct spool *s, bool maybe)
{
	uint64_t is = maybe ? s->next : 0;

	if (s->maybe == is)
		return;
	s->maybe = is;
	spool_write_position(s);
}

/* The position is written first: a segment that stays by a kill in between is removed by the next process. */
static void spool_remove_oldest(struct spool *s)
{
	const struct spool_segment *seg = &s->segments[0];
	char name[SPOOL_NAME_MAX];

	s->next = s->count > 1 ? s->segments[1].first : s->end;
	spool_write_position(s);
	spool_segment_name(seg->first, name);
	unlinkat(s->dir, name, 0);
	s->content.bytes -= seg->bytes;
	closep(&s->reads);
	s->reads = -1;
	if (s->count == 1) {
		closep(&s->writes);
		s->writes = -1;
	}
	s->count--;
	memmove(&s->segments[0], &s->segments[1], s->count * sizeof(s->segments[0]));
}

void spool_drop(struct spool *s)
{
	struct spool_segment *seg = &s->segments[0];
	struct spool_record r;

	/* The header was checked when it was read. */
	if (spool_header_read(&s->head, s->next, s->origins, &r) < 0)
		return;
	ledger_counts_subtract(&seg->samples, &r.samples);
	ledger_counts_subtract(&s->content.samples, &r.samples);
	seg->start += spool_bytes_of(r.len);
	seg->records--;
	s->content.records--;
	s->next++;
	s->maybe = 0;
	if (seg->records)
		spool_write_position(s);
	else
		spool_remove_oldest(s);
}

void spool_drop_damaged(struct spool *s, struct ledger_counts *ret_samples)
{
	struct spool_segment *seg = &s->segments[0];

	*ret_samples = seg->samples;
	ledger_counts_subtract(&s->content.samples, &seg->samples);
	s->content.records -= seg->records;
	s->content.torn++;
	s->maybe = 0;
	spool_remove_oldest(s);
}

// SPDX-License-Identifier: Apache-2.0
#include "export/request.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "export/gzip.h"
#include "export/zstd.h"
#include "otlp/wire.h"

/* Without these the engine could still change or truncate the mapped request. */
#define SEALS_WANTED (F_SEAL_WRITE | F_SEAL_SHRINK)

static int request_map_sealed(int fd, size_t len, void **ret)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	void *data;

	if (seals < 0 || (seals & SEALS_WANTED) != SEALS_WANTED)
		return -EBADMSG;
	if (fstat(fd, &st) < 0 || !len || (uint64_t)st.st_size != len)
		return -EBADMSG;
	data = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	*ret = data;
	return 0;
}

uint64_t request_count_profiles(const void *data, size_t len)
{
	/* ExportProfilesServiceRequest.resource_profiles, .scope_profiles, .profiles */
	static const uint32_t path[] = {1, 2, 2};
	struct wire level[ARRAY_SIZE(path)];
	unsigned int depth = 0;
	uint64_t profiles = 0;
	struct wire_field f;

	level[0] = wire_of(data, len);
	for (;;) {
		int rc = wire_next(&level[depth], &f);

		if (rc < 0 || (!rc && !depth))
			return profiles;
		if (!rc)
			depth--;
		else if (f.number != path[depth] || f.type != WIRE_BYTES)
			continue;
		else if (depth + 1 == ARRAY_SIZE(path))
			profiles++;
		else
			level[++depth] = wire_of(f.data, f.len);
	}
}

int export_request_new(int fd, uint64_t id, const struct ledger_counts *samples, size_t len, struct export_request **ret)
{
	_cleanup_(closep) int owned = fd;
	_cleanup_(freep) struct export_request *r = calloc(1, sizeof(*r));
	struct export_form *plain;
	int rc;

	if (len > EXPORT_REQUEST_MAX)
		return -EFBIG;
	if (!r)
		return -ENOMEM;
	plain = &r->form[EXPORT_CODING_NONE];
	rc = request_map_sealed(owned, len, &plain->data);
	if (rc < 0)
		return rc;
	plain->refs = 1;
	plain->len = len;
	r->id = id;
	r->samples = *samples;
	r->profiles = request_count_profiles(plain->data, len);
	*ret = steal_ptr(&r);
	return 0;
}

/* In the memory in which the form is freed. */
static void *request_make_form(struct export_form *f, size_t len, enum export_coding coding)
{
	void *data = coding != EXPORT_CODING_NONE ?
			     malloc(len) :
			     mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!data || data == MAP_FAILED)
		return NULL;
	*f = (struct export_form){.refs = 1, .len = len, .data = data};
	return data;
}

int request_restore(uint64_t id, uint64_t profiles, const struct ledger_counts *samples, size_t len,
		    enum export_coding coding, struct export_request **ret, void **ret_data)
{
	_cleanup_(freep) struct export_request *r = calloc(1, sizeof(*r));

	if (!r || !(*ret_data = request_make_form(&r->form[coding], len, coding)))
		return -ENOMEM;
	r->id = id;
	r->profiles = profiles;
	r->samples = *samples;
	*ret = steal_ptr(&r);
	return 0;
}

int request_new_copy(const void *data, size_t len, uint64_t id, const struct ledger_counts *samples,
		     struct export_request **ret)
{
	void *pages;
	int r = request_restore(id, request_count_profiles(data, len), samples, len, EXPORT_CODING_NONE, ret,
				&pages);

	if (r == 0)
		memcpy(pages, data, len);
	return r;
}

static int request_make_coded(struct export_form *to, const void *data, size_t len, size_t max,
			      enum export_coding coding)
{
	if (coding == EXPORT_CODING_ZSTD)
		return zstd_compress(data, len, max, &to->data, &to->len);
	return gzip_compress(data, len, max, &to->data, &to->len);
}

int request_compress(struct export_request *r, enum export_coding coding)
{
	const struct export_form *plain = &r->form[EXPORT_CODING_NONE];

	/* A request that would not shrink is sent as it is. */
	return request_has(r, coding) ? 0 :
					request_make_coded(&r->form[coding], plain->data, plain->len, plain->len, coding);
}

int request_recode(struct export_request *r, enum export_coding from, enum export_coding coding)
{
	_cleanup_(buf_done) struct buf plain;
	const struct export_form *f = &r->form[from];
	int rc;

	if (request_has(r, coding))
		return 0;
	buf_init(&plain, EXPORT_REQUEST_MAX);
	rc = from == EXPORT_CODING_ZSTD ? zstd_expand(f->data, f->len, &plain) : gzip_expand(f->data, f->len, &plain);
	return rc < 0 ? rc : request_make_coded(&r->form[coding], plain.data, plain.len, 0, coding);
}

void request_hold(struct export_request *r, enum export_coding coding)
{
	r->form[coding].refs++;
}

static bool request_is_unused(const struct export_request *r)
{
	for (int i = 0; i < EXPORT_CODING_NR; i++)
		if (r->form[i].refs)
			return false;
	return true;
}

static void request_free_form(struct export_form *f, enum export_coding coding)
{
	if (coding != EXPORT_CODING_NONE)
		free(f->data);
	else if (f->data)
		munmap(f->data, f->len);
	f->data = NULL;
}

/* A compressed form that nobody holds yet stays while the creator may pass it on. */
void request_release(struct export_request *r, enum export_coding coding)
{
	r->form[coding].refs--;
	for (int i = 0; i < EXPORT_CODING_NR; i++)
		if (!r->form[i].refs && (i == (int)coding || !r->form[EXPORT_CODING_NONE].refs))
			request_free_form(&r->form[i], (enum export_coding)i);
	if (request_is_unused(r))
		free(r);
}

struct export_request *export_request_put(struct export_request *r)
{
	if (r)
		request_release(r, EXPORT_CODING_NONE);
	return NULL;
}

// SPDX-License-Identifier: Apache-2.0
#include "export/request.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "export/gzip.h"
#include "otlp/wire.h"

/* Without these the engine could still change or truncate the mapped request. */
#define SEALS_WANTED (F_SEAL_WRITE | F_SEAL_SHRINK)

static int request_map_sealed(int fd, size_t len, const void **ret)
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
	int rc;

	if (len > EXPORT_REQUEST_MAX)
		return -EFBIG;
	if (!r)
		return -ENOMEM;
	rc = request_map_sealed(owned, len, &r->data);
	if (rc < 0)
		return rc;
	r->refs = 1;
	r->id = id;
	r->samples = *samples;
	r->len = len;
	r->profiles = request_count_profiles(r->data, len);
	*ret = steal_ptr(&r);
	return 0;
}

/* In the memory in which either form is freed. */
static void *request_make_form(struct export_request *r, size_t len, bool gzip)
{
	void *data = gzip ? malloc(len) :
			    mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!data || data == MAP_FAILED)
		return NULL;
	if (gzip) {
		r->gz = data;
		r->gz_len = len;
		r->gz_refs = 1;
	} else {
		r->data = data;
		r->len = len;
		r->refs = 1;
	}
	return data;
}

int request_restore(uint64_t id, uint64_t profiles, const struct ledger_counts *samples, size_t len, bool gzip,
		    struct export_request **ret, void **ret_data)
{
	_cleanup_(freep) struct export_request *r = calloc(1, sizeof(*r));

	if (!r || !(*ret_data = request_make_form(r, len, gzip)))
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
	int r = request_restore(id, request_count_profiles(data, len), samples, len, false, ret, &pages);

	if (r == 0)
		memcpy(pages, data, len);
	return r;
}

int request_compress(struct export_request *r)
{
	if (r->gz)
		return 0;
	/* A request that would not shrink is sent as it is. */
	return gzip_compress(r->data, r->len, r->len, &r->gz, &r->gz_len);
}

void request_hold(struct export_request *r, bool gzip)
{
	if (gzip)
		r->gz_refs++;
	else
		r->refs++;
}

void request_release(struct export_request *r, bool gzip)
{
	if (gzip)
		r->gz_refs--;
	else
		r->refs--;
	if (!r->refs && r->data) {
		munmap((void *)(uintptr_t)r->data, r->len);
		r->data = NULL;
	}
	if (!r->gz_refs && (gzip || !r->refs)) {
		free(r->gz);
		r->gz = NULL;
	}
	if (!r->refs && !r->gz_refs)
		free(r);
}

struct export_request *export_request_put(struct export_request *r)
{
	if (r)
		request_release(r, false);
	return NULL;
}

// SPDX-License-Identifier: Apache-2.0
#include "export/spool_record.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

static uint32_t spool_crc(const void *data, size_t len)
{
	return (uint32_t)crc32_z(0, data, len);
}

static uint32_t spool_coding_flags(enum export_coding coding)
{
	if (coding == EXPORT_CODING_NONE)
		return 0;
	return coding == EXPORT_CODING_ZSTD ? SPOOL_ZSTD : SPOOL_GZIP;
}

static enum export_coding spool_coding_of(uint32_t flags)
{
	if (flags & SPOOL_ZSTD)
		return EXPORT_CODING_ZSTD;
	return flags & SPOOL_GZIP ? EXPORT_CODING_GZIP : EXPORT_CODING_NONE;
}

static uint32_t spool_header_crc(const struct spool_header *h)
{
	size_t from = offsetof(struct spool_header, body_crc);

	return spool_crc((const char *)h + from, sizeof(*h) - from);
}

void spool_header_make(const struct spool_record *r, const void *data, const uint8_t origins[OTP_ORIGINS_MAX],
		       struct spool_header *ret)
{
	*ret = (struct spool_header){
		.magic = SPOOL_MAGIC,
		.body_crc = spool_crc(data, r->len),
		.body_len = (uint32_t)r->len,
		.number = r->number,
		.id = r->id,
		.unix_ns = r->unix_ns,
		.profiles = r->profiles,
		.flags = spool_coding_flags(r->coding) | (r->maybe ? SPOOL_MAYBE : 0) |
			 (r->tried ? SPOOL_TRIED : 0),
	};
	memcpy(ret->origins, origins, sizeof(ret->origins));
	memcpy(ret->samples, r->samples.of, sizeof(ret->samples));
	ret->header_crc = spool_header_crc(ret);
}

static uint32_t spool_slot_of(uint8_t origin, const uint8_t origins[OTP_ORIGINS_MAX])
{
	for (uint32_t slot = 0; slot < OTP_ORIGINS_MAX; slot++)
		if (origins[slot] == origin && origin != SPOOL_NO_ORIGIN)
			return slot;
	return 0;
}

int spool_header_read(const struct spool_header *h, uint64_t number, const uint8_t origins[OTP_ORIGINS_MAX],
		      struct spool_record *ret)
{
	if (h->magic != SPOOL_MAGIC || h->header_crc != spool_header_crc(h) || h->number != number || !h->body_len ||
	    h->body_len > EXPORT_REQUEST_MAX)
		return -EBADMSG;
	*ret = (struct spool_record){.number = h->number, .id = h->id, .profiles = h->profiles, .unix_ns = h->unix_ns,
				     .len = h->body_len, .coding = spool_coding_of(h->flags), .maybe = h->flags & SPOOL_MAYBE,
				     .tried = h->flags & SPOOL_TRIED};
	for (uint32_t slot = 0; slot < OTP_ORIGINS_MAX; slot++)
		ret->samples.of[spool_slot_of(h->origins[slot], origins)] += h->samples[slot];
	return 0;
}

bool spool_body_is(const struct spool_header *h, const void *data)
{
	return spool_crc(data, h->body_len) == h->body_crc;
}

static uint32_t spool_position_crc(const struct spool_position *p)
{
	size_t from = offsetof(struct spool_position, turn);

	return spool_crc((const char *)p + from, sizeof(*p) - from);
}

void spool_position_make(struct spool_position *p)
{
	p->magic = SPOOL_POSITION_MAGIC;
	p->crc = spool_position_crc(p);
}

bool spool_position_is(const struct spool_position *p)
{
	return p->magic == SPOOL_POSITION_MAGIC && p->crc == spool_position_crc(p);
}

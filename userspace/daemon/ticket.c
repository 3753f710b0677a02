// SPDX-License-Identifier: Apache-2.0
#include "daemon/ticket.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define HMAC_BLOCK 64

void ticket_file_of(const struct stat *st, struct ticket_file *ret)
{
	*ret = (struct ticket_file){.dev = st->st_dev, .ino = st->st_ino, .size = (uint64_t)st->st_size,
				    .mtime_s = st->st_mtim.tv_sec, .mtime_ns = st->st_mtim.tv_nsec,
				    .uid = st->st_uid, .gid = st->st_gid, .mode = st->st_mode};
}

static void ticket_hash(const uint8_t key[TICKET_KEY], uint8_t pad, const void *data, size_t len, uint8_t out[SHA256_LEN])
{
	uint8_t block[HMAC_BLOCK];
	struct sha256 h;

	memset(block, pad, sizeof(block));
	for (size_t i = 0; i < TICKET_KEY; i++)
		block[i] ^= key[i];
	sha256_init(&h);
	sha256_add(&h, block, sizeof(block));
	sha256_add(&h, data, len);
	sha256_end(&h, out);
}

static void ticket_mac(const struct ticket *t, const uint8_t key[TICKET_KEY], uint8_t out[SHA256_LEN])
{
	uint8_t inner[SHA256_LEN];

	ticket_hash(key, 0x36, t, offsetof(struct ticket, mac), inner);
	ticket_hash(key, 0x5c, inner, sizeof(inner), out);
}

void ticket_sign(struct ticket *t, const uint8_t key[TICKET_KEY])
{
	ticket_mac(t, key, t->mac);
}

/* Takes as long for a nearly right signature as for a wrong one. */
bool ticket_is_good(const struct ticket *t, const uint8_t key[TICKET_KEY])
{
	uint8_t right[SHA256_LEN], differs = 0;

	ticket_mac(t, key, right);
	for (size_t i = 0; i < sizeof(right); i++)
		differs |= right[i] ^ t->mac[i];
	return !differs;
}

/* Owner and mode may change. */
int ticket_file_check(const struct ticket_file *shown, int fd)
{
	struct ticket_file now;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	ticket_file_of(&st, &now);
	return S_ISREG(st.st_mode) && !memcmp(&now, shown, offsetof(struct ticket_file, uid)) ? 0 : -ESTALE;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the native frames of an interval lie in: files, and a few things that
 * are none. Holds references, because the mappings that frames point to are valid
 * only while a sample is added. Used within profile/ only.
 */
#ifndef OTP_PROFILE_IMAGES_H
#define OTP_PROFILE_IMAGES_H

#include "base/hash.h"
#include "process/space.h"

/* Those that are no file come first, at fixed places. */
enum image_kind {
	IMAGE_NONE, /* no mapping covers it; address: the pc */
	IMAGE_ANON, /* no file behind it; address: the pc */
	IMAGE_JIT,  /* the same, where its maker names it: no address */
	IMAGE_FILE, /* this and all that follow; address: of the file */
};

struct image {
	struct binary *binary; /* owned; NULL: not to be had */
	struct str *path;      /* owned */
};

struct images {
	struct image *list; /* owned */
	uint32_t count, cap;
	struct map by_file;     /* struct mapped_file -> number; holds references */
	struct map by_identity; /* struct binary, or path -> number */
};

void images_reset(struct images *m); /* drops all; frees the memory too */
/* Number of the file's image, or negative errno. */
int images_find(struct images *m, struct mapped_file *file);
/* The same of another list's image. */
int images_take(struct images *m, const struct image *image);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The images that the native frames of an interval are in: files, and kinds of
 * memory without a file. Holds references, because the mappings that frames
 * point to are valid only while a sample is added. Used within profile/ only.
 */
#ifndef OTP_PROFILE_IMAGES_H
#define OTP_PROFILE_IMAGES_H

#include "base/hash.h"
#include "process/space.h"

/* Images without a file come first, at fixed numbers. */
enum image_kind {
	IMAGE_NONE, /* no mapping covers the address, which is the pc */
	IMAGE_ANON, /* the mapping has no file; the address is the pc */
	IMAGE_JIT,  /* as ANON, of code that names itself: no address */
	IMAGE_FILE, /* this and all that follow; the address is the file's */
};

struct image {
	struct binary *binary; /* owned; NULL: the file could not be opened */
	struct str *path;      /* owned */
};

struct images {
	struct image *list; /* owned */
	uint32_t count, cap;
	struct map by_file;     /* struct mapped_file -> number; holds references */
	struct map by_identity; /* struct binary, or path -> number */
};

void images_reset(struct images *m); /* drops all images and frees the memory */
/* Number of the file's image, or negative errno. */
int images_find(struct images *m, struct mapped_file *file);
/* The same for an image of another list. */
int images_take(struct images *m, const struct image *image);

#endif

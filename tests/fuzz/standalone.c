/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for libFuzzer where clang's runtime is not installed: runs a fuzz
 * target over its seeds, then over mutations of them from a fixed sequence,
 * for the seconds given. Without coverage it finds less, but it fails on the
 * same sanitizer reports and needs only gcc.
 *   fuzz_NAME SECONDS [DIR]
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define INPUT_MAX 65536
#define SEEDS_MAX 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct input {
	size_t len;
	uint8_t *data; /* exactly len bytes, so that an over-read is seen */
};

static uint64_t random_state = 0x9e3779b97f4a7c15u;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static int read_seed(const char *dir, const char *name, struct input *in)
{
	uint8_t *data = malloc(INPUT_MAX);
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "rb");
	if (!f || !data) {
		free(data);
		return -1;
	}
	in->len = fread(data, 1, INPUT_MAX, f);
	in->data = realloc(data, in->len ? in->len : 1);
	fclose(f);
	return 0;
}

static size_t read_seeds(const char *dir, struct input *seeds)
{
	struct dirent *entry;
	size_t n = 0;
	DIR *d = opendir(dir);

	if (!d)
		return 0;
	while (n < SEEDS_MAX && (entry = readdir(d)))
		if (entry->d_name[0] != '.' && read_seed(dir, entry->d_name, &seeds[n]) == 0)
			n++;
	closedir(d);
	return n;
}

/* Flips, overwrites, cuts or repeats a part; every choice from the one sequence. */
static void mutate(const struct input *seed)
{
	size_t len = seed->len, edits = 1 + next_random() % 8, i;
	uint8_t *data;

	if (len && next_random() % 4 == 0)
		len = next_random() % len;
	data = malloc(len ? len : 1);
	if (!data)
		return;
	memcpy(data, seed->data, len);
	for (i = 0; len && i < edits; i++) {
		size_t at = next_random() % len, from = next_random() % len, n = 1 + next_random() % 8;

		switch (next_random() % 4) {
		case 0: data[at] ^= (uint8_t)(1u << next_random() % 8); break;
		case 1: data[at] = (uint8_t)next_random(); break;
		case 2: memset(data + at, next_random() % 2 ? 0xff : 0, n < len - at ? n : len - at); break;
		default: memmove(data + at, data + from, n < len - (at > from ? at : from) ? n : 0);
		}
	}
	LLVMFuzzerTestOneInput(data, len);
	free(data);
}

int main(int argc, char **argv)
{
	static struct input seeds[SEEDS_MAX];
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
	size_t n = argc > 2 ? read_seeds(argv[2], seeds) : 0, i;
	uint64_t runs = 0;

	for (i = 0; i < n; i++, runs++)
		LLVMFuzzerTestOneInput(seeds[i].data, seeds[i].len);
	LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	for (; n && time(NULL) < end; runs++)
		mutate(&seeds[runs % n]);
	printf("runs: %llu\n", (unsigned long long)runs);
	for (i = 0; i < n; i++)
		free(seeds[i].data);
	return 0;
}

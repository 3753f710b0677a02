// SPDX-License-Identifier: Apache-2.0
/*
 * The address index of a file, from the command line:
 *   symbol_index make ELF INDEX [DIRS]  makes it, with the host's debug files; prints what it took
 *   symbol_index find ELF INDEX     reads addresses (hexadecimal, one a line), prints for each
 *                                   its lines: "NAME<TAB>FILE:LINE", innermost first, then an empty one
 *   symbol_index names              reads names as linkers write them, prints each as otprof shows it
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "symbol/index.h"
#include "symbol/index_build.h"
#include "symbol/naming.h"

static int open_path(void *ctx, enum index_root root, const char *path, int *ret_fd)
{
	int fd = root == INDEX_ROOT_HOST ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0)
		return -ENOENT;
	*ret_fd = fd;
	return 0;
}

static void scratch_at(const char *path, char *to, size_t size)
{
	snprintf(to, size, "%s.scratch", path);
}

static int make(const char *elf, const char *index, const char *dirs)
{
	struct index_job job = {.path = elf, .debug_dirs = dirs, .inlines = true, .lines = true,
				.open = open_path};
	struct index_report report = {0};
	struct rusage used;
	char scratch[4096];
	int r;

	scratch_at(index, scratch, sizeof(scratch));
	job.elf_fd = open(elf, O_RDONLY | O_CLOEXEC);
	job.out_fd = open(index, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	job.scratch_fd = open(scratch, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (job.elf_fd < 0 || job.out_fd < 0 || job.scratch_fd < 0) {
		perror(elf);
		return 1;
	}
	unlink(scratch);
	r = index_build(&job, &report);
	getrusage(RUSAGE_SELF, &used);
	printf("result %d flags %u functions %" PRIu64 " symbols %" PRIu64 " lines %" PRIu64 " index_bytes %" PRIu64
	       " scratch_bytes %" PRIu64 " cpu_ms %ld rss_kib %ld\n",
	       r, report.flags, report.functions, report.symbols, report.lines, report.index_bytes, report.scratch_bytes,
	       (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000,
	       used.ru_maxrss);
	return r ? 1 : 0;
}

static void print_found(const struct symbol_result *res)
{
	for (uint32_t i = 0; i < res->count; i++) {
		const struct symbol_line *l = &res->lines[i];

		printf("%s\t%s:%u\n", str_c(l->name), l->file ? str_c(l->file) : "??", l->line);
	}
}

static int find_all(struct index *x)
{
	struct index_options o = {.inlines = true, .lines = true, .show_clones = false};
	struct symbol_result res;
	char line[256];

	while (fgets(line, sizeof(line), stdin)) {
		res.count = 0;
		if (index_find(x, strtoull(line, NULL, 16), &o, &res) == 0)
			print_found(&res);
		symbol_result_done(&res);
		puts("");
	}
	return 0;
}

static int find(const char *elf, const char *index)
{
	struct binary *of, *file;
	struct index *x;
	int r = binary_open(open(elf, O_RDONLY | O_CLOEXEC), elf, &of);

	if (r == 0)
		r = binary_open(open(index, O_RDONLY | O_CLOEXEC), index, &file);
	if (r == 0)
		r = index_open(file, of, &x);
	if (r < 0) {
		fprintf(stderr, "%s: %s\n", index, strerror(-r));
		return 1;
	}
	find_all(x);
	index_free(x);
	binary_put(of);
	return 0;
}

static int print_names(void)
{
	_cleanup_(freep) char *line = NULL;
	size_t size = 0;
	ssize_t len;

	while ((len = getline(&line, &size, stdin)) > 0) {
		struct str *name = NULL;

		line[len - 1] = '\0';
		puts(name_make(line, "", false, &name) < 0 ? line : str_c(name));
		str_put(name);
	}
	return 0;
}

int main(int argc, char **argv)
{
	hash_seed_init();
	if (argc == 2 && !strcmp(argv[1], "names"))
		return print_names();
	if ((argc == 4 || argc == 5) && !strcmp(argv[1], "make"))
		return make(argv[2], argv[3], argc == 5 ? argv[4] : "/usr/lib/debug");
	if (argc == 4 && !strcmp(argv[1], "find"))
		return find(argv[2], argv[3]);
	fprintf(stderr, "usage: symbol_index make|find ELF INDEX, or names\n");
	return 2;
}

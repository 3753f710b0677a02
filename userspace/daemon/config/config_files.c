// SPDX-License-Identifier: Apache-2.0
/*
 * The files that a configuration is read from, and those that it names. A
 * file with a secret must belong to root (or to our user) and be accessible
 * to its owner only: otherwise the secret may already be known.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "daemon/config/config_keys.h"

#define FILES_MAX   256
#define HEADERS_MAX (64u << 10)

static const char *read_error_text(int err)
{
	switch (err) {
	case -EFBIG:
		return "larger than it may be, expected at most 1 MiB";
	case -ENODEV:
		return "no regular file";
	default:
		return strerror(-err);
	}
}

static bool config_file_is_safe(const struct stat *st)
{
	return !(st->st_mode & 077) && (!st->st_uid || st->st_uid == geteuid());
}

/* The main file and its drop-ins. */

static int config_files_add_text(struct config_files *f, const char *path, struct buf *b, const struct stat *st)
{
	struct config_text *more = reallocarray(f->texts, f->n + 1, sizeof(*more));
	char *name = strdup(path), *text = malloc(b->len + 1);

	if (more)
		f->texts = more;
	if (!more || !name || !text) {
		free(name);
		free(text);
		return -ENOMEM;
	}
	if (b->len)
		memcpy(text, b->data, b->len);
	f->texts[f->n++] = (struct config_text){.name = name, .text = text, .len = b->len,
		.open = !config_file_is_safe(st)};
	return 0;
}

static int config_read_file(const char *path, struct config_errors *errors, struct config_files *f)
{
	const struct config_place at = {.name = path};
	_cleanup_(buf_done) struct buf b = {0};
	struct stat st;
	int err = file_load(path, CONFIG_FILE_MAX, &b, &st);

	if (!err)
		return config_files_add_text(f, path, &b, &st);
	config_complain(errors, &at, "cannot be read: %s", read_error_text(err));
	return err;
}

static int config_files_is_drop_in(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return n > 5 && d->d_name[0] != '.' && !strcmp(d->d_name + n - 5, ".conf");
}

/* By bytes, in every locale: 10- before 9-, A before a. */
static int config_files_by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int config_files_read_drop_ins(const char *path, struct config_errors *errors, struct config_files *f)
{
	_cleanup_(freep) char *dir = NULL;
	const struct config_place at = {.name = path};
	struct dirent **names = NULL;
	int n, err = 0;

	if (asprintf(&dir, "%s.d", path) < 0)
		return dir = NULL, -ENOMEM;
	n = scandir(dir, &names, config_files_is_drop_in, config_files_by_name);
	if (n < 0 && errno != ENOENT) {
		err = -errno;
		config_complain(errors, &at, "its directory %.200s cannot be read: %s", dir, strerror(-err));
	} else if (n > FILES_MAX) {
		err = -E2BIG;
		config_complain(errors, &at, "%.200s: too many files, expected at most %u", dir, FILES_MAX);
	}
	for (int i = 0; i < n; i++) {
		_cleanup_(freep) char *file = NULL;

		if (!err && asprintf(&file, "%s/%s", dir, names[i]->d_name) < 0)
			err = -ENOMEM;
		else if (!err)
			err = config_read_file(file, errors, f);
		free(names[i]);
	}
	free(names);
	return err;
}

int config_files_read(const char *path, bool optional, struct config_errors *errors, struct config_files *ret)
{
	int err = optional && access(path, F_OK) < 0 && errno == ENOENT ? 0 : config_read_file(path, errors, ret);

	return err ? err : config_files_read_drop_ins(path, errors, ret);
}

void config_files_done(struct config_files *f)
{
	for (size_t i = 0; i < f->n; i++) {
		explicit_bzero((char *)f->texts[i].text, f->texts[i].len);
		free((char *)f->texts[i].text);
		free((char *)f->texts[i].name);
	}
	free(f->texts);
}

/* Files that exporters name. */

static int config_files_unsafe(const char *title, const struct export_config *e, const char *path,
			       struct config_errors *errors, const struct config_place *at)
{
	config_complain(errors, at, "exporter %s.%s: %.200s is open to others, expected mode 0600 and root as its owner",
			e->name, title, path);
	return -EPERM;
}

static int config_files_add_header_line(struct export_config *e, char *line, unsigned int number,
					struct config_errors *errors)
{
	const struct config_place at = {.name = e->headers_file, .line = number};
	int err;

	line += strspn(line, " \t");
	line[strcspn(line, "\r")] = '\0';
	if (!*line || *line == '#')
		return 0;
	if (!config_is_header(line)) {
		config_complain(errors, &at, "exporter %s: no header, expected one \"Name: value\" a line", e->name);
		return 0;
	}
	if (config_header_is_replaced(e, line))
		return 0;
	err = config_add_header(e, line);
	if (err == -ENOSPC)
		config_complain(errors, &at, "exporter %s: too many headers, expected at most %u", e->name,
				EXPORT_HEADERS_MAX);
	e->nr_headers_file += !err;
	return err;
}

static int config_files_add_headers(struct export_config *e, char *text, struct config_errors *errors)
{
	unsigned int number = 0;
	char *line;
	int err = 0;

	while (!err && (line = strsep(&text, "\n")))
		err = config_files_add_header_line(e, line, ++number, errors);
	return err;
}

static int config_files_read_headers(struct export_config *e, struct config_errors *errors,
				     const struct config_place *at)
{
	_cleanup_(buf_done) struct buf b = {0};
	struct stat st;
	int err = file_load(e->headers_file, HEADERS_MAX, &b, &st);

	if (err) {
		config_complain(errors, at, "exporter %s.headers_file: %.200s cannot be read: %s", e->name, e->headers_file,
				err == -EFBIG ? "larger than 64 KiB" : read_error_text(err));
		return err;
	}
	if (!config_file_is_safe(&st))
		return config_files_unsafe("headers_file", e, e->headers_file, errors, at);
	if (b.len && memchr(b.data, 0, b.len)) {
		config_complain(errors, at, "exporter %s.headers_file: %.200s is no text, expected one \"Name: value\" a line",
				e->name, e->headers_file);
		return -EINVAL;
	}
	err = b.len ? config_files_add_headers(e, (char *)buf_cstr(&b), errors) : 0;
	if (b.len)
		explicit_bzero(b.data, b.len);
	return err;
}

static void config_file_check(const struct export_config *e, const char *title, const char *path, bool secret,
			      struct config_errors *errors, const struct config_place *at)
{
	struct stat st;
	int err = path && (stat(path, &st) < 0 || access(path, R_OK) < 0) ? -errno : 0;

	if (!path)
		return;
	if (!err && !S_ISREG(st.st_mode))
		err = S_ISDIR(st.st_mode) ? -EISDIR : -ENODEV;
	if (err)
		config_complain(errors, at, "exporter %s.%s: %.200s cannot be read: %s", e->name, title, path,
				read_error_text(err));
	else if (secret && !config_file_is_safe(&st))
		config_files_unsafe(title, e, path, errors, at);
}

int config_files_exporter(struct export_config *e, struct config_errors *errors, const struct config_place *at)
{
	config_file_check(e, "tls_ca_file", e->tls_ca, false, errors, at);
	config_file_check(e, "tls_cert_file", e->tls_cert, false, errors, at);
	config_file_check(e, "tls_key_file", e->tls_key, true, errors, at);
	return e->headers_file ? config_files_read_headers(e, errors, at) : 0;
}

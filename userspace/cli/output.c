// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/limits.h"
#include "render/caption.h"
#include "render/render.h"

int output_check(const char *path)
{
	_cleanup_(freep) char *copy = strdup(path);
	struct stat st;

	if (!copy)
		return -ENOMEM;
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	return access(dirname(copy), W_OK | X_OK) < 0 ? -errno : 0;
}

static int output_write_all(int fd, const uint8_t *data, size_t len)
{
	ssize_t n;

	for (; len; data += n, len -= (size_t)n) {
		n = write(fd, data, len);
		if (n < 0 && errno == EINTR)
			n = 0;
		if (n < 0)
			return -errno;
	}
	return 0;
}

/* Beside its final place, so that the rename is one step on one file system. */
static int output_replace(const char *path, const struct buf *b)
{
	_cleanup_(freep) char *tmp = NULL;
	_cleanup_(closep) int fd = -1;
	mode_t mask = umask(0);
	int r;

	umask(mask);
	if (asprintf(&tmp, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = output_write_all(fd, b->data, b->len);
	if (!r && (fchmod(fd, 0666 & ~mask) < 0 || rename(tmp, path) < 0))
		r = -errno;
	if (r < 0)
		unlink(tmp);
	return r;
}

static int output_graph(struct recording *r, const struct render_format *f, const struct output_options *o, struct buf *out)
{
	_cleanup_(graph_freep) struct graph *g = NULL;
	_cleanup_(buf_done) struct buf caption = {0};
	struct picture p = {.title = o->title ? o->title : "CPU flame graph", .inverted = o->inverted};
	struct rec_view v;
	int e = graph_new(&cli_tree_limits, &g);

	recording_view(r, &v);
	if (!e)
		e = graph_add(g, r, &v);
	if (!e)
		e = graph_finish(g);
	if (e < 0)
		return e;
	caption_view(&caption, r, &v, o->subtitle);
	p.graph = g;
	p.caption = buf_cstr(&caption);
	p.unit = caption_unit(r, &v);
	p.period_ns = caption_is_cpu(r, &v) ? v.period : 0;
	return f->graph(&p, out);
}

static int output_render(const char *path, struct recording *r, const struct output_options *o)
{
	const struct render_format *f = render_format_of(path);
	_cleanup_(buf_done) struct buf b = {.max = CLI_OUTPUT_BYTES};
	int e;

	if (!f)
		return -EINVAL;
	e = f->graph ? output_graph(r, f, o, &b) : f->recording(r, CLI_WRITER_BYTES, &b);
	if (!e && b.failed)
		e = -E2BIG;
	return e < 0 ? e : output_replace(path, &b);
}

int output_write(const char *path, struct recording *r, const struct output_options *o)
{
	int e = output_render(path, r, o);

	if (e < 0)
		cli_error("cannot write '%s': %s", path, recording_strerror(e));
	return e;
}

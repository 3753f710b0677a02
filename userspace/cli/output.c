// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/format.h"
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
	r = file_write(fd, b->data, b->len);
	if (!r && (fchmod(fd, 0666 & ~mask) < 0 || rename(tmp, path) < 0))
		r = -errno;
	if (r < 0)
		unlink(tmp);
	return r;
}

/* One call of output_write. */
struct output {
	const struct output_options *o;
	const struct render_format *format;
	struct recording *rec;
	struct rec_views views;
	struct rec_views base; /* of o->base, if there is one */
};

/* x.svg, or x.TYPE.svg for a type that is not the plain one. */
static int output_path(const struct output *out, const struct rec_view *v, bool plain, char **ret)
{
	const char *path = out->o->path;
	int stem = (int)(strlen(path) - strlen(out->format->suffix)), n;

	n = plain ? asprintf(ret, "%s", path) : asprintf(ret, "%.*s.%s%s", stem, path, v->name, out->format->suffix);
	return n < 0 ? -ENOMEM : 0;
}

static void output_title(const struct output *out, const struct rec_view *v, bool plain, struct buf *title)
{
	if (!out->o->title)
		buf_printf(title, "%s flame graph%s", rec_view_is_cpu(out->rec, v) ? "CPU" : v->name,
			   out->o->base ? ": change of share" : "");
	else
		buf_printf(title, "%s%s%s", out->o->title, plain ? "" : ": ", plain ? "" : v->name);
}

/* What a view is compared with; NULL: nothing. */
static const struct rec_view *output_base_of(const struct output *out, const struct rec_view *v)
{
	return out->o->base ? rec_views_same(&out->base, out->o->base, v, out->rec) : NULL;
}

static int output_graph(const struct output *out, const struct rec_view *v, const struct rec_view *base,
			struct graph **ret)
{
	_cleanup_(graph_freep) struct graph *g = NULL;
	int e = graph_new(&cli_tree_limits, &g);

	if (!e)
		e = graph_add(g, out->rec, v);
	if (!e && base)
		e = graph_add_before(g, out->o->base, base);
	if (!e && out->o->filter)
		e = graph_filter(g, out->o->filter);
	if (!e)
		e = graph_finish(g);
	if (!e)
		*ret = steal_ptr(&g);
	return e;
}

static int output_draw(struct output *out, const struct rec_view *v, bool plain, struct buf *to, uint64_t *ret_shown)
{
	_cleanup_(graph_freep) struct graph *g = NULL;
	_cleanup_(buf_done) struct buf caption = {0}, title = {0};
	bool cpu = rec_view_is_cpu(out->rec, v);
	struct picture p = {.inverted = out->o->inverted, .unit = rec_view_unit(out->rec, v)};
	const struct rec_view *base = output_base_of(out, v);
	int e = output_graph(out, v, base, &g);

	if (e < 0)
		return e;
	*ret_shown = g->now.total[0];
	caption_view(&caption, out->rec, v, *ret_shown, cpu ? out->o->subtitle : NULL);
	if (base)
		caption_before(&caption, out->o->base, base, g->before.total[0]);
	output_title(out, v, plain, &title);
	p.graph = g;
	p.title = buf_cstr(&title);
	p.caption = buf_cstr(&caption);
	p.period_ns = cpu && !v->period_mixed ? v->period : 0;
	return out->format->graph(&p, to);
}

static void output_report(const struct output *out, const char *path, const char *figures)
{
	if (!out->o->quiet)
		cli_note("wrote %s: %s%s%s", path, figures, out->o->duration ? " in " : "",
			 out->o->duration ? out->o->duration : "");
}

static int output_finish(const struct output *out, const char *path, struct buf *b, int e, struct buf *figures)
{
	if (!e && b->failed)
		e = -E2BIG;
	if (!e)
		e = output_replace(path, b);
	if (e < 0)
		cli_error("cannot write '%s': %s", path, recording_strerror(e));
	else
		output_report(out, path, buf_cstr(figures));
	return e;
}

static int output_write_view(struct output *out, const struct rec_view *v, bool plain)
{
	_cleanup_(buf_done) struct buf b = {.max = CLI_OUTPUT_BYTES}, figures = {0};
	_cleanup_(freep) char *path = NULL;
	uint64_t shown = 0;
	int e = output_path(out, v, plain, &path);

	if (e < 0)
		return e;
	e = output_draw(out, v, plain, &b, &shown);
	caption_value(&figures, out->rec, v, shown);
	if (!e && out->o->filter && !shown)
		cli_error("warning: no stack is left for %s", path);
	return output_finish(out, path, &b, e, &figures);
}

/* A recording without samples has one view, of no type. */
static bool output_is_plain(const struct output *out, uint32_t view)
{
	if (!out->o->plain || !out->rec->samples.count)
		return !view;
	return strcmp(out->views.list[view].name, out->o->plain) == 0;
}

static int output_write_views(struct output *out)
{
	uint32_t i;
	int e = 0;

	if (out->views.count > CLI_TYPES) {
		cli_error("more than %d types of samples: choose one by --type", CLI_TYPES);
		return -E2BIG;
	}
	for (i = 0; !e && i < out->views.count; i++)
		e = output_write_view(out, &out->views.list[i], output_is_plain(out, i));
	return e;
}

static int output_write_recording(struct output *out)
{
	_cleanup_(buf_done) struct buf b = {.max = CLI_OUTPUT_BYTES}, figures = {0};
	uint32_t n = MIN(out->views.count, (uint32_t)CLI_TYPES), i;
	int e = out->format->recording(out->rec, CLI_WRITER_BYTES, &b);

	for (i = 0; i < n; i++) {
		buf_add_str(&figures, i ? ", " : "");
		caption_value(&figures, out->rec, &out->views.list[i], out->views.list[i].value);
	}
	if (!e && out->o->filter && !out->rec->total)
		cli_error("warning: no stack is left for %s", out->o->path);
	return output_finish(out, out->o->path, &b, e, &figures);
}

static void output_done(struct output *out)
{
	rec_views_done(&out->views);
	rec_views_done(&out->base);
}

static void output_list_types(const struct output *out, struct buf *to)
{
	uint32_t i;

	for (i = 0; i < MIN(out->views.count, (uint32_t)CLI_TYPES); i++)
		buf_printf(to, "%s%s", i ? ", " : "", out->views.list[i].name);
}

/* Views are made anew after a change of the samples, which returned e. */
static int output_look_again(struct output *out, int e)
{
	if (!e) {
		rec_views_done(&out->views);
		e = recording_views(out->rec, &out->views);
	}
	if (e < 0)
		cli_error("%s", recording_strerror(e));
	return e;
}

/* Of all types the one that is wanted. */
static int output_choose_type(struct output *out, const char *name)
{
	const struct rec_view *v = rec_views_find(&out->views, out->rec, name);
	_cleanup_(buf_done) struct buf types = {0};

	if (!v) {
		output_list_types(out, &types);
		cli_error("no samples of type '%s': there are %s", name, buf_cstr(&types));
		return -ENOENT;
	}
	return output_look_again(out, rec_view_keep(v, out->rec));
}

/* A graph is filtered as a tree; what is written as a recording is filtered as one. */
static int output_filter(struct output *out)
{
	if (!out->o->filter || !out->format->recording)
		return 0;
	return output_look_again(out, filter_recording(out->o->filter, out->rec));
}

/* Every type that is written must exist in the base. */
static int output_check_base(struct output *out)
{
	uint32_t i;
	int e = recording_views(out->o->base, &out->base);

	if (e < 0)
		cli_error("%s", recording_strerror(e));
	for (i = 0; !e && i < out->views.count; i++)
		if (!output_base_of(out, &out->views.list[i])) {
			cli_error("nothing to compare with: --base holds no samples of type '%s'",
				  out->views.list[i].name);
			e = -ENOENT;
		}
	return e;
}

int output_write(struct recording *r, const struct output_options *o)
{
	_cleanup_(output_done) struct output out = {.o = o, .rec = r, .format = render_format_of(o->path)};
	int e = out.format ? recording_views(r, &out.views) : -EINVAL;

	if (e < 0)
		cli_error("cannot write '%s': %s", o->path, strerror(-e));
	if (!e && o->type)
		e = output_choose_type(&out, o->type);
	if (!e)
		e = output_filter(&out);
	if (!e && o->base)
		e = output_check_base(&out);
	if (e < 0)
		return e;
	return out.format->graph ? output_write_views(&out) : output_write_recording(&out);
}

// SPDX-License-Identifier: Apache-2.0
#include "profile/names.h"

#include <elf.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "profile/clean.h"

#define NAME_SHORT_MAX 64

static void names_line_done(struct named_line *l)
{
	str_put(l->name);
	str_put(l->file);
}

void names_done(struct names *n)
{
	for (uint32_t i = 0; i < n->nr_lines; i++)
		names_line_done(&n->lines[i]);
	for (uint32_t i = 0; i < n->nr_mappings; i++) {
		str_put(n->mappings[i].filename);
		str_put(n->mappings[i].gnu);
		str_put(n->mappings[i].htlhash);
	}
	map_done(&n->of_module);
	names_free_labels(n);
	share_done(&n->text);
	free(n->of_image);
	free(n->locations);
	free(n->lines);
	free(n->mappings);
	*n = (struct names){0};
}

/* An absolute kernel address never leaves the host, nor a number in a hostile file that looks like one. */
static uint64_t names_public_address(uint64_t address)
{
	return address >> 63 ? 0 : address;
}

/* What is short is bounded by the number of locations, and most names are: they need not be counted. */
static bool names_fits(struct names *n, struct str *s)
{
	return !s || s->len <= NAME_SHORT_MAX || share_take(&n->text, n->user, s);
}

static struct str *names_clean_function(struct names *n, struct str *s)
{
	struct str *c = clean_str(s, NAMES_ONE_MAX);

	if (names_fits(n, c))
		return c;
	str_put(c);
	return clean_str(s, NAME_SHORT_MAX);
}

/* NULL: there is none; it does not fit; or there is no memory. */
static struct str *names_clean_file(struct names *n, struct str *s)
{
	struct str *c = s && s->len ? clean_str(s, NAMES_ONE_MAX) : NULL;

	return names_fits(n, c) ? c : str_put(c);
}

static int names_add_line(struct names *n, const struct symbol_line *l)
{
	struct named_line *to;

	if (array_reserve(&n->lines, n->nr_lines, &n->cap_lines, sizeof(*n->lines)) < 0)
		return -ENOMEM;
	to = &n->lines[n->nr_lines];
	*to = (struct named_line){.line = l->line, .column = l->column, .start_line = l->start_line};
	to->name = names_clean_function(n, l->name);
	if (!to->name)
		return -ENOMEM;
	n->nr_lines++;
	to->file = names_clean_file(n, l->file);
	return 0;
}

static int names_add_text_line(struct names *n, const char *text)
{
	struct symbol_line line = {.name = str_get_c(text)};
	int r = line.name ? names_add_line(n, &line) : -ENOMEM;

	str_put(line.name);
	return r;
}

static struct str *names_hex(const uint8_t *bytes, size_t len)
{
	char text[2 * BINARY_BUILD_ID_MAX + 1];

	for (size_t i = 0; i < MIN(len, (size_t)BINARY_BUILD_ID_MAX); i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return str_get(text, 2 * MIN(len, (size_t)BINARY_BUILD_ID_MAX));
}

/* The range of the file's executable segments, in its own addresses: the same on each host and run. */
static void mapping_set_range(struct named_mapping *m, const struct binary *b)
{
	uint64_t start = UINT64_MAX, limit = 0;

	for (uint32_t i = 0; i < b->nr_segments; i++) {
		const struct binary_segment *s = &b->segments[i];
		uint64_t end;

		if (!(s->flags & PF_X) || __builtin_add_overflow(s->vaddr, s->memsz, &end))
			continue;
		if (s->vaddr < start) {
			start = s->vaddr;
			m->offset = s->offset;
		}
		limit = MAX(limit, end);
	}
	if (start >= limit || names_public_address(limit) == 0) {
		m->offset = 0;
		return;
	}
	m->start = start;
	m->limit = limit;
}

static void mapping_set_identity(struct named_mapping *m, const struct binary *b)
{
	if (b->build_id_len)
		m->gnu = names_hex(b->build_id, b->build_id_len);
	m->htlhash = names_hex(b->htlhash, sizeof(b->htlhash));
}

/* Takes ownership of filename. Index + 1, or negative errno. */
static int names_add_mapping(struct names *n, struct str *filename, const struct binary *b, uint64_t limit)
{
	struct named_mapping *m;

	if (!filename || array_reserve(&n->mappings, n->nr_mappings, &n->cap_mappings, sizeof(*n->mappings)) < 0) {
		str_put(filename);
		return -ENOMEM;
	}
	m = &n->mappings[n->nr_mappings++];
	*m = (struct named_mapping){.filename = filename, .limit = limit};
	if (b)
		mapping_set_identity(m, b);
	if (b && b->is_elf)
		mapping_set_range(m, b);
	return (int)n->nr_mappings;
}

static int names_mapping_of_image(struct names *n, uint64_t image, struct str *filename, const struct binary *b)
{
	uint32_t *known = &n->of_image[image];
	int r;

	if (*known)
		return (int)*known;
	r = names_add_mapping(n, clean_str(filename, NAMES_ONE_MAX), b, 0);
	if (r > 0)
		*known = (uint32_t)r;
	return r;
}

static int names_mapping_of_module(struct names *n, const struct kernel_symbol *sym)
{
	/* The symbols hold each module's name once, so its address identifies the module. */
	uint64_t key = (uint64_t)(uintptr_t)sym->module, *known = map_find(&n->of_module, key);
	struct str *module;
	int r;

	if (known)
		return (int)*known;
	module = str_get_c(sym->module);
	r = module ? names_add_mapping(n, clean_str(module, NAMES_ONE_MAX), NULL, sym->module_size) : -ENOMEM;
	str_put(module);
	if (r > 0 && map_put(&n->of_module, key, (uint64_t)r) < 0)
		return -ENOMEM;
	return r;
}

static int location_set_mapping(struct named_location *l, int mapping)
{
	if (mapping < 0)
		return mapping;
	l->mapping = (uint32_t)mapping;
	return 0;
}

static int name_kernel(struct profile_builder *b, struct names *n, const struct location_key *key,
		       struct named_location *l)
{
	struct kernel_symbol sym = {.name = "[kernel]", .module = "kernel"};
	int r;

	if (b->cfg->kernel && key->address)
		kernel_find(b->cfg->kernel, key->address, &sym);
	l->source = sym.named ? NAME_KALLSYMS : NAME_RAW;
	l->address = names_public_address(sym.offset);
	r = location_set_mapping(l, names_mapping_of_module(n, &sym));
	return r < 0 ? r : names_add_text_line(n, sym.name);
}

static int names_add_result(struct names *n, const struct symbol_result *res)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < res->count; i++)
		r = names_add_line(n, &res->lines[i]);
	return r;
}

/* Resolvers are matched by name, so that a new one works without a number. */
static enum name_source names_source_of(const struct symbol_result *res)
{
	static const char *const names[] = {
#define X(NAME, name, named) [NAME_##NAME] = name,
		NAME_SOURCES(X)
#undef X
	};

	for (unsigned i = 0; res->resolver && i < ARRAY_SIZE(names); i++)
		if (strcmp(res->resolver, names[i]) == 0)
			return (enum name_source)i;
	return res->function_start ? NAME_UNWIND_START : NAME_RAW;
}

/* As Go's tracebacks have it, so that it is no node of the function's own: only the function that has the statement. */
static int names_add_creator(struct names *n, const struct symbol_result *res)
{
	struct symbol_line line = res->lines[0];
	char *text;
	int r;

	if (asprintf(&text, "created by %s", str_c(line.name)) < 0)
		return -ENOMEM;
	line.name = str_get_c(text);
	free(text);
	r = line.name ? names_add_line(n, &line) : -ENOMEM;
	str_put(line.name);
	return r;
}

static int name_file(struct profile_builder *b, struct names *n, const struct location_key *key,
		     struct named_location *l)
{
	const struct image *image = &b->images.list[key->image];
	_cleanup_(symbol_result_done) struct symbol_result res;
	int r;

	res.count = 0;
	symbol_find(b->cfg->symbols, image->binary, str_c(image->path), key->address, &res);
	l->source = names_source_of(&res);
	l->address = names_public_address(key->address);
	r = location_set_mapping(l, names_mapping_of_image(n, key->image, image->path, image->binary));
	if (r == 0 && key->head.is_creator && res.count)
		return names_add_creator(n, &res);
	return r < 0 ? r : names_add_result(n, &res);
}

static int name_anon(struct names *n, const struct location_key *key, struct named_location *l)
{
	struct str *filename = str_get_c("[anon]");
	int r;

	/* One name for all addresses: a name for each would make a node for each. */
	l->address = names_public_address(key->address);
	r = location_set_mapping(l, names_mapping_of_image(n, key->image, filename, NULL));
	str_put(filename);
	return r < 0 ? r : names_add_text_line(n, "[anon]");
}

/* The address of such code differs in each run, so it is left out. */
static int name_code(struct names *n, const struct code_key *key, struct named_location *l)
{
	const struct symbol_line line = {.name = key->function, .file = key->file, .line = key->line,
					 .column = key->column, .start_line = key->start_line};
	struct str *filename;
	int r;

	l->source = (uint8_t)key->head.named_by;
	if (key->head.kind == KIND_JIT) {
		filename = str_get_c("[jit]");
		r = location_set_mapping(l, names_mapping_of_image(n, IMAGE_JIT, filename, NULL));
		str_put(filename);
		if (r < 0)
			return r;
	}
	return names_add_line(n, &line);
}

static int name_native(struct profile_builder *b, struct names *n, const struct location_key *key,
		       struct named_location *l)
{
	if (key->image >= IMAGE_FILE)
		return name_file(b, n, key, l);
	if (key->image == IMAGE_ANON)
		return name_anon(n, key, l);
	l->address = names_public_address(key->address);
	return names_add_text_line(n, "[unknown]");
}

static int name_location(struct profile_builder *b, struct names *n, uint32_t number, struct named_location *l)
{
	const struct location_head *head = builder_location_head(b, number);
	const struct location_key *key = builder_location(b, number);

	l->kind = head->kind;
	l->source = NAME_RAW;
	if (head->is_code)
		return name_code(n, builder_code(b, number), l);
	if (head->kind == KIND_MARKER)
		return names_add_text_line(n, unwind_marker((uint32_t)key->address));
	return head->kind == KIND_KERNEL ? name_kernel(b, n, key, l) : name_native(b, n, key, l);
}

int names_make(struct profile_builder *b, struct names *ret)
{
	_cleanup_(names_done) struct names n = {.text.max = NAMES_ALL_MAX};

	n.locations = calloc(MAX(b->locations.count, 1u), sizeof(*n.locations));
	n.of_image = calloc(MAX(b->images.count, (uint32_t)IMAGE_FILE), sizeof(*n.of_image));
	if (!n.locations || !n.of_image || names_make_labels(&n, b) < 0)
		return -ENOMEM;
	for (; n.nr_locations < b->locations.count; n.nr_locations++) {
		struct named_location *l = &n.locations[n.nr_locations];
		uint32_t first = n.nr_lines;
		int r;

		n.user = b->users[n.nr_locations];
		r = name_location(b, &n, n.nr_locations, l);
		if (r < 0)
			return r;
		l->first = first;
		l->count = (uint16_t)(n.nr_lines - first);
		for (uint32_t i = first; i < n.nr_lines; i++)
			l->text_bytes += n.lines[i].name->len;
	}
	*ret = n;
	n = (struct names){0};
	return 0;
}

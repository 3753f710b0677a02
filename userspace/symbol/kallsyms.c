// SPDX-License-Identifier: Apache-2.0
/*
 * Kernel symbols from the text of /proc/kallsyms, kept small.
 *
 * Reading collects the code symbols in the order of the text; finishing sorts
 * them, keeps one name per address, and merges neighbours of one module into a
 * run, within which a symbol is two 32-bit numbers. A kernel has some 150,000
 * code symbols: 1.2 MB of those and 3 MB of names.
 *
 * The text contains no sizes. A symbol reaches to the next one of its module;
 * the last one before a gap reaches KSYM_TAIL beyond its page at most, so that
 * code loaded since (modules, BPF programs) has no name rather than its
 * neighbour's.
 */
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "symbol/symbol.h"

#define KSYM_CHUNK       65536
#define KSYM_LINE_MAX    1024
#define KSYM_MAX         (2u << 20)
#define KSYM_NAMES_MAX   (128u << 20)
#define KSYM_MODULES_MAX 8192
#define KSYM_PAGE        4096
#define KSYM_TAIL        16384

struct ksym {
	uint32_t offset; /* from the run's base */
	uint32_t name;
};

struct krun {
	uint64_t base, end;
	uint32_t first, count;
	uint32_t module;
};

struct kmodule {
	uint32_t name;
	uint64_t start, end; /* of its code; start of vmlinux: _text */
};

struct kernel_symbols {
	struct buf names;
	struct ksym *syms;
	struct krun *runs;
	struct kmodule *modules;
	uint32_t nr_syms, nr_runs, nr_modules;
	uint64_t unsure;
};

/* A symbol while reading. */
struct kraw {
	uint64_t addr;
	uint32_t name;
	uint16_t module;
	uint8_t penalty; /* lower: the preferred name */
};

struct kload {
	struct kernel_symbols *k;
	struct kraw *raw; /* owned */
	uint32_t count, cap;
	uint32_t module; /* of the last line: lines of a module are adjacent */
	uint64_t text;   /* _text, else _stext */
	bool any_address;
};

static void kload_done(struct kload *l)
{
	free(l->raw);
}

static uint32_t kallsyms_names_add(struct buf *names, const char *s, size_t len)
{
	uint32_t at = (uint32_t)names->len;

	buf_add(names, s, len);
	buf_add(names, "", 1);
	return at;
}

static const char *kallsyms_name_at(const struct kernel_symbols *k, uint32_t at)
{
	return (const char *)k->names.data + at;
}

static int kallsyms_module_add(struct kernel_symbols *k, const char *name, size_t len)
{
	if (k->nr_modules == KSYM_MODULES_MAX)
		return -E2BIG;
	k->modules[k->nr_modules++] =
		(struct kmodule){.name = kallsyms_names_add(&k->names, name, len), .start = UINT64_MAX};
	return k->names.failed ? -ENOMEM : (int)k->nr_modules - 1;
}

static bool kallsyms_module_is(const struct kernel_symbols *k, uint32_t module, const char *name, size_t len)
{
	const char *s = kallsyms_name_at(k, k->modules[module].name);

	return strlen(s) == len && memcmp(s, name, len) == 0;
}

static int kallsyms_module_find(struct kload *l, const char *name, size_t len)
{
	struct kernel_symbols *k = l->k;

	if (kallsyms_module_is(k, l->module, name, len))
		return (int)l->module;
	for (uint32_t i = 0; i < k->nr_modules; i++)
		if (kallsyms_module_is(k, i, name, len))
			return (int)i;
	return kallsyms_module_add(k, name, len);
}

static bool kallsyms_ends_with(const char *s, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && memcmp(s + len - n, end, n) == 0;
}

static uint8_t kallsyms_name_penalty(char type, const char *name, size_t len)
{
	uint8_t penalty = 0;

	while (penalty < 8 && penalty < len && name[penalty] == '_')
		penalty++;
	/* Marks of the linker script share an address with the first function. */
	if (kallsyms_ends_with(name, len, "_start") || kallsyms_ends_with(name, len, "_end") ||
	    kallsyms_ends_with(name, len, "text"))
		penalty += 32;
	if (type == 't')
		penalty += 16;
	return penalty + (type == 'w' || type == 'W' ? 8 : 0);
}

static int kallsyms_raw_add(struct kload *l, const struct kraw *raw)
{
	if (array_reserve(&l->raw, l->count, &l->cap, sizeof(*l->raw)) < 0)
		return -ENOMEM;
	l->raw[l->count++] = *raw;
	return 0;
}

static bool kallsyms_parse_address(const char **p, const char *end, uint64_t *ret)
{
	const char *s = *p;
	uint64_t v = 0;

	for (; s < end && s - *p < 16; s++) {
		int c = *s, digit;

		if (c >= '0' && c <= '9')
			digit = c - '0';
		else if (c >= 'a' && c <= 'f')
			digit = c - 'a' + 10;
		else
			break;
		v = v << 4 | (uint64_t)digit;
	}
	if (s == *p || s == end || *s != ' ')
		return false;
	*p = s + 1;
	*ret = v;
	return true;
}

/* Functions begin after padding that has a symbol of its own and is never executed. */
static bool kallsyms_is_padding(const char *name, size_t len)
{
	return len > 6 && (memcmp(name, "__pfx_", 6) == 0 || memcmp(name, "__cfi_", 6) == 0);
}

static void kallsyms_note_text(struct kload *l, const char *name, size_t len, uint64_t addr)
{
	if (len == 5 && memcmp(name, "_text", 5) == 0)
		l->text = addr;
	else if (!l->text && len == 6 && memcmp(name, "_stext", 6) == 0)
		l->text = addr;
}

/*
 * "ffffffffc0001000 t name\t[module]"; a line of another form is skipped, also
 * one with a NUL, as names are kept as strings.
 */
static int kallsyms_parse_line(struct kload *l, const char *p, const char *end)
{
	const char *name, *name_end, *module = "vmlinux", *module_end;
	struct kraw raw = {0};
	char type;
	int r;

	if (!kallsyms_parse_address(&p, end, &raw.addr) || end - p < 3 || p[1] != ' ' ||
	    memchr(p, '\0', (size_t)(end - p)))
		return 0;
	type = p[0];
	name = p + 2;
	name_end = memchr(name, '\t', (size_t)(end - name));
	module_end = module + strlen(module);
	if (name_end) {
		module = name_end + 2;
		module_end = end - 1;
		if (module >= module_end || name_end[1] != '[' || *module_end != ']')
			return 0;
	} else {
		name_end = end;
	}
	l->any_address |= raw.addr != 0;
	if (!strchr("tTwW", type) || !raw.addr || name == name_end ||
	    kallsyms_is_padding(name, (size_t)(name_end - name)))
		return 0;
	r = kallsyms_module_find(l, module, (size_t)(module_end - module));
	if (r < 0)
		return r;
	if (l->count == KSYM_MAX)
		return -E2BIG;
	l->module = raw.module = (uint16_t)r;
	if (!r)
		kallsyms_note_text(l, name, (size_t)(name_end - name), raw.addr);
	raw.penalty = kallsyms_name_penalty(type, name, (size_t)(name_end - name));
	raw.name = kallsyms_names_add(&l->k->names, name, (size_t)(name_end - name));
	return l->k->names.failed ? -ENOMEM : kallsyms_raw_add(l, &raw);
}

/* Parses whole lines, returns where the rest begins. */
static int kallsyms_parse_lines(struct kload *l, const char *text, size_t len, size_t *ret_used)
{
	const char *p = text, *end = text + len, *nl;
	int r;

	while ((nl = memchr(p, '\n', (size_t)(end - p)))) {
		if (nl - p <= KSYM_LINE_MAX) {
			r = kallsyms_parse_line(l, p, nl);
			if (r < 0)
				return r;
		}
		p = nl + 1;
	}
	*ret_used = (size_t)(p - text);
	return 0;
}

static int kallsyms_read(struct kload *l, int fd)
{
	_cleanup_(freep) char *text = malloc(KSYM_CHUNK);
	size_t have = 0, used;
	off_t at = 0;
	ssize_t n;
	int r;

	if (!text)
		return -ENOMEM;
	for (;;) {
		/* pread: the descriptor is borrowed, and may be read again later. */
		n = pread(fd, text + have, KSYM_CHUNK - have, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return MIN(kallsyms_parse_line(l, text, text + have), 0);
		at += n;
		have += (size_t)n;
		r = kallsyms_parse_lines(l, text, have, &used);
		if (r < 0)
			return r;
		/* A line that fills the whole buffer is skipped. */
		have = have - used == KSYM_CHUNK ? 0 : have - used;
		memmove(text, text + used, have);
	}
}

static int kallsyms_compare(const void *a, const void *b)
{
	const struct kraw *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if (x->penalty != y->penalty)
		return x->penalty < y->penalty ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

/* One name per address; of vmlinux nothing below its text (per-CPU offsets). */
static void kallsyms_keep_best(struct kload *l)
{
	uint32_t to = 0;

	for (uint32_t i = 0; i < l->count; i++) {
		const struct kraw *raw = &l->raw[i];

		if ((to && l->raw[to - 1].addr == raw->addr) || (!raw->module && raw->addr < l->text))
			continue;
		l->raw[to++] = *raw;
	}
	l->count = to;
}

static bool kallsyms_run_fits(const struct krun *run, const struct kraw *raw)
{
	return run->module == raw->module && raw->addr - run->base <= UINT32_MAX;
}

static uint32_t kallsyms_count_runs(const struct kload *l)
{
	struct krun run = {.module = UINT32_MAX};
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->count; i++) {
		if (kallsyms_run_fits(&run, &l->raw[i]))
			continue;
		run = (struct krun){.base = l->raw[i].addr, .module = l->raw[i].module};
		n++;
	}
	return n;
}

static uint64_t kallsyms_tail_end(uint64_t addr, uint64_t next)
{
	uint64_t end;

	if (__builtin_add_overflow(addr | (KSYM_PAGE - 1), (uint64_t)KSYM_TAIL + 1, &end))
		end = UINT64_MAX;
	return MIN(end, next);
}

static void kallsyms_fill_runs(struct kload *l)
{
	struct kernel_symbols *k = l->k;
	struct krun *run = NULL;

	for (uint32_t i = 0; i < l->count; i++) {
		const struct kraw *raw = &l->raw[i];
		uint64_t next = i + 1 < l->count ? raw[1].addr : UINT64_MAX;

		if (!run || !kallsyms_run_fits(run, raw)) {
			run = run ? run + 1 : k->runs;
			*run = (struct krun){.base = raw->addr, .first = i, .module = raw->module};
		}
		run->count++;
		run->end = kallsyms_tail_end(raw->addr, next);
		k->syms[i] = (struct ksym){.offset = (uint32_t)(raw->addr - run->base), .name = raw->name};
	}
}

static void kallsyms_set_modules(struct kload *l)
{
	struct kernel_symbols *k = l->k;

	for (uint32_t i = 0; i < k->nr_runs; i++) {
		struct kmodule *m = &k->modules[k->runs[i].module];

		m->start = MIN(m->start, k->runs[i].base);
		m->end = MAX(m->end, k->runs[i].end);
	}
	if (l->text)
		k->modules[0].start = MIN(k->modules[0].start, l->text);
}

static void kallsyms_shrink(void *slot, size_t size)
{
	void *less = realloc(*(void **)slot, MAX(size, 1));

	if (less)
		*(void **)slot = less;
}

static int kallsyms_finish(struct kload *l)
{
	struct kernel_symbols *k = l->k;

	if (!l->count)
		return l->any_address ? -ENODATA : -EPERM;
	qsort(l->raw, l->count, sizeof(*l->raw), kallsyms_compare);
	kallsyms_keep_best(l);
	k->nr_syms = l->count;
	k->nr_runs = kallsyms_count_runs(l);
	k->syms = calloc(k->nr_syms, sizeof(*k->syms));
	k->runs = calloc(k->nr_runs, sizeof(*k->runs));
	if (!k->syms || !k->runs)
		return -ENOMEM;
	kallsyms_fill_runs(l);
	kallsyms_set_modules(l);
	kallsyms_shrink(&k->modules, k->nr_modules * sizeof(*k->modules));
	kallsyms_shrink(&k->names.data, k->names.len);
	k->names.cap = k->names.len;
	return 0;
}

static void kernel_symbols_freep(struct kernel_symbols **k)
{
	kernel_symbols_free(*k);
}

int kernel_symbols_load(int fd, struct kernel_symbols **ret)
{
	_cleanup_(kernel_symbols_freep) struct kernel_symbols *k = calloc(1, sizeof(*k));
	_cleanup_(kload_done) struct kload load = {.k = k};
	int r;

	if (!k)
		return -ENOMEM;
	buf_init(&k->names, KSYM_NAMES_MAX);
	k->modules = calloc(KSYM_MODULES_MAX, sizeof(*k->modules));
	if (!k->modules)
		return -ENOMEM;
	r = kallsyms_module_add(k, "vmlinux", strlen("vmlinux"));
	if (r >= 0)
		r = kallsyms_read(&load, fd);
	if (r >= 0)
		r = kallsyms_finish(&load);
	if (r < 0)
		return r;
	*ret = steal_ptr(&k);
	return 0;
}

struct kernel_symbols *kernel_symbols_free(struct kernel_symbols *k)
{
	if (k) {
		buf_done(&k->names);
		free(k->syms);
		free(k->runs);
		free(k->modules);
		free(k);
	}
	return NULL;
}

size_t kernel_symbols_bytes(const struct kernel_symbols *k)
{
	return sizeof(*k) + k->names.cap + k->nr_syms * sizeof(*k->syms) +
	       k->nr_runs * sizeof(*k->runs) + k->nr_modules * sizeof(*k->modules);
}

uint64_t kernel_symbols_unsure(const struct kernel_symbols *k)
{
	return k->unsure;
}

/* A statistic: for the caller of kernel_find, nothing changes. */
static void kallsyms_count_unsure(const struct kernel_symbols *k)
{
	((struct kernel_symbols *)(uintptr_t)k)->unsure++;
}

/* The last run that begins at or below addr, if it covers addr. */
static const struct krun *kallsyms_run_find(const struct kernel_symbols *k, uint64_t addr)
{
	uint32_t n = array_count_up_to(k->runs, k->nr_runs, sizeof(*k->runs), offsetof(struct krun, base), addr);

	return n && addr < k->runs[n - 1].end ? &k->runs[n - 1] : NULL;
}

static const struct ksym *kallsyms_sym_find(const struct kernel_symbols *k, const struct krun *run, uint64_t offset)
{
	uint32_t lo = run->first, hi = run->first + run->count;

	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (k->syms[mid].offset <= offset)
			lo = mid;
		else
			hi = mid;
	}
	return &k->syms[lo];
}

void kernel_find(const struct kernel_symbols *k, uint64_t addr, struct kernel_symbol *ret)
{
	const struct krun *run = kallsyms_run_find(k, addr);
	const struct kmodule *m;
	const struct ksym *sym;

	if (!run) {
		kallsyms_count_unsure(k);
		/* Outside of all modules there is no address to be relative to. */
		*ret = (struct kernel_symbol){.name = "[kernel]", .module = "kernel"};
		return;
	}
	m = &k->modules[run->module];
	if (!strcmp(kallsyms_name_at(k, m->name), "bpf"))
		kallsyms_count_unsure(k);
	sym = kallsyms_sym_find(k, run, addr - run->base);
	*ret = (struct kernel_symbol){
		.name = kallsyms_name_at(k, sym->name),
		.module = kallsyms_name_at(k, m->name),
		.offset = addr - m->start,
		.start = run->base + sym->offset - m->start,
		.module_size = m->end - m->start,
		.named = true,
	};
}

// SPDX-License-Identifier: Apache-2.0
#include "symbol/jit.h"

#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "symbol/jitdebug.h"

#define NAME_MAX_   1024
#define LINE_MAX_   (NAME_MAX_ + 64)
#define BLOCK_BYTES 65536
#define LOOK_BACK   16 /* functions that may begin before the address and end before it */
#define LEAD_MAX    64 /* of a line, before the name */
#define TAIL_BYTES  64
#define CACHE_SIZE  256 /* addresses, a power of two */
/* Debug information that is read between two refreshes. Beyond it an address has a name and no place: a program
 * decides how much there is, and how many addresses of it are looked up. */
#define PLACES_BYTES (512u << 10)

#define DUMP_MAGIC	 0x4A695444u
#define DUMP_HEAD_MIN	 40
#define DUMP_CODE_LOAD	 0
#define DUMP_DEBUG_INFO	 2
#define DUMP_CODE_CLOSE	 3
#define DUMP_RECORD_MAX	 (64u << 20)

struct jit_function {
	uint64_t start;
	uint32_t size;
	uint32_t name; /* in the file */
	uint32_t order;
	uint32_t debug; /* its JIT_CODE_DEBUG_INFO record in the file; 0: none */
	uint16_t name_len;
	uint8_t lead; /* bytes of its line before the name */
};

/* The result of a lookup; name NULL: there is none. */
struct cached {
	uint64_t pc;
	struct symbol_line line;
	bool known;
};

struct jit_map {
	int fd;
	enum jit_kind kind;
	uint64_t read; /* bytes read so far */
	uint32_t order;
	uint32_t count, cap;
	struct jit_function *functions; /* by start; owned */
	uint8_t tail[TAIL_BYTES];	/* the last bytes read: if they differ, the file was written anew */
	uint8_t tail_len;
	/* A function's debug information precedes its code. */
	uint64_t debug_start;
	uint32_t debug; /* 0: none */
	struct cached *cache; /* owned; of what was read so far */
	uint32_t places_left; /* of PLACES_BYTES */
};

static int jit_check_head(struct jit_map *m)
{
	uint32_t head[3]; /* magic, version, size of the head */

	if (pread(m->fd, head, sizeof(head), 0) != sizeof(head) || head[0] != DUMP_MAGIC || head[2] < DUMP_HEAD_MIN ||
	    head[2] > 65536)
		return -EBADMSG;
	m->read = head[2];
	return 0;
}

int jit_map_new(int fd, enum jit_kind kind, struct jit_map **ret)
{
	_cleanup_(closep) int own = fd;
	struct jit_map *m;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EIO;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->fd = steal_fd(&own);
	m->kind = kind;
	r = kind == JIT_DUMP ? jit_check_head(m) : 0;
	if (r < 0) {
		jit_map_free(m);
		return r;
	}
	jit_map_refresh(m);
	*ret = m;
	return 0;
}

static void jit_cache_clear(struct jit_map *m)
{
	for (size_t i = 0; m->cache && i < CACHE_SIZE; i++) {
		symbol_line_done(&m->cache[i].line);
		m->cache[i].known = false;
	}
}

struct jit_map *jit_map_free(struct jit_map *m)
{
	if (m) {
		jit_cache_clear(m);
		free(m->cache);
		close(m->fd);
		free(m->functions);
		free(m);
	}
	return NULL;
}

uint32_t jit_map_functions(const struct jit_map *m)
{
	return m->count;
}

static void jit_add(struct jit_map *m, uint64_t start, uint64_t size, uint64_t name, size_t name_len, size_t lead)
{
	uint64_t end;

	if (lead > LEAD_MAX || !size || size > UINT32_MAX || __builtin_add_overflow(start, size, &end) || !name_len ||
	    name > JIT_FILE_MAX || m->count >= JIT_FUNCTIONS_MAX ||
	    array_reserve(&m->functions, m->count, &m->cap, sizeof(*m->functions)) < 0)
		return;
	m->functions[m->count++] = (struct jit_function){.start = start,
							 .size = (uint32_t)size,
							 .name = (uint32_t)name,
							 .order = m->order++,
							 .debug = m->debug_start == start ? m->debug : 0,
							 .lead = (uint8_t)lead,
							 .name_len = (uint16_t)MIN(name_len, (size_t)NAME_MAX_)};
}

/* --- lines of text --- */

static bool jit_parse_hex(const char **p, const char *end, uint64_t *ret)
{
	const char *at = *p;
	uint64_t v = 0;

	if (end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
		at += 2;
	for (; at < end; at++) {
		int c = *at, digit = c >= '0' && c <= '9'   ? c - '0' :
				     c >= 'a' && c <= 'f'   ? c - 'a' + 10 :
				     c >= 'A' && c <= 'F'   ? c - 'A' + 10 :
							      -1;

		if (digit < 0)
			break;
		if (v >> 60)
			return false;
		v = v << 4 | (uint64_t)digit;
	}
	if (at == *p || at == end || *at != ' ')
		return false;
	while (at < end && *at == ' ')
		at++;
	*p = at;
	*ret = v;
	return true;
}

static void jit_parse_line(struct jit_map *m, const char *line, size_t len, uint64_t offset)
{
	const char *p = line, *end = line + len;
	uint64_t start, size;

	if (jit_parse_hex(&p, end, &start) && jit_parse_hex(&p, end, &size))
		jit_add(m, start, size, offset + (uint64_t)(p - line), (size_t)(end - p), (size_t)(p - line));
}

static bool jit_line_is_unchanged(const struct jit_function *f, const char *line)
{
	const char *p = line, *end = line + f->lead;
	uint64_t start, size;

	/* The rest is not read: the lead ends where the name begins. */
	return jit_parse_hex(&p, end, &start) && start == f->start && jit_parse_hex(&p, end, &size) &&
	       size == f->size && p == end;
}

/* Whole lines only; an unfinished line is read again later, a line that is too long is skipped. */
static size_t jit_parse_text(struct jit_map *m, const char *text, size_t len)
{
	size_t at = 0;

	while (at < len) {
		const char *nl = memchr(text + at, '\n', len - at);
		size_t n = nl ? (size_t)(nl - text) - at : len - at;

		if (!nl)
			return n >= LINE_MAX_ && at == 0 ? len : at;
		jit_parse_line(m, text + at, MIN(n, (size_t)LINE_MAX_), m->read + at);
		at += n + 1;
	}
	return at;
}

static bool jit_read_lines(struct jit_map *m, char *block)
{
	ssize_t n = pread(m->fd, block, BLOCK_BYTES, (off_t)m->read);
	size_t used = n > 0 ? jit_parse_text(m, block, (size_t)n) : 0;

	m->read += used;
	return used > 0;
}

/* --- records --- */

struct dump_record {
	uint32_t id, total_size;
	uint64_t time;
};

struct dump_load {
	uint32_t pid, tid;
	uint64_t vma, code_addr, code_size, code_index;
};

struct dump_debug {
	uint64_t code_addr, nr_entries;
};

static void jit_parse_debug(struct jit_map *m)
{
	struct dump_debug debug;

	if (pread(m->fd, &debug, sizeof(debug), (off_t)(m->read + sizeof(struct dump_record))) != sizeof(debug))
		return;
	m->debug_start = debug.code_addr;
	m->debug = (uint32_t)m->read;
}

/* The name ends with a NUL, before the code. */
static void jit_parse_load(struct jit_map *m, uint32_t total)
{
	struct dump_load load;
	char name[NAME_MAX_];
	uint64_t at = m->read + sizeof(struct dump_record), name_at = at + sizeof(load);
	ssize_t n;

	if (total < sizeof(struct dump_record) + sizeof(load) + 2 ||
	    pread(m->fd, &load, sizeof(load), (off_t)at) != sizeof(load))
		return;
	n = pread(m->fd, name, MIN(sizeof(name), m->read + total - name_at), (off_t)name_at);
	if (n > 0)
		jit_add(m, load.code_addr, load.code_size, name_at, strnlen(name, (size_t)n), 0);
	m->debug = 0;
}

static bool jit_read_record(struct jit_map *m, uint64_t size)
{
	struct dump_record r;

	if (size - m->read < sizeof(r) || pread(m->fd, &r, sizeof(r), (off_t)m->read) != sizeof(r))
		return false;
	/* A malformed record ends reading for good; one that is being written is read later. */
	if (r.total_size < sizeof(r) || r.total_size > DUMP_RECORD_MAX || r.total_size > size - m->read)
		return false;
	if (r.id == DUMP_CODE_LOAD)
		jit_parse_load(m, r.total_size);
	if (r.id == DUMP_DEBUG_INFO)
		jit_parse_debug(m);
	m->read += r.total_size;
	return r.id != DUMP_CODE_CLOSE;
}

/* --- both --- */

static int jit_compare_start(const void *pa, const void *pb)
{
	const struct jit_function *a = pa, *b = pb;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* Of two functions at one address the later one counts. */
static void jit_sort(struct jit_map *m)
{
	uint32_t kept = 0;

	if (m->count)
		qsort(m->functions, m->count, sizeof(*m->functions), jit_compare_start);
	for (uint32_t i = 0; i < m->count; i++) {
		if (kept && m->functions[kept - 1].start == m->functions[i].start)
			kept--;
		m->functions[kept++] = m->functions[i];
	}
	m->count = kept;
}

static void jit_keep_tail(struct jit_map *m)
{
	size_t len = MIN(m->read, (uint64_t)TAIL_BYTES);

	m->tail_len = pread(m->fd, m->tail, len, (off_t)(m->read - len)) == (ssize_t)len ? (uint8_t)len : 0;
}

static bool jit_tail_is_unchanged(const struct jit_map *m)
{
	uint8_t now[TAIL_BYTES];

	return pread(m->fd, now, m->tail_len, (off_t)(m->read - m->tail_len)) == m->tail_len &&
	       !memcmp(now, m->tail, m->tail_len);
}

/* A file that is shorter, or has other content, was written anew. */
static bool jit_restart(struct jit_map *m)
{
	m->read = 0;
	m->count = 0;
	m->tail_len = 0;
	m->debug = 0;
	jit_cache_clear(m);
	return m->kind == JIT_PERF_MAP || jit_check_head(m) == 0;
}

bool jit_map_refresh(struct jit_map *m)
{
	_cleanup_(freep) char *block = NULL;
	uint64_t size, end;
	struct stat st;

	m->places_left = PLACES_BYTES;
	if (fstat(m->fd, &st) < 0 || st.st_size < 0)
		return false;
	size = MIN((uint64_t)st.st_size, (uint64_t)JIT_FILE_MAX);
	if ((size < m->read || !jit_tail_is_unchanged(m)) && !jit_restart(m))
		return false;
	end = m->read + JIT_READ_MAX;
	if (size <= m->read || !(block = malloc(BLOCK_BYTES)))
		return false;
	while (m->read < MIN(size, end))
		if (!(m->kind == JIT_DUMP ? jit_read_record(m, size) : jit_read_lines(m, block)))
			break;
	jit_keep_tail(m);
	jit_sort(m);
	jit_cache_clear(m);
	return true;
}

static uint32_t jit_functions_below(const struct jit_map *m, uint64_t pc)
{
	return array_count_up_to(m->functions, m->count, sizeof(*m->functions), offsetof(struct jit_function, start),
				 pc);
}

static struct str *jit_read_name(struct jit_map *m, const struct jit_function *f)
{
	char text[LEAD_MAX + NAME_MAX_ + 1], *name = text + f->lead;
	ssize_t n = pread(m->fd, text, f->lead + (size_t)f->name_len, (off_t)(f->name - f->lead));

	if (n <= f->lead || (m->kind == JIT_PERF_MAP && !jit_line_is_unchanged(f, text)))
		return NULL;
	text[n] = '\0';
	n = (ssize_t)strcspn(name, "\r\n");
	return n ? str_get(name, (size_t)n) : NULL;
}

static const struct jit_function *jit_find_function(const struct jit_map *m, uint64_t pc)
{
	uint32_t i = jit_functions_below(m, pc), stop = i > LOOK_BACK ? i - LOOK_BACK : 0;
	const struct jit_function *best = NULL;

	while (i-- > stop) {
		const struct jit_function *f = &m->functions[i];

		if (pc - f->start < f->size && (!best || f->order > best->order))
			best = f;
	}
	return best;
}

struct debug_record {
	struct dump_record r;
	struct dump_debug debug;
};

/* The length of the entries in a function's record of debug information; 0: there is none, or no longer. */
static uint32_t jit_read_debug_head(const struct jit_map *m, const struct jit_function *f, struct debug_record *ret)
{
	if (!f->debug || pread(m->fd, ret, sizeof(*ret), (off_t)f->debug) != sizeof(*ret) ||
	    ret->r.id != DUMP_DEBUG_INFO || ret->r.total_size < sizeof(*ret) || ret->debug.code_addr != f->start)
		return 0;
	return MIN(ret->r.total_size - (uint32_t)sizeof(*ret), JIT_DEBUG_MAX);
}

/* V8's names of JavaScript begin with a tag: V8 12, src/logging/log.cc. */
static bool jit_is_v8(const struct str *name)
{
	static const char *const tags[] = {"JS:", "Eval:", "Script:", "Function:", "LazyCompile:"};

	for (size_t i = 0; i < ARRAY_SIZE(tags); i++)
		if (!strncmp(str_c(name), tags[i], strlen(tags[i])))
			return true;
	return false;
}

/* False: it was not read, for too much was read lately. */
static bool jit_read_place(struct jit_map *m, const struct jit_function *f, uint64_t pc, struct symbol_line *to)
{
	struct jit_code code = {.start = f->start, .size = f->size, .of_v8 = jit_is_v8(to->name)};
	struct debug_record head;
	struct jit_place place;
	char file[JIT_FILE_NAME_MAX];
	uint32_t len = jit_read_debug_head(m, f, &head);
	_cleanup_(freep) uint8_t *entries = NULL;
	ssize_t n;

	if (!len)
		return true;
	if (len > m->places_left || !(entries = malloc(len)))
		return false;
	m->places_left -= len;
	n = pread(m->fd, entries, len, (off_t)(f->debug + sizeof(head)));
	if (n <= 0 || jit_place_find(entries, (size_t)n, head.debug.nr_entries, &code, pc, &place) < 0)
		return true;
	to->file = str_get(file, utf8_clean(file, sizeof(file), place.file, place.file_len));
	to->line = place.line;
	to->column = place.column;
	return true;
}

/* False: the result lacks a place that a later lookup may find. */
static bool jit_look_up(struct jit_map *m, uint64_t pc, struct symbol_line *ret)
{
	const struct jit_function *f = jit_find_function(m, pc);

	*ret = (struct symbol_line){.name = f ? jit_read_name(m, f) : NULL};
	return !ret->name || jit_read_place(m, f, pc, ret);
}

int jit_map_find(struct jit_map *m, uint64_t pc, struct symbol_line *ret)
{
	struct cached *c;

	if (!m->cache)
		m->cache = calloc(CACHE_SIZE, sizeof(*m->cache));
	if (!m->cache)
		return -ENOMEM;
	c = &m->cache[hash_u64(pc) & (CACHE_SIZE - 1)];
	if (!c->known || c->pc != pc) {
		symbol_line_done(&c->line);
		c->known = jit_look_up(m, pc, &c->line);
		c->pc = pc;
	}
	if (!c->line.name)
		return -ENOENT;
	symbol_line_copy(ret, &c->line);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/capture.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"

#define CAPTURE_BUFFER (1u << 20)
#define SCAN_MAX       (64u << 20)

struct capture {
	int fd;
	bool failed;
	uint32_t files;
	struct buf out;
	struct buf scratch;
	struct map symbols; /* kernel addresses already written */
};

static void capture_write_out(struct capture *c)
{
	int err = c->failed ? 0 : file_write(c->fd, c->out.data, c->out.len);

	if (err) {
		c->failed = true;
		log_warn("the capture ends here: %s", strerror(-err));
	}
	buf_reset(&c->out);
}

/* A record's payload in up to three parts. */
struct part {
	const void *data;
	size_t len;
};

static void capture_put(struct capture *c, uint32_t type, const struct part *parts, size_t n)
{
	static const uint8_t zero[8];
	struct capture_record head = {.type = type};
	size_t len = 0;

	for (size_t i = 0; i < n; i++)
		len += parts[i].len;
	if (c->failed || len > CAPTURE_RECORD_MAX)
		return;
	head.len = (uint32_t)len;
	buf_add(&c->out, &head, sizeof(head));
	for (size_t i = 0; i < n; i++)
		buf_add(&c->out, parts[i].data, parts[i].len);
	buf_add(&c->out, zero, ALIGN_UP(len, 8) - len);
	if (c->out.failed || c->out.len >= CAPTURE_BUFFER)
		capture_write_out(c);
}

#define PUT(c, type, ...)                                                        \
	do {                                                                     \
		const struct part _parts[] = {__VA_ARGS__};                      \
		capture_put(c, type, _parts, ARRAY_SIZE(_parts));                        \
	} while (0)

static void capture_put_vdso(struct capture *c)
{
	const Elf64_Ehdr *head = (const void *)getauxval(AT_SYSINFO_EHDR);

	/* The section table ends the image. */
	if (head)
		PUT(c, CAPTURE_VDSO, {head, head->e_shoff + (size_t)head->e_shnum * head->e_shentsize});
}

/* A reader assumes the CPU clock's slot unless a record says otherwise. */
static void capture_put_origins(struct capture *c, const struct origins *origins)
{
	for (uint32_t i = 0; i < origins->count; i++) {
		const struct origin_slot *s = &origins->slot[i];
		struct capture_origin o = {.slot = i, .origin = s->origin, .sampled = s->sampled, .period = s->period};

		if (i || !s->sampled)
			PUT(c, CAPTURE_ORIGIN, {&o, sizeof(o)});
	}
}

int capture_new(int fd, const struct origins *origins, struct capture **ret)
{
	struct capture_head head = {.magic = CAPTURE_MAGIC, .abi = OTP_ABI_VERSION,
				    .period_ns = origins->slot[0].period, .unix_offset_ns = clock_unix_offset_ns()};
	struct capture *c = calloc(1, sizeof(*c));

	if (!c) {
		close(fd);
		return -ENOMEM;
	}
	c->fd = fd;
	buf_add(&c->out, &head, sizeof(head));
	capture_put_vdso(c);
	capture_put_origins(c, origins);
	*ret = c;
	return 0;
}

struct capture *capture_free(struct capture *c)
{
	if (!c)
		return NULL;
	capture_write_out(c);
	close(c->fd);
	buf_done(&c->out);
	buf_done(&c->scratch);
	map_done(&c->symbols);
	free(c);
	return NULL;
}

void capture_batch(struct capture *c, uint64_t now_ns)
{
	struct capture_batch b = {.now_ns = now_ns};

	PUT(c, CAPTURE_BATCH, {&b, sizeof(b)});
}

void capture_flush(struct capture *c, uint64_t now_ns)
{
	struct capture_batch b = {.now_ns = now_ns};

	PUT(c, CAPTURE_FLUSH, {&b, sizeof(b)});
	capture_write_out(c);
}

void capture_origins(struct capture *c, const struct origins *origins)
{
	struct capture_period p = {.period_ns = origins->slot[0].period};

	PUT(c, CAPTURE_PERIOD, {&p, sizeof(p)});
	capture_put_origins(c, origins);
}

void capture_event(struct capture *c, const void *record, size_t len)
{
	PUT(c, CAPTURE_EVENT, {record, len});
}

/* --- samples --- */

static void capture_put_symbol(struct capture *c, const struct kernel_symbols *kernel, uint64_t addr)
{
	struct capture_symbol out;
	struct kernel_symbol sym;

	kernel_find(kernel, addr, &sym);
	if (!sym.named)
		return;
	out = (struct capture_symbol){.start = addr - sym.offset + sym.start, .module_start = addr - sym.offset,
				      .name_len = (uint32_t)strlen(sym.name) + 1,
				      .module_len = (uint32_t)strlen(sym.module) + 1};
	PUT(c, CAPTURE_SYMBOL, {&out, sizeof(out)}, {sym.name, out.name_len}, {sym.module, out.module_len});
}

static void capture_put_symbols(struct capture *c, const struct sample *s, const struct kernel_symbols *kernel)
{
	if (!kernel)
		return;
	for (uint32_t i = 0; i < s->nr_kernel; i++) {
		if (map_find(&c->symbols, s->kernel[i]) || map_put(&c->symbols, s->kernel[i], 1) < 0)
			continue;
		capture_put_symbol(c, kernel, s->kernel[i]);
		if (i) /* callers are resolved one byte before */
			capture_put_symbol(c, kernel, s->kernel[i] - 1);
	}
}

/* arm64 signs return addresses in the bits above the address. */
static uint64_t capture_bare_address(uint64_t word, const struct sample *s)
{
	return s->head.arch == OTP_ARCH_ARM64 ? word & ((1ULL << 48) - 1) : word;
}

/* Keeps the words that unwinding may follow. Any other may be a secret. */
static uint64_t capture_scrub(uint64_t word, const struct sample *s, const struct space *space)
{
	if (word >= s->stack_addr && word < s->stack_addr + OTP_STACK_LIMIT)
		return word;
	if (s->head.stack_end && word < s->head.stack_end && word >= s->head.stack_end - OTP_STACK_LIMIT)
		return word;
	return space_find(space, capture_bare_address(word, s)) ? word : 0;
}

static uint32_t capture_nr_regs(const struct sample *s)
{
	if (!s->reg)
		return 0;
	return s->head.arch == OTP_ARCH_ARM64 ? OTP_REGS_ARM64 : OTP_REGS_X86_64;
}

static void capture_add_section(struct buf *b, uint16_t type, uint32_t len)
{
	struct otp_section sec = {.type = type, .len = len};

	buf_add(b, &sec, sizeof(sec));
}

static void capture_add_regs(struct buf *b, const struct sample *s, const struct space *space, uint64_t kept)
{
	uint32_t n = capture_nr_regs(s);

	capture_add_section(b, OTP_SEC_REGS, (uint32_t)((n + 1) * sizeof(uint64_t)));
	buf_add(b, &s->valid, sizeof(s->valid));
	for (uint32_t i = 0; i < n; i++) {
		uint64_t v = kept >> i & 1 ? s->reg[i] : capture_scrub(s->reg[i], s, space);

		buf_add(b, &v, sizeof(v));
	}
}

/* The words that were read are put back: to, of whole words, is a copy of bytes without secrets. */
static void capture_put_kept(uint8_t *to, uint64_t addr, const uint8_t *bytes, uint32_t words,
			     const struct capture_kept *kept)
{
	for (uint32_t i = 0; i < kept->nr; i++) {
		uint64_t at = kept->words[i] - addr;

		if (kept->words[i] >= addr && words && at <= 8ULL * (words - 1))
			memcpy(to + at, bytes + at, 8);
	}
}

static void capture_add_stack(struct buf *b, uint16_t type, uint64_t addr, const uint8_t *bytes, uint32_t len,
			      const struct sample *s, const struct space *space, const struct capture_kept *kept)
{
	static const uint8_t zero[8];
	uint32_t words = len / 8;
	size_t from;

	capture_add_section(b, type, (uint32_t)sizeof(struct otp_ustack) + len);
	buf_add(b, &addr, sizeof(addr));
	from = b->len;
	for (uint32_t i = 0; i < words; i++) {
		uint64_t v;

		memcpy(&v, bytes + i * 8, sizeof(v));
		v = capture_scrub(v, s, space);
		buf_add(b, &v, sizeof(v));
	}
	if (!b->failed)
		capture_put_kept(b->data + from, addr, bytes, words, kept);
	if (len % 8)
		buf_add(b, zero, ALIGN_UP(len, 8) - words * 8);
}

#define CHUNK_HEAD_WORDS 8 /* of an object that holds a stack: its own fields, whole pointers or not */

/* Frame records: the address of the next one, and a return address. */
static void capture_add_records(struct buf *b, const uint64_t *block, uint32_t words, const struct sample *s,
				const struct space *space)
{
	buf_add(b, block, sizeof(*block));
	for (uint32_t i = 0; i < words; i++) {
		uint64_t v = i % 2 ? capture_scrub(block[1 + i], s, space) : block[1 + i];

		buf_add(b, &v, sizeof(v));
	}
}

/* A block of a copied stack, behind its address. */
static void capture_add_block(struct buf *b, const uint64_t *block, uint32_t words, const struct sample *s,
			      const struct space *space, const struct capture_kept *kept)
{
	uint32_t whole = *block & OTP_WALK_MISSING(0) ? CHUNK_HEAD_WORDS : 0;
	size_t from;

	buf_add(b, block, sizeof(*block));
	from = b->len;
	for (uint32_t i = 0; i < words; i++) {
		uint64_t v = i < whole ? block[1 + i] : capture_scrub(block[1 + i], s, space);

		buf_add(b, &v, sizeof(v));
	}
	if (!b->failed)
		capture_put_kept(b->data + from, *block & OTP_WALK_ADDRESS, (const uint8_t *)&block[1], words, kept);
}

/* A copied stack: its words as those of the thread's own, and the address before each block. */
static void capture_add_blocks(struct buf *b, const struct otp_walked *w, const struct sample *s,
			       const struct space *space, const struct capture_kept *kept)
{
	const uint64_t *block = sample_walk_words(w) + w->root_words;

	buf_add(b, w, sizeof(*w) + w->root_words * sizeof(*block));
	for (uint32_t i = 0; i < w->frames && w->frame_words; i++, block += w->frame_words)
		if (w->step == OTP_WALK_STACK && *block & OTP_WALK_MISSING(0))
			capture_add_records(b, block, w->frame_words - 1u, s, space);
		else
			capture_add_block(b, block, w->frame_words - 1u, s, space, kept);
}

/*
 * Interpreters' frames stay as they are. Words of a walk are those that its plan names: frames, code objects, counts and
 * flags of the interpreter, by which names are found. No value of the program is among them, but for pointers to such
 * values.
 */
static uint16_t capture_add_walks(struct buf *b, const struct sample *s, const struct space *space,
				  const struct capture_kept *kept)
{
	uint16_t n = 0;

	for (uint32_t i = 0; i < OTP_WALK_PLANS; i++) {
		if (!s->walks[i])
			continue;
		capture_add_section(b, OTP_SEC_WALK, sample_walk_bytes(s->walks[i]));
		if (s->walks[i]->step == OTP_WALK_STACK || s->walks[i]->step == OTP_WALK_CHUNKS)
			capture_add_blocks(b, s->walks[i], s, space, kept);
		else
			buf_add(b, s->walks[i], sample_walk_bytes(s->walks[i]));
		n++;
	}
	return n;
}

/* A section length that the reader checks against 32 bits stays far below: the stack is at most 512 KiB. */
void capture_sample(struct capture *c, const struct sample *s, const struct space *space,
		    const struct kernel_symbols *kernel, const struct capture_kept *kept)
{
	bool value = s->head.origin != OTP_ORIGIN_CPU_CLOCK;
	struct buf *b = &c->scratch;
	struct otp_sample *head;
	uint16_t walks;

	if (c->failed)
		return;
	capture_put_symbols(c, s, kernel);
	buf_reset(b);
	buf_add(b, &s->head, sizeof(s->head));
	if (value) {
		capture_add_section(b, OTP_SEC_VALUE, sizeof(s->value));
		buf_add(b, &s->value, sizeof(s->value));
	}
	if (s->reg)
		capture_add_regs(b, s, space, kept->regs);
	if (s->nr_kernel) {
		capture_add_section(b, OTP_SEC_KSTACK, s->nr_kernel * (uint32_t)sizeof(uint64_t));
		buf_add(b, s->kernel, s->nr_kernel * sizeof(uint64_t));
	}
	walks = capture_add_walks(b, s, space, kept);
	if (s->base)
		capture_add_stack(b, OTP_SEC_UBASE, s->base_addr, s->base, s->base_len, s, space, kept);
	if (s->stack)
		capture_add_stack(b, OTP_SEC_USTACK, s->stack_addr, s->stack, s->stack_len, s, space, kept);
	if (b->failed)
		return;
	head = (struct otp_sample *)b->data;
	head->rec.len = (uint32_t)b->len;
	head->mode &= ~OTP_MODE_CHUNKED;
	head->nr_sections = (uint16_t)(value + !!s->reg + !!s->nr_kernel + walks + !!s->base + !!s->stack);
	head->tls_base = 0;
	PUT(c, CAPTURE_SAMPLE, {b->data, b->len});
}

/* --- the host's answers --- */

static uint32_t capture_put_file(struct capture *c, const char *path, size_t path_len, int fd)
{
	struct capture_file f = {.file = ++c->files, .path_len = (uint32_t)path_len};
	struct stat st;

	if (fstat(fd, &st) == 0) {
		f.dev = st.st_dev;
		f.ino = st.st_ino;
		f.size = (uint64_t)st.st_size;
		f.ctime_ns = (uint64_t)st.st_ctim.tv_sec * NSEC_PER_SEC + (uint64_t)st.st_ctim.tv_nsec;
	}
	PUT(c, CAPTURE_FILE, {&f, sizeof(f)}, {path, path_len});
	return f.file;
}

/* The answer of a scan is a file, whose bytes are recorded. */
static void capture_read_scan(struct capture *c, int fd)
{
	buf_reset(&c->scratch);
	if (file_copy(fd, SCAN_MAX, &c->scratch))
		buf_reset(&c->scratch);
}

void capture_host_answer(void *capture, const struct host_request *req, int err, int fd, const void *data, size_t len)
{
	struct capture *c = capture;
	const char *path = req->path ? req->path : "";
	struct capture_answer a = {.kind = req->kind, .pid = req->pid, .start = req->start, .end = req->end,
				   .err = err, .path_len = (uint32_t)strlen(path)};

	if (req->kind == HOST_SCAN && req->len)
		return; /* a replay scans all processes at once, at its beginning */
	if (req->kind == HOST_OPEN_DECODER)
		return; /* what decoders read is written by itself */
	if (req->kind == HOST_SCAN && fd >= 0) {
		capture_read_scan(c, fd);
		data = c->scratch.data;
		len = c->scratch.len;
	} else if (fd >= 0) {
		a.file = capture_put_file(c, path, a.path_len, fd);
		len = 0; /* a ticket is of no use later */
	}
	a.data_len = (uint32_t)len;
	PUT(c, CAPTURE_ANSWER, {&a, sizeof(a)}, {path, a.path_len}, {data, len});
}

void capture_file_page(void *capture, const struct binary *b, uint64_t offset, const void *data, size_t len)
{
	struct capture_page p = {.dev = b->dev, .ino = b->ino, .offset = offset, .len = (uint32_t)len};

	PUT((struct capture *)capture, CAPTURE_PAGE, {&p, sizeof(p)}, {data, len});
}

void capture_add_read(struct buf *to, uint64_t addr, const void *bytes, uint32_t len)
{
	static const uint8_t zero[8];
	const struct capture_read r = {.addr = addr, .len = len};

	buf_add(to, &r, sizeof(r));
	buf_add(to, bytes, len);
	buf_add(to, zero, ALIGN_UP(len, 8u) - len);
}

void capture_decoded(struct capture *c, const struct decoders_target *t, const struct runtime_frame *frame, int err,
		     uint64_t bias, const void *reads, size_t len)
{
	struct capture_decoded d = {.pid = t->pid, .err = err, .start_ns = t->start_ns, .exec_id = t->exec_id,
				    .dev = t->binary->dev, .ino = t->binary->ino, .bias = bias, .thread = t->thread, .attach = !frame,
				    .reads_len = (uint32_t)len};

	if (frame)
		d.frame = *frame;
	PUT(c, CAPTURE_DECODED, {&d, sizeof(d)}, {reads, len});
}

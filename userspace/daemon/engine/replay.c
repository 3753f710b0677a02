// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/replay.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "daemon/engine/capture.h"
#include "daemon/engine/pipeline.h"
#include "daemon/engine/replay_decoded.h"
#include "process/binary.h"

#define REPLAY_FILE_MAX (4ull << 30)
/* Positions are multiples of 8: the lowest bit marks the position of a struct capture_file. */
#define ANSWER_FILE 1ull
/* The engine's interval between drains while the ring fills. */
#define PACE_DRAIN_NS (50 * NSEC_PER_MSEC)

struct replay_file {
	struct binary_replay as;
	struct map pages; /* offset -> position of the capture_page payload */
	struct replay *replay;
};

struct replay {
	struct host host;
	uint8_t *data; /* the capture, owned */
	size_t len;
	struct capture_head head;
	struct map answers; /* hash of the question -> position of the first answer, or of its file | ANSWER_FILE */
	struct map files;   /* hash of dev, ino -> struct replay_file */
	struct replay_decoded decoded;
	struct buf run;     /* position of each record that a round replays; all others are looked up */
	struct buf kallsyms;
	struct binary *vdso; /* owned; NULL: the capture has none */
	const struct replay_options *options;
	struct replay_result *result;
	struct ledger_engine ledger;
	struct origins origins;
	struct pace {
		uint64_t begin_ns, interval_ns; /* of all, and of the present interval */
		uint64_t samples;		/* that are due by now */
		size_t waiting;			/* of these, in the batch */
	} pace;
};

/* --- reading the capture --- */

struct cursor {
	uint64_t pos;
	struct capture_record rec;
	const uint8_t *payload;
};

static bool replay_next_record(const struct replay *r, struct cursor *c)
{
	if (c->pos > r->len || r->len - c->pos < sizeof(c->rec))
		return false;
	memcpy(&c->rec, r->data + c->pos, sizeof(c->rec));
	if (c->rec.len > r->len - c->pos - sizeof(c->rec))
		return false; /* the file is cut here */
	c->payload = r->data + c->pos + sizeof(c->rec);
	c->pos += sizeof(c->rec) + ALIGN_UP((uint64_t)c->rec.len, 8);
	return true;
}

static int replay_load(struct replay *r, int fd)
{
	struct buf file = {0};
	int err = file_copy(fd, REPLAY_FILE_MAX, &file);

	r->data = file.data;
	r->len = file.len;
	if (err)
		return err;
	if (r->len < sizeof(r->head))
		return -EBADMSG;
	memcpy(&r->head, r->data, sizeof(r->head));
	if (memcmp(r->head.magic, CAPTURE_MAGIC, sizeof(r->head.magic)) != 0 || r->head.abi != OTP_ABI_VERSION ||
	    !r->head.period_ns)
		return -EBADMSG;
	return 0;
}

/* --- indexing the capture --- */

static uint64_t replay_file_key(uint64_t dev, uint64_t ino)
{
	return hash_u64(dev * 31 + ino);
}

static struct replay_file *replay_file_of(struct replay *r, uint64_t dev, uint64_t ino)
{
	struct replay_file *f = map_find_ptr(&r->files, replay_file_key(dev, ino));

	if (f)
		return f;
	f = calloc(1, sizeof(*f));
	if (!f || map_put_ptr(&r->files, replay_file_key(dev, ino), f) < 0) {
		free(f);
		return NULL;
	}
	f->as = (struct binary_replay){.dev = dev, .ino = ino};
	f->replay = r;
	return f;
}

/* Reads page by page, like the cache whose reads were captured. */
static ssize_t replay_read_page(void *ctx, uint64_t offset, void *to, size_t len)
{
	const struct replay_file *f = ctx;
	const uint64_t *pos = map_find(&f->pages, offset);
	struct capture_page page;

	if (!pos)
		return 0;
	memcpy(&page, f->replay->data + *pos, sizeof(page));
	len = MIN(len, (size_t)page.len);
	memcpy(to, f->replay->data + *pos + sizeof(page), len);
	return (ssize_t)len;
}

static int replay_index_page(struct replay *r, const struct cursor *c)
{
	struct capture_page p;
	struct replay_file *f;

	if (c->rec.len < sizeof(p))
		return 0;
	memcpy(&p, c->payload, sizeof(p));
	if (p.len > c->rec.len - sizeof(p))
		return 0;
	f = replay_file_of(r, p.dev, p.ino);
	return f ? map_put(&f->pages, p.offset, (uint64_t)(c->payload - r->data)) : -ENOMEM;
}

static int replay_index_file(struct replay *r, const struct cursor *c)
{
	struct capture_file cf;
	struct replay_file *f;

	if (c->rec.len < sizeof(cf))
		return 0;
	memcpy(&cf, c->payload, sizeof(cf));
	f = replay_file_of(r, cf.dev, cf.ino);
	if (!f)
		return -ENOMEM;
	f->as.size = cf.size;
	f->as.ctime_ns = cf.ctime_ns;
	f->as.read = replay_read_page;
	f->as.ctx = f;
	return 0;
}

static uint64_t replay_question_key(const struct host_request *q, const char *path, size_t path_len)
{
	uint64_t words[4] = {q->kind, q->pid, q->start, q->end};

	/* An index belongs to a file, under any name and in any process. */
	if (q->kind == HOST_OPEN_INDEX) {
		words[1] = 0;
		return hash_bytes(words, sizeof(words), 1);
	}
	if (q->kind != HOST_OPEN_MAPPED)
		words[2] = words[3] = 0;
	return hash_bytes(path, path_len, hash_bytes(words, sizeof(words), 1));
}

/* The same file, requested for any process: in a replay another process may be the first. */
static uint64_t replay_path_key(const char *path, size_t path_len)
{
	return hash_bytes(path, path_len, hash_u64(HOST_OPEN_MAPPED));
}

/* Files are numbered in the capture; an answer's number stands for the last CAPTURE_FILE before it. */
static int replay_index_answer(struct replay *r, const struct cursor *c, uint64_t file_pos)
{
	struct capture_answer a;
	struct host_request q;
	uint64_t key;

	if (c->rec.len < sizeof(a))
		return 0;
	memcpy(&a, c->payload, sizeof(a));
	if (a.path_len > c->rec.len - sizeof(a) || a.data_len > c->rec.len - sizeof(a) - a.path_len || a.err > 0)
		return 0;
	q = (struct host_request){.kind = a.kind, .pid = a.pid, .start = a.start, .end = a.end};
	key = replay_question_key(&q, (const char *)c->payload + sizeof(a), a.path_len);
	if (a.file && !a.err && a.kind == HOST_OPEN_MAPPED)
		map_put(&r->answers, replay_path_key((const char *)c->payload + sizeof(a), a.path_len),
			file_pos | ANSWER_FILE);
	/*
	 * The first answer counts, since a replay asks earlier than the engine did. But an index replaces an earlier
	 * error.
	 */
	if (map_find(&r->answers, key) && !(a.kind == HOST_OPEN_INDEX && a.file))
		return 0;
	return map_put(&r->answers, key, a.file && !a.err ? file_pos | ANSWER_FILE : (uint64_t)(c->payload - r->data));
}

static void replay_index_symbol(struct replay *r, const struct cursor *c)
{
	struct capture_symbol s;
	const char *name, *module;

	if (c->rec.len < sizeof(s))
		return;
	memcpy(&s, c->payload, sizeof(s));
	if (!s.name_len || !s.module_len || (uint64_t)s.name_len + s.module_len > c->rec.len - sizeof(s))
		return;
	name = (const char *)c->payload + sizeof(s);
	module = name + s.name_len;
	if (name[s.name_len - 1] || module[s.module_len - 1] || strpbrk(name, " \t\n") || strpbrk(module, " \t\n"))
		return;
	if (strcmp(module, "vmlinux") == 0)
		buf_printf(&r->kallsyms, "%016llx T _text\n%016llx t %s\n", (unsigned long long)s.module_start,
			   (unsigned long long)s.start, name);
	else
		buf_printf(&r->kallsyms, "%016llx t .start\t[%s]\n%016llx t %s\t[%s]\n",
			   (unsigned long long)s.module_start, module, (unsigned long long)s.start, name, module);
}

static int replay_index_run(struct replay *r, const struct cursor *c)
{
	uint64_t pos = (uint64_t)(c->payload - r->data) - sizeof(c->rec);

	buf_add(&r->run, &pos, sizeof(pos));
	return r->run.failed ? -ENOMEM : 0;
}

static int replay_index_capture(struct replay *r)
{
	struct cursor c = {.pos = sizeof(r->head)};
	uint64_t file_pos = 0;
	int err = 0;

	while (err == 0 && replay_next_record(r, &c)) {
		switch (c.rec.type) {
		case CAPTURE_FILE:
			file_pos = (uint64_t)(c.payload - r->data);
			err = replay_index_file(r, &c);
			break;
		case CAPTURE_PAGE:
			err = replay_index_page(r, &c);
			break;
		case CAPTURE_ANSWER:
			err = replay_index_answer(r, &c, file_pos);
			break;
		case CAPTURE_SYMBOL:
			replay_index_symbol(r, &c);
			break;
		case CAPTURE_DECODED:
			err = replay_decoded_add(&r->decoded, c.payload, c.rec.len);
			break;
		case CAPTURE_VDSO:
			if (!r->vdso)
				binary_open_memory(c.payload, c.rec.len, "[vdso]", &r->vdso);
			break;
		case CAPTURE_EVENT:
		case CAPTURE_SAMPLE:
		case CAPTURE_BATCH:
		case CAPTURE_FLUSH:
		case CAPTURE_PERIOD:
		case CAPTURE_ORIGIN:
			err = replay_index_run(r, &c);
			break;
		default:
			break;
		}
	}
	return err;
}

/* --- the host of a replay --- */

static void replay_answer_file(struct replay *r, uint64_t pos, host_answer_fn *fn, void *ctx)
{
	struct replay_file *f;
	struct capture_file cf;

	memcpy(&cf, r->data + pos, sizeof(cf));
	f = replay_file_of(r, cf.dev, cf.ino);
	if (f && f->as.read)
		fn(ctx, 0, -1, &f->as, sizeof(f->as));
	else
		fn(ctx, -ENOENT, -1, NULL, 0);
}

static void replay_answer_scan(const void *data, size_t len, host_answer_fn *fn, void *ctx)
{
	int fd = memfd_create("scan", MFD_CLOEXEC);

	if (fd >= 0 && file_write(fd, data, len) == 0)
		fn(ctx, 0, fd, NULL, 0);
	else
		fn(ctx, -EIO, fd, NULL, 0);
}

static int replay_ask(struct host *h, const struct host_request *req, host_answer_fn *fn, void *ctx)
{
	struct replay *r = container_of(h, struct replay, host);
	const char *path = req->path ? req->path : "";
	const uint64_t *pos = map_find(&r->answers, replay_question_key(req, path, strlen(path)));
	struct capture_answer a;

	if (req->kind == HOST_OPEN_DECODER) {
		fn(ctx, 0, -1, &r->decoded.as, sizeof(r->decoded.as));
		return 0;
	}
	if (!pos && req->kind == HOST_OPEN_MAPPED)
		pos = map_find(&r->answers, replay_path_key(path, strlen(path)));
	if (!pos) {
		fn(ctx, -ENOENT, -1, NULL, 0);
		return 0;
	}
	if (*pos & ANSWER_FILE) {
		replay_answer_file(r, *pos & ~ANSWER_FILE, fn, ctx);
		return 0;
	}
	memcpy(&a, r->data + *pos, sizeof(a));
	if (a.err)
		fn(ctx, a.err, -1, NULL, 0);
	else if (req->kind == HOST_SCAN)
		replay_answer_scan(r->data + *pos + sizeof(a) + a.path_len, a.data_len, fn, ctx);
	else
		fn(ctx, 0, -1, r->data + *pos + sizeof(a) + a.path_len, a.data_len);
	return 0;
}

static void replay_cancel(struct host *h, void *ctx)
{
	/* Every question is answered within host_ask. */
}

static const struct host_ops replay_ops = {.ask = replay_ask, .cancel = replay_cancel};

/* --- running it --- */

static int replay_on_request(void *ctx, const void *request, size_t len, const struct ledger_counts *samples)
{
	struct replay *r = ctx;

	ledger_counts_move(&r->ledger.held, &r->ledger.handed, samples);
	r->result->requests++;
	r->result->bytes += len;
	return r->options->request ? r->options->request(r->options->ctx, request, len, samples) : 0;
}

static void replay_on_plan(void *ctx, uint32_t pid, const struct otp_plan *plan)
{
	/* The capture's selection is not changed by plans. */
}

static void replay_on_hint(void *ctx, const char comm[OTP_COMM_LEN], const struct otp_hint *h)
{
}

static void replay_end_batch(struct pipeline *p, struct batch *b, uint64_t now)
{
	batch_sort(b);
	pipeline_batch(p, b, now);
	pipeline_turn(p, now);
	pipeline_retry(p, now, true);
	batch_reset(b);
}

/* Right after a flush, where the capture has it. */
static void replay_change_period(struct replay *r, struct pipeline *p, const struct cursor *c)
{
	struct capture_period period;

	if (c->rec.len != sizeof(period))
		return;
	memcpy(&period, c->payload, sizeof(period));
	if (!period.period_ns)
		return;
	r->origins.slot[0].period = period.period_ns;
	pipeline_set_origins(p, &r->origins);
}

static void replay_change_origin(struct replay *r, struct pipeline *p, const struct cursor *c)
{
	struct capture_origin o;

	if (c->rec.len != sizeof(o))
		return;
	memcpy(&o, c->payload, sizeof(o));
	if (o.slot >= OTP_ORIGINS_MAX || !origin_types(o.origin) || !o.period || (o.slot == 0) != (o.origin == OTP_ORIGIN_CPU_CLOCK))
		return;
	r->origins.slot[o.slot] = (struct origin_slot){.origin = (uint8_t)o.origin, .sampled = o.sampled, .period = o.period};
	r->origins.count = MAX(r->origins.count, o.slot + 1);
	pipeline_set_origins(p, &r->origins);
}

/* Like the live engine: a drain after so many samples, a profile at the end of each interval. */
static void replay_pace_batch(struct replay *r, struct pipeline *p, struct batch *b)
{
	struct pace *pace = &r->pace;
	uint64_t now = clock_now_ns(), due;
	struct timespec t;

	pace->waiting = 0;
	due = pace->begin_ns + (uint64_t)((unsigned __int128)pace->samples * NSEC_PER_SEC / r->options->pace_hz);
	if (due > now) {
		t = (struct timespec){.tv_sec = (time_t)((due - now) / NSEC_PER_SEC), .tv_nsec = (long)((due - now) % NSEC_PER_SEC)};
		nanosleep(&t, NULL);
	} else {
		r->result->late_ns = MAX(r->result->late_ns, now - due);
	}
	replay_end_batch(p, b, due);
	if (due - pace->interval_ns < r->options->config->interval_ns)
		return;
	pipeline_flush(p, pace->interval_ns + r->head.unix_offset_ns, due + r->head.unix_offset_ns);
	pipeline_tick(p, due);
	pace->interval_ns = due;
}

static void replay_add_sample(struct replay *r, struct batch *b, const struct cursor *c)
{
	if (c->rec.len < sizeof(struct otp_sample) || ((const struct otp_rec *)c->payload)->len != c->rec.len)
		return;
	batch_add_ring(b, (const struct otp_rec *)c->payload);
	r->result->record_bytes += c->rec.len + OTP_RING_HDR;
	r->pace.samples++;
	r->pace.waiting++;
}

static void replay_run_paced(struct replay *r, struct pipeline *p, struct batch *b)
{
	const size_t drain = (size_t)MAX(r->options->pace_hz * PACE_DRAIN_NS / NSEC_PER_SEC, 1u);
	const uint64_t *pos = (const uint64_t *)r->run.data;
	size_t n = r->run.len / sizeof(*pos);

	r->origins = origins_of_clock(r->head.period_ns);
	r->pace.begin_ns = r->pace.interval_ns = clock_now_ns();
	for (size_t i = 0; n && clock_now_ns() - r->pace.begin_ns < r->options->pace_ns; i = (i + 1) % n) {
		struct cursor c = {.pos = pos[i]};

		if (!replay_next_record(r, &c))
			break;
		if (c.rec.type == CAPTURE_EVENT)
			batch_add_sideband(b, c.payload, c.rec.len);
		else if (c.rec.type == CAPTURE_SAMPLE)
			replay_add_sample(r, b, &c);
		else if (c.rec.type == CAPTURE_ORIGIN)
			replay_change_origin(r, p, &c);
		if (r->pace.waiting >= drain)
			replay_pace_batch(r, p, b);
		else if (i == n - 1 && !r->pace.samples)
			break; /* no record is a sample */
	}
	replay_pace_batch(r, p, b);
	pipeline_flush(p, r->pace.interval_ns + r->head.unix_offset_ns, clock_now_ns() + r->head.unix_offset_ns);
}

static void replay_run_round(struct replay *r, struct pipeline *p, struct batch *b)
{
	const uint64_t *pos = (const uint64_t *)r->run.data;
	uint64_t now = 0, start = 0;
	struct capture_batch at;

	r->origins = origins_of_clock(r->head.period_ns);
	pipeline_set_origins(p, &r->origins);
	for (size_t i = 0; i < r->run.len / sizeof(*pos); i++) {
		struct cursor c = {.pos = pos[i]};

		if (!replay_next_record(r, &c))
			break;
		if (c.rec.type == CAPTURE_EVENT) {
			batch_add_sideband(b, c.payload, c.rec.len);
		} else if (c.rec.type == CAPTURE_SAMPLE && c.rec.len >= sizeof(struct otp_sample)) {
			if (((const struct otp_rec *)c.payload)->len == c.rec.len)
				batch_add_ring(b, (const struct otp_rec *)c.payload);
		} else if ((c.rec.type == CAPTURE_BATCH || c.rec.type == CAPTURE_FLUSH) && c.rec.len == sizeof(at)) {
			memcpy(&at, c.payload, sizeof(at));
			replay_end_batch(p, b, now);
			now = at.now_ns;
			start = start ? start : now;
			if (c.rec.type == CAPTURE_FLUSH) {
				pipeline_flush(p, start + r->head.unix_offset_ns, now + r->head.unix_offset_ns);
				pipeline_tick(p, now);
				start = now;
			}
		} else if (c.rec.type == CAPTURE_PERIOD) {
			replay_change_period(r, p, &c);
		} else if (c.rec.type == CAPTURE_ORIGIN) {
			replay_change_origin(r, p, &c);
		}
	}
	replay_end_batch(p, b, now);
	pipeline_flush(p, start + r->head.unix_offset_ns, MAX(now, start + 1) + r->head.unix_offset_ns);
	pipeline_tick(p, now);
}

static int replay_load_kernel(struct replay *r, struct pipeline *p)
{
	struct kernel_symbols *k = NULL;
	int fd = memfd_create("kallsyms", MFD_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = file_write(fd, r->kallsyms.data, r->kallsyms.len);
	if (err == 0 && r->kallsyms.len && lseek(fd, 0, SEEK_SET) == 0 && kernel_symbols_load(fd, &k) == 0)
		pipeline_kernel(p, k);
	close(fd);
	return err;
}

static int replay_run_all(struct replay *r)
{
	static const struct pipeline_ops ops = {.request = replay_on_request, .plan = replay_on_plan,
						.hint = replay_on_hint};
	struct pipeline_config cfg = {.config = r->options->config, .host = &r->host, .origins = origins_of_clock(r->head.period_ns),
				      .ledger = &r->ledger, .vdso = r->vdso, .ops = &ops, .ctx = r};
	const struct decoders_config decoding = {.host = &r->host, .epoll = -1};
	struct pipeline *p = NULL;
	struct batch b = {0};
	uint64_t before, rounds = MAX(r->options->rounds, 1u);
	int err = decoders_new(&decoding, &cfg.decoders);

	if (err == 0)
		err = pipeline_new(&cfg, &p);
	if (err == 0)
		err = replay_load_kernel(r, p);
	if (err == 0)
		err = pipeline_scan(p);
	if (err == 0 && r->options->pace_hz) {
		replay_run_paced(r, p, &b);
		r->result->samples = ledger_counts_total(&r->ledger.read);
		rounds = 0;
	}
	for (uint64_t i = 0; err == 0 && i < rounds; i++) {
		before = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
		replay_run_round(r, p, &b);
		before = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - before;
		if (i == 0) {
			r->result->cold_ns = before;
			r->result->samples = ledger_counts_total(&r->ledger.read);
		} else {
			r->result->warm_ns = r->result->warm_ns ? MIN(r->result->warm_ns, before) : before;
		}
	}
	batch_done(&b);
	pipeline_free(p);
	decoders_free(cfg.decoders);
	r->result->ledger = r->ledger;
	return err;
}

static void replay_done(struct replay *r)
{
	map_for_each(&r->files, s) {
		struct replay_file *f = (void *)(uintptr_t)s->value;

		map_done(&f->pages);
		free(f);
	}
	map_done(&r->files);
	map_done(&r->answers);
	replay_decoded_done(&r->decoded);
	buf_done(&r->run);
	buf_done(&r->kallsyms);
	binary_put(r->vdso);
	free(r->data);
}

int replay_run(int fd, const struct replay_options *o, struct replay_result *ret)
{
	struct replay r = {.host.ops = &replay_ops, .options = o, .result = ret};
	int err;

	*ret = (struct replay_result){0};
	replay_decoded_init(&r.decoded);
	err = replay_load(&r, fd);
	if (err == 0)
		err = replay_index_capture(&r);
	if (err == 0)
		err = replay_run_all(&r);
	replay_done(&r);
	return err;
}

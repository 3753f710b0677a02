// SPDX-License-Identifier: Apache-2.0
#include "source/perf_sample.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "base/cleanup.h"

#if defined(__x86_64__)
/* Linux, arch/x86/include/uapi/asm/perf_regs.h: ax bx cx dx si di bp sp ip, then 16.. for r8 to r15. */
#define ARCH	   OTP_ARCH_X86_64
#define REGS	   OTP_REGS_X86_64
#define REG_SP	   7
#define REG_PC	   16
#define VALID	   ((1ULL << OTP_REGS_X86_64) - 1)
#define VALID_32   0x100ffULL
/* rbx, rbp, r12 to r15: registers that a system call does not change. */
#define UNTOUCHED  0xf048ULL
static const uint8_t perf_bit[REGS] = {0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8};
#elif defined(__aarch64__)
/* Linux, arch/arm64/include/uapi/asm/perf_regs.h: x0 to x29, lr, sp, pc. */
#define ARCH	   OTP_ARCH_ARM64
#define REGS	   OTP_REGS_ARM64
#define REG_SP	   31
#define REG_PC	   32
#define VALID	   ((1ULL << OTP_REGS_ARM64) - 1)
#define VALID_32   0x100007fffULL
#define UNTOUCHED  0
static const uint8_t perf_bit[REGS] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
				       17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32};
#else
#error "no registers for this architecture"
#endif

uint64_t perf_sample_regs(void)
{
	uint64_t mask = 0;

	for (int i = 0; i < REGS; i++)
		mask |= 1ULL << perf_bit[i];
	return mask;
}

/* The fields of a sample, read one after the other, in words of 64 bits. */
struct fields {
	const uint64_t *at;
	size_t left;
};

static bool sample_read(struct fields *f, uint64_t *ret)
{
	if (!f->left)
		return false;
	*ret = *f->at++;
	f->left--;
	return true;
}

static bool sample_read_many(struct fields *f, uint64_t nr, const uint64_t **ret)
{
	if (nr > f->left)
		return false;
	*ret = f->at;
	f->at += nr;
	f->left -= nr;
	return true;
}

static bool sample_read_pair(struct fields *f, uint32_t *low, uint32_t *high)
{
	uint64_t both;

	if (!sample_read(f, &both))
		return false;
	*low = (uint32_t)both;
	*high = (uint32_t)(both >> 32);
	return true;
}

/* A context mark precedes the kernel's addresses; user addresses were not requested. */
static bool sample_read_callchain(struct fields *f, struct perf_sample *s)
{
	const uint64_t *ips;
	uint64_t nr, used = 0;

	if (!sample_read(f, &nr) || !sample_read_many(f, nr, &ips))
		return false;
	if (!nr || ips[0] != (uint64_t)PERF_CONTEXT_KERNEL)
		return true;
	for (ips++, nr--; used < nr && ips[used] < (uint64_t)PERF_CONTEXT_MAX; used++)
		;
	s->kstack = ips;
	s->nr_kstack = (uint32_t)MIN(used, (uint64_t)OTP_KSTACK_MAX);
	return true;
}

static void sample_hide_unknown(struct perf_sample *s)
{
	for (int i = 0; i < REGS; i++) {
		if (s->kernel && UNTOUCHED >> i & 1 && s->reg[i] == UINT64_MAX)
			s->valid &= ~(1ULL << i);
		if (!(s->valid >> i & 1))
			s->reg[i] = 0;
	}
}

/* perf writes them in the order of its bits. */
static bool sample_read_regs(struct fields *f, struct perf_sample *s)
{
	uint64_t abi, mask = perf_sample_regs();
	const uint64_t *regs;

	if (!sample_read(f, &abi))
		return false;
	if (abi == PERF_SAMPLE_REGS_ABI_NONE)
		return true;
	if (abi > PERF_SAMPLE_REGS_ABI_64 || !sample_read_many(f, REGS, &regs))
		return false;
	for (int i = 0; i < REGS; i++)
		s->reg[i] = regs[__builtin_popcountll(mask & ((1ULL << perf_bit[i]) - 1))];
	s->compat = abi == PERF_SAMPLE_REGS_ABI_32;
	s->valid = s->compat ? VALID_32 : VALID;
	sample_hide_unknown(s);
	return true;
}

/* Stack addresses are multiples of 8, even if the stack pointer is not at the moment. */
static void sample_place_stack(struct perf_sample *s, const uint8_t *bytes, uint64_t len)
{
	uint64_t sp = s->reg[REG_SP], skip = -sp & 7;

	if (!s->valid || len <= skip)
		return;
	s->stack_addr = sp + skip;
	s->stack = bytes + skip;
	s->stack_len = (uint32_t)(len - skip) & ~7U;
}

static bool sample_read_stack(struct fields *f, struct perf_sample *s)
{
	const uint64_t *bytes;
	uint64_t size, copied = 0;

	if (!sample_read(f, &size))
		return false;
	if (!size)
		return true;
	if (size % 8 || !sample_read_many(f, size / 8, &bytes) || !sample_read(f, &copied) || copied > size)
		return false;
	s->stack_whole = copied == size;
	sample_place_stack(s, (const uint8_t *)bytes, copied);
	return true;
}

static bool sample_read_all(struct fields *f, const struct perf_format *format, struct perf_sample *s)
{
	uint32_t reserved;

	return sample_read_pair(f, &s->pid, &s->tid) && sample_read(f, &s->time_ns) &&
	       sample_read_pair(f, &s->cpu, &reserved) && (!format->period || sample_read(f, &s->value)) &&
	       (!format->callchain || sample_read_callchain(f, s)) && sample_read_regs(f, s) &&
	       sample_read_stack(f, s) && (!format->cgroup || sample_read(f, &s->cgroup_id));
}

int perf_sample_decode(const void *record, size_t len, const struct perf_format *format, struct perf_sample *ret)
{
	const struct perf_event_header *h = record;
	struct perf_sample s = {.value = 1};
	struct fields f;

	if (len < sizeof(*h) || len % 8 || h->size != len || h->type != PERF_RECORD_SAMPLE)
		return -EBADMSG;
	s.kernel = (h->misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_USER;
	f = (struct fields){.at = (const uint64_t *)record + 1, .left = len / 8 - 1};
	if (!sample_read_all(&f, format, &s))
		return -EBADMSG;
	*ret = s;
	return 0;
}

/* --- the record --- */

size_t perf_sample_bound(const struct perf_sample *s)
{
	return sizeof(struct otp_sample) + 4 * sizeof(struct otp_section) + sizeof(struct otp_value) +
	       sizeof(struct otp_regs) + REGS * sizeof(uint64_t) + sizeof(struct otp_ustack) + s->nr_kstack * sizeof(uint64_t) +
	       MIN(s->stack_len, OTP_HEAD_STACK);
}

static void *sample_add_section(struct otp_sample *head, uint16_t type, uint32_t len)
{
	struct otp_section *to = (void *)((uint8_t *)head + head->rec.len);

	*to = (struct otp_section){.type = type, .len = len};
	head->nr_sections++;
	head->rec.len += (uint32_t)sizeof(*to) + len;
	return to + 1;
}

static void sample_put_regs(struct otp_sample *head, const struct perf_sample *s)
{
	struct otp_regs *to = sample_add_section(head, OTP_SEC_REGS, sizeof(*to) + REGS * sizeof(uint64_t));

	to->valid = s->valid;
	memcpy(to->reg, s->reg, REGS * sizeof(uint64_t));
}

static void sample_put_value(struct otp_sample *head, const struct perf_sample *s)
{
	struct otp_value *to = sample_add_section(head, OTP_SEC_VALUE, sizeof(*to));

	to->value = s->value;
}

static void sample_put_kstack(struct otp_sample *head, const struct perf_sample *s)
{
	size_t len = s->nr_kstack * sizeof(uint64_t);
	void *to = sample_add_section(head, OTP_SEC_KSTACK, (uint32_t)len);

	if (len)
		memcpy(to, s->kstack, len);
}

/*
 * SHORT: memory ended; THROTTLE: a limit of ours did, the size that the event
 * copies or the bound on bytes.
 */
static void sample_put_ustack(struct otp_sample *head, const struct perf_sample *s, const struct perf_subject *who)
{
	uint32_t want = MIN(MIN(who->stack_bytes, who->stack_take), OTP_HEAD_STACK), len = MIN(ALIGN_UP(want, 8u), s->stack_len);
	struct otp_ustack *to = sample_add_section(head, OTP_SEC_USTACK, (uint32_t)sizeof(*to) + len);

	to->addr = s->stack_addr;
	if (len)
		memcpy(to + 1, s->stack, len);
	if (len < want && !s->stack_whole)
		head->mode |= OTP_MODE_SHORT;
	else if (len < who->stack_bytes)
		head->mode |= OTP_MODE_THROTTLE;
}

static void sample_put_head(struct otp_sample *head, const struct perf_sample *s, const struct perf_subject *who,
			    uint64_t seq)
{
	*head = (struct otp_sample){
		.rec = {.type = OTP_REC_SAMPLE, .len = sizeof(*head)},
		.time_ns = s->time_ns,
		.seq = seq,
		.cpu = s->cpu,
		.pid = s->pid,
		.tid = s->tid,
		.plan_gen = who->plan_gen,
		.start_ns = who->start_ns,
		.exec_id = who->exec_id,
		.cgroup_id = s->cgroup_id ? s->cgroup_id : who->cgroup_id,
		.mode = who->mode | (s->kernel ? OTP_MODE_KERNEL : 0) | (s->compat ? OTP_MODE_COMPAT : 0),
		.stack_bytes = who->stack_bytes,
		.ppid = who->ppid,
		.arch = ARCH,
		.origin = who->origin,
	};
	memcpy(head->comm, who->comm, sizeof(head->comm));
}

uint32_t perf_sample_write(void *to, const struct perf_sample *s, const struct perf_subject *who, uint64_t seq)
{
	struct otp_sample *head = to;

	sample_put_head(head, s, who, seq);
	/* The kernel reports none where a thread has no user side, for whatever reason. */
	if (!s->valid && !(head->mode & (OTP_MODE_KTHREAD | OTP_MODE_EXITING)))
		head->mode |= OTP_MODE_NO_USER;
	if (s->valid)
		sample_put_regs(head, s);
	if (who->origin != OTP_ORIGIN_CPU_CLOCK)
		sample_put_value(head, s);
	if (s->kernel)
		sample_put_kstack(head, s);
	if (s->valid)
		sample_put_ustack(head, s, who);
	return head->rec.len;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Hand-written code by its names. The blobs of StubRoutines hold hundreds of stubs, each with a descriptor in a list
 * (OpenJDK, stubCodeGenerator.hpp, StubCodeDesc: next, group, name, in 8 an index, begin, end). The list is found by its
 * symbol in libjvm's static table; without that table such code has the name of its blob.
 *
 * One stub is never called: the return barrier of virtual threads, to which a frame returns whose callers still lie in the
 * heap (Continuation, continuationFreezeThaw.cpp). The return address is its first byte, which a caller's pc less one is
 * before: so the stub's region has that byte too.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/hotspot.h"

#define STUBS_MAX 4096

enum { NEXT, GROUP, NAME, BEGIN_OR_INDEX, BEGIN_OR_END, END_OF_8, STUB_WORDS };

struct stub { uint64_t begin, end, next; char name[64]; };

/* One within the blob, with its name; -ENOENT: of another one. */
static int hotspot_stub_read(const struct hotspot *h, struct memory *m, uint64_t at, const struct runtime_code *blob,
			     struct stub *ret)
{
	uint32_t begin = h->version < 9 ? BEGIN_OR_END : BEGIN_OR_INDEX;
	uint64_t word[STUB_WORDS];

	if (memory_read(m, at, word, sizeof(word)))
		return -EFAULT;
	*ret = (struct stub){.begin = word[begin], .end = word[begin + 1], .next = word[NEXT]};
	if (ret->begin < blob->start || ret->end > blob->end || ret->end <= ret->begin)
		return -ENOENT;
	return memory_string(m, word[NAME], ret->name, sizeof(ret->name));
}

/* "Cont thaw return barrier" in 21, then "cont_returnBarrier"; the one of exceptions is reached by a jump. */
static bool hotspot_stub_is_barrier(const char *name)
{
	return !strcmp(name, "Cont thaw return barrier") ||
	       (!strncmp(name, "cont_returnBarrier", 18) && strncmp(name + 18, "Exc", 3) != 0);
}

/*
 * The region c, which holds pc, becomes the stub, or what is left of it on pc's side of the stub. The barrier's first byte is
 * taken from its neighbour. Returns whether nothing can narrow it further.
 */
static bool hotspot_stub_narrow(const struct stub *s, uint64_t pc, const struct runtime_code *blob, struct runtime_code *c)
{
	bool barrier = hotspot_stub_is_barrier(s->name);
	uint64_t begin = s->begin - (barrier && s->begin > blob->start);

	if (pc < begin) {
		c->end = MIN(c->end, begin);
		return false;
	}
	if (pc >= s->end) {
		c->start = MAX(c->start, s->end);
		return false;
	}
	c->start = barrier ? begin : MAX(c->start, begin);
	c->end = barrier ? s->end : MIN(c->end, s->end);
	snprintf(c->name, sizeof(c->name), "[stub: %s]", s->name);
	if (!barrier)
		return false;
	c->kind = HOTSPOT_BARRIER;
	snprintf(c->name, sizeof(c->name), "[virtual thread: its callers are in the heap]");
	return true;
}

bool hotspot_stub(const struct hotspot *h, struct memory *m, uint64_t pc, struct runtime_code *c)
{
	const struct runtime_code blob = {.start = c->start, .end = c->end};
	bool found = false;
	struct stub s;
	uint64_t at;

	if (!h->stubs || memory_u64(m, h->stubs, &at))
		return false;
	for (int i = 0; i < STUBS_MAX && at; i++, at = s.next) {
		int err = hotspot_stub_read(h, m, at, &blob, &s);

		if (err && err != -ENOENT)
			break;
		found |= !err && pc >= s.begin && pc < s.end;
		if (!err && hotspot_stub_narrow(&s, pc, &blob, c))
			break;
	}
	return found;
}

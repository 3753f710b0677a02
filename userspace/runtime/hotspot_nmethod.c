// SPDX-License-Identifier: Apache-2.0
/*
 * A compiled method: which bytecode of which method each of its instructions
 * belongs to, as far as the compiler wrote it down: at calls and safepoints.
 * Descriptors (PcDesc) point into a stream of scopes, and a scope has its method,
 * its bytecode and the scope that it was inlined into (OpenJDK, pcDesc.hpp,
 * scopeDesc.cpp).
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/hotspot.h"
#include "runtime/hotspot_flow.h"

#define PCS_MAX	    RUNTIME_CODE_ROWS
#define METHODS_MAX RUNTIME_CODE_FUNCTIONS
#define INLINED_MAX RUNTIME_CODE_DEPTH

struct pc_desc { int32_t pc_offset, scope, object, flags; };

struct scope { uint32_t sender, method; int32_t bci; };

/* Nodes by their place in the stream of scopes: neighbours share them. */
struct scope_memo { uint32_t offset, node; };
#define MEMO 512

struct nmethod {
	const struct hotspot *h;
	struct memory *memory;
	uint64_t at, scopes, pcs, pcs_end, metadata;
	struct hotspot_numbers numbers;
	struct runtime_code_made *made;
	uint32_t nr_methods;
	struct { uint32_t index, function; struct hotspot_method method; } methods[METHODS_MAX];
	struct scope_memo memo[MEMO];
	struct pc_desc pc[PCS_MAX];
	bool more_pcs; /* than there is room for */
	struct flow_mark marks[PCS_MAX];
	uint32_t loop; /* the node of the method's only loop, where nothing is inlined; RUNTIME_NO_NODE: not known */
	struct hotspot_flow flow;
	struct hotspot_pushed pushed;
};

/* --- where its parts are --- */

static int nmethod_offset(struct nmethod *n, uint16_t field, uint64_t base, uint64_t *ret)
{
	uint32_t offset;

	if (field == HOTSPOT_NONE || memory_u32(n->memory, n->at + field, &offset))
		return -EFAULT;
	*ret = base + offset;
	return 0;
}

/* Since 23, what does not change lies outside of the heap of code. */
static int nmethod_find_immutable(struct nmethod *n)
{
	uint64_t base;

	if (memory_u64(n->memory, n->at + n->h->nmethod_immutable, &base) ||
	    nmethod_offset(n, n->h->nmethod_scopes, base, &n->scopes) || nmethod_offset(n, n->h->nmethod_pcs, base, &n->pcs))
		return -EFAULT;
	n->pcs_end = n->scopes;
	return 0;
}

static int nmethod_find_scopes(struct nmethod *n)
{
	const struct hotspot *h = n->h;

	if (h->nmethod_immutable != HOTSPOT_NONE)
		return nmethod_find_immutable(n);
	if (nmethod_offset(n, h->nmethod_pcs, n->at, &n->pcs) ||
	    nmethod_offset(n, h->nmethod_dependencies, n->at, &n->pcs_end))
		return -EFAULT;
	if (h->compiled_scopes != HOTSPOT_NONE)
		return memory_u64(n->memory, n->at + h->compiled_scopes, &n->scopes);
	return nmethod_offset(n, h->nmethod_scopes, n->at, &n->scopes);
}

/* The array of methods and classes: since 25 behind the relocations; before, at an offset of the blob or of its data. */
static int nmethod_find_metadata(struct nmethod *n)
{
	const struct hotspot *h = n->h;
	uint32_t offset = 0, data = 0;
	uint64_t base = n->at;

	if (h->blob_mutable != HOTSPOT_NONE) {
		if (memory_u64(n->memory, n->at + h->blob_mutable, &base) || h->blob_relocation_size == HOTSPOT_NONE ||
		    memory_u32(n->memory, n->at + h->blob_relocation_size, &offset))
			return -EFAULT;
		n->metadata = base + ALIGN_UP(offset, 8u);
		return 0;
	}
	if (h->nmethod_metadata == HOTSPOT_NONE || memory_u32(n->memory, n->at + h->nmethod_metadata, &offset))
		return -EFAULT;
	if (h->version >= HOTSPOT_SHORT_FIELDS) {
		if (h->blob_data_offset == HOTSPOT_NONE || memory_u32(n->memory, n->at + h->blob_data_offset, &data))
			return -EFAULT;
		offset &= UINT16_MAX;
	}
	n->metadata = base + data + offset;
	return 0;
}

/* --- methods --- */

static int nmethod_add_method(struct nmethod *n, uint32_t index, uint64_t address)
{
	struct hotspot_method *method = &n->methods[n->nr_methods].method;
	struct runtime_frame f = {.key = address};
	int err = hotspot_method_read(n->h, n->memory, address, method);

	if (err)
		return err;
	/* Where a class was unloaded, another one's methods may lie: they are those of this very code. */
	f.cookie[0] = method->cache;
	f.cookie[1] = n->made->code.identity[1];
	f.cookie[2] = n->at;
	err = runtime_code_add_function(n->made, &f);
	if (err < 0)
		return err;
	n->methods[n->nr_methods].index = index;
	n->methods[n->nr_methods].function = (uint32_t)err;
	return (int)n->nr_methods++;
}

/* By its index in the metadata, which counts from 1; its place in methods. */
static int nmethod_method(struct nmethod *n, uint32_t index)
{
	uint64_t address;

	if (!index)
		return -EBADMSG;
	for (uint32_t i = 0; i < n->nr_methods; i++)
		if (n->methods[i].index == index)
			return (int)i;
	if (n->nr_methods == METHODS_MAX)
		return -E2BIG;
	if (memory_u64(n->memory, n->metadata + 8ULL * (index - 1), &address))
		return -EFAULT;
	return nmethod_add_method(n, index, address);
}

static int nmethod_add_node(struct nmethod *n, int method, int32_t bci, uint32_t outer)
{
	return runtime_code_add_node(n->made, n->methods[method].function, outer,
				     hotspot_position(&n->methods[method].method, bci));
}

/* --- scopes --- */

static int nmethod_scope(struct nmethod *n, uint32_t offset, struct scope *ret)
{
	uint32_t bci;
	int err;

	hotspot_numbers_at(&n->numbers, n->memory, n->h->version, n->scopes + offset);
	err = hotspot_unsigned(&n->numbers, &ret->sender);
	if (!err)
		err = hotspot_unsigned(&n->numbers, &ret->method);
	if (!err)
		err = hotspot_unsigned(&n->numbers, &bci);
	if (!err)
		ret->bci = (int32_t)bci - 1;
	return err;
}

static struct scope_memo *nmethod_memo(struct nmethod *n, uint32_t offset)
{
	return &n->memo[offset % MEMO];
}

/* From the innermost scope out; then nodes are added from the outermost in. */
static int nmethod_node(struct nmethod *n, uint32_t offset)
{
	struct scope scopes[INLINED_MAX];
	uint32_t at[INLINED_MAX], nr = 0, outer = 0;

	for (; offset; offset = scopes[nr++].sender) {
		const struct scope_memo *memo = nmethod_memo(n, offset);
		int err = nr == INLINED_MAX ? -E2BIG : 0;

		if (memo->offset == offset) {
			outer = memo->node + 1;
			break;
		}
		if (!err)
			err = nmethod_scope(n, offset, &scopes[nr]);
		if (err)
			return err;
		at[nr] = offset;
	}
	while (nr--) {
		int method = nmethod_method(n, scopes[nr].method);
		int node = method < 0 ? method : nmethod_add_node(n, method, scopes[nr].bci, outer);

		if (node < 0)
			return node;
		*nmethod_memo(n, at[nr]) = (struct scope_memo){at[nr], (uint32_t)node};
		outer = (uint32_t)node + 1;
	}
	return (int)outer - 1;
}

/* --- rows --- */

/* At a descriptor without a scope it is the method itself. */
static uint32_t nmethod_node_of(struct nmethod *n, int32_t scope, uint32_t root)
{
	const int node = scope ? nmethod_node(n, (uint32_t)scope) : (int)root;

	return node < 0 ? RUNTIME_NO_NODE : (uint32_t)node;
}

/* What is known at the descriptors: their nodes, none where one was refused. */
static uint32_t nmethod_marks(struct nmethod *n, uint32_t nr, uint32_t root)
{
	uint64_t size = n->made->code.end - n->made->code.start, least = n->made->code.word[HOTSPOT_MADE];
	uint32_t nr_marks = 0;

	for (uint32_t i = 0; i < nr; i++) {
		const struct pc_desc *d = &n->pc[i];

		if (d->pc_offset < 0 || (uint64_t)d->pc_offset < least || (uint64_t)d->pc_offset >= size)
			continue;
		least = (uint64_t)d->pc_offset + 1;
		n->marks[nr_marks++] = (struct flow_mark){(uint32_t)d->pc_offset, nmethod_node_of(n, d->scope, root)};
	}
	return nr_marks;
}

/* How deep a node lies, and the node of a depth around it; the method itself is at 0. */
static uint32_t nmethod_depth(const struct nmethod *n, uint32_t node)
{
	uint32_t depth = 0;

	for (; n->made->nodes[node].outer; node = n->made->nodes[node].outer - 1u)
		depth++;
	return depth;
}

static uint32_t nmethod_around(const struct nmethod *n, uint32_t node, uint32_t depth)
{
	for (uint32_t at = nmethod_depth(n, node); at > depth; at--)
		node = n->made->nodes[node].outer - 1u;
	return node;
}

/*
 * Of two nodes, the first one or what is around it: the innermost function that both are in. Behind different calls in one
 * function, equal functions are not the same frame.
 */
static uint32_t nmethod_common(struct nmethod *n, uint32_t a, uint32_t b)
{
	const struct runtime_code_node *nodes = n->made->nodes;
	uint32_t depth_a, depth_b, depth, common;

	if (a == RUNTIME_NO_NODE || b == RUNTIME_NO_NODE)
		return RUNTIME_NO_NODE;
	depth_a = nmethod_depth(n, a);
	depth_b = nmethod_depth(n, b);
	depth = MIN(depth_a, depth_b);
	hotspot_flow_charge(&n->flow, 2 * (depth_a + depth_b) + 1);
	a = common = nmethod_around(n, a, depth);
	b = nmethod_around(n, b, depth);
	for (; a != b && nodes[a].outer; a = nodes[a].outer - 1u, b = nodes[b].outer - 1u)
		common = nodes[a].function == nodes[b].function ? a : nodes[a].outer - 1u;
	return a == b ? common : a;
}

/* What all marks that were found are in. */
static uint32_t nmethod_in_all(struct nmethod *n, const struct flow_found *found, uint32_t node)
{
	for (uint32_t i = 0; i < found->nr; i++)
		node = nmethod_common(n, node, n->marks[found->mark[i]].node);
	return found->open && node != RUNTIME_NO_NODE ? nmethod_around(n, node, 0) : node;
}

/* Whether one of them is neither in the function of a node, nor around it. */
static bool nmethod_has_stranger(struct nmethod *n, const struct flow_found *found, uint32_t node)
{
	for (uint32_t i = 0; i < found->nr; i++) {
		uint32_t other = n->marks[found->mark[i]].node, common = nmethod_common(n, node, other);

		if (common == RUNTIME_NO_NODE)
			return true;
		common = nmethod_depth(n, common);
		if (common < nmethod_depth(n, node) && common < nmethod_depth(n, other))
			return true;
	}
	return false;
}

/* Of a loop without polls only its method is known, and where that has one loop, that it is this one. */
static void nmethod_find_loop(struct nmethod *n)
{
	const struct hotspot_method *method = &n->methods[0].method;
	int32_t bci;
	int node;

	n->loop = RUNTIME_NO_NODE;
	if (n->made->code.nr_functions != 1 || !hotspot_loop(n->h, n->memory, method, &bci))
		return;
	node = nmethod_add_node(n, 0, bci, 0);
	if (node >= 0)
		n->loop = (uint32_t)node;
}

/*
 * Instructions between marks are of what all marks are in that may be next. Where control came by a stranger of that, or
 * goes round without any mark, the marks behind count too: then it may be neither's, unless nothing parts it from the next
 * mark. A loop that no mark is in has no line of theirs.
 */
static uint32_t nmethod_between(struct nmethod *n, uint32_t block, uint32_t root)
{
	bool straight = hotspot_flow_straight(&n->flow, block) != FLOW_NONE;
	struct flow_found ahead, behind;
	uint32_t node;

	hotspot_flow_ahead(&n->flow, block, &ahead);
	if (ahead.cycles && n->loop != RUNTIME_NO_NODE)
		return n->loop;
	hotspot_flow_behind(&n->flow, block, &behind);
	if ((!ahead.nr && !behind.nr) || (ahead.cycles && (ahead.open || behind.open)))
		return root;
	node = nmethod_in_all(n, &ahead, n->marks[ahead.nr ? ahead.mark[0] : behind.mark[0]].node);
	if (ahead.cycles || (!straight && nmethod_has_stranger(n, &behind, node)))
		node = nmethod_in_all(n, &behind, node);
	return node;
}

static int nmethod_add_row(struct nmethod *n, uint32_t offset, uint32_t node)
{
	const struct runtime_code *c = &n->made->code;

	if (c->nr_rows && n->made->rows[c->nr_rows - 1].node == node)
		return 0;
	if (c->nr_rows + 1 >= RUNTIME_CODE_ROWS)
		return -E2BIG;
	return runtime_code_add_row(n->made, offset, node);
}

/* Of code that is too large for its flow to be known: what lies at marks. */
static int nmethod_mark_rows(struct nmethod *n, uint32_t nr_marks, uint32_t from, uint32_t root)
{
	int err = 0;

	for (uint32_t i = 0; i < nr_marks && !err; i++) {
		const struct flow_mark *k = &n->marks[i];

		if (k->offset < from)
			continue;
		err = nmethod_add_row(n, from, root);
		if (!err)
			err = nmethod_add_row(n, k->offset > from ? k->offset - 1 : from, k->node);
		from = k->offset + 1;
	}
	return err ? err : nmethod_add_row(n, from, root);
}

static int nmethod_block_rows(struct nmethod *n, uint32_t root)
{
	int err = 0;

	for (uint32_t i = 0; i < n->flow.nr_blocks && !err; i++) {
		const struct flow_block *b = &n->flow.block[i];

		err = nmethod_add_row(n, b->begin, b->mark != FLOW_NONE ? n->marks[b->mark].node : nmethod_between(n, i, root));
	}
	return err;
}

/* Behind the last descriptor that was read, others are not known. */
static uint64_t nmethod_size(const struct nmethod *n, uint32_t nr_marks)
{
	return n->more_pcs && nr_marks ? n->marks[nr_marks - 1].offset + 1 : n->made->code.end - n->made->code.start;
}

static void nmethod_rows(struct nmethod *n, uint32_t nr, uint32_t root, uint32_t begin)
{
	uint32_t from = (uint32_t)n->made->code.word[HOTSPOT_MADE], nr_marks = nmethod_marks(n, nr, root);
	uint64_t size = nmethod_size(n, nr_marks);
	int err;

	nmethod_find_loop(n);
	hotspot_pushed_begin(&n->pushed, n->made);
	n->flow.pushed = &n->pushed;
	hotspot_flow_read(&n->flow, n->memory, n->made->code.start, from, size, n->marks, nr_marks);
	hotspot_pushed_read(&n->pushed, n->memory);
	/* Until its frame is there, nothing that was inlined runs. */
	runtime_code_add_row(n->made, 0, begin);
	err = nmethod_block_rows(n, root);
	from = n->flow.nr_blocks ? n->flow.end : from;
	if (!err && from < size)
		err = nmethod_mark_rows(n, nr_marks, from, root);
	if (!err && n->more_pcs)
		err = nmethod_add_row(n, (uint32_t)size, RUNTIME_NO_NODE);
	if (err) /* there was no room */
		runtime_code_add_row(n->made, n->made->rows[n->made->code.nr_rows - 1].offset + 1, RUNTIME_NO_NODE);
}

static int nmethod_read_pcs(struct nmethod *n, uint32_t *ret)
{
	uint64_t bytes = n->pcs_end - n->pcs;
	int err;

	*ret = 0;
	n->more_pcs = bytes / sizeof(n->pc[0]) > PCS_MAX;
	if (n->pcs_end <= n->pcs)
		return 0;
	*ret = (uint32_t)MIN(bytes / sizeof(n->pc[0]), (uint64_t)PCS_MAX);
	err = memory_read(n->memory, n->pcs, n->pc, *ret * sizeof(n->pc[0]));
	return err;
}

/* The method itself, at no line; and *ret_begin: where it begins. */
static int nmethod_root(struct nmethod *n, uint32_t *ret_begin)
{
	uint16_t field = n->h->nmethod_method != HOTSPOT_NONE ? n->h->nmethod_method : n->h->compiled_method;
	uint64_t method;
	int err;

	if (field == HOTSPOT_NONE || memory_u64(n->memory, n->at + field, &method))
		return -EFAULT;
	n->made->code.identity[2] = method;
	err = nmethod_add_method(n, 0, method);
	if (err < 0)
		return err;
	err = nmethod_add_node(n, 0, 0, 0);
	if (err < 0)
		return err;
	*ret_begin = (uint32_t)err;
	/* No method has a bytecode at the position 0. */
	return runtime_code_add_node(n->made, n->methods[0].function, 0, 0);
}

static int nmethod_identity(const struct nmethod *n, uint64_t *ret)
{
	uint32_t id, bci;

	if (memory_u32(n->memory, n->at + n->h->nmethod_id, &id) || memory_u32(n->memory, n->at + n->h->nmethod_bci, &bci))
		return -EFAULT;
	*ret = (uint64_t)id << 32 | bci;
	return 0;
}

/* --- frames that are given up --- */

/* Its address: in 8 and since 23 an offset of the method, by a name that changed twice, else of CompiledMethod. */
static int nmethod_handler(struct nmethod *n, uint64_t *ret)
{
	const struct hotspot *h = n->h;
	/* The one that there is: HOTSPOT_NONE is the largest number. */
	const uint16_t field = MIN(h->nmethod_deopt_8, MIN(h->nmethod_deopt, h->nmethod_deopt_26));

	if (h->compiled_deopt != HOTSPOT_NONE)
		return memory_u64(n->memory, n->at + h->compiled_deopt, ret);
	return nmethod_offset(n, field, n->at, ret);
}

/* OpenJDK, frame.cpp, frame::deoptimize: the return address goes to the frame, and the handler's in its place. */
static void nmethod_find_given_up(struct nmethod *n)
{
	struct runtime_code *c = &n->made->code;
	uint64_t original = 0, handler = 0;

	if (nmethod_offset(n, n->h->nmethod_original, 0, &original) || nmethod_handler(n, &handler))
		return;
	if (handler <= c->start || handler >= c->end || !original || original % 8 || original >= c->word[HOTSPOT_FRAME])
		return;
	c->word[HOTSPOT_GIVEN_UP] = (handler - c->start) | original << 32;
}

static void nmethod_begin(struct nmethod *n, const struct hotspot *h, struct memory *m, uint64_t blob,
			  struct runtime_code_made *made)
{
	memset(n->memo, 0, sizeof(n->memo));
	n->h = h;
	n->memory = m;
	n->at = blob;
	n->made = made;
	n->nr_methods = 0;
	n->more_pcs = false;
	n->numbers.nr = n->numbers.used = 0;
}

/* Whether it is what the engine has for the place. */
static bool nmethod_is_known(const struct runtime_code_made *made)
{
	return made->known[1] && made->known_epoch == made->code.epoch &&
	       !memcmp(made->known, made->code.identity, 2 * sizeof(made->known[0]));
}

/* Its methods, rows, and the words beneath its frame. */
static int nmethod_read(struct nmethod *n, bool native)
{
	struct runtime_code *c = &n->made->code;
	uint32_t nr = 0, begin = 0;
	int root = nmethod_root(n, &begin);

	if (root < 0)
		return root;
	if (native && hotspot_method_is(n->h, n->memory, &n->methods[0].method, "jdk/internal/vm/Continuation", "doYield"))
		c->kind = HOTSPOT_YIELD;
	if (!native && (nmethod_find_scopes(n) || nmethod_find_metadata(n) || nmethod_read_pcs(n, &nr)))
		return -EFAULT;
	nmethod_rows(n, nr, (uint32_t)root, begin);
	return 0;
}

/* What has no frame is left by its instructions. */
static int nmethod_read_name(struct nmethod *n)
{
	uint32_t begin = 0;
	int root = nmethod_root(n, &begin);

	return root < 0 ? root : runtime_code_add_row(n->made, 0, (uint32_t)root);
}

int hotspot_nmethod(const struct hotspot *h, struct memory *m, uint64_t blob, bool native, uint64_t complete,
		    uint64_t frame, struct runtime_code_made *ret)
{
	static struct nmethod n;
	uint64_t identity;
	int err;

	nmethod_begin(&n, h, m, blob, ret);
	err = nmethod_identity(&n, &ret->code.identity[1]);
	if (err)
		return err;
	if (nmethod_is_known(ret))
		return -EALREADY;
	ret->code.flags = h->code_may_go ? RUNTIME_CODE_MAY_GO : 0;
	if (frame) {
		hotspot_frame_words(m, ret->code.start, complete, frame, ret);
		nmethod_find_given_up(&n);
	}
	err = frame ? nmethod_read(&n, native) : nmethod_read_name(&n);
	if (err)
		return err;
	/* It was there all the while: what was gathered does not tell. */
	memory_gather_done(m);
	return nmethod_identity(&n, &identity) || identity != ret->code.identity[1] ? -ESTALE : 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Code of WebAssembly, which lies outside of V8's heap: the code manager has a
 * map of code spaces with the module of each, and a module one of its code (V8,
 * wasm-code-manager.h). Each isolate that uses a module has a script for it,
 * whose number no other script gets (wasm-engine.cc). Maps are those of
 * libstdc++: red-black trees, and hash tables whose nodes are in one list.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "runtime/v8.h"

#define TREE_DEPTH_MAX 64
#define LIST_MAX       1024
#define FRESH_MAX      8192u
#define FRESH_PIECE    64u
#define KIND_MASK      3u /* of a WasmCode's flags */
#define IDENTITY_SEED  1 /* the same in each decoder */

enum { KIND_FUNCTION, KIND_TO_CAPI, KIND_TO_JS, KIND_JUMP_TABLE };

/* A node of a tree: colour, parent, and so on. */
enum { NODE_LEFT = 2, NODE_RIGHT, NODE_KEY, NODE_VALUE, NODE_SECOND, NODE_WORDS };

/* --- maps --- */

/* The node with the greatest key that is not above pc, of the tree with its root at this place. */
static int v8_tree_find(struct memory *m, uint64_t at, uint64_t pc, uint64_t ret[NODE_WORDS])
{
	uint64_t node[NODE_WORDS];
	int err = memory_u64(m, at, &at), found = -ENOENT;

	for (uint32_t i = 0; !err && at && i < TREE_DEPTH_MAX; i++) {
		err = memory_read(m, at, node, sizeof(node));
		if (err)
			break;
		at = node[NODE_KEY] <= pc ? node[NODE_RIGHT] : node[NODE_LEFT];
		if (node[NODE_KEY] > pc)
			continue;
		memcpy(ret, node, sizeof(node));
		found = 0;
	}
	return err ? err : found;
}

/* --- scripts --- */

/* A node's next one, key, and what is kept for it: here, a pointer to the handle of the script, and its number. */
struct v8_wasm_script { uint64_t next, module, handle, id; };

static bool v8_wasm_script_of(const struct v8 *v, struct memory *m, uint64_t isolate, struct v8_wasm_module *module)
{
	struct v8_wasm_script node;
	uint64_t at, slot;

	if (memory_u64(m, isolate + v8_row(v)->wasm.scripts, &at))
		return false;
	for (uint32_t i = 0; at && i < LIST_MAX; i++, at = node.next) {
		if (memory_read(m, at, &node, sizeof(node)))
			return false;
		if (node.module != module->address)
			continue;
		module->script_id = (int32_t)node.id;
		/* The script itself may be on its way to another place. */
		if (memory_u64(m, node.handle, &slot) || memory_u64(m, slot, &module->script) ||
		    !v8_is(v, m, module->script, v->type_script))
			module->script = 0;
		return true;
	}
	return false;
}

/* That of the first isolate that has one. */
static void v8_wasm_find_script(const struct v8 *v, struct memory *m, uint64_t manager, struct v8_wasm_module *module)
{
	uint64_t at, node[3]; /* next, isolate, what is kept of it */

	if (memory_u64(m, manager + v8_row(v)->wasm.isolates, &at))
		return;
	for (uint32_t i = 0; at && i < LIST_MAX; i++, at = node[0])
		if (memory_read(m, at, node, sizeof(node)) || v8_wasm_script_of(v, m, node[2], module))
			return;
}

/* --- code --- */

static bool v8_wasm_is_code_of(const struct v8 *v, struct memory *m, uint64_t code, uint64_t pc,
			       struct v8_wasm_code *ret)
{
	const struct v8_wasm_row *row = &v8_row(v)->wasm;

	ret->at = code;
	return memory_u64(m, code + 8, &ret->start) == 0 && memory_u32(m, code + row->size, &ret->size) == 0 &&
	       ret->size < RUNTIME_CODE_BYTES && pc >= ret->start && pc - ret->start < ret->size &&
	       memory_u32(m, code + row->index, &ret->function) == 0 && memory_u8(m, code + row->flags, &ret->flags) == 0;
}

/* Code gets into the map when it is sought for the first time; the last that was made is most likely what runs. */
static int v8_wasm_find_fresh(const struct v8 *v, struct memory *m, uint64_t pc, struct v8_wasm_code *ret)
{
	uint64_t span[2], codes[FRESH_PIECE];
	int err = memory_read(m, ret->module.address + v8_row(v)->wasm.fresh, span, sizeof(span));
	uint64_t nr = err || span[1] < span[0] ? 0 : MIN((span[1] - span[0]) / 8, (uint64_t)FRESH_MAX);

	for (uint64_t at = span[1]; !err && nr;) {
		uint64_t n = MIN(nr, (uint64_t)FRESH_PIECE);

		at -= 8 * n;
		nr -= n;
		err = memory_read(m, at, codes, 8 * n);
		while (!err && n--)
			if (v8_wasm_is_code_of(v, m, codes[n], pc, ret))
				return 0;
	}
	return err ? err : -ENOENT;
}

static int v8_wasm_find_in_module(const struct v8 *v, struct memory *m, uint64_t pc, struct v8_wasm_code *ret)
{
	const struct v8_wasm_row *row = &v8_row(v)->wasm;
	uint64_t node[NODE_WORDS], wire, span[2];
	int err = v8_tree_find(m, ret->module.address + row->codes, pc, node);

	if (err || !v8_wasm_is_code_of(v, m, node[NODE_VALUE], pc, ret))
		err = v8_wasm_find_fresh(v, m, pc, ret);
	if (err)
		return err;
	if (memory_u64(m, ret->module.address + row->wire, &wire) || memory_read(m, wire, span, sizeof(span)))
		return -EFAULT;
	ret->module.wire = span[0];
	ret->module.wire_end = span[0] + MIN(span[1], (uint64_t)UINT32_MAX);
	return 0;
}

/* Of a wrapper that no module has, the module is 0. */
static int v8_wasm_find(const struct v8 *v, struct memory *m, uint64_t pc, struct v8_wasm_code *ret)
{
	const struct v8_wasm_row *row = &v8_row(v)->wasm;
	uint64_t node[NODE_WORDS], manager;

	*ret = (struct v8_wasm_code){0};
	if (!v->wasm || !row->spaces || memory_u64(m, v->wasm, &manager) || !manager)
		return -ENOENT;
	if (v8_tree_find(m, manager + row->spaces, pc, node) == 0 && pc < node[NODE_VALUE]) {
		ret->module.address = node[NODE_SECOND];
		if (v8_wasm_find_in_module(v, m, pc, ret))
			return -ENOENT;
		v8_wasm_find_script(v, m, manager, &ret->module);
		return 0;
	}
	if (!row->wrappers || v8_tree_find(m, manager + row->wrappers, pc, node))
		return -ENOENT;
	return v8_wasm_is_code_of(v, m, node[NODE_VALUE], pc, ret) ? 0 : -ENOENT;
}

/* --- functions --- */

static int v8_wasm_function_name(struct memory *m, const struct v8_wasm_module *module, uint32_t function,
				 char name[RUNTIME_NAME_MAX])
{
	int err = v8_wasm_name(m, module, function, name, RUNTIME_NAME_MAX);

	if (!err || err == -EFAULT || err == -EBUSY)
		return err;
	snprintf(name, RUNTIME_NAME_MAX, "wasm-function[%u]", function);
	return 0;
}

/*
 * What tells one module from another that lies where it lay, and a function from another one. No two scripts have one
 * number; without a script, the name has to do.
 */
static int v8_wasm_identity(struct memory *m, const struct v8_wasm_module *module, uint32_t function, uint64_t *ret)
{
	const uint64_t of[] = {module->address, module->wire, module->wire_end,
			       (uint64_t)module->script_id << 32 | function};
	char name[RUNTIME_NAME_MAX] = "";
	int err = module->script_id ? 0 : v8_wasm_function_name(m, module, function, name);

	if (!err)
		*ret = hash_content(of, sizeof(of), hash_content(name, strlen(name), IDENTITY_SEED));
	return err;
}

int v8_wasm_add_function(struct memory *m, const struct v8_wasm_code *c, uint32_t function, struct runtime_code_made *ret)
{
	struct runtime_frame f = {.key = c->start, .cookie = {[1] = V8_BY_WASM, [2] = function}};
	int err = v8_wasm_identity(m, &c->module, function, &f.cookie[0]);

	return err ? err : runtime_code_add_function(ret, &f);
}

int v8_wasm_decode(const struct v8 *v, struct memory *m, const struct runtime_frame *f, struct runtime_function *ret)
{
	struct v8_wasm_code c;
	uint64_t identity;
	int err = v8_wasm_find(v, m, f->key, &c);

	if (err)
		return err == -ENOENT ? -ESTALE : err;
	if (c.start != f->key || (c.flags & KIND_MASK) != KIND_FUNCTION)
		return -ESTALE;
	err = v8_wasm_function_name(m, &c.module, (uint32_t)f->cookie[2], ret->name);
	if (!err)
		err = v8_wasm_identity(m, &c.module, (uint32_t)f->cookie[2], &identity);
	if (err)
		return err;
	if (identity != f->cookie[0])
		return -ESTALE;
	if (c.module.script)
		v8_script_file(v, m, c.module.script, ret->file);
	return 0;
}

/* --- regions --- */

static int v8_wasm_describe_wrapper(uint8_t kind, struct runtime_code_made *ret)
{
	static const char *const names[] = {[KIND_TO_CAPI] = "[wasm-to-capi wrapper]",
					    [KIND_TO_JS] = "[wasm-to-js wrapper]",
					    [KIND_JUMP_TABLE] = "[wasm jump table]"};

	if (!memcmp(ret->known, ret->code.identity, sizeof(ret->known)))
		return -EALREADY;
	snprintf(ret->code.name, sizeof(ret->code.name), "%s", names[kind]);
	return 0;
}

static int v8_wasm_describe(const struct v8 *v, struct memory *m, const struct v8_wasm_code *c,
			    struct runtime_code_made *ret)
{
	int function = v8_wasm_add_function(m, c, c->function, ret);
	int node = function < 0 ? function : runtime_code_add_node(ret, (uint32_t)function, 0, 0);

	if (node < 0)
		return node;
	ret->code.identity[1] = ret->functions[function].cookie[0];
	if (!memcmp(ret->known, ret->code.identity, sizeof(ret->known)))
		return -EALREADY;
	runtime_code_add_row(ret, 0, (uint32_t)node);
	/* Without the rest, all is the code's own function's. */
	if (v8_wasm_inlined(v, m, c, ret))
		ret->code.nr_rows = ret->code.nr_nodes = ret->code.nr_functions = 1;
	return 0;
}

int v8_wasm_code(const struct v8 *v, struct memory *m, uint64_t pc, struct runtime_code_made *ret)
{
	struct runtime_code *code = &ret->code;
	struct v8_wasm_code c, again;
	int err = v8_wasm_find(v, m, pc, &c);

	if (err)
		return err;
	code->start = c.start;
	code->end = c.start + c.size;
	code->kind = V8_WASM;
	code->identity[0] = c.start;
	code->identity[2] = (uint64_t)c.flags << 32 | c.size;
	if ((c.flags & KIND_MASK) == KIND_FUNCTION)
		err = v8_wasm_describe(v, m, &c, ret);
	else
		err = v8_wasm_describe_wrapper(c.flags & KIND_MASK, ret);
	if (err)
		return err;
	v8_events(m, ret, 1);
	/* It was there all the while. */
	err = v8_wasm_find(v, m, pc, &again);
	if (err || again.at != c.at || again.start != c.start || again.module.script_id != c.module.script_id)
		return -ESTALE;
	return 0;
}

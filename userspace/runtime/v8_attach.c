// SPDX-License-Identifier: Apache-2.0
/*
 * What node says of its V8: constants for debuggers, the version, and where the
 * code lies that was compiled when node was built (V8, embedded-data.h).
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/v8.h"

#define LAYOUT_TRIED 16 /* entries by which the stride is found */
#define STRIDE_MAX   64
#define BUILTINS_MAX 4096

static int v8_attach_int(const struct runtime_file *file, struct memory *m, const char *name, uint32_t *ret)
{
	uint64_t at;
	int err = runtime_address(file, name, &at);

	return err ? err : memory_u32(m, at, ret);
}

/* --- constants --- */

static const struct { const char *name; uint16_t at; } v8_constants[] = {
#define X(member, symbol) {"v8dbg_" symbol, offsetof(struct v8, member)},
	V8_CONSTANTS(X)
#undef X
};

static int v8_attach_constants(const struct runtime_file *file, struct memory *m, struct v8 *v,
			       char why[RUNTIME_WHY_MAX])
{
	for (size_t i = 0; i < ARRAY_SIZE(v8_constants); i++) {
		uint32_t value;
		int err = v8_attach_int(file, m, v8_constants[i].name, &value);

		if (err == -ENOENT) {
			snprintf(why, RUNTIME_WHY_MAX, "it does not tell %s", v8_constants[i].name);
			return -ENOTSUP;
		}
		if (err)
			return err;
		*(uint16_t *)((uint8_t *)v + v8_constants[i].at) = (uint16_t)value;
	}
	return 0;
}

/* --- version --- */

struct v8_version { uint32_t major, minor, build; bool hidden; };

static bool v8_version_told(const struct runtime_file *file, struct memory *m, struct v8_version *ret)
{
	*ret = (struct v8_version){0};
	return v8_attach_int(file, m, "_ZN2v88internal7Version6major_E", &ret->major) == 0 &&
	       v8_attach_int(file, m, "_ZN2v88internal7Version6minor_E", &ret->minor) == 0 &&
	       v8_attach_int(file, m, "_ZN2v88internal7Version6build_E", &ret->build) == 0;
}

static bool v8_version_shown(const struct v8_hidden *h, struct v8_version *ret)
{
	*ret = (struct v8_version){.hidden = true};
	return sscanf(h->version, "%u.%u.%u", &ret->major, &ret->minor, &ret->build) == 3;
}

static int v8_attach_row(const struct v8_version *x, struct v8 *v, char version[RUNTIME_VERSION_MAX], char why[RUNTIME_WHY_MAX])
{
	snprintf(version, RUNTIME_VERSION_MAX, "V8 %u.%u.%u", x->major, x->minor, x->build);
	for (v->row = 0; v8_rows[v->row].major; v->row++) {
		const struct v8_row *row = &v8_rows[v->row];

		if (row->major == x->major && row->minor == x->minor && row->hidden == x->hidden)
			return 0;
	}
	snprintf(why, RUNTIME_WHY_MAX, "version %u.%u.%u is not known", x->major, x->minor, x->build);
	return -ENOTSUP;
}

/* --- builtins --- */

/* Whether, read with this stride, builtins lie one behind the other. */
static bool v8_layout_ascends(const uint8_t *table, uint32_t stride, uint64_t size)
{
	uint32_t end = 0, place[2];

	for (uint32_t i = 0; i < LAYOUT_TRIED; i++) {
		memcpy(place, table + i * stride, sizeof(place));
		if (place[0] < end || place[0] - end > 4096 || !place[1] || place[1] > size ||
		    place[0] > size - place[1])
			return false;
		end = place[0] + place[1];
	}
	return true;
}

/* Entries have grown from version to version; their first words are offset and length. */
static int v8_attach_layout(struct memory *m, struct v8 *v, uint64_t data)
{
	uint8_t table[LAYOUT_TRIED * STRIDE_MAX];
	uint64_t size = v->builtins_end - v->builtins;
	uint32_t place[2], end = 0;

	v->layout = data + V8_LAYOUT_AT;
	if (memory_read(m, v->layout, table, sizeof(table)))
		return -EFAULT;
	for (v->layout_stride = 8; v->layout_stride <= STRIDE_MAX; v->layout_stride += 4)
		if (v8_layout_ascends(table, v->layout_stride, size))
			break;
	if (v->layout_stride > STRIDE_MAX)
		return -ENOTSUP;
	for (v->layout_nr = 0; v->layout_nr < BUILTINS_MAX; v->layout_nr++) {
		if (memory_read(m, v->layout + (uint64_t)v->layout_nr * v->layout_stride, place, sizeof(place)))
			return -EFAULT;
		if (place[0] < end || !place[1] || place[1] > size || place[0] > size - place[1])
			break;
		end = place[0] + place[1];
	}
	return 0;
}

/* Before V8 11, the plain name is that of a pointer to it. */
static int v8_attach_blob(const struct runtime_file *file, const char *part, uint64_t *ret)
{
	char name[64];

	snprintf(name, sizeof(name), "v8_Default_embedded_blob_%s_data_", part);
	if (runtime_address(file, name, ret) == 0)
		return 0;
	snprintf(name, sizeof(name), "v8_Default_embedded_blob_%s_", part);
	return runtime_address(file, name, ret);
}

const struct v8_resumed v8_resumed[V8_RESUMED] = {
	{"Builtins_InterpreterEnterAtBytecode", true},
	{"Builtins_InterpreterEnterAtNextBytecode", true},
	{"Builtins_BaselineOrInterpreterEnterAtBytecode", true},     /* up to V8 12 */
	{"Builtins_BaselineOrInterpreterEnterAtNextBytecode", true}, /* up to V8 12 */
	{"Builtins_ContinueToCodeStubBuiltin", false},
	{"Builtins_ContinueToCodeStubBuiltinWithResult", false},
	{"Builtins_ContinueToJavaScriptBuiltin", false},
	{"Builtins_ContinueToJavaScriptBuiltinWithResult", false},
};

static void v8_attach_resumed(const struct runtime_file *file, struct v8 *v)
{
	struct runtime_symbol found[V8_RESUMED];
	const char *names[V8_RESUMED];

	for (uint32_t i = 0; i < V8_RESUMED; i++)
		names[i] = v8_resumed[i].symbol;
	runtime_static_symbols(file->binary, names, V8_RESUMED, found);
	for (uint32_t i = 0; i < V8_RESUMED; i++) {
		const uint64_t offset = found[i].value + file->bias - v->builtins;

		v->resumed[i] = found[i].value && offset < v->builtins_end - v->builtins ? (uint32_t)offset : 0;
	}
}

/* -ENOENT: the file has no symbols of them. */
static int v8_attach_symbols(const struct runtime_file *file, struct memory *m, struct v8 *v, uint64_t *ret_data)
{
	uint32_t size;

	if (v8_attach_blob(file, "code", &v->builtins) || v8_attach_blob(file, "data", ret_data) ||
	    runtime_address(file, "Builtins_InterpreterEntryTrampoline", &v->trampoline) ||
	    runtime_address(file, "Builtins_BaselineOutOfLinePrologue", &v->prologue) ||
	    runtime_address(file, "Builtins_BaselineLeaveFrame", &v->leave) ||
	    runtime_address(file, "Builtins_WideHandler", &v->handlers))
		return -ENOENT;
	if (v8_attach_int(file, m, "v8_Default_embedded_blob_code_size_", &size))
		return -EFAULT;
	v->builtins_end = v->builtins + size;
	if (runtime_address(file, "Builtins_WasmLiftoffFrameSetup", &v->setup))
		v->setup = 0;
	v8_attach_resumed(file, v);
	return 0;
}

/* hidden: NULL, or what was found in place of symbols. */
static int v8_attach_builtins(const struct runtime_file *file, struct memory *m, const struct v8_hidden *hidden, struct v8 *v)
{
	struct v8_builtin trampoline;
	uint64_t data;
	int err = hidden ? v8_hidden_blob(file, hidden, v, &data) : v8_attach_symbols(file, m, v, &data);
	const bool unnamed = hidden || err == -ENOENT;

	if (err == -ENOENT)
		err = v8_unnamed_blob(file, m, v, &data);
	if (!err)
		err = v8_attach_layout(m, v, data);
	if (!err && unnamed)
		err = v8_unnamed_find(file, m, v);
	if (err || !v8_builtin_find(v, m, v->trampoline, &trampoline))
		return err ? err : -ENOTSUP;
	v->trampoline_end = trampoline.end;
	return 0;
}

/* Where an Isolate keeps them, its accessor tells: mov rax, [rdi + n]; ret. From V8 13 on there is none. */
static void v8_attach_isolate_builtins(const struct runtime_file *file, struct memory *m, struct v8 *v)
{
	uint8_t code[8];
	uint64_t at;
	uint32_t offset;

	if (runtime_address(file, "_ZNK2v88internal7Isolate18embedded_blob_codeEv", &at) ||
	    memory_read(m, at, code, sizeof(code)) || memcmp(code, "\x48\x8b\x87", 3) != 0 || code[7] != 0xc3)
		return;
	memcpy(&offset, code + 3, sizeof(offset));
	v->isolate_builtins = offset;
}

/* --- WebAssembly --- */

/* The function that returns the code manager only loads a pointer, whose symbol is local: mov rax, [rip + n]; ret. */
static void v8_attach_wasm(const struct runtime_file *file, struct memory *m, struct v8 *v)
{
	uint8_t code[8];
	uint64_t at;
	int32_t distance;

	if (runtime_address(file, "_ZN2v88internal4wasm18GetWasmCodeManagerEv", &at) ||
	    memory_read(m, at, code, sizeof(code)) || memcmp(code, "\x48\x8b\x05", 3) != 0 || code[7] != 0xc3)
		return;
	memcpy(&distance, code + 3, sizeof(distance));
	v->wasm = at + 7 + (uint64_t)(int64_t)distance;
}

/* --- all --- */

static int v8_attach_told(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
			  char why[RUNTIME_WHY_MAX])
{
	struct v8 *v = (void *)ret->param;
	struct v8_version version;
	int err = -ENOTSUP;

	if (v8_version_told(file, m, &version))
		err = v8_attach_row(&version, v, ret->version, why);
	else
		snprintf(why, RUNTIME_WHY_MAX, "it does not tell its version");
	if (!err)
		err = v8_attach_constants(file, m, v, why);
	if (!err)
		err = v8_attach_builtins(file, m, NULL, v);
	if (err)
		return err;
	v8_attach_isolate_builtins(file, m, v);
	v8_attach_wasm(file, m, v);
	return 0;
}

static int v8_attach_hidden(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
			    char why[RUNTIME_WHY_MAX])
{
	struct v8 *v = (void *)ret->param;
	struct v8_version version;
	struct v8_hidden hidden;
	int err = v8_hidden_look(file->binary, &hidden);

	if (!err)
		err = v8_version_shown(&hidden, &version) ? v8_attach_row(&version, v, ret->version, why) : -ENOENT;
	if (err)
		return err;
	v->constants = *v8_row(v)->constants;
	v->isolate_builtins = v8_row(v)->isolate_builtins;
	err = v8_hidden_isolates(file, m, v);
	return err ? err : v8_attach_builtins(file, m, &hidden, v);
}

int v8_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
	      char why[RUNTIME_WHY_MAX])
{
	struct v8 *v = (void *)ret->param;
	uint64_t told;
	int err;

	if (file->binary->machine != EM_X86_64) {
		snprintf(why, RUNTIME_WHY_MAX, "its frames are known on x86-64 only");
		return -ENOTSUP;
	}
	if (runtime_address(file, v8_constants[0].name, &told) == 0)
		err = v8_attach_told(file, m, ret, why);
	else
		err = v8_attach_hidden(file, m, ret, why);
	if (err == -ENOTSUP && !why[0])
		snprintf(why, RUNTIME_WHY_MAX, "where its builtins lie is not known: no symbols or exports tell");
	if (err)
		return err;
	v->isolate_epoch = v8_epoch_find(v, file, m);
	v8_epoch_chain(v, file, m, &ret->walk);
	err = v8_epoch_attach(v, m, &ret->walk);
	if (err)
		return err;
	ret->code_start = v->builtins;
	ret->code_end = v->builtins_end;
	ret->code_vaddr = v->builtins - file->bias;
	return 0;
}

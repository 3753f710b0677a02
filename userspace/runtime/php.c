// SPDX-License-Identifier: Apache-2.0
/*
 * PHP's table of operations, and what attach finds: the version, from the
 * modules that the process has registered, and executor_globals, which lies in
 * the file's data, or in a thread-safe build in the storage of each thread.
 */
#include "runtime/php.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Thread-safe builds define the second one. */
static const char *const php_markers[] = {"executor_globals", "executor_globals_offset", NULL};

/* Hash tables, buckets and module entries have kept their layout from 7.3 on. */
#define HASH_DATA	16
#define HASH_USED	24
#define BUCKET_BYTES	32
#define MODULES_MAX	128
#define MODULE_BYTES	168 /* zend_module_entry.size */
#define MODULE_API	4
#define MODULE_DEBUG	8
#define MODULE_THREADS	9
#define MODULE_NAME	32
#define MODULE_VERSION	88

/* How the loop reaches the code of an instruction: ZEND_VM_KIND_* */
enum php_vm { PHP_VM_CALL = 1, PHP_VM_HYBRID = 4, PHP_VM_TAILCALL = 5 };

struct php_module {
	uint8_t head[16]; /* size, API number, debug, thread-safe */
	char name[16];
	char version[RUNTIME_VERSION_MAX];
};

static uint32_t module_api(const struct php_module *module)
{
	uint32_t api;

	memcpy(&api, module->head + MODULE_API, sizeof(api));
	return api;
}

/* While the dynamic linker works, pointers are not yet those of the process. */
static int module_read(struct memory *m, uint64_t at, struct php_module *ret)
{
	uint64_t name, version;
	uint16_t size;

	if (memory_read(m, at, ret->head, sizeof(ret->head)) < 0 || memory_u64(m, at + MODULE_NAME, &name) < 0 ||
	    memory_u64(m, at + MODULE_VERSION, &version) < 0)
		return -EFAULT;
	memcpy(&size, ret->head, sizeof(size));
	if (size != MODULE_BYTES)
		return -EBADMSG;
	ret->version[0] = '\0';
	if (version && memory_string(m, version, ret->version, sizeof(ret->version)) < 0)
		return -EFAULT;
	return memory_string(m, name, ret->name, sizeof(ret->name));
}

/* The module "standard", which every PHP registers at its start, has PHP's version. */
static int module_find(struct memory *m, uint64_t registry, struct php_module *ret)
{
	uint64_t data, at;
	uint32_t used;

	if (memory_u64(m, registry + HASH_DATA, &data) < 0 || memory_u32(m, registry + HASH_USED, &used) < 0)
		return -EFAULT;
	for (uint32_t i = 0; i < used && i < MODULES_MAX; i++) {
		int r = memory_u64(m, data + (uint64_t)i * BUCKET_BYTES, &at);

		if (r == 0)
			r = module_read(m, at, ret);
		if (r < 0)
			return r;
		if (strcmp(ret->name, "standard") == 0)
			return 0;
	}
	return -EAGAIN;
}

static int php_version(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
		       const struct php_layout **ret_layout, char why[RUNTIME_WHY_MAX])
{
	struct php_module module;
	uint64_t registry;
	int r = php_address(file, m, "module_registry", &registry);

	if (r == 0)
		r = module_find(m, registry, &module);
	if (r < 0)
		return r;
	snprintf(ret->version, sizeof(ret->version), "%s", module.version);
	*ret_layout = php_layout_of_api(module_api(&module));
	if (*ret_layout)
		return 0;
	snprintf(why, RUNTIME_WHY_MAX, "PHP %s (API %u) is not known", ret->version, module_api(&module));
	return -ENOTSUP;
}

static int php_root(const struct runtime_file *file, struct memory *m, const struct php_layout *l, struct otp_walk *w,
		    char why[RUNTIME_WHY_MAX])
{
	uint64_t globals;
	int r = php_address(file, m, "executor_globals", &globals);

	if (r == -ENOENT)
		return php_plan_threads(file, m, l, w, why);
	if (r < 0)
		return r;
	w->start = OTP_WALK_AT;
	w->base = globals;
	w->nr_chain = 1;
	w->chain[0] = l->current;
	w->root_off = l->before_throw;
	return 0;
}

/* Only the command line is known to run one request; others serve many, with classes of their own. */
static bool php_serves_requests(const struct runtime_file *file, struct memory *m)
{
	uint64_t sapi, at;
	char name[8];

	if (php_address(file, m, "sapi_module", &sapi) < 0 || memory_u64(m, sapi, &at) < 0 ||
	    memory_string(m, at, name, sizeof(name)) < 0)
		return true;
	return strcmp(name, "cli") != 0;
}

/* The one instruction of zend_vm_kind, "return KIND", by which opcache's compiler goes as well. */
static enum runtime_compiled php_compiled(const struct runtime_file *file)
{
	uint8_t code[16], *at = code;
	struct runtime_symbol s;
	uint32_t word, kind = 0;

	if (runtime_symbol(file->binary, "zend_vm_kind", &s) < 0 ||
	    binary_read_vaddr(file->binary, s.value, code, sizeof(code)) != sizeof(code))
		return RUNTIME_NOT_COMPILED;
	memcpy(&word, code, sizeof(word));
	if (word == 0xfa1e0ff3 || word == 0xd503245f) /* a landing pad: endbr64, bti c */
		at += sizeof(word);
	memcpy(&word, at, sizeof(word));
	if (file->binary->machine == EM_X86_64 && at[0] == 0xb8)
		memcpy(&kind, at + 1, sizeof(kind));
	else if (file->binary->machine == EM_AARCH64 && (word & 0xffe0001f) == 0x52800000)
		kind = word >> 5 & 0xffff;
	if (kind == PHP_VM_HYBRID)
		return RUNTIME_JUMPED;
	return kind == PHP_VM_CALL || kind == PHP_VM_TAILCALL ? RUNTIME_CALLED : RUNTIME_NOT_COMPILED;
}

int php_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
	       char why[RUNTIME_WHY_MAX])
{
	const struct php_layout *l;
	int r = php_version(file, m, ret, &l, why);

	if (r < 0)
		return r;
	php_plan(l, &ret->walk);
	r = php_root(file, m, l, &ret->walk, why);
	if (r < 0)
		return r;
	/* It runs all interpreted code; the compiled code of opcache's JIT is entered from it too. */
	runtime_add_loop(file, "execute_ex", ret);
	/* opcache's own memory, which workers share; PCRE has a compiler too, whose code is private. */
	ret->compiled = (uint16_t)php_compiled(file);
	ret->compiled_is_shared = true;
	ret->param[PHP_LAYOUT] = php_layout_index(l);
	ret->param[PHP_REQUESTS] = php_serves_requests(file, m);
	ret->param[PHP_GLOBALS] = ret->walk.start == OTP_WALK_AT ? ret->walk.base : 0;
	return 0;
}

const struct runtime_ops runtime_php = {
	.name = "php",
	.label = "PHP",
	.kind = KIND_PHP,
	.markers = php_markers,
	.attach = php_attach,
	.decode = php_decode,
	.frame = php_frame,
};

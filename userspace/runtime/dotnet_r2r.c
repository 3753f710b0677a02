// SPDX-License-Identifier: Apache-2.0
/*
 * Code that was compiled before the program ran, in an assembly's file: the
 * image's table of functions, sorted, and the runtime's map of the methods that
 * it has entered there (dotnet/runtime, src/coreclr/vm/readytoruninfo.h, hash.h:
 * PtrHashMap). Handlers of exceptions are functions of their own behind that of
 * their method.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/dotnet.h"

/* Of a ReadyToRunInfo. */
#define COMPOSITE     40 /* that of the image, where it is one of several assemblies */
#define CORE	      72 /* its ReadyToRunCoreInfo */
#define FUNCTIONS     80
#define NR_FUNCTIONS  88
#define NR_COLD	      104
#define COLD	      96

#define FUNCTIONS_MAX (1u << 24)
#define HANDLERS_MAX  256 /* of one method */
#define BUCKETS_MAX   (1u << 24)
#define TRIES_MAX     64
#define VALUE_MASK    (UINT64_MAX >> 1)

struct dotnet_bucket { uint64_t keys[4], values[4]; };
struct dotnet_image { uint64_t base, core, functions, methods_at, methods; uint32_t nr, nr_buckets; bool has_cold; };

static int dotnet_image_open(const struct dotnet *d, struct memory *m, const struct dotnet_range *range,
			     struct dotnet_image *ret)
{
	uint64_t info;
	uint32_t cold;

	if (memory_u64(m, range->module + dotnet_row(d)->module_r2r, &info) || memory_u64(m, info + COMPOSITE, &info) ||
	    memory_u64(m, info + CORE, &ret->core) || memory_u64(m, info + FUNCTIONS, &ret->functions) ||
	    memory_u32(m, info + NR_FUNCTIONS, &ret->nr) || memory_u32(m, info + NR_COLD, &cold) ||
	    memory_u64(m, info + dotnet_row(d)->r2r_methods, &ret->methods) || memory_u32(m, ret->methods, &ret->nr_buckets))
		return -EFAULT;
	ret->methods_at = info + dotnet_row(d)->r2r_methods;
	ret->base = range->start;
	ret->has_cold = cold;
	/* The first cold part of a function is that with the least number: all before are hot. */
	if (cold) {
		uint64_t map;

		if (memory_u64(m, info + COLD, &map) || memory_u32(m, map, &cold))
			return -EFAULT;
		ret->nr = MIN(ret->nr, cold);
	}
	return ret->nr <= FUNCTIONS_MAX && ret->nr_buckets > 1 && ret->nr_buckets <= BUCKETS_MAX ? 0 : -EBADMSG;
}

/* --- methods by entry point --- */

static int dotnet_entry_find(struct memory *m, const struct dotnet_image *image, uint64_t entry, uint64_t *ret)
{
	uint32_t seed = (uint32_t)(entry >> 2), step = 1 + (uint32_t)((entry >> 5) + 1) % (image->nr_buckets - 1);
	struct dotnet_bucket b;

	for (uint32_t i = 0; i < TRIES_MAX; i++, seed += step) {
		if (memory_read(m, image->methods + sizeof(b) * (1 + seed % image->nr_buckets), &b, sizeof(b)))
			return -EFAULT;
		for (unsigned k = 0; k < ARRAY_SIZE(b.keys); k++) {
			const uint64_t value = (b.values[k] & VALUE_MASK) << 1;

			if (b.keys[k] == entry && value) {
				*ret = value;
				return 0;
			}
		}
		if (!(b.values[0] & ~VALUE_MASK))
			break;
	}
	return -ENOENT;
}

/* Behind a method that was not found: 0: it is not there; -ESTALE: the buckets were replaced meanwhile, as too few. */
static int dotnet_buckets_stay(struct memory *m, const struct dotnet_image *image)
{
	uint64_t methods;
	uint32_t nr_buckets;

	if (memory_u64(m, image->methods_at, &methods) || memory_u32(m, methods, &nr_buckets))
		return -EFAULT;
	return methods == image->methods && nr_buckets == image->nr_buckets ? 0 : -ESTALE;
}

/* --- functions --- */

static int dotnet_function_read(struct memory *m, const struct dotnet_image *image, uint32_t i, struct dotnet_function *ret)
{
	return memory_read(m, image->functions + sizeof(*ret) * i, ret, sizeof(*ret));
}

/* How many begin at or before rva. */
static int dotnet_functions_until(struct memory *m, const struct dotnet_image *image, uint64_t rva, uint32_t *ret)
{
	uint32_t low = 0, high = image->nr;
	struct dotnet_function f;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (dotnet_function_read(m, image, middle, &f))
			return -EFAULT;
		if (f.begin <= rva)
			low = middle + 1;
		else
			high = middle;
	}
	*ret = low;
	return 0;
}

/*
 * The method of the function before index nr: it begins with that function, or with an earlier one whose handlers follow it.
 * The first function of each method, and no other, has debug information (crossgen2, DebugInfoTableNode), so the search ends
 * there. A method whose entry is not known has not been entered and cannot be running: -ENODATA.
 */
static int dotnet_entry_before(struct memory *m, const struct dotnet_image *image, uint32_t nr, struct dotnet_compiled *ret)
{
	struct dotnet_function f;
	int err = -ENOENT, changed = 0;
	uint32_t i = nr;

	for (ret->debug = 0; err == -ENOENT && !ret->debug && i > 0 && nr - i < HANDLERS_MAX; i--) {
		if (dotnet_function_read(m, image, i - 1, &f))
			return -EFAULT;
		ret->code = image->base + f.begin;
		ret->debug = dotnet_r2r_debug(m, image->core, image->base, i - 1);
		err = dotnet_entry_find(m, image, ret->code, &ret->method);
	}
	/* Buckets that were replaced during the search may have held a nearer method. */
	if (err || nr - i > 1)
		changed = dotnet_buckets_stay(m, image);
	if (changed)
		return changed;
	return err == -ENOENT && ret->debug ? -ENODATA : err;
}

/* The place between functions, where stubs lie. */
static int dotnet_between(struct memory *m, const struct dotnet_image *image, const struct dotnet_range *range, uint32_t nr,
			  struct dotnet_function *ret)
{
	struct dotnet_function next = {.begin = (uint32_t)(range->end - range->start)};

	if (nr == image->nr && image->has_cold)
		return -EBADMSG;
	if (nr < image->nr && dotnet_function_read(m, image, nr, &next))
		return -EFAULT;
	*ret = (struct dotnet_function){.begin = nr ? ret->end : 0, .end = next.begin};
	return -ENOENT;
}

int dotnet_r2r_find(const struct dotnet *d, struct memory *m, const struct dotnet_range *range, uint64_t pc,
		    struct dotnet_function *ret, struct dotnet_compiled *ret_compiled)
{
	struct dotnet_image image;
	uint32_t nr;
	int err = dotnet_image_open(d, m, range, &image);

	if (!err)
		err = dotnet_functions_until(m, &image, pc - range->start, &nr);
	if (!err && nr && dotnet_function_read(m, &image, nr - 1, ret))
		err = -EFAULT;
	if (err)
		return err;
	if (!nr || pc - range->start >= ret->end)
		return dotnet_between(m, &image, range, nr, ret);
	*ret_compiled = (struct dotnet_compiled){0};
	err = dotnet_entry_before(m, &image, nr, ret_compiled);
	return err == -ENOENT ? 0 : err;
}

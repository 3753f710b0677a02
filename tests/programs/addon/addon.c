// SPDX-License-Identifier: Apache-2.0
/*
 * An addon of Node.js, by Node-API, whose binary interface is the same in all
 * versions and which is declared here: no headers of node are needed. Its
 * function calls its first argument with its second one, then works by itself.
 */
#include <stddef.h>
#include <stdint.h>

typedef struct napi_env__ *napi_env;
typedef struct napi_value__ *napi_value;
typedef struct napi_callback_info__ *napi_callback_info;
typedef napi_value (*napi_callback)(napi_env env, napi_callback_info info);

int napi_get_cb_info(napi_env env, napi_callback_info info, size_t *argc, napi_value *argv, napi_value *this,
		     void **data);
int napi_call_function(napi_env env, napi_value this, napi_value func, size_t argc, const napi_value *argv,
		       napi_value *ret);
int napi_get_undefined(napi_env env, napi_value *ret);
int napi_create_function(napi_env env, const char *name, size_t len, napi_callback cb, void *data, napi_value *ret);
int napi_set_named_property(napi_env env, napi_value object, const char *name, napi_value value);
napi_value napi_register_module_v1(napi_env env, napi_value exports);

static volatile uint32_t sink;

static __attribute__((noinline)) void addon_work(void)
{
	uint32_t x = sink;

	for (uint32_t i = 0; i < 200000; i++)
		x = (x * 31 + i) % 1000003;
	sink = x;
}

static __attribute__((noinline)) napi_value addon_through(napi_env env, napi_callback_info info)
{
	napi_value argv[2], this, ret;
	size_t argc = 2;

	if (napi_get_cb_info(env, info, &argc, argv, NULL, NULL) || napi_get_undefined(env, &this) ||
	    napi_call_function(env, this, argv[0], 1, &argv[1], &ret))
		return NULL;
	addon_work();
	return ret;
}

napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
	napi_value through;

	if (napi_create_function(env, "through", 7, addon_through, NULL, &through) ||
	    napi_set_named_property(env, exports, "through", through))
		return NULL;
	return exports;
}

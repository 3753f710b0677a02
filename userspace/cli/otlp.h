/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short names for the generated OTLP types, and safe decoding of them.
 * Called by the reader and the OTLP renderer, one thread.
 */
#ifndef OTP_CLI_OTLP_H
#define OTP_CLI_OTLP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"
#include "opentelemetry/proto/common/v1/common.pb-c.h"
#include "opentelemetry/proto/profiles/v1development/profiles.pb-c.h"
#include "opentelemetry/proto/resource/v1/resource.pb-c.h"

#define OTLP_SERVICE(name) Opentelemetry__Proto__Collector__Profiles__V1development__##name
#define OTLP_PROFILES(name) Opentelemetry__Proto__Profiles__V1development__##name
#define OTLP_COMMON(name) Opentelemetry__Proto__Common__V1__##name
#define OTLP_RESOURCE(name) Opentelemetry__Proto__Resource__V1__##name

typedef OTLP_SERVICE(ExportProfilesServiceRequest) OtlpRequest;
typedef OTLP_PROFILES(ProfilesDictionary) OtlpDictionary;
typedef OTLP_PROFILES(ResourceProfiles) OtlpResourceProfiles;
typedef OTLP_PROFILES(ScopeProfiles) OtlpScopeProfiles;
typedef OTLP_PROFILES(Profile) OtlpProfile;
typedef OTLP_PROFILES(Sample) OtlpSample;
typedef OTLP_PROFILES(ValueType) OtlpValueType;
typedef OTLP_PROFILES(Mapping) OtlpMapping;
typedef OTLP_PROFILES(Location) OtlpLocation;
typedef OTLP_PROFILES(Line) OtlpLine;
typedef OTLP_PROFILES(Function) OtlpFunction;
typedef OTLP_PROFILES(Link) OtlpLink;
typedef OTLP_PROFILES(Stack) OtlpStack;
typedef OTLP_PROFILES(KeyValueAndUnit) OtlpKeyValueAndUnit;
typedef OTLP_COMMON(AnyValue) OtlpAnyValue;
typedef OTLP_COMMON(ArrayValue) OtlpArrayValue;
typedef OTLP_COMMON(KeyValueList) OtlpKeyValueList;
typedef OTLP_COMMON(KeyValue) OtlpKeyValue;
typedef OTLP_COMMON(InstrumentationScope) OtlpScope;
typedef OTLP_RESOURCE(Resource) OtlpResource;

#define OTLP_REQUEST_DESCRIPTOR \
	opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__descriptor

/* Levels of messages in messages that are followed; more is hostile. */
#define OTLP_DEPTH_MAX 32

/* Memory that goes as a whole. Zero-initialise with max; arena_done at the end. */
struct arena_chunk;
struct arena {
	struct arena_chunk *chunks;
	size_t used, max;
};
void *arena_alloc(struct arena *a, size_t len); /* 16-byte aligned, not zeroed; NULL at the bound */
/* n zeroed objects; without memory *failed is set, for one check at the end. */
void *arena_make(struct arena *a, bool *failed, size_t n, size_t size);
/* One object, initialised. */
#define ARENA_MAKE(arena, failed, type, ...)                               \
	({                                                                 \
		type *_m = arena_make((arena), (failed), 1, sizeof(type)); \
		if (_m)                                                    \
			*_m = (type)__VA_ARGS__;                           \
		_m;                                                        \
	})
void arena_done(struct arena *a);

/*
 * Decodes a message of that type into the arena, which then owns all of it.
 * -EBADMSG: no such message, or too deep; -E2BIG: the arena's bound.
 */
int otlp_decode(const ProtobufCMessageDescriptor *type, const void *data, size_t len, struct arena *a,
		ProtobufCMessage **ret);

#endif

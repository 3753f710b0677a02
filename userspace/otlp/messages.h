/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short names for the generated types of OTLP Profiles (protobuf-c).
 * Included by code that reads or writes a request by its messages. Plain
 * types: a message is allocated by its decoder (decode.h) or its writer.
 */
#ifndef OTP_OTLP_MESSAGES_H
#define OTP_OTLP_MESSAGES_H

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

#endif

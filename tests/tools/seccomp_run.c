/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program under a seccomp profile as container engines read them:
 *   seccomp_run PROFILE PROGRAM [ARGUMENT]...
 * Reads what packaging/container/seccomp.json uses of the format (default,
 * names, action, errnoRet, args). Exit code 77: the profile is not for this
 * kernel's or libseccomp's architecture, 2: it cannot be read.
 */
#include <errno.h>
#include <jansson.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static const char *text_at(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "";
}

static scmp_datum_t number_at(const json_t *j, const char *key)
{
	return (scmp_datum_t)json_integer_value(json_object_get(j, key));
}

static uint32_t action_of(const json_t *rule, const char *action, const char *errno_key)
{
	json_int_t err = json_integer_value(json_object_get(rule, errno_key));

	return !strcmp(text_at(rule, action), "SCMP_ACT_ALLOW") ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(err ? (uint16_t)err : EPERM);
}

static struct scmp_arg_cmp comparison(const json_t *arg)
{
	bool masked = !strcmp(text_at(arg, "op"), "SCMP_CMP_MASKED_EQ");

	return (struct scmp_arg_cmp){.arg = (unsigned int)number_at(arg, "index"),
				     .op = masked ? SCMP_CMP_MASKED_EQ : SCMP_CMP_EQ,
				     .datum_a = number_at(arg, "value"), .datum_b = number_at(arg, "valueTwo")};
}

static int add_rule(scmp_filter_ctx ctx, const json_t *rule)
{
	json_t *name, *arg, *args = json_object_get(rule, "args");
	struct scmp_arg_cmp compare[6];
	unsigned int n = 0;
	size_t i;
	int call, err = 0;

	json_array_foreach(args, i, arg)
		if (n < 6)
			compare[n++] = comparison(arg);
	json_array_foreach(json_object_get(rule, "names"), i, name) {
		/* As the engines do: a call that this architecture or library does not know is left out. */
		call = seccomp_syscall_resolve_name(json_string_value(name));
		if (call == __NR_SCMP_ERROR)
			fprintf(stderr, "seccomp_run: unknown call %s\n", json_string_value(name));
		else
			err = err ? err : seccomp_rule_add_array(ctx, action_of(rule, "action", "errnoRet"), call, n, compare);
		if (err == -EDOM)
			err = 0;
	}
	return err;
}

static int load(const json_t *profile)
{
	scmp_filter_ctx ctx = seccomp_init(action_of(profile, "defaultAction", "defaultErrnoRet"));
	json_t *rule;
	size_t i;
	int err = ctx ? 0 : -ENOMEM;

	json_array_foreach(json_object_get(profile, "syscalls"), i, rule)
		err = err ? err : add_rule(ctx, rule);
	return err ? err : seccomp_load(ctx);
}

int main(int argc, char **argv)
{
	json_error_t wrong;
	json_t *profile = argc > 2 ? json_load_file(argv[1], 0, &wrong) : NULL;
	int err;

	if (!profile) {
		fprintf(stderr, "seccomp_run: %s\n", argc > 2 ? wrong.text : "PROFILE PROGRAM [ARGUMENT]...");
		return 2;
	}
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	err = load(profile);
	json_decref(profile);
	if (err) {
		fprintf(stderr, "seccomp_run: %s\n", strerror(-err));
		return 77;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}

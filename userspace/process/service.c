// SPDX-License-Identifier: Apache-2.0
#include "process/service.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "process/text.h"

#define ARGUMENTS_MAX 256
#define COMM_MAX      15

struct word {
	const char *s;
	size_t len;
};

/*
 * Interpreters and the options that matter for finding the script: lists are
 * separated and enclosed by spaces.
 */
struct interpreter {
	const char *name;
	bool versions;        /* "python3.11" is python, "php-fpm" is not php */
	const char *with_arg; /* options that take the next word */
	const char *script;   /* options whose next word is the script or module */
	const char *code;     /* options followed by code instead of a file */
	const char *skip;     /* words before the script */
};

static const struct interpreter interpreters[] = {
	{"python", true, " -W -X --check-hash-based-pycs ", " -m ", " -c ", ""},
	{"pypy", true, " -W -X ", " -m ", " -c ", ""},
	{"node", true, " -r --require --import --loader --experimental-loader -C --conditions --env-file ", "",
	 " -e -p -pe --eval --print -i ", ""},
	{"nodejs", false, " -r --require --import ", "", " -e -p --eval --print ", ""},
	{"deno", false, "", "", " eval repl ", " run serve "},
	{"bun", false, " -r --preload ", "", " -e --eval ", " run "},
	{"ruby", true, " -I -r -C -E -F -x ", "", " -e ", ""},
	{"perl", true, " -I ", "", " -e -E -ne -pe -le -lne -lpe -lane -nle -ple ", ""},
	{"php", true, " -c -d -z -S -t ", " -f --file ", " -r -B -R --run ", ""},
	{"sh", false, " -o +o ", "", " -c ", ""},
	{"bash", false, " -o +o -O +O --rcfile --init-file ", "", " -c -lc -ic -ec -xc -cx -ce ", ""},
	{"dash", false, " -o +o ", "", " -c -ec -ce ", ""},
	{"ash", false, " -o +o ", "", " -c ", ""},
	{"zsh", true, " -o +o ", "", " -c -lc -ic ", ""},
	{"ksh", true, " -o +o ", "", " -c ", ""},
	{"fish", false, " -C --init-command ", "", " -c --command ", ""},
	{"lua", true, " -l ", "", " -e ", ""},
	{"luajit", true, " -l -j -O ", "", " -e ", ""},
	{"tclsh", true, "", "", "", ""},
	{"Rscript", false, "", "", " -e ", ""},
	{"guile", true, " -L -x ", " -l -s ", " -c ", ""},
	{"java", false,
	 " -cp -classpath --class-path -p --module-path --add-modules --add-opens --add-exports --add-reads "
	 "--upgrade-module-path --limit-modules ",
	 " -jar -m --module ", "", ""},
	{"dotnet", false, " --runtimeconfig --depsfile --additionalprobingpath --fx-version ", "", "", " exec run "},
	{"mono", true, "", "", "", ""},
};

static const char *const multi_call[] = {"busybox", "toybox", "coreutils", "uutils"};

static bool word_is(struct word w, const char *s)
{
	return w.len == strlen(s) && !memcmp(w.s, s, w.len);
}

static bool word_equal(struct word a, struct word b)
{
	return a.len == b.len && !memcmp(a.s, b.s, a.len);
}

static bool word_in_list(struct word w, const char *list)
{
	char padded[40];

	if (!w.len || w.len > sizeof(padded) - 3 || !list[0])
		return false;
	padded[0] = ' ';
	memcpy(padded + 1, w.s, w.len);
	memcpy(padded + 1 + w.len, " ", 2);
	return strstr(list, padded) != NULL;
}

static struct word service_base_name(struct word path)
{
	struct word b;

	b.s = text_basename(path.s, path.len, &b.len);
	return b;
}

static bool version_follows(struct word name, size_t at)
{
	for (; at < name.len; at++)
		if (!(name.s[at] >= '0' && name.s[at] <= '9') && name.s[at] != '.' && name.s[at] != '-')
			return false;
	return true;
}

static const struct interpreter *service_interpreter(struct word name)
{
	for (size_t i = 0; i < ARRAY_SIZE(interpreters); i++) {
		const struct interpreter *p = &interpreters[i];
		size_t n = strlen(p->name);

		if (name.len >= n && !memcmp(name.s, p->name, n) &&
		    (name.len == n || (p->versions && version_follows(name, n))))
			return p;
	}
	return NULL;
}

static bool service_next_argument(struct word *rest, struct word *ret)
{
	size_t n;

	if (!rest->len)
		return false;
	ret->s = rest->s;
	ret->len = n = strnlen(rest->s, rest->len);
	n += n < rest->len;
	rest->s += n;
	rest->len -= n;
	return true;
}

/* "-jar" of "-jar", and the value of "--module=NAME" where that form is used. */
static bool service_option_value(struct word w, const char *list, struct word *ret)
{
	const char *equals = memchr(w.s, '=', w.len);

	if (!equals || !word_in_list((struct word){w.s, (size_t)(equals - w.s)}, list))
		return false;
	*ret = (struct word){equals + 1, (size_t)(w.s + w.len - equals - 1)};
	return true;
}

/* The script among the arguments after argv[0]; len 0 if there is none. */
static struct word service_find_script(const struct interpreter *p, struct word rest)
{
	const struct word none = {"", 0};
	struct word w, value;

	for (int i = 0; i < ARGUMENTS_MAX && service_next_argument(&rest, &w); i++) {
		if (word_is(w, "--"))
			return service_next_argument(&rest, &w) ? w : none;
		if (word_is(w, "-") || word_in_list(w, p->code))
			return none;
		if (word_in_list(w, p->script))
			return service_next_argument(&rest, &w) ? w : none;
		if (service_option_value(w, p->script, &value))
			return value;
		if (word_in_list(w, p->with_arg)) {
			service_next_argument(&rest, &w);
			continue;
		}
		if (!w.len || w.s[0] == '-' || w.s[0] == '+' || w.s[0] == '@' || word_in_list(w, p->skip))
			continue;
		return w;
	}
	return none;
}

/* Java's "module/package.Main" names the module, a class path has no slash. */
static struct word service_script_name(const struct interpreter *p, struct word script)
{
	const char *slash = !strcmp(p->name, "java") ? memchr(script.s, '/', script.len) : NULL;
	bool jar = script.len > 4 && !memcmp(script.s + script.len - 4, ".jar", 4);

	if (slash && !jar)
		return (struct word){script.s, (size_t)(slash - script.s)};
	return service_base_name(script);
}

static struct word service_first_word(struct word w)
{
	for (size_t i = 0; i < w.len; i++)
		if (w.s[i] == ' ' || w.s[i] == '\t')
			w.len = i;
	return w;
}

/* Comm is the name of the started path, cut to 15 bytes. */
static bool service_fits_comm(struct word w, const char *comm)
{
	size_t n = strlen(comm);

	return n && (w.len == n || (n == COMM_MAX && w.len > n)) && !memcmp(w.s, comm, n);
}

/* "-bash" is a login shell's, "nginx:" begins a title. */
static struct word service_bare_name(struct word w)
{
	if (w.len > 1 && w.s[w.len - 1] == ':')
		w.len--;
	if (w.len > 1 && w.s[0] == '-') {
		w.s++;
		w.len--;
	}
	return w;
}

/*
 * argv[0] as a name. Programs that rewrite it leave more words behind
 * ("/usr/bin/redis-server *:6379", "nginx: master process /usr/sbin/nginx"),
 * but a path may hold spaces itself ("/opt/My App/run").
 */
static struct word service_started_name(struct word argv0, struct word file, const char *comm)
{
	struct word first = service_bare_name(service_base_name(service_first_word(argv0)));
	struct word last = service_bare_name(service_first_word(service_base_name(argv0)));

	if (word_is(argv0, "/proc/self/exe"))
		return (struct word){"", 0};
	if (service_fits_comm(first, comm) || word_equal(first, file))
		return first;
	return service_fits_comm(last, comm) || word_equal(last, file) ? last : first;
}

/* "name: what it does" */
static bool service_is_title(struct word argv0)
{
	struct word w = service_first_word(argv0);

	return w.len > 1 && w.s[w.len - 1] == ':';
}

static bool service_is_multi_call(struct word name)
{
	for (size_t i = 0; i < ARRAY_SIZE(multi_call); i++)
		if (word_is(name, multi_call[i]))
			return true;
	return false;
}

/* The file's name without what the kernel adds once it is deleted. */
static struct word service_file_name(const struct service_input *in)
{
	static const char deleted[] = " (deleted)";
	struct word w = {in->exe, in->exe_len};
	size_t n = sizeof(deleted) - 1;

	if (w.len > n && !memcmp(w.s + w.len - n, deleted, n))
		w.len -= n;
	return service_base_name(w);
}

static struct word service_executable_name(struct word file, struct word started, const char *comm)
{
	if (!file.len)
		return started.len ? started : (struct word){comm, strlen(comm)};
	if (!started.len || word_equal(started, file))
		return file;
	if (service_interpreter(file))
		return service_interpreter(started) ? started : file;
	return service_fits_comm(started, comm) || service_is_multi_call(file) ? started : file;
}

static void service_put(char to[SERVICE_NAME_MAX + 1], struct word w)
{
	size_t n = MIN(w.len, (size_t)SERVICE_NAME_MAX);

	memcpy(to, w.s, n);
	to[n] = '\0';
}

/* "busybox httpd": the applet is the first argument. */
static struct word service_applet_name(struct word file, struct word started, struct word *rest)
{
	struct word after = *rest, applet;

	if (!service_is_multi_call(file) || !word_equal(started, file) || !service_next_argument(&after, &applet) ||
	    !applet.len || applet.s[0] == '-')
		return started;
	*rest = after;
	return applet;
}

struct parsed {
	const struct interpreter *p; /* NULL: none */
	struct word exe, script;
	struct word rest; /* arguments in which the script was searched for */
};

static void service_parse(const struct service_input *in, struct parsed *ret)
{
	struct word rest = {in->cmdline, in->cmdline_len}, argv0 = {"", 0};
	struct word file = service_file_name(in), started;

	*ret = (struct parsed){.script = {"", 0}};
	service_next_argument(&rest, &argv0);
	started = service_started_name(argv0, file, in->comm);
	started = service_applet_name(file, started, &rest);
	ret->rest = rest;
	ret->exe = service_executable_name(file, started, in->comm);
	ret->p = service_interpreter(ret->exe);
	if (!ret->p)
		ret->p = service_interpreter(file);
	if (!ret->p)
		return;
	/* A script that changed its title ("celery: worker") has named itself. */
	if (!service_interpreter(started) && (service_is_title(argv0) || service_fits_comm(started, in->comm)))
		ret->script = started;
	else
		ret->script = service_find_script(ret->p, rest);
}

void service_names(const struct service_input *in, struct service_names *ret)
{
	struct parsed found;

	*ret = (struct service_names){0};
	service_parse(in, &found);
	service_put(ret->exe, found.exe);
	if (found.script.len)
		service_put(ret->script, service_script_name(found.p, found.script));
}

static bool word_contains(struct word w, struct word part)
{
	return part.len && part.s >= w.s && part.s + part.len <= w.s + w.len;
}

static char *service_append(char *to, const char *s, size_t len)
{
	memmove(to, s, len);
	to[len] = '\0';
	return to + len + 1;
}

/*
 * Of the words before the script only their kind is kept: those by which it is
 * found, "+" for any other option, nothing for an option's value. Each is no
 * longer than the word that it replaces, so it is written in place.
 */
static char *service_strip_until_script(const struct parsed *found, char *to)
{
	const struct interpreter *p = found->p;
	struct word rest = found->rest, w;
	bool value = false;

	while (service_next_argument(&rest, &w)) {
		bool script = word_contains(w, found->script), takes = !value && word_in_list(w, p->with_arg);
		bool known = takes || word_in_list(w, p->script) || word_in_list(w, p->skip) || word_is(w, "--");

		if (script)
			return service_append(to, w.s, w.len);
		if (value)
			to = service_append(to, "", 0);
		else if (known)
			to = service_append(to, w.s, w.len);
		else
			to = service_append(to, "+", w.len ? 1 : 0);
		value = takes;
	}
	return to;
}

size_t service_strip(const struct service_input *in, char *cmdline)
{
	struct service_input own = *in;
	struct parsed found;
	char *to;

	own.cmdline = cmdline;
	service_parse(&own, &found);
	/* argv[0], and the applet where there is one. */
	to = cmdline + (found.rest.s - cmdline);
	if (word_contains(found.rest, found.script))
		to = service_strip_until_script(&found, to);
	return MIN((size_t)(to - cmdline), in->cmdline_len);
}

// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <grp.h>
#include <pwd.h>

#include "base/log.h"
#include "daemon/sandbox/sandbox.h"

/*
 * Where a worker's user does not exist: unused ids, from a range that nobody
 * assigns. systemd gives 61184 to 65519 to services with DynamicUser=, which
 * would then own our workers' files and processes, and 524288 and above to
 * containers; useradd gives 100000 and above to user namespaces; Debian's
 * policy keeps 60000 to 65535 for packages. No two roles share one.
 */
#define SPARE_FIRST 72741
#define SPARE_LAST  72940
#define SPARE_STEP  7

enum { SPARE_ENGINE, SPARE_NET, SPARE_OPENER, SPARE_INDEXER, SPARE_FETCHER, SPARE_DECODER, SPARE_HUB };

static bool is_unused(uid_t id)
{
	return !getpwuid(id) && !getgrgid(id);
}

static int spare_user(int which, struct sandbox_user *ret)
{
	for (uid_t id = SPARE_FIRST + (uid_t)which; id <= SPARE_LAST; id += SPARE_STEP) {
		if (!is_unused(id))
			continue;
		*ret = (struct sandbox_user){id, id};
		return 0;
	}
	return -ENOENT;
}

static int find_user(const char *name, int spare, bool warn, struct sandbox_user *ret)
{
	const struct passwd *pw = getpwnam(name);
	int err;

	if (pw && pw->pw_uid) {
		*ret = (struct sandbox_user){pw->pw_uid, pw->pw_gid};
		return 0;
	}
	err = spare_user(spare, ret);
	if (warn && !err)
		log_warn("user %s %s: the unused id %u is used instead", name, pw ? "is root" : "does not exist",
			 (unsigned int)ret->uid);
	return err;
}

int sandbox_user_engine(const struct config *c, bool warn, struct sandbox_user *ret)
{
	return find_user(c->engine_user, SPARE_ENGINE, warn, ret);
}

int sandbox_user_net(const struct config *c, bool warn, struct sandbox_user *ret)
{
	return find_user(c->net_user, SPARE_NET, warn, ret);
}

int sandbox_user_hub(const struct config *c, bool warn, struct sandbox_user *ret)
{
	return find_user(c->hub_user, SPARE_HUB, warn, ret);
}

int sandbox_user_opener(const struct config *c, struct sandbox_user *ret)
{
	return spare_user(SPARE_OPENER, ret);
}

int sandbox_user_indexer(const struct config *c, struct sandbox_user *ret)
{
	return spare_user(SPARE_INDEXER, ret);
}

int sandbox_user_fetcher(const struct config *c, struct sandbox_user *ret)
{
	return spare_user(SPARE_FETCHER, ret);
}

int sandbox_user_decoder(const struct config *c, struct sandbox_user *ret)
{
	return spare_user(SPARE_DECODER, ret);
}

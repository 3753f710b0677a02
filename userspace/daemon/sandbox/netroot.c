// SPDX-License-Identifier: Apache-2.0
/*
 * The files that net sees: resolver configuration, CA bundles, and the
 * directories of file destinations; all but those directories are read-only.
 * They are in a small tmpfs in the monitor's own mount namespace, so they
 * vanish with the monitor. The monitor refreshes the copies in the tmpfs
 * itself; net's root is a read-only bind mount of it.
 */
#include "daemon/sandbox/netroot.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/safe_path.h"
#include "daemon/sandbox/access.h"
#include "daemon/sandbox/sandbox.h"

#define PATH_LIMIT 2200
#define COPY_MAX   (4u << 20)
#define SAFE_FLAGS (MS_NOSUID | MS_NODEV | MS_NOEXEC)

/* The files for resolving names and checking certificates, in several distributions. */
static const char *const copied[] = {
	"/etc/resolv.conf",
	"/etc/hosts",
	"/etc/nsswitch.conf",
	"/etc/gai.conf",
	"/etc/host.conf",
	"/etc/ssl/openssl.cnf",
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/ssl/cert.pem",
	"/etc/ssl/ca-bundle.pem",
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/pki/tls/openssl.cnf",
};

void netroot_path(const struct config *c, char *to, size_t size)
{
	snprintf(to, size, "%s/netroot", c->runtime_dir);
}

static void netroot_writable_path(const struct config *c, char *to, size_t size)
{
	snprintf(to, size, "%s/netroot.files", c->runtime_dir);
}

static int netroot_make_dirs(const char *base, const char *path)
{
	char full[PATH_LIMIT];

	if (snprintf(full, sizeof(full), "%s%s", base, path) >= (int)sizeof(full))
		return -ENAMETOOLONG;
	return file_make_dirs(full, 0755, 0755);
}

static int netroot_parent_dirs(const char *base, const char *path)
{
	char dir[PATH_LIMIT];
	char *slash;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (!slash || slash == dir)
		return 0;
	*slash = '\0';
	return netroot_make_dirs(base, dir);
}

/* A copy of a file of the host for net. */
struct netroot_copy {
	const struct stat *of;
	const struct sandbox_user *reader; /* the only user who may read it; NULL: everybody */
};

/* The monitor owns the copy and cannot change that, but as its owner it can grant read access. */
static int netroot_set_reader(int fd, const struct sandbox_user *reader)
{
	return reader ? access_let_read(fd, reader->uid, reader->gid) : fchmod(fd, 0644) < 0 ? -errno : 0;
}

/* The copy has the original's time, which shows a later change. */
static int netroot_prepare_copy(void *ctx, int fd)
{
	const struct netroot_copy *c = ctx;
	const struct timespec times[2] = {c->of->st_mtim, c->of->st_mtim};
	int err = netroot_set_reader(fd, c->reader);

	return err ? err : futimens(fd, times) < 0 ? -errno : 0;
}

/* A key whose copy everybody may read is copied anew: it was a certificate's, too, before. */
static bool netroot_is_same(const char *copy, const struct stat *st, bool is_key)
{
	struct stat have;

	if (stat(copy, &have) < 0 || (is_key && have.st_mode & S_IROTH))
		return false;
	return have.st_size == st->st_size && have.st_mtim.tv_sec == st->st_mtim.tv_sec &&
	       have.st_mtim.tv_nsec == st->st_mtim.tv_nsec;
}

/* owner: of a file that others must not read (a key), NULL for public ones. */
static int netroot_copy_file(const char *root, const char *path, const struct sandbox_user *owner)
{
	_cleanup_(buf_done) struct buf b = {0};
	struct stat st;
	struct netroot_copy copy = {.of = &st, .reader = owner};
	char to[PATH_LIMIT];
	int err;

	snprintf(to, sizeof(to), "%s%s", root, path);
	if (stat(path, &st) < 0)
		return -errno;
	if (netroot_is_same(to, &st, owner))
		return 0;
	err = file_load(path, COPY_MAX, &b, &st);
	if (!err)
		err = netroot_parent_dirs(root, path);
	return err ? err : file_replace(AT_FDCWD, to, owner ? 0600 : 0644, b.data, b.len, netroot_prepare_copy, &copy);
}

static void netroot_copy_public(const char *root)
{
	/* A system has only some of them. */
	for (size_t i = 0; i < ARRAY_SIZE(copied); i++) {
		int err = netroot_copy_file(root, copied[i], NULL);

		if (err && err != -ENOENT)
			log_warn("%s cannot be copied for net: %s", copied[i], strerror(-err));
	}
}

static void netroot_copy_tls_file(const char *root, const char *name, const char *path,
				  const struct sandbox_user *owner)
{
	int err = path ? netroot_copy_file(root, path, owner) : 0;

	if (err)
		log_error("exporter %s: %s cannot be read: %s; it will not connect", name, path, strerror(-err));
}

static void netroot_copy_tls(const char *root, const struct config *c, const struct sandbox_user *net)
{
	/* Keys first: a file that holds key and certificate is copied once, for net alone. */
	for (uint32_t i = 0; i < c->nr_exporters; i++)
		netroot_copy_tls_file(root, c->exporters[i].name, c->exporters[i].tls_key, net);
	for (uint32_t i = 0; i < c->nr_exporters; i++) {
		const struct export_config *e = &c->exporters[i];

		netroot_copy_tls_file(root, e->name, e->tls_ca, NULL);
		netroot_copy_tls_file(root, e->name, e->tls_cert, NULL);
	}
}

/*
 * Root has configured the directory, so net's user may write there. Its parents do not matter: net reaches it by a
 * mount of its own, or holds a descriptor.
 */
static void netroot_let_net_write(const char *dir, int fd, const struct sandbox_user *net)
{
	const char *how;
	int err = access_let_write(fd, net->uid, net->gid, &how);

	if (err)
		log_warn("%s cannot be opened to net (user %u): %s; if net may not write there, its profiles are lost",
			 dir, (unsigned int)net->uid, strerror(-err));
	else if (how)
		log_notice("%s is open to net (user %u) from now on, by %s", dir, (unsigned int)net->uid, how);
}

/*
 * A descriptor of the directory, which is made if it is missing, and which net may write to. Others must not choose
 * which directory that is.
 */
static int netroot_open_destination(const char *dir, const struct sandbox_user *net, char why[SAFE_PATH_WHY])
{
	int fd = safe_path_open(dir, SAFE_PATH_ANYONES, why);

	if (fd == -ENOENT)
		fd = safe_path_make(dir, SAFE_PATH_OURS, 0755, why);
	if (fd >= 0)
		netroot_let_net_write(dir, fd, net);
	return fd;
}

/* First a directory in the writable tmpfs, then a mount of what fd has open in the view. */
static int netroot_bind_destination(const char *files, const char *root, const char *dir, int fd)
{
	char from[64], to[PATH_LIMIT];
	int err = netroot_make_dirs(files, dir);

	if (err)
		return err;
	snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
	snprintf(to, sizeof(to), "%s%s", root, dir);
	if (mount(from, to, NULL, MS_BIND, NULL) < 0)
		return -errno;
	return mount(NULL, to, NULL, MS_BIND | MS_REMOUNT | SAFE_FLAGS, NULL) < 0 ? -errno : 0;
}

static void netroot_make_destination(const struct export_config *e, const char *dir, const char *files,
				     const char *root, const struct sandbox_user *net)
{
	char why[SAFE_PATH_WHY];
	_cleanup_(closep) int fd = netroot_open_destination(dir, net, why);
	int err = fd >= 0 && root ? netroot_bind_destination(files, root, dir, fd) : 0;

	if (fd < 0 || err)
		log_error("exporter %s: directory %s cannot be used: %s; its profiles will be lost", e->name, dir,
			  err ? strerror(-err) : why);
}

static void netroot_make_destinations(const struct config *c, const char *files, const char *root,
				      const struct sandbox_user *net)
{
	for (uint32_t i = 0; i < c->nr_exporters; i++) {
		const char *dir = export_directory(&c->exporters[i]);

		if (dir)
			netroot_make_destination(&c->exporters[i], dir, files, root, net);
	}
}

bool netroot_wants_spool(const struct config *c)
{
	for (uint32_t i = 0; i < c->nr_exporters; i++)
		if (c->exporters[i].spool_bytes && !export_directory(&c->exporters[i]))
			return true;
	return false;
}

/* What net cannot deliver is for nobody else to read. */
static void netroot_make_spool(const struct config *c, const char *files, const char *root, const struct sandbox_user *net)
{
	char why[SAFE_PATH_WHY];
	_cleanup_(closep) int fd = -1;
	int err = 0;

	if (!netroot_wants_spool(c))
		return;
	fd = safe_path_make(c->spool_dir, SAFE_PATH_ANYONES, 0700, why);
	if (fd >= 0) {
		netroot_let_net_write(c->spool_dir, fd, net);
		err = root ? netroot_bind_destination(files, root, c->spool_dir, fd) : 0;
	}
	if (fd < 0 || err)
		log_error("spool_dir %s cannot be used: %s; nothing is kept on disk", c->spool_dir,
			  err ? strerror(-err) : why);
}

/*
 * A mount namespace of our own, into which later mounts of the host propagate (those of new containers hold their
 * programs).
 */
static int netroot_own_namespace(void)
{
	if (unshare(CLONE_NEWNS) < 0)
		return -errno;
	return mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ? -errno : 0;
}

static int netroot_mount_files(const char *files, const char *root)
{
	int err = file_make_dirs(files, 0755, 0755);

	if (!err)
		err = file_make_dirs(root, 0755, 0755);
	if (err)
		return err;
	if (mount("otprof-net", files, "tmpfs", SAFE_FLAGS, "size=16m,mode=0755") < 0)
		return -errno;
	if (mount(files, root, NULL, MS_BIND, NULL) < 0)
		return -errno;
	return mount(NULL, root, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | SAFE_FLAGS, NULL) < 0 ? -errno : 0;
}

/* Whether net needs a directory of the host. */
static bool netroot_has_directory(const struct config *c)
{
	if (netroot_wants_spool(c))
		return true;
	for (uint32_t i = 0; i < c->nr_exporters; i++)
		if (export_directory(&c->exporters[i]))
			return true;
	return false;
}

/*
 * Without mounts a plain directory holds the copies, and is net's root unless net must reach a directory outside.
 * Then only its user, who owns no files, keeps net from other files.
 */
static int netroot_build_without_mounts(const struct config *c, const char *root, const struct sandbox_user *net,
					int why)
{
	if (netroot_has_directory(c)) {
		log_warn("no mount is allowed here (%s): net sees all files that every user may read", strerror(-why));
		netroot_make_destinations(c, NULL, NULL, net);
		netroot_make_spool(c, NULL, NULL, net);
		return 0;
	}
	log_warn("no mount is allowed here (%s): net's private root is a plain directory", strerror(-why));
	why = file_make_dirs(root, 0755, 0755);
	if (why)
		return why;
	netroot_copy_public(root);
	netroot_copy_tls(root, c, net);
	return 0;
}

bool netroot_exists(const struct config *c)
{
	char etc[1120];

	snprintf(etc, sizeof(etc), "%s/netroot/etc", c->runtime_dir);
	return access(etc, F_OK) == 0;
}

/* Only without a private root: a descriptor of a directory outside would be a way out of it. */
void netroot_hold(struct config *c)
{
	char why[SAFE_PATH_WHY]; /* the monitor has logged it */

	for (uint32_t i = 0; i < c->nr_exporters && !netroot_exists(c); i++) {
		const char *dir = export_directory(&c->exporters[i]);
		int fd = dir ? safe_path_open(dir, SAFE_PATH_ANYONES, why) : -1;

		if (fd > 0)
			c->exporters[i].file_dir = fd;
	}
}

int netroot_hold_spool(const struct config *c)
{
	char why[SAFE_PATH_WHY]; /* the monitor has logged it */

	return netroot_wants_spool(c) && !netroot_exists(c) ? safe_path_open(c->spool_dir, SAFE_PATH_ANYONES, why) : -1;
}

int netroot_build(const struct config *c)
{
	char files[1100], root[1100];
	struct sandbox_user net;
	int err = sandbox_user_net(c, false, &net);

	if (err)
		return err;
	netroot_writable_path(c, files, sizeof(files));
	netroot_path(c, root, sizeof(root));
	err = netroot_own_namespace();
	if (!err)
		err = netroot_mount_files(files, root);
	if (err)
		return netroot_build_without_mounts(c, root, &net, err);
	err = netroot_make_dirs(files, "/etc");
	netroot_copy_public(files);
	netroot_copy_tls(files, c, &net);
	netroot_make_destinations(c, files, root, &net);
	netroot_make_spool(c, files, root, &net);
	return err;
}

void netroot_reload(const struct config *c)
{
	char files[1100], etc[1120];
	struct sandbox_user net;

	netroot_writable_path(c, files, sizeof(files));
	snprintf(etc, sizeof(etc), "%s/etc", files);
	if (access(etc, F_OK) == 0 && sandbox_user_net(c, false, &net) == 0)
		netroot_copy_tls(files, c, &net);
}

bool netroot_sees(const struct config *c, const char *dir)
{
	char inside[PATH_LIMIT], why[SAFE_PATH_WHY];
	_cleanup_(closep) int fd = safe_path_open(dir, SAFE_PATH_ANYONES, why);
	struct stat a, b;

	if (fd < 0 || fstat(fd, &a) < 0 || !netroot_exists(c))
		return false;
	netroot_path(c, inside, sizeof(inside));
	strncat(inside, dir, sizeof(inside) - strlen(inside) - 1);
	return stat(inside, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

void netroot_refresh(const struct config *c)
{
	char files[1100], etc[1120];

	netroot_writable_path(c, files, sizeof(files));
	snprintf(etc, sizeof(etc), "%s/etc", files);
	if (access(etc, F_OK) == 0)
		netroot_copy_public(files);
}

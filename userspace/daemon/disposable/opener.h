/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The opener: the disposable process that touches foreign paths and /proc of
 * other users, which can hang or be forged. It answers one question at a time,
 * and is killed at its deadline.
 *
 * Private to opener*.c. Each answer function returns 0 or negative errno, and
 * fills to or ret_fd, which the caller owns. All text is bounded
 * (process/host.h); of the environment only the variables that name a service
 * leave this process.
 */
#ifndef OTP_DAEMON_DISPOSABLE_OPENER_H
#define OTP_DAEMON_DISPOSABLE_OPENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "daemon/decode.h"
#include "daemon/disposable/container_name.h"
#include "daemon/ipc.h"
#include "daemon/ticket.h"
#include "process/host.h"
#include "process/proc_stat.h"
#include "process/proc_status.h"

/* One opener's state, for all its questions. */
struct opener {
	struct config *config; /* owned */
	int monitor;	       /* borrowed */
	const struct ipc_ask *ask; /* the question under way; borrowed */
	struct ipc_bans bans;
	struct blame touched; /* what the monitor was told last */
	struct container_names names;
	uint64_t copied_bytes; /* of files that may hang */
	uint64_t beside_bytes; /* likewise, of those of lines, which cost programs nothing */
	uint8_t key[TICKET_KEY];
	struct ticket file; /* the file that opener_pass passed last */
};

int opener_file(struct opener *o, const struct ipc_ask *ask, const char *path, int *ret_fd);
int opener_perf_map(struct opener *o, const struct ipc_ask *ask, int *ret_fd);
/* program: the path of the program that the debug file is for. */
int opener_debug(struct opener *o, const struct ipc_ask *ask, const char *path, const char *program, int *ret_fd);
/* to: struct decode_mapping. -EPERM: no file is mapped executable at [start, end); -ESTALE: another one is. */
int opener_memory(struct opener *o, const struct ipc_ask *ask, struct buf *to, int *ret_fd);
/*
 * The file of this name beside the one that is mapped at ask->start. -ENOENT: nothing is mapped there, or the path
 * leads to another file by now, or there is no such file; -EPERM, -EACCES, -ELOOP, -EXDEV: it may not leave; -EFBIG;
 * -EBADMSG: it is no portable PDB.
 */
int opener_beside(struct opener *o, const struct ipc_ask *ask, const char *name, int *ret_fd);
int opener_maps(const struct ipc_ask *ask, struct buf *to);
int opener_identity(struct opener *o, const struct ipc_ask *ask, struct buf *to);
int opener_scan(struct opener *o, const struct ipc_ask *ask, int *ret_fd);
int opener_containers(struct opener *o, const char *ids, struct buf *to);

/*
 * opener_touch.c: before memory of pid, or a file of this file system (dev) for
 * it, is touched. -EHOSTDOWN: it is banned, because an opener hung on it.
 */
int opener_touch(struct opener *o, uint32_t pid, uint64_t dev);
/* The same of a file that is open as a path. Does not hang itself. */
int opener_touch_file(struct opener *o, uint32_t pid, int path_fd);

/* opener_copy.c */
struct statfs;
bool opener_may_hang(const struct statfs *fs); /* a server answers for this file system */
/*
 * Passes an open file of this file system on, as it is or as a copy; takes *fd
 * only in the first case. Fills o->file, unsigned.
 */
int opener_pass(struct opener *o, const struct statfs *fs, int *fd, int *ret_fd);

/* opener_process.c */
struct opener_process {
	int dir; /* /proc/PID, owned */
	struct proc_stat stat;
};

/* -ESRCH: it is gone, or another process has its pid; start_ns 0: any process that has it. */
int opener_process_open(uint32_t pid, uint64_t start_ns, struct opener_process *ret);
void opener_process_close(const struct opener_process *p);
/* Opens a file below it; -ESRCH when the process has ended. */
int opener_process_file(const struct opener_process *p, const char *name, int flags);
/* Whose it is; text holds what ret borrows. */
int opener_process_status(const struct opener_process *p, struct buf *text, struct proc_status *ret);
int opener_process_maps(const struct opener_process *p, struct buf *to);
int opener_process_identity(struct opener *o, const struct opener_process *p, struct buf *to);

/* opener_files.c */
/*
 * By O_PATH. What file systems a path below it crosses is not known: where the walk hangs, that is held against the process
 * from here on, but for the host's own. -EHOSTDOWN: the process is banned.
 */
int opener_open_root(struct opener *o, const struct opener_process *p);
/* The file of this absolute path in a root, by O_PATH; resolve: RESOLVE_ flags besides IN_ROOT. */
int opener_open_in(int root, const char *name, uint64_t resolve);
int opener_reopen(int path_fd); /* for reading; of one that was checked */
enum opener_way { WAY_MAPPED, WAY_NAMED }; /* how a file was found; anybody may have chosen a name */
/* Opens what an O_PATH descriptor that was touched leads to, for p. ino: required of it, 0: any. */
int opener_take(struct opener *o, enum opener_way way, const struct opener_process *p, int path_fd, uint64_t ino,
		int *ret_fd);

/* opener_check.c: what a file must be, before it is opened for reading, and then by its content. */
struct stat;
/* A regular file whose content the kernel does not generate; else -EPERM. */
int opener_check_kind(int path_fd, struct stat *st, struct statfs *fs);
bool opener_is_overlay(const struct statfs *fs);
/* Whether it can be the file that maps show with this inode. */
bool opener_is_inode(const struct stat *st, const struct statfs *fs, uint64_t ino);
/* Whether a file that was found by its name only may be read for this user's process. */
bool opener_may_run(const struct proc_status *user, const struct stat *st);
/* Whether this user's process may read it, by its mode. */
bool opener_may_read(const struct proc_status *user, const struct stat *st);
/* Whether nobody may write it but root, and who may write a file of this owner, group and mode. */
bool opener_is_as_safe(const struct stat *st, uint32_t uid, uint32_t gid, uint32_t mode);
/* 0: a program, a library or an object file, or a jitdump where its user is given; else -ENOEXEC. */
int opener_check_content(int fd, const struct stat *st, const struct proc_status *jitdump_of);

/*
 * opener_mapping.c: touches the file, and returns an O_PATH descriptor of that that is mapped executable at [start, end), and where it is;
 * -ENOENT: none is.
 */
int opener_mapping_open(struct opener *o, const struct opener_process *p, uint64_t start, uint64_t end,
			struct decode_mapping *ret_at);
/* The same of one that is mapped at an address, as code or not, and its path as this process sees it. */
int opener_mapping_open_at(struct opener *o, const struct opener_process *p, uint64_t address,
			   char path[HOST_PATH_MAX]);

#endif

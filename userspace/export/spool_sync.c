// SPDX-License-Identifier: Apache-2.0
#include "export/spool_sync.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define SYNC_WAITING_MAX 64
#define SYNC_EVERY_NS	 NSEC_PER_SEC

struct spool_sync_file {
	int fd; /* owned */
	unsigned long key;
};

struct spool_sync {
	pthread_t thread;
	pthread_mutex_t lock; /* for the fields below */
	pthread_cond_t changed;
	struct spool_sync_file waiting[SYNC_WAITING_MAX];
	unsigned int count;
	bool ends;
};

/* Takes all that wait; 0: the end. Called with the lock. */
static unsigned int spool_sync_take(struct spool_sync *s, struct spool_sync_file *to)
{
	unsigned int n;

	while (!s->count && !s->ends)
		pthread_cond_wait(&s->changed, &s->lock);
	n = s->count;
	for (unsigned int i = 0; i < n; i++)
		to[i] = s->waiting[i];
	s->count = 0;
	return n;
}

/* What is written meanwhile joins the next sync. Called with the lock. */
static void spool_sync_rest(struct spool_sync *s)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += SYNC_EVERY_NS / NSEC_PER_SEC;
	while (!s->ends && pthread_cond_timedwait(&s->changed, &s->lock, &until) != ETIMEDOUT)
		;
}

static void *spool_sync_main(void *ctx)
{
	struct spool_sync_file files[SYNC_WAITING_MAX];
	struct spool_sync *s = ctx;
	unsigned int n;

	pthread_mutex_lock(&s->lock);
	while ((n = spool_sync_take(s, files))) {
		pthread_mutex_unlock(&s->lock);
		for (unsigned int i = 0; i < n; i++) {
			fdatasync(files[i].fd);
			close(files[i].fd);
		}
		pthread_mutex_lock(&s->lock);
		spool_sync_rest(s);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static void spool_sync_init(struct spool_sync *s)
{
	pthread_condattr_t clock;

	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &clock);
	pthread_condattr_destroy(&clock);
}

int spool_sync_new(struct spool_sync **ret)
{
	struct spool_sync *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	spool_sync_init(s);
	err = pthread_create(&s->thread, NULL, spool_sync_main, s);
	if (err) {
		free(s);
		return -err;
	}
	*ret = s;
	return 0;
}

struct spool_sync *spool_sync_free(struct spool_sync *s)
{
	if (!s)
		return NULL;
	pthread_mutex_lock(&s->lock);
	s->ends = true;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return NULL;
}

static bool spool_sync_waits(const struct spool_sync *s, unsigned long key)
{
	for (unsigned int i = 0; key && i < s->count; i++)
		if (s->waiting[i].key == key)
			return true;
	return false;
}

void spool_sync_want(struct spool_sync *s, int fd, unsigned long key)
{
	int own;

	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	if (s->count < SYNC_WAITING_MAX && !spool_sync_waits(s, key)) {
		own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (own >= 0)
			s->waiting[s->count++] = (struct spool_sync_file){.fd = own, .key = key};
		pthread_cond_signal(&s->changed);
	}
	pthread_mutex_unlock(&s->lock);
}

// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "cli/cli.h"

/* The child: waits for a byte; a closed pipe means that nothing will be recorded. */
static void child_run(int go, int failed, char *const argv[])
{
	sigset_t none;
	char byte;
	int err;

	while (read(go, &byte, 1) != 1)
		if (errno != EINTR)
			_exit(CLI_RECORD_FAILED);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execvp(argv[0], argv);
	err = errno;
	if (write(failed, &err, sizeof(err)) < 0)
		_exit(CLI_RECORD_FAILED);
	_exit(err == ENOENT ? CLI_NOT_FOUND : CLI_NOT_EXECUTABLE);
}

static void close_all(const int fds[2])
{
	closep(&fds[0]);
	closep(&fds[1]);
}

int command_create(struct command *c, char *const argv[])
{
	int go[2] = {-1, -1}, failed[2] = {-1, -1}, err;
	pid_t pid = -1;

	if (pipe2(go, O_CLOEXEC) == 0 && pipe2(failed, O_CLOEXEC) == 0)
		pid = fork();
	if (pid == 0) {
		close(go[1]);
		close(failed[0]);
		child_run(go[0], failed[1], argv);
	}
	if (pid < 0) {
		err = -errno;
		close_all(go);
		close_all(failed);
		return err;
	}
	close(go[0]);
	close(failed[1]);
	*c = (struct command){.pid = pid, .go = go[1], .failed = failed[0]};
	return 0;
}

int command_start(struct command *c)
{
	int err = 0;
	ssize_t n = write(c->go, "", 1);

	close(c->go);
	c->go = -1;
	/* The end of the pipe without a word is exec's success. */
	while (n == 1 && (n = read(c->failed, &err, sizeof(err))) < 0 && errno == EINTR)
		n = 1;
	close(c->failed);
	c->failed = -1;
	return n == sizeof(err) ? -err : 0;
}

static bool take_status(struct command *c, int options)
{
	int status;
	pid_t pid = c->ended ? 0 : waitpid(c->pid, &status, options);

	if (pid == c->pid) {
		c->ended = true;
		c->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	} else if (pid < 0 && errno != EINTR) {
		c->ended = true;
		c->status = CLI_RECORD_FAILED;
	}
	return c->ended;
}

bool command_poll(struct command *c)
{
	return c->pid && take_status(c, WNOHANG);
}

int command_wait(struct command *c)
{
	while (!take_status(c, 0))
		;
	return c->status;
}

void command_done(struct command *c)
{
	if (!c->pid)
		return;
	closep(&c->failed);
	if (c->go < 0)
		return;
	close(c->go);
	c->go = -1;
	command_wait(c);
}

/* child.c - the program that `mlprof run` starts. */
#include "child.h"
#include "util/say.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mlprof/wire.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- start ------------------------------------------------------------------------- */

/* A variable that is a list with colons gets one more, in front. */
static bool put_first(const char *variable, const char *value)
{
	const char *had = getenv(variable);
	char *list = NULL;

	if (!had || !*had)
		return !setenv(variable, value, 1);
	if (asprintf(&list, "%s:%s", value, had) < 0)
		return false;
	return !setenv(variable, list, 1);
}

static bool put_environment(const char *library, const char *session)
{
	return put_first("LD_PRELOAD", library) && put_first("ASAN_OPTIONS", ASAN_LETS_US_IN) && !setenv("MLPROF_SESSION", session, 1);
}

/* In the child: wait for the session's name, then become the program. */
static _Noreturn void wait_and_exec(int gate, const char *path, char **argv, const char *library)
{
	char session[PATH_MAX];
	ssize_t length = read(gate, session, sizeof session - 1);

	if (length <= 0)
		_exit(EXIT_MLPROF);
	session[length] = 0;
	int error = ENOMEM;

	if (put_environment(library, session)) {
		execv(path, argv);
		error = errno;
	}
	if (write(gate, &error, sizeof error) < 0)
		_exit(EXIT_MLPROF);
	_exit(EXIT_NOT_EXECUTABLE);
}

int child_fork(struct child *c, const char *path, char **argv, const char *library)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	c->pid = fork();
	if (c->pid == 0) {
		close(pair[0]);
		wait_and_exec(pair[1], path, argv, library);
	}
	close(pair[1]);
	c->gate = pair[0];
	if (c->pid > 0)
		return 0;
	close(pair[0]);
	return -errno;
}

int child_go(struct child *c, const char *session)
{
	int error = 0;

	if (send(c->gate, session, strlen(session), MSG_NOSIGNAL) < 0)
		return -errno;
	while (read(c->gate, &error, sizeof error) < 0 && errno == EINTR)
		;               /* end of file: the exec closed it */
	close(c->gate);
	c->gate = -1;
	return -error;
}

int child_status(const struct child *c)
{
	return c->how == DIED_SIGNAL ? 128 + c->code : c->code;
}

/* ---- stopping together ------------------------------------------------------------- */

/* A file of /proc/PID; empty if it cannot be read. */
static void read_proc(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[length > 0 ? length : 0] = 0;
}

static char state_of(pid_t pid)
{
	char line[512];

	read_proc(pid, "stat", line, sizeof line);
	const char *name_end = strrchr(line, ')');

	return name_end && name_end[1] ? name_end[2] : 0;
}

/*
 * While we are stopped nobody tells us that the program goes on: its SIGCONT may be sent to it alone. So a small
 * process watches both and wakes us.
 */
static _Noreturn void watch(pid_t program, pid_t us)
{
	const struct timespec turn = { 0, 20000000 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == us) {
		if (state_of(us) == 'T' && state_of(program) != 'T')
			kill(us, SIGCONT);
		nanosleep(&turn, NULL);
	}
	_exit(0);
}

static void stop_with(struct child *c)
{
	pid_t us = getpid();

	if (c->before_stop)
		c->before_stop(c->to);
	pid_t watcher = fork();

	if (watcher == 0)
		watch(c->pid, us);
	if (watcher < 0)
		return;         /* better to go on than to sleep for ever */
	raise(SIGSTOP);
	kill(watcher, SIGKILL);
	waitpid(watcher, NULL, 0);
	if (state_of(c->pid) == 'T')
		kill(c->pid, SIGCONT);
}

/* ---- the sentry --------------------------------------------------------------------- */

/*
 * A signal that the whole group gets must reach the program once: many programs end gracefully at the first SIGTERM
 * or SIGINT and at once at the second. Nothing in a signal says whether others got it, so a process with all signals
 * blocked stands in the group: what is pending there was sent to everyone.
 */
static void post_sentry(struct child *c)
{
	pid_t us = getpid();
	sigset_t all;

	c->sentry = fork();
	if (c->sentry)
		return;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "mlprof-sentry");
	close_range(0, ~0u, 0);
	while (getppid() == us)
		pause();
	_exit(0);
}

static void relieve_sentry(struct child *c)
{
	if (c->sentry <= 0)
		return;
	kill(c->sentry, SIGKILL);
	waitpid(c->sentry, NULL, 0);
	c->sentry = 0;
}

static u64 pending(pid_t pid)
{
	char text[4096];

	read_proc(pid, "status", text, sizeof text);
	const char *line = strstr(text, "ShdPnd:");

	return line ? strtoull(line + 7, NULL, 16) : 0;
}

static bool group_got(struct child *c, int signal)
{
	const struct timespec moment = { 0, 1000000 };

	if (c->sentry <= 0)
		return false;
	nanosleep(&moment, NULL);       /* the kernel goes through the group one by one */
	if (!(pending(c->sentry) >> (signal - 1) & 1))
		return false;
	relieve_sentry(c);
	post_sentry(c);
	return true;
}

/* ---- signals ----------------------------------------------------------------------- */

static const int passed_on[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT };
static const int ignored[] = { SIGPIPE, SIGTTOU, SIGTTIN };

enum { PASSED_ON = sizeof passed_on / sizeof passed_on[0], IGNORED = sizeof ignored / sizeof ignored[0] };

int child_signals(struct child *c)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (int i = 0; i < PASSED_ON; i++)
		sigaddset(&set, passed_on[i]);
	for (int i = 0; i < IGNORED; i++)
		signal(ignored[i], SIG_IGN);
	signal(SIGCHLD, SIG_DFL);       /* inherited as ignored it would lose us the exit status */
	sigprocmask(SIG_BLOCK, &set, NULL);
	c->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	post_sentry(c);
	return c->signals < 0 ? -errno : 0;
}

static void ended(struct child *c, const siginfo_t *info)
{
	c->ended = true;
	c->how = info->si_code == CLD_EXITED ? DIED_EXITED : DIED_SIGNAL;
	c->code = info->si_status;
}

static void reap(struct child *c)
{
	while (!c->ended) {
		siginfo_t info = { 0 };

		if (waitid(P_PID, c->pid, &info, WEXITED | WSTOPPED | WNOHANG) || !info.si_pid)
			return;
		if (info.si_code == CLD_STOPPED)
			stop_with(c);
		else
			ended(c, &info);
	}
}

/* The kernel's own signals (the terminal's) went to the whole group; the program's went where it wanted. */
static bool meant_for_us_alone(struct child *c, const struct signalfd_siginfo *s)
{
	if (group_got(c, s->ssi_signo))
		return false;
	return s->ssi_code <= 0 && (pid_t)s->ssi_pid != c->pid;
}

static void pass_on(struct child *c, const struct signalfd_siginfo *s)
{
	if (c->ended) {
		c->hurry |= s->ssi_signo != SIGCONT && s->ssi_signo != SIGTSTP;
	} else if (s->ssi_signo == SIGCONT) {
		if (state_of(c->pid) == 'T')    /* else it was sent to the group, as a shell's fg does */
			kill(c->pid, SIGCONT);
	} else if (meant_for_us_alone(c, s)) {
		kill(c->pid, s->ssi_signo);
	}
}

void child_heed(struct child *c)
{
	struct signalfd_siginfo s;

	while (read(c->signals, &s, sizeof s) == sizeof s) {
		if (s.ssi_signo == SIGCHLD)
			reap(c);
		else
			pass_on(c, &s);
	}
}

void child_cancel(struct child *c)
{
	if (c->gate >= 0)
		close(c->gate);
	waitpid(c->pid, NULL, 0);
	child_release(c);
}

void child_release(struct child *c)
{
	relieve_sentry(c);
	if (c->signals > 0)
		close(c->signals);
}

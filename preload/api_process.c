/*
 * api_process.c - children, and programs that become other programs.
 *
 * vfork is never wrapped: a wrapper's frame would be gone when the parent returns into it. Its child runs on our
 * memory as us, so the exec it does is noted in our own stream under its own number.
 */
#include "note.h"
#include "slots.h"
#include "text.h"
#include <errno.h>
#include <stdarg.h>

/* Who asked for the program alone does not want a list of its children. */
static void note_child(pid_t pid, u64 before, u64 how, bool followed, const char *path)
{
	struct visit v;

	if (!guest.control || !guest.control->follow)
		return;
	v = context_enter(FRAME());
	if (!v.context)
		return;
	writing_begin(v.context);
	EMIT(v.context, ticks(), child, FIELDS(.pid = (u64)pid, .how = how, .followed = followed, .before = before), path, text_length(path));
	writing_end(v.context);
	context_leave(v);
}

HOOKED pid_t fork(void)
{
	u64 before = ticks();
	pid_t pid = PASS(fork)();

	if (pid > 0)
		note_child(pid, before, CHILD_FORK, true, "");
	return pid;
}

/*
 * A child of fork that goes straight to exec has not begun an image, and need not, if it will be followed. A child of vfork
 * is here as us; where children are not wanted, it is none of our business.
 */
static bool worth_noting(bool followed)
{
	if (guest.state != GUEST_ON || !image || !(image->pid || !followed))
		return false;
	return guest.control->follow || image->pid == (u32)sys_getpid();
}

static void note_exec(const char *path, bool followed)
{
	struct visit v = context_enter(FRAME());

	if (!v.context)
		return;
	writing_begin(v.context);
	EMIT(v.context, ticks(), exec, FIELDS(.pid = (u64)sys_getpid(), .followed = followed), path, text_length(path));
	writing_end(v.context);
	context_leave(v);
}

static void note_exec_failed(int error)
{
	struct visit v = context_enter(FRAME());

	if (!v.context)
		return;
	writing_begin(v.context);
	EMIT(v.context, ticks(), exec_failed, FIELDS(.pid = (u64)sys_getpid(), .error = (u64)error), NULL, 0);
	writing_end(v.context);
	context_leave(v);
}

static void give_back(char *scratch)
{
	if (scratch)
		sys_munmap(scratch, *(size_t *)scratch);
}

enum exec_way { BY_PATH, BY_SEARCH, BY_FD };

static int become(enum exec_way way, const char *path, int fd, char *const *argv, char *const *env)
{
	char *scratch;
	char *const *with_us = session_with_us(env, &scratch);
	bool followed = session_follows(with_us), noted = worth_noting(followed);
	int error;

	if (noted)
		note_exec(path, followed);
	if (way == BY_PATH)
		PASS(execve)(path, argv, with_us);
	else if (way == BY_SEARCH)
		PASS(execvpe)(path, argv, with_us);
	else
		PASS(fexecve)(fd, argv, with_us);
	error = errno;
	give_back(scratch);
	if (noted)
		note_exec_failed(error);
	errno = error;
	return -1;
}

HOOKED int execve(const char *path, char *const argv[], char *const env[]) { return become(BY_PATH, path, -1, argv, env); }
HOOKED int execv(const char *path, char *const argv[]) { return become(BY_PATH, path, -1, argv, environ); }
HOOKED int execvp(const char *file, char *const argv[]) { return become(BY_SEARCH, file, -1, argv, environ); }
HOOKED int execvpe(const char *file, char *const argv[], char *const env[]) { return become(BY_SEARCH, file, -1, argv, env); }
HOOKED int fexecve(int fd, char *const argv[], char *const env[]) { return become(BY_FD, "(descriptor)", fd, argv, env); }

/* The list forms: arguments up to NULL become an array on our stack; execle has the environment behind them. */
#define EXEC_LIST(name, way, has_env)                                                                  \
	HOOKED int name(const char *path, const char *arg, ...)                                        \
	{                                                                                              \
		size_t n = 1;                                                                          \
		va_list count, list;                                                                   \
                                                                                                       \
		va_start(count, arg);                                                                  \
		while (va_arg(count, char *))                                                   \
			n++;                                                                           \
		va_end(count);                                                                         \
		char *argv[n + 1];                                                                     \
		char *const *env = environ;                                                            \
		va_start(list, arg);                                                                   \
		argv[0] = (char *)arg;                                                                 \
		for (size_t i = 1; i <= n; i++)                                                 \
			argv[i] = va_arg(list, char *);                                                \
		if (has_env)                                                                           \
			env = va_arg(list, char *const *);                                             \
		va_end(list);                                                                          \
		return become(way, path, -1, argv, env);                                               \
	}

EXEC_LIST(execl, BY_PATH, 0)
EXEC_LIST(execlp, BY_SEARCH, 0)
EXEC_LIST(execle, BY_PATH, 1)

static int spawn(__typeof__(posix_spawn) *f, pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		 const posix_spawnattr_t *attributes, char *const *argv, char *const *env)
{
	char *scratch;
	char *const *with_us = session_with_us(env, &scratch);
	u64 before = ticks();
	pid_t child = 0;
	int error = f(&child, path, actions, attributes, argv, with_us);

	if (!error) {
		if (pid)
			*pid = child;
		note_child(child, before, CHILD_SPAWN, session_follows(with_us), path);
	}
	give_back(scratch);
	return error;
}

HOOKED int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attributes, char *const argv[], char *const env[])
{
	return spawn(PASS(posix_spawn), pid, path, actions, attributes, argv, env);
}

HOOKED int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
			const posix_spawnattr_t *attributes, char *const argv[], char *const env[])
{
	return spawn(PASS(posix_spawnp), pid, file, actions, attributes, argv, env);
}

/*
 * Whoever waits for a child may have taken its status before the collector could look; the main process is watched from its beginning.
 * No system call: the program may be in a jail by now. So a child of vfork is not told from us: the collector sees that we go on.
 */
static void note_exit(int status)
{
	struct visit v;

	if (guest.state != GUEST_ON || !image || image_is_main() || !tls.context || !tls.context->chunk)
		return;
	v = context_enter(FRAME());
	if (!v.context)
		return;
	writing_begin(v.context);
	EMIT(v.context, ticks(), exit, FIELDS(.status = (u64)status, .at_once = 1), NULL, 0);
	writing_end(v.context);
	context_leave(v);
}

HOOKED _Noreturn void _exit(int status)
{
	note_exit(status);
	if (REAL(_exit))                /* not while dlsym looks for it */
		REAL(_exit)(status);
	for (;;)
		sys(SYS_exit_group, status, 0, 0);
}

HOOKED _Noreturn void _Exit(int status) { _exit(status); }

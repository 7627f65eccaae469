/*
 * start.c - bare LD_PRELOAD: no one has made a session, so we start a collector.
 *
 *   program --clone--> go-between --setsid, clone--> collector (`mlprof collect`), nobody's child
 *      ^                                                 |
 *      `------------ pipe: path of the session ----------'
 *
 * The go-between is waited for at once and sends no SIGCHLD, so the program's own wait() never sees it and no
 * zombie is left. Where the program itself would inherit the orphan (it is a container's first process), its wait()
 * would see the collector and never end: there the go-between stays as the collector's parent. All of it is raw
 * system calls: this runs inside the program's very first allocation.
 */
#include "hook.h"
#include "process.h"
#include "text.h"
#include <errno.h>
#include <link.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { PATH_BYTES = 4096, ANSWER_MS = 10000, ANSWER_FD = 3 };

/* The command lies at a fixed place relative to this library: one when installed, one in the build tree. */
static bool find_command(char *path, size_t size)
{
	static const char *const places[] = { MLPROF_COMMAND_REL, "../collector/mlprof" };
	struct dl_find_object me;

	if (_dl_find_object((void *)start_collector, &me) != 0)
		return false;
	for (u32 i = 0; i < sizeof places / sizeof *places; i++) {
		size_t n;

		text_copy(path, size, me.dlfo_link_map->l_name);
		n = text_length(path);
		while (n && path[n - 1] != '/')
			n--;
		path[n] = 0;
		text_append(path, size, places[i]);
		if (sys4(SYS_faccessat, AT_FDCWD, path, X_OK, 0) == 0)
			return true;
	}
	return false;
}

/* The collector itself must not be profiled. */
static char **environment_without_us(void)
{
	char **env = session_initial_environment(), **copy;
	size_t n = 0, kept = 0;

	while (env[n])
		n++;
	copy = sys_memory((n + 1) * sizeof *copy);
	for (size_t i = 0; copy && i < n; i++)
		if (!text_starts(env[i], "LD_PRELOAD="))
			copy[kept++] = env[i];
	return copy;
}

static _Noreturn void leave(int status)
{
	for (;;)
		sys(SYS_exit_group, status, 0, 0);
}

static bool inherits_orphans(void)
{
	int reaper = 0;

	return sys(SYS_getpid, 0, 0, 0) == 1 || (sys(SYS_prctl, PR_GET_CHILD_SUBREAPER, &reaper, 0) == 0 && reaper);
}

/* Without the program's descriptors, which would stay open for whoever reads at their other end. */
static _Noreturn void stay_between(long collector)
{
	int status;

	sys(SYS_close_range, 0, ~0u, 0);
	while (sys4(SYS_wait4, collector, &status, __WALL, 0) == -EINTR)
		;
	leave(0);
}

static _Noreturn void become_collector(int answer, const char *command, char **env, bool stay)
{
	char pid[16] = "";
	char *argv[] = { "mlprof", "collect", "--pid", pid, NULL };
	long collector;
	int null;

	text_number(pid, sizeof pid, (u64)sys(SYS_getppid, 0, 0, 0), 10);
	sys(SYS_setsid, 0, 0, 0);
	collector = sys(SYS_clone, 0, 0, 0);
	if (collector > 0 && stay)
		stay_between(collector);
	if (collector != 0)
		leave(0);
	sys(SYS_dup3, answer, ANSWER_FD, 0);
	if (answer == ANSWER_FD)
		sys_fcntl(answer, F_SETFD, 0);
	null = sys_open("/dev/null", O_RDWR, 0);        /* not before: in a program that closed 0 and 1 it would be 3 */
	sys(SYS_dup3, null, 0, 0);
	sys(SYS_dup3, null, 1, 0);
	sys(SYS_close_range, ANSWER_FD + 1, ~0u, 0);
	sys(SYS_execve, command, argv, env);
	leave(1);
}

static bool read_answer(int fd, char *dir, size_t size)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t have = 0;

	while (have + 1 < size && sys_poll(&p, 1, ANSWER_MS) == 1) {
		long n = sys_read(fd, dir + have, size - 1 - have);

		if (n <= 0)
			break;
		have += (size_t)n;
		if (dir[have - 1] == '\n') {
			dir[have - 1] = 0;
			return have > 1;
		}
	}
	return false;
}

static void say_no_command(void)
{
	static const char line[] = "mlprof: libmlprof.so was moved away from its command, so nothing is recorded\n";

	sys_write(2, line, sizeof line - 1);
}

bool start_collector(char *dir, size_t size)
{
	char command[PATH_BYTES];
	int fds[2] = { -1, -1 }, status;
	char **env = environment_without_us();
	bool stay = inherits_orphans(), ok;
	long child;

	if (!find_command(command, sizeof command)) {
		say_no_command();
		return false;
	}
	if (!env || sys(SYS_pipe2, fds, O_CLOEXEC, 0) < 0)
		return false;
	child = sys(SYS_clone, 0, 0, 0);
	if (child == 0)
		become_collector(fds[1], command, env, stay);
	sys_close(fds[1]);
	if (child > 0 && !stay)
		sys4(SYS_wait4, child, &status, __WALL, 0);
	ok = child > 0 && read_answer(fds[0], dir, size);
	sys_close(fds[0]);
	return ok;
}

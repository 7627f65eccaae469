/*
 * cmd_collect.c - `mlprof collect`: the collector that libmlprof.so starts when a program runs with nothing but
 * LD_PRELOAD.
 *
 *   fd 3     a pipe to the waiting library: the session directory and a newline, or nothing if there is none
 *   stderr   the program's own: the summary goes there
 *   --pid    the program; its arguments are in /proc, its options in our environment
 *
 * The library has put us in a session of our own. The program waits in its last exit handler until the files are
 * written and the summary is out.
 */
#include "command.h"
#include "locate.h"
#include "turn.h"
#include "util/say.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ANSWER_FD = 3 };

struct collect {
	u32 pid;
	struct settings set;
	char *arguments, **argv;        /* of the program */
	char library[512];
	int pidfd;
	bool main_ended;
	struct output output;
	struct recording *recording;
};

static const struct option_row rows[] = {
	{ 0, "pid", OPTION_COUNT, "PID", NULL, offsetof(struct collect, pid), OPTION_HIDDEN, "The program to record." },
	{ 0 }
};

/* ---- the program's arguments ------------------------------------------------------- */

static char *read_all(int fd, size_t *used)
{
	char *text = NULL;
	size_t room = 0;
	ssize_t n;

	*used = 0;
	do {
		char *more = *used + 2 > room ? realloc(text, room = room * 2 + 4096) : text;

		if (!more)
			break;
		text = more;
		n = read(fd, text + *used, room - *used - 1);
		*used += n > 0 ? n : 0;
	} while (n > 0);
	if (text)
		text[*used] = 0;
	return text;
}

static bool read_arguments(struct collect *c)
{
	char path[64];
	size_t used = 0, count = 0;

	snprintf(path, sizeof path, "/proc/%u/cmdline", c->pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	c->arguments = read_all(fd, &used);
	close(fd);
	c->argv = c->arguments ? calloc(used + 2, sizeof *c->argv) : NULL;
	for (size_t at = 0; c->argv && at < used; at += strlen(c->arguments + at) + 1)
		c->argv[count++] = c->arguments + at;
	return c->argv && c->argv[0];
}

/* ---- the recording ----------------------------------------------------------------- */

static bool answer(const struct collect *c)
{
	char line[4200];
	int length = snprintf(line, sizeof line, "%s\n", recording_dir(c->recording));
	bool good = write(ANSWER_FD, line, length) == length;

	close(ANSWER_FD);
	return good;
}

static void turn(struct collect *c, int limit_ms)
{
	int ms = turn_least(recording_step(c->recording), limit_ms);
	struct pollfd wait[] = {
		{ .fd = recording_fd(c->recording), .events = POLLIN },
		{ .fd = c->main_ended ? -1 : c->pidfd, .events = POLLIN },
	};

	output_turn(&c->output, turn_now_ms());
	poll(wait, 2, ms);
	c->main_ended |= wait[1].revents != 0;
}

/* The program itself still counts as alive while it waits for us. */
static bool others_alive(const struct collect *c)
{
	return recording_alive(c->recording) > (c->main_ended ? 0 : 1);
}

static void follow(struct collect *c)
{
	while (!c->main_ended && !recording_main_exiting(c->recording))
		turn(c, -1);
	u64 deadline = turn_now_ms() + c->set.wait_ms, now;

	while (others_alive(c) && (now = turn_now_ms()) < deadline)
		turn(c, deadline - now);
}

static int record(struct collect *c)
{
	if (!output_open(&c->output, &c->set, c->argv[0], c->pid))
		return EXIT_MLPROF;
	c->recording = turn_open(&c->set, c->argv, c->library, &c->output, c->pid);
	if (!c->recording) {
		output_discard(&c->output);
		return EXIT_MLPROF;
	}
	output_settle(&c->output);              /* before the program goes on: whatever becomes of us, the trace is where we say */
	if (answer(c)) {
		output_begun(&c->output);
		follow(c);
		turn_finish(c->recording, &c->output, &c->set);
	} else {
		output_discard(&c->output);     /* the program is gone already */
	}
	recording_close(c->recording);
	return 0;
}

static void ignore_signals(void)
{
	static const int ignored[] = { SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE,
				       SIGUSR1, SIGUSR2, SIGALRM };

	for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
		signal(ignored[i], SIG_IGN);
}

static bool prepare(struct collect *c, int argc, char **argv)
{
	option_presets(rows, c);
	option_presets(settings_rows, &c->set);
	if (option_arguments(rows, c, "collect", argc, argv) != argc || !c->pid || fcntl(ANSWER_FD, F_GETFD) < 0) {
		say("collect is for libmlprof.so to call; use 'mlprof run'");
		return false;
	}
	fcntl(ANSWER_FD, F_SETFD, FD_CLOEXEC);
	c->pidfd = syscall(SYS_pidfd_open, c->pid, 0);
	if (c->pidfd < 0 || !read_arguments(c)) {
		say("process %u is gone", c->pid);
		return false;
	}
	return option_environment(settings_rows, &c->set) && locate_library(c->library, sizeof c->library);
}

static int run(int argc, char **argv)
{
	struct collect *c = calloc(1, sizeof *c);
	int status = EXIT_MLPROF;

	if (!c)
		return EXIT_MLPROF;
	ignore_signals();
	turn_own_limits();
	if (prepare(c, argc, argv))
		status = record(c);
	free(c->arguments);
	free(c->argv);
	free(c);
	return status;
}

const struct command cmd_collect = {
	.name = "collect",
	.usage = "--pid PID",
	.purpose = "Record a program that has loaded libmlprof.so by itself",
	.description = "Started by libmlprof.so, not by hand.",
	.hidden = true,
	.run = run,
};

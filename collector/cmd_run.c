/*
 * cmd_run.c - `mlprof run -- COMMAND`: starts a program under libmlprof.so and records it.
 */
#include "child.h"
#include "command.h"
#include "locate.h"
#include "output.h"
#include "page.h"
#include "record.h"
#include "status.h"
#include "target.h"
#include "turn.h"
#include "util/say.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct run {
	struct settings set;
	struct target target;
	char **argv;
	char library[512];
	struct child child;
	struct output output;
	struct recording *recording;
	struct status status;
};

/* ---- before ------------------------------------------------------------------------ */

/* 0, or the exit status. */
static int prepare(struct run *r, char **argv)
{
	r->argv = argv;
	if (!argv[0]) {
		say("run: no command given; try 'mlprof run -- ./model' or 'mlprof help run'");
		return EXIT_MLPROF;
	}
	int refused = target_find(&r->target, argv[0]);

	if (refused) {
		say("%s", r->target.why);
		return refused;
	}
	if (!locate_library(r->library, sizeof r->library))
		return EXIT_MLPROF;
	if (strpbrk(r->library, " :")) {
		say("LD_PRELOAD cannot hold a path with a space or a colon: %s", r->library);
		return EXIT_MLPROF;
	}
	return 0;
}

static void erase_status(void *to)
{
	status_erase(to);
}

static int say_exec_failed(const struct run *r, int error)
{
	say("%s: %s", r->target.path, strerror(-error));
	return error == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

/* From the fork to the exec. 0, or the exit status with everything taken back. */
static int start(struct run *r)
{
	int error = child_fork(&r->child, r->target.path, r->argv, r->library), status = EXIT_MLPROF;

	if (error) {
		say("cannot start a process: %s", strerror(-error));
		return EXIT_MLPROF;
	}
	turn_own_limits();
	error = child_signals(&r->child);
	if (error)
		say("cannot take signals: %s", strerror(-error));
	bool ready = !error && output_open(&r->output, &r->set, r->argv[0], r->child.pid);

	if (ready)
		r->recording = turn_open(&r->set, r->argv, r->library, &r->output, 0);
	if (r->recording) {
		output_settle(&r->output);      /* before the program goes on: whatever becomes of us, the trace is where it says */
		error = child_go(&r->child, recording_dir(r->recording));
		if (!error) {
			output_begun(&r->output);
			return 0;
		}
		status = say_exec_failed(r, error);
		recording_close(r->recording);
	}
	child_cancel(&r->child);
	if (ready)
		output_discard(&r->output);
	return status;
}

/* ---- during ------------------------------------------------------------------------ */

static void turn(struct run *r, int limit_ms)
{
	int ms = turn_least(recording_step(r->recording), turn_least(limit_ms, status_due_ms(&r->status)));
	struct pollfd wait[] = {
		{ .fd = recording_fd(r->recording), .events = POLLIN },
		{ .fd = r->child.signals, .events = POLLIN },
	};

	output_turn(&r->output, turn_now_ms());
	poll(wait, 2, ms);
	if (wait[1].revents)
		child_heed(&r->child);
	if (r->status.wanted) {
		struct recording_now now = recording_now(r->recording);

		status_draw(&r->status, &now);
	}
}

static void follow(struct run *r)
{
	while (!r->child.ended)
		turn(r, -1);
	recording_died(r->recording, r->child.pid, r->child.how, r->child.code);
	u64 deadline = turn_now_ms() + r->set.wait_ms;

	while (recording_alive(r->recording) && !r->child.hurry && turn_now_ms() < deadline)
		turn(r, deadline - turn_now_ms());
	status_erase(&r->status);
}

static int record(struct run *r)
{
	int refused = start(r);

	if (refused)
		return refused;
	r->child.before_stop = erase_status;
	r->child.to = &r->status;
	status_init(&r->status, !r->set.quiet && !r->set.json);
	follow(r);
	child_release(&r->child);
	turn_finish(r->recording, &r->output, &r->set);
	recording_close(r->recording);
	return child_status(&r->child);
}

static int run(int argc, char **argv)
{
	struct run *r = calloc(1, sizeof *r);
	int status = EXIT_MLPROF;

	if (!r)
		return EXIT_MLPROF;
	option_presets(settings_rows, &r->set);
	int at = option_arguments(settings_rows, &r->set, "run", argc, argv);

	if (at == -2) {
		status = page_show(&cmd_run);
	} else if (at > 0) {
		/* Variables first, options over them; but a wrong option is said before a wrong variable. */
		option_presets(settings_rows, &r->set);
		if (option_environment(settings_rows, &r->set)) {
			option_arguments(settings_rows, &r->set, "run", argc, argv);
			status = prepare(r, argv + at);
			if (!status)
				status = record(r);
		}
	}
	free(r);
	return status;
}

const struct command cmd_run = {
	.name = "run",
	.usage = "[options] -- COMMAND [ARGUMENT...]",
	.purpose = "Profile a program and all processes it starts",
	.description =
		"Runs COMMAND with libmlprof.so loaded into it, and records every allocation, what runs on OpenCL and Vulkan devices and in IREE's CPU "
		"kernels, and calls to libraries that there are probes for (PyTorch, BLAS, llama.cpp and others: mlprof probes lists them). Writes a Perfetto trace of "
		"the whole process tree and a summary of the memory peak, kernels and calls. The program's output, exit status and signals "
		"stay its own.\n\n"
		"Most options can also be set by an environment variable, as MLPROF_ON_FULL for --on-full; an option on the "
		"command line wins. The variables work for LD_PRELOAD=libmlprof.so without this command, too.\n\n"
		"The exit status is the program's, 128+N if signal N ended it, 125 if mlprof itself failed, 126 if COMMAND "
		"cannot be executed or profiled, 127 if it was not found.",
	.examples =
		"mlprof run -- ./model --batch 8\tprofile a program\n"
		"mlprof run -o a.perfetto-trace -- python3 train.py\tchoose the name of the trace\n"
		"mlprof run --json -- ./model > summary.json\tprint the summary for a script\n"
		"mlprof run --large=64K --follow=none -- make\tdraw smaller blocks; leave child processes out\n"
		"mlprof run --raw run.mlp -- ./model\tkeep the raw stream as well\n"
		"mlprof run --probes=+openmp,./my.probes -- ./model\talso record OpenMP's regions, and calls of your own choice\n",
	.rows = settings_rows,
	.run = run,
};

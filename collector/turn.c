/* turn.c - what `run` and `collect` have in common. */
#include "turn.h"
#include "probe/probe.h"
#include "util/say.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { PRIORITY = -10 };        /* a reader that gets no turn makes the program wait */

static void free_list(char **list)
{
	for (char **text = list; text && *text; text++)
		free(*text);
	free(list);
}

struct recording *turn_open(const struct settings *set, char *const *command, const char *library,
			    const struct output *output, u32 bare_pid)
{
	struct probe_choice probes;
	struct probe_error mistake;

	if (!probes_choose(set->probes, &probes, &mistake)) {
		say("%s", mistake.text);
		return NULL;
	}
	char **options = option_changed(settings_rows, set), why[512] = "";
	struct recording_setup setup = {
		.command = command,
		.large = set->large,
		.stacks = set->stacks,
		.on_full = set->on_full,
		.follow = set->follow,
		.device_time = set->device_time,
		.apis = set->apis | (probes.iree ? API_IREE : 0),
		.check_stacks = set->check_stacks,
		.sample_ms = set->sample_ms,
		.bare_pid = bare_pid,
		.library = library,
		.trace = output->trace.name,
		.raw = output->raw.now,
		.raw_name = output->raw.name,
		.options = (const char *const *)options,
		.probes = probes.table,
		.probes_bytes = probes.table_bytes,
		.probe_rows = probes.source,
		.probe_rows_bytes = probes.source_bytes,
		.listener = &output->listener,
	};
	struct recording *r = NULL;
	int error = recording_open(&r, &setup, why, sizeof why);

	free_list(options);
	probes_choice_release(&probes);
	if (!error)
		return r;
	say("%s: %s", *why ? why : "cannot record", strerror(-error));
	return NULL;
}

void turn_finish(struct recording *r, struct output *output, const struct settings *set)
{
	struct session *s = recording_end(r);
	int error = recording_raw_error(r);

	if (error)
		say("cannot write '%s': %s; the raw stream ends early", output->raw.name, strerror(-error));
	output_finish(output, set, s);
	recording_done(r);
}

/* Descriptors 0 to 2 that the caller closed must not become files of ours. */
static void fill_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= 2);
	if (fd > 2)
		close(fd);
}

static void raise_limit(int which)
{
	struct rlimit limit;

	if (!getrlimit(which, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(which, &limit);
	}
}

void turn_own_limits(void)
{
	fill_standard_descriptors();
	setpriority(PRIO_PROCESS, 0, PRIORITY);         /* refused to most users: then we do without */
	raise_limit(RLIMIT_NOFILE);
	raise_limit(RLIMIT_FSIZE);
	signal(SIGXFSZ, SIG_IGN);                       /* a file that may not grow is like a full disk */
}

u64 turn_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

int turn_least(int a_ms, int b_ms)
{
	return a_ms < 0 ? b_ms : b_ms < 0 || a_ms < b_ms ? a_ms : b_ms;
}

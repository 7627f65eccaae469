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

/* What --probes names: a table, its source, and what is no row; empty where it names none. False: something is wrong, and was said. */
static bool choose_probes(const struct settings *set, struct buf *table, struct buf *source, u32 *apis)
{
	struct probe_set *probes = probes_new();
	struct probe_error error = { "no memory for the probes" };
	bool good = probes_select(probes, set->probes, &error) && (!probes_count(probes) || probes_compile(probes, table));

	if (good && probes_count(probes))
		probes_source(probes, source);
	*apis = probes_has_preset(probes, "iree") ? API_IREE : 0;
	if (!good)
		say("%s", error.text);
	probes_free(probes);
	return good;
}

struct recording *turn_open(const struct settings *set, char *const *command, const char *library,
			    const struct output *output, u32 bare_pid)
{
	struct buf table = { 0 }, source = { 0 };
	u32 probed_apis = 0;

	if (!choose_probes(set, &table, &source, &probed_apis))
		return NULL;
	char **options = option_changed(settings_rows, set), why[512] = "";
	struct recording_setup setup = {
		.command = command,
		.large = set->large,
		.stacks = set->stacks,
		.on_full = set->on_full,
		.follow = set->follow,
		.device_time = set->device_time,
		.apis = set->apis | probed_apis,
		.check_stacks = set->check_stacks,
		.sample_ms = set->sample_ms,
		.bare_pid = bare_pid,
		.library = library,
		.trace = output->trace.name,
		.raw = output->raw.now,
		.raw_name = output->raw.name,
		.options = (const char *const *)options,
		.probes = table.at,
		.probes_bytes = table.used,
		.probe_rows = source.at,
		.probe_rows_bytes = source.used,
		.listener = &output->listener,
	};
	struct recording *r = NULL;
	int error = recording_open(&r, &setup, why, sizeof why);

	free_list(options);
	buf_release(&table);
	buf_release(&source);
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

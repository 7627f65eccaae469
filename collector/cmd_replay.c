/* cmd_replay.c - `mlprof replay`: trace and summary once more, from a raw stream. */
#include "command.h"
#include "model/intake.h"
#include "output.h"
#include "page.h"
#include "read/replay.h"
#include "util/say.h"

#include <stdio.h>
#include <stdlib.h>

#define AT(field) offsetof(struct settings, field)

static const struct option_row rows[] = {
	{ 'o', "output", OPTION_FILE, "FILE", NULL, AT(output), 0,
	  "Write the trace to FILE instead of STREAM.perfetto-trace, and the summaries beside it." },
	{ 'q', "quiet", OPTION_FLAG, NULL, NULL, AT(quiet), 0, "Print no summary." },
	{ 0, "json", OPTION_FLAG, NULL, NULL, AT(json), 0,
	  "Print the summary as JSON on standard output instead of as text on standard error." },
	{ 0, "debuginfod", OPTION_FLAG, NULL, NULL, AT(debuginfod), 0,
	  "Fetch missing debug information from the servers in DEBUGINFOD_URLS." },
	{ 0 }
};

static int replay(const struct settings *set, const char *stream)
{
	struct output output;
	char why[512] = "";

	if (!output_open(&output, set, stream, 0))
		return EXIT_USAGE;
	struct session *s = replay_file(stream, &output.listener, why, sizeof why);

	if (!s) {
		say("%s: %s", stream, why);
		output_discard(&output);
		return EXIT_USAGE;
	}
	output_settle(&output);
	output_begun(&output);
	int error = output_finish(&output, set, s);

	session_free(s);
	return error ? EXIT_USAGE : 0;
}

static int run(int argc, char **argv)
{
	struct settings set = { 0 };
	char *name = NULL;

	option_presets(rows, &set);
	int result = option_anywhere(rows, &set, "replay", &argc, argv);

	if (result == -2)
		return page_show(&cmd_replay);
	if (result || argc != 2) {
		if (!result)
			say("replay: give one raw stream; 'mlprof help replay' says more");
		return EXIT_USAGE;
	}
	if (!set.output && asprintf(&name, "%s.perfetto-trace", argv[1]) >= 0)
		set.output = name;
	result = replay(&set, argv[1]);
	free(name);
	return result;
}

const struct command cmd_replay = {
	.name = "replay",
	.usage = "[options] STREAM",
	.purpose = "Make trace and summary again from a raw stream",
	.description =
		"Reads a raw stream kept by mlprof run --raw and makes the trace and the summaries from it, the same to the "
		"byte as those of the run as long as the programs and libraries that were recorded have not changed.",
	.examples = "mlprof replay run.mlp -o again.perfetto-trace\tmake the trace again\n",
	.rows = rows,
	.run = run,
};

/* cmd_dump.c - `mlprof dump`: a raw stream as text. */
#include "command.h"
#include "page.h"
#include "read/replay.h"
#include "util/say.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct wish {
	bool format;
};

static const struct option_row rows[] = {
	{ 0, "format", OPTION_FLAG, NULL, NULL, offsetof(struct wish, format), 0,
	  "Print the description of the record format instead." },
	{ 0 }
};

static int dump(const char *stream)
{
	char why[512] = "";

	if (!replay_dump(stream, 1, why, sizeof why))
		return 0;
	say("%s: %s", stream, why);
	return EXIT_USAGE;
}

static int run(int argc, char **argv)
{
	struct wish wish;

	option_presets(rows, &wish);
	int result = option_anywhere(rows, &wish, "dump", &argc, argv);

	if (result == -2)
		return page_show(&cmd_dump);
	if (result)
		return EXIT_USAGE;
	if (wish.format)
		return replay_format(1) ? EXIT_USAGE : 0;
	if (argc != 2) {
		say("dump: give one raw stream; 'mlprof help dump' says more");
		return EXIT_USAGE;
	}
	return dump(argv[1]);
}

const struct command cmd_dump = {
	.name = "dump",
	.usage = "STREAM | --format",
	.purpose = "List the records of a raw stream",
	.description =
		"Lists every record of a raw stream kept by mlprof run --raw, one a line, in the order in which the chunks "
		"were taken. A probed call is followed by its function and by the values of its row.",
	.examples =
		"mlprof dump run.mlp\tlist the records\n"
		"mlprof dump --format\twhat each record means\n",
	.rows = rows,
	.run = run,
};

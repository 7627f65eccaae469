/* cmd_help.c - `mlprof help`: the tables as text. The build calls it for the man pages and completions. */
#include "page.h"
#include "util/say.h"

#include <stddef.h>
#include <string.h>

struct wish {
	const char *completion, *man;
};

static const struct option_row rows[] = {
	{ 0, "completion", OPTION_TEXT, "bash|zsh|fish", NULL, offsetof(struct wish, completion), OPTION_HIDDEN,
	  "Print the completion script of a shell." },
	{ 0, "man", OPTION_FILE, "FILE", NULL, offsetof(struct wish, man), OPTION_HIDDEN,
	  "Print the man page made from FILE." },
	{ 0 }
};

static bool make(struct buf *b, const struct wish *wish, const char *verb)
{
	if (wish->completion) {
		if (page_completion(b, wish->completion))
			return true;
		say("--completion: '%s' is not one of bash|zsh|fish", wish->completion);
		return false;
	}
	if (wish->man) {
		int error = page_man(b, wish->man);

		if (error)
			say("cannot read '%s': %s", wish->man, strerror(-error));
		return !error;
	}
	if (!verb) {
		page_overview(b);
		return true;
	}
	const struct command *c = command_find(verb);

	if (c)
		page_help(b, c);
	return c;
}

static int run(int argc, char **argv)
{
	struct wish wish;
	struct buf b = { 0 };

	option_presets(rows, &wish);
	int at = option_arguments(rows, &wish, "help", argc, argv);

	if (at == -1)
		return EXIT_USAGE;
	bool good = make(&b, &wish, at == -2 ? "help" : at < argc ? argv[at] : NULL) && !buf_write(&b, 1);

	buf_release(&b);
	return good ? 0 : EXIT_USAGE;
}

const struct command cmd_help = {
	.name = "help",
	.usage = "[COMMAND]",
	.purpose = "Describe a command",
	.description = "Without an argument, help lists the commands; with one, it describes that command and its options.",
	.rows = rows,
	.examples = "mlprof help run\tall options of mlprof run\n",
	.run = run,
};

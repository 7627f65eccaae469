/* main.c - `mlprof`: finds the verb and runs it. */
#include "command.h"
#include "page.h"
#include "util/say.h"

#include <string.h>

static int print_overview(int fd)
{
	struct buf b = { 0 };

	page_overview(&b);
	int error = buf_write(&b, fd);

	buf_release(&b);
	return error ? EXIT_USAGE : 0;
}

static int print_version(void)
{
	struct buf b = { 0 };

	buf_text(&b, "mlprof " MLPROF_VERSION "\n");
	int error = buf_write(&b, 1);

	buf_release(&b);
	return error ? EXIT_USAGE : 0;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		print_overview(2);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
		return print_version();
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return print_overview(1);
	const struct command *command = command_find(argv[1]);

	return command ? command->run(argc - 1, argv + 1) : EXIT_MLPROF;
}

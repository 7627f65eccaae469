/*
 * command.h - one verb, one file, one entry that describes itself.
 *
 * Help, man pages and completions are made from these entries and their option tables (page.h).
 */
#ifndef COMMAND_H
#define COMMAND_H

#include "option.h"

struct command {
	const char *name;
	const char *usage;              /* what follows the name: "[options] -- COMMAND [ARGUMENT...]" */
	const char *purpose;            /* a few words, for lists */
	const char *description;        /* paragraphs, separated by an empty line */
	const char *examples;           /* lines: "command\tmeaning" */
	const struct option_row *rows;
	bool hidden;
	/* argv[0] is the verb; returns the exit status */
	int (*run)(int argc, char **argv);
};

extern const struct command cmd_run, cmd_collect, cmd_replay, cmd_dump, cmd_probes, cmd_help;
extern const struct command *const commands[];  /* NULL at the end */

const struct command *command_find(const char *name);   /* says so and returns NULL if there is none */

#endif

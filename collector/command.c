/* command.c - the table of verbs. */
#include "command.h"
#include "util/say.h"

#include <string.h>

const struct command *const commands[] = {
	&cmd_run, &cmd_replay, &cmd_dump, &cmd_probes, &cmd_help, &cmd_collect,
	NULL
};

const struct command *command_find(const char *name)
{
	const char *names[sizeof commands / sizeof commands[0]] = { 0 };
	int count = 0;

	for (const struct command *const *c = commands; *c; c++) {
		if (!strcmp((*c)->name, name))
			return *c;
		if (!(*c)->hidden)
			names[count++] = (*c)->name;
	}
	const char *meant = nearest(name, names);

	if (meant)
		say("unknown command '%s'; did you mean '%s'?", name, meant);
	else
		say("unknown command '%s'; 'mlprof run -- %s' would profile a program, 'mlprof --help' lists the commands",
		    name, name);
	return NULL;
}

/* test_page.c - help, man pages and completions say the same as the tables. */
#include "page.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"

static struct buf help, man, completion[3];
static const char *const shells[] = { "bash", "zsh", "fish" };

static void make_man(const char *verb)
{
	char path[] = "/tmp/mlprof-test-XXXXXX", text[256];
	int fd = mkstemp(path);
	int length = snprintf(text, sizeof text, ".Os mlprof @VERSION@\n@OPTIONS %s@\n@VARIABLES %s@\n@EXAMPLES %s@\n", verb, verb,
			      verb);

	ok(write(fd, text, length) == length && !page_man(&man, path), "man page of %s", verb);
	ok(strstr(man.at, ".Os mlprof " MLPROF_VERSION "\n") && !strchr(man.at, '@'), "nothing is left to be replaced");
	close(fd);
	unlink(path);
}

static bool everywhere(const char *text)
{
	return strstr(help.at, text) && strstr(man.at, text);
}

static void option(const struct command *c, const struct option_row *row)
{
	char name[80], variable[64];
	bool hidden = row->flags & OPTION_HIDDEN;

	snprintf(name, sizeof name, "--%s", row->name);
	ok(!strstr(help.at, name) == hidden, "%s: help has %s%s", c->name, hidden ? "no " : "", name);
	snprintf(name, sizeof name, "Fl \\-%s", row->name);
	ok(!strstr(man.at, name) == hidden, "%s: man page has %s%s", c->name, hidden ? "no " : "", row->name);
	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof name, "%s%s", i == 2 ? "-l " : "--", row->name);
		ok(!strstr(completion[i].at, name) == hidden, "%s: %s has %s%s", c->name, shells[i], hidden ? "no " : "", name);
	}
	option_variable(row, variable);
	if (!hidden && row->flags & OPTION_VARIABLE)
		ok(everywhere(variable), "%s is described", variable);
	else
		ok(!strstr(man.at, variable), "%s is none", variable);
}

static void command(const struct command *c)
{
	page_help(&help, c);
	make_man(c->name);
	for (const struct option_row *row = c->rows; row && row->name; row++)
		option(c, row);
	ok(strstr(help.at, c->usage), "%s: usage", c->name);
	buf_release(&help);
	buf_release(&man);
}

int main(void)
{
	struct buf overview = { 0 }, none = { 0 };

	page_overview(&overview);
	for (int i = 0; i < 3; i++)
		ok(page_completion(&completion[i], shells[i]), "completion for %s", shells[i]);
	ok(!page_completion(&none, "cmd"), "no other shell");
	for (const struct command *const *c = commands; *c; c++) {
		ok(!strstr(overview.at, (*c)->purpose) == (*c)->hidden, "overview: %s", (*c)->name);
		if (!(*c)->hidden)
			command(*c);
	}
	return done();
}

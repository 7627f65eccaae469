/*
 * page.c - help texts, man page parts and completions from the tables.
 */
#include "page.h"
#include "probe/probe.h"
#include "util/say.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 80, INDENT = 8 };

static bool shown(const struct option_row *row)
{
	return !(row->flags & OPTION_HIDDEN);
}

#define EACH_ROW(row, command) \
	for (const struct option_row *row = (command)->rows; row && row->name; row++) if (shown(row))
#define EACH_COMMAND(c) \
	for (const struct command *const *c = commands; *c; c++) if (!(*c)->hidden)

/* ---- text -------------------------------------------------------------------------- */

/* One paragraph, lines of at most WIDTH, each `indent` to the right. */
static void wrapped(struct buf *b, const char *text, size_t length, int indent)
{
	const char *end = text + length;
	int column = 0;

	while (text < end) {
		int word = strcspn(text, " \n");

		if (text + word > end)
			word = end - text;
		if (column && column + 1 + word > WIDTH) {
			buf_char(b, '\n');
			column = 0;
		}
		if (column)
			buf_char(b, ' ');
		else
			buf_repeat(b, ' ', indent);
		column = column ? column + 1 + word : indent + word;
		buf_add(b, text, word);
		text += word + strspn(text + word, " \n");
	}
	buf_char(b, '\n');
}

static void paragraphs(struct buf *b, const char *text)
{
	while (*text) {
		const char *end = strstr(text, "\n\n");
		size_t length = end ? (size_t)(end - text) : strlen(text);

		wrapped(b, text, length, 0);
		buf_char(b, '\n');
		text += length + (end ? 2 : 0);
	}
}

static void option_heading(struct buf *b, const struct option_row *row)
{
	char variable[64];

	buf_text(b, "  ");
	if (row->letter)
		buf_print(b, "-%c, ", row->letter);
	buf_print(b, "--%s", row->name);
	if (row->value)
		buf_print(b, "=%s", row->value);
	if (row->preset)
		buf_print(b, "   (default %s)", row->preset);
	if (row->flags & OPTION_VARIABLE) {
		option_variable(row, variable);
		buf_print(b, "   [%s]", variable);
	}
	buf_char(b, '\n');
}

struct example {
	bool first;
	const char *command;
	int command_length;
	const char *meaning;
	int meaning_length;
};

static void example_lines(struct buf *b, const struct command *c,
			  void (*show)(struct buf *b, const struct example *e))
{
	for (const char *at = c->examples; at && *at;) {
		int length = strcspn(at, "\t"), meaning = strcspn(at + length + 1, "\n");
		struct example e = { at == c->examples, at, length, at + length + 1, meaning };

		show(b, &e);
		at += length + 1 + meaning;
		at += *at == '\n';
	}
}

static void plain_example(struct buf *b, const struct example *e)
{
	buf_print(b, "  %.*s\n      %.*s\n", e->command_length, e->command, e->meaning_length, e->meaning);
}

void page_help(struct buf *b, const struct command *c)
{
	buf_print(b, "usage: mlprof %s %s\n\n", c->name, c->usage);
	paragraphs(b, c->description);
	bool any = false;

	EACH_ROW(row, c) {
		buf_text(b, any ? "" : "Options:\n");
		any = true;
		option_heading(b, row);
		wrapped(b, row->meaning, strlen(row->meaning), INDENT);
	}
	if (c->examples)
		buf_print(b, "%sExamples:\n", any ? "\n" : "");
	example_lines(b, c, plain_example);
}

int page_show(const struct command *c)
{
	struct buf b = { 0 };

	page_help(&b, c);
	int error = buf_write(&b, 1);

	buf_release(&b);
	return error ? EXIT_USAGE : 0;
}

void page_overview(struct buf *b)
{
	buf_text(b,
		"usage: mlprof COMMAND ...\n\n"
		"mlprof shows where a program's memory and its devices' time go. It leaves a\n"
		"Perfetto trace of the whole process tree and a summary of the peak.\n\n"
		"Commands:\n");
	EACH_COMMAND(c)
		buf_print(b, "  %-8s %s\n", (*c)->name, (*c)->purpose);
	buf_text(b,
		"\n  mlprof run -- ./model         profile a program\n"
		"  LD_PRELOAD=/path/to/libmlprof.so ./model\n"
		"                                the same without the command\n"
		"  mlprof help run               all about one command\n"
		"  mlprof --version\n");
}

/* ---- man pages (mdoc) -------------------------------------------------------------- */

/* A line that starts with a dot or an apostrophe would be a request; a backslash starts an escape. */
static void mdoc_text(struct buf *b, const char *text, int length)
{
	for (int i = 0; i < length; i++) {
		if (text[i] == '\\')
			buf_text(b, "\\e");
		else if (text[i] == '-')
			buf_text(b, "\\-");
		else if (text[i] == '.' && i + 2 < length && text[i + 1] == ' ')
			buf_text(b, ".\n"), i++;
		else
			buf_char(b, text[i]);
	}
	buf_char(b, '\n');
}

static void mdoc_value(struct buf *b, const char *value)
{
	if (!strchr(value, '|')) {
		buf_print(b, "Ar %s", value);
		return;
	}
	for (const char *at = value; *at;) {
		int length = strcspn(at, "|");

		buf_print(b, "%sCm %.*s", at == value ? "" : " | ", length, at);
		at += length + (at[length] == '|');
	}
}

static void mdoc_options(struct buf *b, const struct command *c)
{
	buf_text(b, ".Bl -tag -width Ds\n");
	EACH_ROW(row, c) {
		buf_text(b, ".It ");
		if (row->letter)
			buf_print(b, "Fl %c , ", row->letter);
		buf_print(b, "Fl \\-%s", row->name);
		if (row->value) {
			buf_text(b, " Ns = Ns ");
			mdoc_value(b, row->value);
		}
		buf_char(b, '\n');
		mdoc_text(b, row->meaning, strlen(row->meaning));
		if (row->preset)
			buf_print(b, "The default is %s.\n", row->preset);
	}
	buf_text(b, ".El\n");
}

static void mdoc_variables(struct buf *b, const struct command *c)
{
	char name[64];

	buf_text(b, ".Bl -tag -width Ds\n");
	EACH_ROW(row, c) {
		if (!(row->flags & OPTION_VARIABLE))
			continue;
		option_variable(row, name);
		buf_print(b, ".It Ev %s\n", name);
		buf_print(b, "%s as\n.Fl \\-%s .\n", row->value ? "The same" : "1 or 0; 1 is the same", row->name);
	}
	buf_text(b, ".El\n");
}

static void mdoc_commands(struct buf *b, const struct command *unused)
{
	(void)unused;
	buf_text(b, ".Bl -tag -width Ds\n");
	EACH_COMMAND(c)
		buf_print(b, ".It Cm %s\n%s.\nSee\n.Xr mlprof-%s 1 .\n", (*c)->name, (*c)->purpose, (*c)->name);
	buf_text(b, ".El\n");
}

static void mdoc_example(struct buf *b, const struct example *e)
{
	buf_print(b, "%s%c%.*s:\n.Dl ", e->first ? "" : ".Pp\n", toupper((unsigned char)e->meaning[0]),
		  e->meaning_length - 1, e->meaning + 1);
	mdoc_text(b, e->command, e->command_length);
}

static void mdoc_examples(struct buf *b, const struct command *c)
{
	example_lines(b, c, mdoc_example);
}

static void mdoc_description(struct buf *b, const struct command *c)
{
	for (const char *at = c->description; *at;) {
		const char *end = strstr(at, "\n\n");
		int length = end ? end - at : (int)strlen(at);

		if (at != c->description)
			buf_text(b, ".Pp\n");
		mdoc_text(b, at, length);
		at += length + (end ? 2 : 0);
	}
}

static const struct part {
	const char *name;
	void (*make)(struct buf *b, const struct command *c);
} parts[] = {
	{ "DESCRIPTION", mdoc_description },
	{ "OPTIONS", mdoc_options },
	{ "VARIABLES", mdoc_variables },
	{ "COMMANDS", mdoc_commands },
	{ "EXAMPLES", mdoc_examples },
};

/* "@OPTIONS run@" alone on a line */
static bool mdoc_part(struct buf *b, const char *line)
{
	char name[32], verb[32] = "help";

	if (sscanf(line, "@%31[A-Z] %31[a-z]@", name, verb) < 1)
		return false;
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		if (!strcmp(parts[i].name, name)) {
			const struct command *c = command_find(verb);

			if (c)
				parts[i].make(b, c);
			return c;
		}
	}
	return false;
}

int page_man(struct buf *b, const char *template_path)
{
	FILE *file = fopen(template_path, "re");
	char *line = NULL;
	size_t room = 0;

	if (!file)
		return -errno;
	while (getline(&line, &room, file) >= 0) {
		char *version = strstr(line, "@VERSION@");

		if (version)
			buf_print(b, "%.*s%s%s", (int)(version - line), line, MLPROF_VERSION, version + 9);
		else if (!mdoc_part(b, line))
			buf_text(b, line);
	}
	free(line);
	fclose(file);
	return 0;
}

/* ---- completions ------------------------------------------------------------------- */

/* What may stand between the commas of --probes. */
static void probe_words(struct buf *b)
{
	buf_text(b, "all none");
	for (const struct probe_preset *p = probe_presets; p->name; p++)
		buf_print(b, " +%s -%s", p->name, p->name);
}

static void bash_probes(struct buf *b, const struct command *c, const struct option_row *row)
{
	buf_print(b, "\t%s:--%s) COMPREPLY=($(compgen -f -- \"${cur##*,}\") $(compgen -W \"", c->name, row->name);
	probe_words(b);
	buf_text(b, "\" -- \"${cur##*,}\"))\n"
		"\t\t[[ $cur == *,* ]] && COMPREPLY=(\"${COMPREPLY[@]/#/${cur%,*},}\")\n"
		"\t\tcompopt -o nospace 2>/dev/null ;;\n");
}

static void bash_values(struct buf *b, const struct command *c)
{
	EACH_ROW(row, c) {
		if (row->kind == OPTION_FILE) {
			buf_print(b, "\t%s:--%s", c->name, row->name);
			if (row->letter)
				buf_print(b, "|%s:-%c", c->name, row->letter);
			buf_text(b, ") COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n");
		} else if (row->kind == OPTION_CHOICE) {
			buf_print(b, "\t%s:--%s) COMPREPLY=($(compgen -W \"", c->name, row->name);
			for (const char *v = row->value; *v; v++)
				buf_char(b, *v == '|' ? ' ' : *v);
			buf_text(b, "\" -- \"$cur\")) ;;\n");
		} else if (row->kind == OPTION_PROBES) {
			bash_probes(b, c, row);
		} else if (row->value) {
			buf_print(b, "\t%s:--%s) COMPREPLY=() ;;\n", c->name, row->name);
		}
	}
}

static void bash_names(struct buf *b, const struct command *c)
{
	buf_print(b, "\t%s) COMPREPLY=($(compgen -W \"--help", c->name);
	EACH_ROW(row, c) {
		buf_print(b, " --%s%s", row->name, row->value ? "=" : "");
		if (row->letter)
			buf_print(b, " -%c", row->letter);
	}
	buf_text(b, "\" -- \"$cur\"))\n\t\t[[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace ;;\n");
}

static void command_names(struct buf *b)
{
	EACH_COMMAND(c)
		buf_print(b, "%s ", (*c)->name);
}

static void bash(struct buf *b)
{
	buf_text(b,
		"# bash completion for mlprof, made from its option tables\n"
		"_mlprof()\n{\n"
		"\tlocal cur prev words cword split verb=${COMP_WORDS[1]} i\n"
		"\tif declare -F _init_completion >/dev/null; then\n"
		"\t\t_init_completion -s || return\n"
		"\telse\n"
		"\t\tcur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cword=$COMP_CWORD\n"
		"\t\t[[ $cur == = ]] && cur= && prev='='\n"
		"\t\t[[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD-1]}\n"
		"\t\t[[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD-2]}\n"
		"\tfi\n"
		"\tif ((cword == 1)); then\n"
		"\t\tCOMPREPLY=($(compgen -W \"--help --version ");
	command_names(b);
	buf_text(b, "\" -- \"$cur\"))\n\t\treturn\n\tfi\n"
		"\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
		"\t\tif [[ $verb == run && ${COMP_WORDS[i]} == -- ]]; then\n"
		"\t\t\tif declare -F _command_offset >/dev/null; then\n"
		"\t\t\t\t_command_offset $((i + 1))\n"
		"\t\t\telse\n"
		"\t\t\t\tCOMPREPLY=($(compgen -c -f -- \"$cur\"))\n"
		"\t\t\tfi\n"
		"\t\t\treturn\n\t\tfi\n\tdone\n"
		"\tcase $verb:$prev in\n");
	EACH_COMMAND(c)
		bash_values(b, *c);
	buf_text(b, "\thelp:*) COMPREPLY=($(compgen -W \"");
	command_names(b);
	buf_text(b, "\" -- \"$cur\")) ;;\n"
		"\t*) case $cur in\n"
		"\t-*) case $verb in\n");
	EACH_COMMAND(c)
		bash_names(b, *c);
	buf_text(b, "\tesac ;;\n"
		"\t*) if [[ $verb == run ]]; then COMPREPLY=($(compgen -c -f -- \"$cur\"))\n"
		"\t   else COMPREPLY=($(compgen -f -- \"$cur\")); fi ;;\n"
		"\tesac ;;\n\tesac\n}\n"
		"complete -o filenames -F _mlprof mlprof\n");
}

/* The first statement, without what would end a quoted text of zsh or fish early. */
static void short_meaning(struct buf *b, const char *meaning)
{
	for (; *meaning && !strchr(":;", *meaning); meaning++) {
		if (*meaning == '.' && (meaning[1] == ' ' || !meaning[1]))
			return;
		if (!strchr("'[]\\", *meaning))
			buf_char(b, *meaning);
	}
}

static void zsh_row(struct buf *b, const struct option_row *row)
{
	const char *equals = row->value ? "=" : "";

	if (row->letter)
		buf_print(b, "\t\t'(-%c --%s)'{-%c%s,--%s%s}'[", row->letter, row->name, row->letter, row->value ? "+" : "",
			  row->name, equals);
	else
		buf_print(b, "\t\t'--%s%s[", row->name, equals);
	short_meaning(b, row->meaning);
	buf_char(b, ']');
	if (row->value)
		buf_print(b, ":%s:", row->kind == OPTION_CHOICE ? row->name : row->value);
	if (row->kind == OPTION_FILE)
		buf_text(b, "_files");
	if (row->kind == OPTION_PROBES)
		buf_text(b, "_mlprof_probes");
	if (row->kind == OPTION_CHOICE) {
		buf_char(b, '(');
		for (const char *v = row->value; *v; v++)
			buf_char(b, *v == '|' ? ' ' : *v);
		buf_char(b, ')');
	}
	buf_text(b, "' \\\n");
}

static void zsh_verbs(struct buf *b)
{
	buf_text(b, "\t\t'1:command:(");
	command_names(b);
	buf_text(b, ")' ;;\n");
}

static void zsh(struct buf *b)
{
	buf_text(b,
		"#compdef mlprof\n"
		"# zsh completion for mlprof, made from its option tables\n"
		"_mlprof_probes() {\n"
		"\tcompset -P '*,'\n"
		"\tcompadd -S '' -- ");
	probe_words(b);
	buf_text(b, "\n\t_files\n}\n"
		"_mlprof() {\n"
		"\tlocal -a verbs\n"
		"\tverbs=(\n");
	EACH_COMMAND(c)
		buf_print(b, "\t\t'%s:%s'\n", (*c)->name, (*c)->purpose);
	buf_text(b, "\t)\n"
		"\tif (( CURRENT == 2 )); then\n"
		"\t\t_describe command verbs\n"
		"\t\t_arguments '--help[list the commands]' '--version[print the version]'\n"
		"\t\treturn\n\tfi\n"
		"\tlocal verb=$words[2]\n"
		"\tshift words\n\t(( CURRENT-- ))\n"
		"\tcase $verb in\n");
	EACH_COMMAND(c) {
		buf_print(b, "\t%s) _arguments -S \\\n", (*c)->name);
		EACH_ROW(row, *c)
			zsh_row(b, row);
		if (!strcmp((*c)->name, "run"))
			buf_text(b, "\t\t'--help[describe this command]' '(-)1: :_command_names -e' '*:: :_normal' ;;\n");
		else if (!strcmp((*c)->name, "help"))
			zsh_verbs(b);
		else if (!strcmp((*c)->name, "probes"))
			buf_text(b, "\t\t'--help[describe this command]' '*:preset, probe file or library:_files' ;;\n");
		else
			buf_text(b, "\t\t'--help[describe this command]' '1:raw stream:_files' ;;\n");
	}
	buf_text(b, "\tesac\n}\n_mlprof \"$@\"\n");
}

static void fish_row(struct buf *b, const struct command *c, const struct option_row *row)
{
	buf_print(b, "complete -c mlprof -n '__fish_seen_subcommand_from %s' -l %s", c->name, row->name);
	if (row->letter)
		buf_print(b, " -s %c", row->letter);
	if (row->kind == OPTION_FILE || row->kind == OPTION_PROBES)
		buf_text(b, " -r -F");
	else if (row->value)
		buf_text(b, " -x");
	if (row->kind == OPTION_PROBES) {
		buf_text(b, " -a \"(commandline -ct | string replace -r '^--[^=]*=' '' | string replace -r '[^,]*\\$' '')(string split ' ' -- '");
		probe_words(b);
		buf_text(b, "')\"");
	}
	if (row->kind == OPTION_CHOICE) {
		buf_text(b, " -a '");
		for (const char *v = row->value; *v; v++)
			buf_char(b, *v == '|' ? ' ' : *v);
		buf_char(b, '\'');
	}
	buf_text(b, " -d '");
	short_meaning(b, row->meaning);
	buf_text(b, "'\n");
}

static void fish(struct buf *b)
{
	buf_text(b, "# fish completion for mlprof, made from its option tables\n");
	EACH_COMMAND(c) {
		buf_print(b, "complete -c mlprof -n __fish_use_subcommand -f -a %s -d '%s'\n", (*c)->name, (*c)->purpose);
		EACH_ROW(row, *c)
			fish_row(b, *c, row);
	}
	buf_text(b,
		"complete -c mlprof -n __fish_use_subcommand -l version -d 'print the version'\n"
		"complete -c mlprof -l help -d 'print help'\n"
		"complete -c mlprof -n '__fish_seen_subcommand_from run' -a '(__fish_complete_subcommand --fcs-skip=2)'\n"
		"complete -c mlprof -n '__fish_seen_subcommand_from help' -f -a '");
	command_names(b);
	buf_text(b, "'\n");
}

bool page_completion(struct buf *b, const char *shell)
{
	static const struct { const char *name; void (*make)(struct buf *b); } shells[] = {
		{ "bash", bash }, { "zsh", zsh }, { "fish", fish },
	};

	for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
		if (!strcmp(shells[i].name, shell)) {
			shells[i].make(b);
			return true;
		}
	}
	return false;
}

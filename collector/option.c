/* option.c - options from the command line and the environment, by table. */
#include "option.h"
#include "util/say.h"
#include "util/units.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ------------------------------------------------------------------------ */

static bool parse_flag(const struct option_row *row, const char *text, void *to)
{
	static const char *const word[] = { "0", "1", "no", "yes", "false", "true", "off", "on", NULL };

	(void)row;
	for (int i = 0; word[i]; i++) {
		if (!strcmp(text, word[i])) {
			*(bool *)to = i & 1;
			return true;
		}
	}
	return false;
}

static bool parse_text(const struct option_row *row, const char *text, void *to)
{
	(void)row;
	*(const char **)to = text;
	return *text;
}

static bool parse_choice(const struct option_row *row, const char *text, void *to)
{
	size_t length = strlen(text);
	u32 place = 0;

	for (const char *at = row->value; *at; place++) {
		size_t span = strcspn(at, "|");

		if (span == length && !memcmp(at, text, span)) {
			*(u32 *)to = place;
			return true;
		}
		at += span + (at[span] == '|');
	}
	return false;
}

/* Bit of one word of "first,second,...", or 0. */
static u32 word_bit(const char *words, const char *word, size_t length)
{
	for (u32 bit = 1; *words; bit <<= 1) {
		size_t span = strcspn(words, ",");

		if (span == length && !memcmp(words, word, span))
			return bit;
		words += span + (words[span] == ',');
	}
	return 0;
}

static bool parse_set(const struct option_row *row, const char *text, void *to)
{
	u32 all = 0;

	if (strcmp(text, "none"))
		for (;;) {
			size_t span = strcspn(text, ",");
			u32 bit = word_bit(row->value, text, span);

			if (!bit)
				return false;
			all |= bit;
			if (!text[span])
				break;
			text += span + 1;
		}
	*(u32 *)to = all;
	return true;
}

static bool parse_size(const struct option_row *row, const char *text, void *to)
{
	(void)row;
	return units_parse_bytes(text, to);
}

static bool parse_count(const struct option_row *row, const char *text, void *to)
{
	char *end;

	(void)row;
	errno = 0;
	unsigned long value = strtoul(text, &end, 10);

	if (!isdigit((unsigned char)*text) || *end || errno || value > INT_MAX)
		return false;
	*(u32 *)to = value;
	return true;
}

static bool parse_seconds(const struct option_row *row, const char *text, void *to)
{
	char *end;

	(void)row;
	double value = strtod(text, &end);

	if (!isdigit((unsigned char)*text) || *end || !(value >= 0 && value <= 1e6))
		return false;
	*(u32 *)to = value * 1000;
	return true;
}

static const struct kind {
	bool (*parse)(const struct option_row *row, const char *text, void *to);
	size_t size;
	const char *expected;
} kinds[] = {
	[OPTION_FLAG] = { parse_flag, sizeof(bool), "1 or 0" },
	[OPTION_FILE] = { parse_text, sizeof(char *), "the name of a file" },
	[OPTION_TEXT] = { parse_text, sizeof(char *), "a text" },
	[OPTION_PROBES] = { parse_text, sizeof(char *), "presets and probe files" },
	[OPTION_CHOICE] = { parse_choice, sizeof(u32), NULL },
	[OPTION_SET] = { parse_set, sizeof(u32), NULL },
	[OPTION_SIZE] = { parse_size, sizeof(u64), "a size such as 65536, 64K, 1MiB or 2GiB" },
	[OPTION_COUNT] = { parse_count, sizeof(u32), "a whole number" },
	[OPTION_SECONDS] = { parse_seconds, sizeof(u32), "a number of seconds such as 2 or 0.5" },
};

static void *place(const struct option_row *row, void *settings)
{
	return (char *)settings + row->at;
}

/* `from` is how the user named it: --stacks, -o or MLPROF_STACKS. */
static bool set(const struct option_row *row, void *settings, const char *from, const char *text)
{
	const struct kind *kind = &kinds[row->kind];

	if (kind->parse(row, text, place(row, settings)))
		return true;
	if (row->kind == OPTION_CHOICE)
		say("%s: '%s' is not one of %s", from, text, row->value);
	else if (row->kind == OPTION_SET)
		say("%s: '%s' is not none, nor made of %s", from, text, row->value);
	else
		say("%s: '%s' is not %s", from, text, kind->expected);
	return false;
}

void option_presets(const struct option_row *rows, void *settings)
{
	for (; rows->name; rows++) {
		memset(place(rows, settings), 0, kinds[rows->kind].size);
		if (rows->preset)
			kinds[rows->kind].parse(rows, rows->preset, place(rows, settings));
	}
}

/* ---- environment ------------------------------------------------------------------- */

void option_variable(const struct option_row *row, char name[static 64])
{
	snprintf(name, 64, "MLPROF_%s", row->name);
	for (char *c = name; *c; c++)
		*c = *c == '-' ? '_' : toupper((unsigned char)*c);
}

bool option_environment(const struct option_row *rows, void *settings)
{
	char name[64];

	for (; rows->name; rows++) {
		option_variable(rows, name);
		const char *text = rows->flags & OPTION_VARIABLE ? getenv(name) : NULL;

		if (text && *text && !set(rows, settings, name, text))
			return false;
	}
	return true;
}

/* ---- command line ------------------------------------------------------------------ */

struct words {
	int argc, next;
	char **argv;
	const char *command;
	const struct option_row *rows;
	void *settings;
};

static const struct option_row *by_name(const struct option_row *rows, const char *name, size_t length)
{
	for (; rows->name; rows++)
		if (strlen(rows->name) == length && !memcmp(rows->name, name, length))
			return rows;
	return NULL;
}

static const struct option_row *by_letter(const struct option_row *rows, char letter)
{
	for (; rows->name; rows++)
		if (rows->letter == letter)
			return rows;
	return NULL;
}

static bool say_unknown(const struct words *w, const char *word)
{
	const char *names[64] = { 0 };
	char name[64];
	int count = 0;

	snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
	for (const struct option_row *row = w->rows; row->name && count < 62; row++)
		names[count++] = row->name;
	names[count] = "help";
	const char *meant = strncmp(name, "--", 2) ? NULL : nearest(name + 2, names);

	if (meant)
		say("%s: unknown option '%s'; did you mean --%s?", w->command, name, meant);
	else
		say("%s: unknown option '%s'; 'mlprof help %s' lists them", w->command, name, w->command);
	return false;
}

static bool take(struct words *w, const struct option_row *row, const char *from, const char *text)
{
	if (row->kind == OPTION_FLAG && !text) {
		*(bool *)place(row, w->settings) = true;
		return true;
	}
	if (!text && w->next < w->argc)
		text = w->argv[w->next++];
	if (!text) {
		say("%s: a value is missing: %s", from, row->value);
		return false;
	}
	return set(row, w->settings, from, text);
}

static bool take_long(struct words *w, const char *word)
{
	const char *name = word + 2, *equals = strchr(name, '=');
	const struct option_row *row = by_name(w->rows, name, equals ? (size_t)(equals - name) : strlen(name));
	char from[64];

	if (!row)
		return say_unknown(w, word);
	snprintf(from, sizeof from, "--%s", row->name);
	return take(w, row, from, equals ? equals + 1 : NULL);
}

/* -q, -oFILE, -o FILE, -qo FILE */
static bool take_letters(struct words *w, const char *word)
{
	for (const char *c = word + 1; *c; c++) {
		const struct option_row *row = by_letter(w->rows, *c);
		char from[] = { '-', *c, 0 };

		if (!row)
			return say_unknown(w, from);
		if (row->kind != OPTION_FLAG)
			return take(w, row, from, c[1] ? c + 1 : NULL);
		take(w, row, from, NULL);
	}
	return true;
}

enum { GOOD, WRONG = -1, HELP = -2 };

static int take_word(struct words *w, const char *word)
{
	if (!strcmp(word, "--help") || !strcmp(word, "-h"))
		return HELP;
	return (word[1] == '-' ? take_long(w, word) : take_letters(w, word)) ? GOOD : WRONG;
}

int option_arguments(const struct option_row *rows, void *settings, const char *command, int argc, char **argv)
{
	struct words w = { argc, 1, argv, command, rows, settings };

	while (w.next < argc) {
		const char *word = argv[w.next];

		if (word[0] != '-' || !word[1])
			return w.next;
		w.next++;
		if (!strcmp(word, "--"))
			return w.next;
		int result = take_word(&w, word);

		if (result)
			return result;
	}
	return w.next;
}

int option_anywhere(const struct option_row *rows, void *settings, const char *command, int *argc, char **argv)
{
	int kept = 1, at = 1;

	while (at < *argc) {
		int more = option_arguments(rows, settings, command, *argc - at + 1, argv + at - 1);

		if (more < 0)
			return more;
		bool dashes = more > 1 && !strcmp(argv[at + more - 2], "--");

		at += more - 1;
		do {
			if (at < *argc)
				argv[kept++] = argv[at++];
		} while (dashes && at < *argc);
	}
	*argc = kept;
	argv[kept] = NULL;
	return GOOD;
}

/* ---- what was chosen --------------------------------------------------------------- */

static void show_set(const char *words, u32 set, char *text, size_t size)
{
	size_t used = 0;

	snprintf(text, size, "none");
	for (; set && *words; set >>= 1) {
		size_t span = strcspn(words, ",");

		if (set & 1 && used < size)
			used += snprintf(text + used, size - used, "%s%.*s", used ? "," : "", (int)span, words);
		words += span + (words[span] == ',');
	}
}

static void show(const struct option_row *row, const void *at, char *text, size_t size)
{
	const char *choice = row->value;

	switch (row->kind) {
	case OPTION_FLAG:
		snprintf(text, size, "%d", *(const bool *)at);
		break;
	case OPTION_FILE:
	case OPTION_TEXT:
	case OPTION_PROBES:
		snprintf(text, size, "%s", *(char *const *)at ? *(char *const *)at : "");
		break;
	case OPTION_CHOICE:
		for (u32 skip = *(const u32 *)at; skip; skip--)
			choice += strcspn(choice, "|") + 1;
		snprintf(text, size, "%.*s", (int)strcspn(choice, "|"), choice);
		break;
	case OPTION_SET:
		show_set(row->value, *(const u32 *)at, text, size);
		break;
	case OPTION_SIZE:
		snprintf(text, size, "%llu", (unsigned long long)*(const u64 *)at);
		break;
	case OPTION_COUNT:
		snprintf(text, size, "%u", *(const u32 *)at);
		break;
	case OPTION_SECONDS:
		snprintf(text, size, "%g", *(const u32 *)at / 1000.0);
		break;
	}
}

static bool is_preset(const struct option_row *row, const void *at)
{
	union { bool flag; const char *text; u32 count; u64 size; } preset = { .size = 0 };

	if (row->preset)
		kinds[row->kind].parse(row, row->preset, &preset);
	return !memcmp(&preset, at, kinds[row->kind].size);
}

char **option_changed(const struct option_row *rows, const void *settings)
{
	int count = 0, total = 0;

	while (rows[total].name)
		total++;
	char **list = calloc(total + 1, sizeof *list);

	for (const struct option_row *row = rows; list && row->name; row++) {
		const void *at = (const char *)settings + row->at;
		char value[512];

		if (!(row->flags & OPTION_RECORDED) || is_preset(row, at))
			continue;
		show(row, at, value, sizeof value);
		if (asprintf(&list[count], "%s=%s", row->name, value) >= 0)
			count++;
		else
			list[count] = NULL;
	}
	return list;
}

/*
 * option.h - rows of a table make a command's options.
 *
 *   { 'o', "output", OPTION_FILE, "FILE", ... }   ->  -o FILE, --output=FILE, --output FILE
 *                                                     MLPROF_OUTPUT=FILE
 *                                                     a line of --help, of the man page, of the completions
 *
 * All ways in share one parser of values, so they accept and refuse the same things.
 */
#ifndef OPTION_H
#define OPTION_H

#include <mlprof/wire.h>
#include <stdbool.h>

enum option_kind {
	OPTION_FLAG,            /* bool */
	OPTION_FILE,            /* const char *, not empty */
	OPTION_TEXT,            /* const char *, not empty */
	OPTION_PROBES,          /* the same: presets and probe files, with commas between */
	OPTION_CHOICE,          /* u32: place in the row's value, "first|second|..." */
	OPTION_SET,             /* u32: bit 0 for the first word of the row's value "first,second,...", and so on; "none" is empty */
	OPTION_SIZE,            /* u64 bytes */
	OPTION_COUNT,           /* u32 */
	OPTION_SECONDS,         /* u32 milliseconds, written as seconds */
};

enum {
	OPTION_VARIABLE = 1,    /* MLPROF_NAME sets it too */
	OPTION_RECORDED = 2,    /* it shapes the recording: noted in the stream and the trace when not at its default */
	OPTION_HIDDEN = 4,      /* not in --help and the completions */
};

struct option_row {
	char letter;            /* 0: none */
	const char *name;
	enum option_kind kind;
	const char *value;      /* as shown after the name; NULL for a flag */
	const char *preset;     /* as the user would write it; NULL: 0, NULL or false */
	size_t at;              /* place of the result in the command's settings */
	unsigned flags;
	const char *meaning;
};

/* Presets of all rows. A table ends with a row without a name. */
void option_presets(const struct option_row *rows, void *settings);
/* MLPROF_* of the environment. False: something was wrong and said. */
bool option_environment(const struct option_row *rows, void *settings);
/*
 * Options up to the first word that is none, or "--". Returns the index of the first word after them, or -1 when
 * something was wrong and said, or -2 when --help was asked for.
 */
int option_arguments(const struct option_row *rows, void *settings, const char *command, int argc, char **argv);
/* For commands whose options and words may come in any order: takes the options out of argv, leaving argv[0] and
 * the words. 0, or -1 and -2 as above. */
int option_anywhere(const struct option_row *rows, void *settings, const char *command, int *argc, char **argv);

/* "name=value" of the rows marked OPTION_RECORDED whose value is not the preset. NULL at the end; the caller frees
 * the list and each text. */
char **option_changed(const struct option_row *rows, const void *settings);

void option_variable(const struct option_row *row, char name[static 64]);       /* MLPROF_ON_FULL */

#endif

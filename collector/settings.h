/*
 * settings.h - the options of a recording. settings.c has the one table of them.
 */
#ifndef SETTINGS_H
#define SETTINGS_H

#include "option.h"

struct settings {
	const char *output, *raw;       /* NULL: default name; no raw stream */
	const char *probes;             /* NULL: the presets that are on by default */
	u64 large;
	u32 stacks, follow, on_full;    /* as in struct control */
	u32 device_time, apis;
	u32 sample_ms, wait_ms;
	bool quiet, json, debuginfod, check_stacks;
};

extern const struct option_row settings_rows[];

#endif

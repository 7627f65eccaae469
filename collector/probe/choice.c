/*
 * choice.c - what a recording takes with it of the probes that --probes chose. For the presets that are on by default it was made
 * when mlprof was built (embed_default.c): most recordings begin so, and the program waits for it.
 */
#include "probe.h"

#include <stdio.h>
#include <stdlib.h>

static bool make(const struct probe_set *set, struct probe_choice *to)
{
	struct buf table = { 0 }, source = { 0 };
	bool good = true;

	if (probes_count(set)) {
		good = probes_compile(set, &table);
		probes_source(set, &source);
	}
	*to = (struct probe_choice) { table.at, source.at, table.used, source.used, probes_has_preset(set, "iree") };
	return good && !source.failed;
}

static bool make_of_words(const char *words, struct probe_choice *to, struct probe_error *error)
{
	struct probe_set *set = probes_new();
	bool good = probes_select(set, words, error);

	if (good && !make(set, to)) {
		snprintf(error->text, sizeof(error->text), "no memory for the probes");
		probes_choice_release(to);
		good = false;
	}
	probes_free(set);
	return good;
}

bool probes_choose(const char *words, struct probe_choice *to, struct probe_error *error)
{
	*to = probe_choice_default;
	return !words || make_of_words(words, to, error);
}

void probes_choice_release(struct probe_choice *choice)
{
	if (choice->table != probe_choice_default.table) {
		free((char *)choice->table);
		free((char *)choice->source);
	}
	*choice = (struct probe_choice) { 0 };
}

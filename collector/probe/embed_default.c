/*
 * embed_default.c - runs while mlprof is built: prints default_choice.c, the table and the source of the presets that are on by
 * default. Nothing in these bytes depends on the machine, as long as it is little-endian. A preset with a mistake ends the build here.
 */
#include "probe.h"

#include <ctype.h>
#include <stdio.h>

enum { LINE_BYTES = 48 };

static void put_bytes(const char *name, const struct buf *b)
{
	printf("\nstatic const char %s[] =", name);
	for (size_t i = 0; i < b->used; i++) {
		unsigned char c = (unsigned char)b->at[i];

		if (i % LINE_BYTES == 0)
			printf("%s\n\t\"", i ? "\"" : "");
		printf(isprint(c) && !strchr("\"\\?", c) ? "%c" : "\\%03o", c);     /* "??=" is one character, of old */
	}
	printf("\"\n\t;\n");
}

static void put_choice(const struct buf *table, const struct buf *source, bool iree)
{
	printf("/* default_choice.c - made by embed_default.c */\n#include \"probe/probe.h\"\n");
	put_bytes("table", table);
	put_bytes("source", source);
	printf("\nconst struct probe_choice probe_choice_default = {\n"
	       "\ttable, source, sizeof(table) - 1, sizeof(source) - 1, %s\n};\n", iree ? "true" : "false");
}

int main(void)
{
	struct probe_set *set = probes_new();
	struct probe_error error = { "" };
	struct buf table = { 0 }, source = { 0 };
	bool good = probes_select(set, NULL, &error) && probes_compile(set, &table);

	if (good)
		probes_source(set, &source);
	good = good && !source.failed;
	if (good)
		put_choice(&table, &source, probes_has_preset(set, "iree"));
	else
		fprintf(stderr, "%s\n", error.text);
	probes_free(set);
	buf_release(&table);
	buf_release(&source);
	return good && !fflush(stdout) ? 0 : 1;
}

/* cmd_probes.c - `mlprof probes`: which presets and rows there are, and what they would see in a library. */
#include "command.h"
#include "page.h"
#include "probe/library.h"
#include "util/json.h"
#include "util/say.h"

#include <stdlib.h>
#include <string.h>

struct wish {
	bool check, json;
	const char *probes;
};

static const struct option_row rows[] = {
	{ 0, "check", OPTION_FLAG, NULL, NULL, offsetof(struct wish, check), 0,
	  "The words are files of libraries or programs: tell which rows find their symbol there, and whether calls to it can be seen." },
	{ 0, "probes", OPTION_PROBES, "LIST", NULL, offsetof(struct wish, probes), 0,
	  "With --check: the rows to look for, as in mlprof run --probes; all presets if not given." },
	{ 0, "json", OPTION_FLAG, NULL, NULL, offsetof(struct wish, json), 0, "Print JSON." },
	{ 0 }
};

static int print(struct buf *b)
{
	int error = buf_write(b, 1);

	buf_release(b);
	return error ? EXIT_USAGE : 0;
}

/* NULL: it is said why. */
static struct probe_set *choose(const char *words)
{
	struct probe_set *set = probes_new();
	struct probe_error error;

	if (probes_select(set, words, &error))
		return set;
	say("%s", error.text);
	probes_free(set);
	return NULL;
}

/* ---- lists -------------------------------------------------------------------------------- */

static u32 rows_of(const struct probe_set *set, const char *preset)
{
	u32 count = 0;

	for (u32 i = 0; i < probes_count(set); i++) {
		const struct probe_rule *r = probes_rule(set, i);

		count += r->preset && !strcmp(r->preset, preset);
	}
	return count;
}

static void put_presets(struct buf *b, const struct probe_set *all)
{
	buf_text(b, "Preset       on   rows  what it shows\n");
	for (const struct probe_preset *p = probe_presets; p->name; p++) {
		char purpose[200];

		probe_preset_purpose(p, purpose, sizeof purpose);
		buf_print(b, "%-12s %-3s %5u  %s\n", p->name, probe_preset_on(p) ? "yes" : "no", rows_of(all, p->name), purpose);
	}
	buf_text(b, "\n'mlprof probes PRESET' lists its rows, 'mlprof probes --check LIBRARY' says what they would see there.\n");
}

static void put_row(struct buf *b, const struct probe_rule *r)
{
	int start = b->used;

	buf_print(b, "%s:%u", r->file, r->line);
	buf_repeat(b, ' ', 24 - (int)(b->used - start));
	buf_print(b, " %-8s %s", probe_role_name[r->role], r->symbol);
	buf_repeat(b, ' ', 72 - (int)(b->used - start));
	for (u32 i = 0; i < probe_keys(r); i++)
		buf_print(b, " %s", probe_key(r, i));
	buf_char(b, '\n');
}

static void put_row_json(struct json *j, const struct probe_rule *r, u32 row)
{
	json_count(j, "row", row);
	json_string(j, "symbol", r->symbol);
	json_string(j, "role", probe_role_name[r->role]);
	json_string(j, "preset", r->preset);
	json_string(j, "file", r->file);
	json_count(j, "line", r->line);
}

static void put_rows_json(struct json *j, const struct probe_set *set)
{
	json_open(j, "rows", '[');
	for (u32 i = 0; i < probes_count(set); i++) {
		const struct probe_rule *r = probes_rule(set, i);

		json_open(j, NULL, '{');
		put_row_json(j, r, i);
		json_open(j, "keys", '[');
		for (u32 k = 0; k < probe_keys(r); k++)
			json_string(j, NULL, probe_key(r, k));
		json_close(j, ']');
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_presets_json(struct json *j, const struct probe_set *all)
{
	json_open(j, "presets", '[');
	for (const struct probe_preset *p = probe_presets; p->name; p++) {
		char purpose[200];

		probe_preset_purpose(p, purpose, sizeof purpose);
		json_open(j, NULL, '{');
		json_string(j, "name", p->name);
		json_bool(j, "default", probe_preset_on(p));
		json_string(j, "purpose", purpose);
		json_count(j, "rows", rows_of(all, p->name));
		json_close(j, '}');
	}
	json_close(j, ']');
}

/* "none,blas,my.probes": the words alone, without what is on by default. */
static char *only(int count, char **words)
{
	struct buf b = { 0 };

	buf_text(&b, "none");
	for (int i = 0; i < count; i++)
		buf_print(&b, ",%s", words[i]);
	return b.at;
}

static int list(const struct wish *wish, int count, char **words)
{
	char *names = count ? only(count, words) : NULL;
	struct probe_set *set = choose(names ? names : "all");
	struct json j = { 0 };

	free(names);
	if (!set)
		return EXIT_USAGE;
	if (wish->json) {
		json_open(&j, NULL, '{');
		put_presets_json(&j, set);
		put_rows_json(&j, set);
		json_close(&j, '}');
		buf_char(&j.out, '\n');
	} else if (!count) {
		put_presets(&j.out, set);
	} else {
		for (u32 i = 0; i < probes_count(set); i++)
			put_row(&j.out, probes_rule(set, i));
		if (!probes_count(set))
			buf_text(&j.out, "No rows: what is shown here is found in other ways.\n");
	}
	probes_free(set);
	return print(&j.out);
}

/* ---- --check ------------------------------------------------------------------------------ */

/* What is known of a row's symbols, in the words of the loader. */
static const char *state_of(const struct library_match *m)
{
	if (m->other)
		return "other";
	if (m->by_table)
		return "table";
	if (m->exported)
		return m->called ? "seen" : "outside";
	return m->imported ? "import" : m->missed ? "data" : m->hidden ? "hidden" : "absent";
}

static void put_count(struct buf *b, u32 count, const char *one, const char *many)
{
	if (count > 1)
		buf_print(b, "%u %s", count, many);
	else
		buf_text(b, one);
}

static void put_meaning(struct buf *b, const struct library_match *m)
{
	if (m->other) {
		buf_text(b, "the row is for other libraries: its lib= does not fit this file's name");
	} else if (m->by_table) {
		buf_text(b, "in a table of functions that another row finds: calls through it are seen");
	} else if (m->exported) {
		put_count(b, m->exported, "exported", "functions exported");
		if (m->called)
			buf_print(b, ": seen; calls from inside%s go through PLT or GOT and are seen, too", m->called < m->exported ? " of some" : "");
		else
			buf_text(b, ": calls from outside are seen; calls from inside the library are direct and are not");
	} else if (m->imported) {
		put_count(b, m->imported, "imported", "functions imported");
		buf_text(b, ": calls from here are seen");
	} else if (m->missed) {
		put_count(b, m->missed, "a pointer in data", "functions, all by pointers in data");
		buf_text(b, ": calls through it are seen only by a row with the flag data");
	} else if (m->hidden) {
		put_count(b, m->hidden, "hidden", "functions, all hidden");
		buf_text(b, ": it is there, but only the library itself knows where; calls cannot be seen");
	} else {
		buf_text(b, "not there");
	}
}

struct totals {
	u32 seen, missed, hidden, absent;
};

/* Rows that find nothing are counted, not shown. */
static struct totals put_matches(struct buf *b, const struct library *l, const char *path, const struct probe_set *set)
{
	struct totals t = { 0 };

	for (u32 i = 0; i < probes_count(set); i++) {
		const struct probe_rule *r = probes_rule(set, i);
		struct library_match m = library_match(l, path, set, i);

		if (r->role == ROLE_MODULE)
			continue;
		t.seen += library_seen(&m);
		t.missed += !library_seen(&m) && m.missed;
		t.hidden += !library_seen(&m) && !m.missed && m.hidden;
		t.absent += !library_seen(&m) && !m.missed && !m.hidden;
		if (!strcmp(state_of(&m), "absent"))
			continue;
		buf_print(b, "  %-8s %-10s %-8s %s: ", state_of(&m), r->preset ? r->preset : r->domain, probe_role_name[r->role], r->symbol);
		put_meaning(b, &m);
		buf_char(b, '\n');
	}
	return t;
}

static void put_library(struct buf *b, const struct library *l, const char *path, const struct probe_set *set)
{
	buf_print(b, "%s\n", path);
	struct totals t = put_matches(b, l, path, set);

	buf_print(b, "  %u rows see something here, ", t.seen);
	if (t.missed)
		buf_print(b, "%u would with the flag data, ", t.missed);
	buf_print(b, "%u find only hidden functions, %u find nothing; the file exports %u functions\n", t.hidden, t.absent, l->exported);
	const char *name;

	for (u32 i = 0; (name = library_unseen(l, path, set, i)); i++)
		buf_print(b, "  This file holds %s, linked in as one piece: calls within it cannot be led elsewhere, and nothing of it can be seen.\n", name);
	if (!t.seen && !t.missed && !library_unseen(l, path, set, 0))
		buf_text(b, "  These rows can see nothing in this file. If it holds one of their libraries, then linked in as one piece: calls within "
			    "it cannot be led elsewhere.\n");
}

static void put_library_json(struct json *j, const struct library *l, const char *path, const struct probe_set *set)
{
	json_open(j, NULL, '{');
	json_string(j, "library", path);
	json_count(j, "exported_functions", l->exported);
	json_open(j, "rows", '[');
	for (u32 i = 0; i < probes_count(set); i++) {
		struct library_match m = library_match(l, path, set, i);

		if (probes_rule(set, i)->role == ROLE_MODULE)
			continue;
		json_open(j, NULL, '{');
		put_row_json(j, probes_rule(set, i), i);
		json_string(j, "state", state_of(&m));
		json_count(j, "exported", m.exported);
		json_count(j, "called_inside", m.called);
		json_count(j, "imported", m.imported);
		json_count(j, "in_data", m.in_data);
		json_count(j, "missed", m.missed);
		json_count(j, "hidden", m.hidden);
		json_close(j, '}');
	}
	json_close(j, ']');
	const char *name;

	json_open(j, "unseen", '[');
	for (u32 i = 0; (name = library_unseen(l, path, set, i)); i++)
		json_string(j, NULL, name);
	json_close(j, ']');
	json_close(j, '}');
}

static bool check_one(const struct wish *wish, struct json *j, const char *path, const struct probe_set *set)
{
	struct library l;
	char why[200];

	if (!library_read(&l, path, why, sizeof why)) {
		say("%s: %s", path, why);
		return false;
	}
	if (wish->json)
		put_library_json(j, &l, path, set);
	else
		put_library(&j->out, &l, path, set);
	library_release(&l);
	return true;
}

static int check(const struct wish *wish, int count, char **paths)
{
	struct probe_set *set = choose(wish->probes ? wish->probes : "all");
	struct json j = { 0 };
	bool good = true;

	if (!set)
		return EXIT_USAGE;
	if (wish->json)
		json_open(&j, NULL, '[');
	for (int i = 0; i < count; i++)
		good &= check_one(wish, &j, paths[i], set);
	if (wish->json) {
		json_close(&j, ']');
		buf_char(&j.out, '\n');
	}
	probes_free(set);
	return print(&j.out) || !good ? EXIT_USAGE : 0;
}

/* ---- the command -------------------------------------------------------------------------- */

static int run(int argc, char **argv)
{
	struct wish wish;

	option_presets(rows, &wish);
	int result = option_anywhere(rows, &wish, "probes", &argc, argv);

	if (result == -2)
		return page_show(&cmd_probes);
	if (result)
		return EXIT_USAGE;
	if (wish.check && argc < 2) {
		say("probes: --check needs the file of a library; 'mlprof help probes' says more");
		return EXIT_USAGE;
	}
	if (wish.probes && !wish.check) {
		say("probes: --probes goes with --check; name presets and files as they are to list their rows");
		return EXIT_USAGE;
	}
	return wish.check ? check(&wish, argc - 1, argv + 1) : list(&wish, argc - 1, argv + 1);
}

const struct command cmd_probes = {
	.name = "probes",
	.usage = "[options] [PRESET | FILE...] | --check LIBRARY...",
	.purpose = "List probes, or check what they see in a library",
	.description =
		"A probe is a row of text that makes a span, a kernel, memory or something else of the calls to a function of any "
		"library: mlprof-probes(5) describes it. mlprof comes with presets for many libraries; those that cost little are on "
		"by default, and mlprof run --probes chooses others and files of your own.\n\n"
		"Without a word, probes lists the presets. With names of presets or probe files, it lists their rows, and says what is "
		"wrong with a file. With --check, it reads libraries and says for each row whether the symbol is there and whether "
		"calls to it can be seen:\n\n"
		"seen: exported, and calls from inside the library can be seen, too; outside: exported, but only calls from "
		"other files can be seen; import: called from this file and defined in another one; table: in a table of functions "
		"that another row finds; hidden: there, but calls to it cannot be seen; other: the row's lib= names other libraries.",
	.examples =
		"mlprof probes\tlist the presets\n"
		"mlprof probes blas\tlist the rows of a preset\n"
		"mlprof probes ./my.probes\tcheck a file of your own and list its rows\n"
		"mlprof probes --check /usr/lib/x86_64-linux-gnu/libdnnl.so.2\tsay what could be seen of a library\n",
	.rows = rows,
	.run = run,
};

/*
 * set.c - the rows of a recording: files and presets that --probes chose, and their source for the stream.
 */
#include "inside.h"

#include "../util/array.h"
#include "../util/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 4 << 20 };

struct probe_set *probes_new(void)
{
	return new_zeroed(1, sizeof(struct probe_set));
}

void probes_free(struct probe_set *set)
{
	if (!set)
		return;
	pool_release(&set->pool);
	free(set->rule);
	free(set->body);
	free(set->source);
	free(set);
}

static struct source *keep_source(struct probe_set *set, const char *file, const char *text, size_t length, const char *preset)
{
	ARRAY_ROOM(set->source, set->source_cap, set->sources + 1);
	struct source *s = &set->source[set->sources++];

	*s = (struct source) { .file = pool_text(&set->pool, file, strlen(file)), .text = pool_text(&set->pool, text, length), .length = length };
	for (char *c = s->file; *c; c++)
		if (*c == '\n')
			*c = '?';               /* it must fit into one line of the source */
	if (preset)
		s->preset = pool_text(&set->pool, preset, strlen(preset));
	return s;
}

/* What the file says of one function goes before what it says of many, wherever it says so. */
static void put_names_first(struct probe_rule **rule, u32 count)
{
	struct probe_rule **sorted = new_zeroed(count, sizeof(*sorted));
	u32 used = 0;

	for (int wild = 0; wild <= 1; wild++)
		for (u32 i = 0; i < count; i++)
			if (rule_is_wild(rule[i]) == wild)
				sorted[used++] = rule[i];
	for (u32 i = 0; i < count; i++)
		rule[i] = sorted[i];
	free(sorted);
}

bool probes_add(struct probe_set *set, const char *file, const char *text, size_t length, const char *preset, struct probe_error *error)
{
	u32 rules = set->rules, bodies = set->bodies, sources = set->sources;
	struct source *s = keep_source(set, file, text, length, preset);
	struct parser p = { .set = set, .file = s->file, .preset = s->preset, .text = s->text, .end = s->text + length, .error = error };

	error->text[0] = 0;
	if (!parse_file(&p)) {
		set->rules = rules;
		set->bodies = bodies;
		set->sources = sources;
		return false;
	}
	if (set->rules > rules)
		put_names_first(&set->rule[rules], set->rules - rules);
	return true;
}

u32 probes_count(const struct probe_set *set)
{
	return set->rules;
}

bool probes_has_preset(const struct probe_set *set, const char *name)
{
	for (u32 i = 0; i < set->sources; i++)
		if (set->source[i].preset && !strcmp(set->source[i].preset, name))
			return true;
	return false;
}

const struct probe_rule *probes_rule(const struct probe_set *set, u32 row)
{
	return row < set->rules ? set->rule[row] : NULL;
}

/* ---- source ------------------------------------------------------------------------------- */

#define FILE_LINE "#file "
#define PRESET_LINE "#preset "

/* Lines that are all comment become empty: what is left counts its lines as before, and holds no line of ours. */
static void put_rows(struct buf *to, const char *at, const char *end)
{
	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at)), *first = at;

		stop = stop ? stop : end;
		while (first < stop && (*first == ' ' || *first == '\t'))
			first++;
		if (first < stop && *first != '#')
			buf_add(to, at, (size_t)(stop - at));
		buf_char(to, '\n');
		at = stop + 1;
	}
}

void probes_source(const struct probe_set *set, struct buf *to)
{
	for (u32 i = 0; i < set->sources; i++) {
		const struct source *s = &set->source[i];

		buf_print(to, "%s%s\n", s->preset ? PRESET_LINE : FILE_LINE, s->preset ? s->preset : s->file);
		put_rows(to, s->text, s->text + s->length);
	}
}

static bool is_head(const char *at, const char *end)
{
	return ((size_t)(end - at) > strlen(FILE_LINE) && !memcmp(at, FILE_LINE, strlen(FILE_LINE))) ||
	       ((size_t)(end - at) > strlen(PRESET_LINE) && !memcmp(at, PRESET_LINE, strlen(PRESET_LINE)));
}

static const char *line_end(const char *at, const char *end)
{
	const char *stop = memchr(at, '\n', (size_t)(end - at));

	return stop ? stop : end;
}

bool probes_add_source(struct probe_set *set, const char *text, size_t length, struct probe_error *error)
{
	const char *at = text, *end = text + length;

	while (at < end) {
		const char *name = "", *stop = at;
		bool preset = false;
		char file[512];

		if (is_head(at, end)) {
			preset = at[1] == 'p';
			name = at + strlen(preset ? PRESET_LINE : FILE_LINE);
			stop = line_end(at, end);
			at = stop < end ? stop + 1 : end;
		}
		snprintf(file, sizeof(file), "%.*s", (int)(stop > name && *name && stop - name < 500 ? stop - name : 0), name);
		for (stop = at; stop < end && !is_head(stop, end);) {
			stop = line_end(stop, end);
			stop += stop < end;
		}
		char shown[600];

		snprintf(shown, sizeof(shown), "%s%s", file, preset ? ".probes" : "");
		if (!probes_add(set, shown, at, (size_t)(stop - at), preset ? file : NULL, error))
			return false;
		at = stop;
	}
	return true;
}

/* ---- presets ------------------------------------------------------------------------------ */

const struct probe_preset *probe_preset_find(const char *name, size_t length)
{
	for (const struct probe_preset *p = probe_presets; p->name; p++)
		if (strlen(p->name) == length && !memcmp(p->name, name, length))
			return p;
	return NULL;
}

/* A line "# default: on" in the comment that it begins with. */
bool probe_preset_on(const struct probe_preset *preset)
{
	for (const char *at = preset->text; *at == '#'; at += *at == '\n') {
		if (!strncmp(at, "# default: ", 11))
			return !strncmp(at + 11, "on", 2);
		at += strcspn(at, "\n");
	}
	return false;
}

void probe_preset_purpose(const struct probe_preset *preset, char *to, size_t size)
{
	const char *dash = strstr(preset->text, " - ");
	const char *at = dash && dash < strchr(preset->text, '\n') ? dash + 3 : "";

	snprintf(to, size, "%.*s", (int)strcspn(at, "\n"), at);
}

/* ---- --probes ----------------------------------------------------------------------------- */

static bool fail(struct probe_error *error, const char *format, const char *name, const char *why)
{
	snprintf(error->text, sizeof(error->text), format, name, why);
	return false;
}

static bool read_file(const char *path, struct buf *to, struct probe_error *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char piece[16384];
	ssize_t n = 0;

	if (fd < 0)
		return fail(error, "%.300s: %s", path, strerror(errno));
	while (to->used <= FILE_BYTES_MAX && (n = read(fd, piece, sizeof(piece))) > 0)
		buf_add(to, piece, (size_t)n);
	int why = errno;

	close(fd);
	if (n < 0)
		return fail(error, "%.300s: %s", path, strerror(why));
	if (to->used > FILE_BYTES_MAX)
		return fail(error, "%.300s: expected a probe file, of at most %s", path, "4 MiB");
	return true;
}

static bool add_file(struct probe_set *set, const char *path, struct probe_error *error)
{
	struct buf text = { 0 };
	bool good = read_file(path, &text, error) && probes_add(set, path, text.at ? text.at : "", text.used, NULL, error);

	buf_release(&text);
	return good;
}

enum { PRESETS_MAX = 64 };

static bool say_unknown(const char *name, struct probe_error *error)
{
	const char *names[PRESETS_MAX + 1] = { 0 };

	for (u32 i = 0; i < PRESETS_MAX && probe_presets[i].name; i++)
		names[i] = probe_presets[i].name;
	const char *meant = nearest(name, names);

	if (strchr(name, '/'))
		return fail(error, "--probes: '%.200s' is no preset; of a file of your own the name is enough, without '+' or '-'%s", name, "");
	if (access(name, F_OK) == 0)
		return fail(error, "--probes: there is no preset '%.100s'; the file of that name is './%.100s'", name, name);
	if (meant)
		return fail(error, "--probes: there is no preset '%.100s'; did you mean '%s'?", name, meant);
	return fail(error, "--probes: there is no preset '%.100s'%s; 'mlprof probes' lists them", name, "");
}

/* One word of the list. Presets are only marked: their rows come last. */
static bool choose(struct probe_set *set, const char *word, bool on[static PRESETS_MAX], struct probe_error *error)
{
	bool sign = *word == '+' || *word == '-', all = !strcmp(word, "all") || !strcmp(word, "none");
	const char *name = word + sign;
	const struct probe_preset *preset = probe_preset_find(name, strlen(name));

	for (u32 i = 0; all && i < PRESETS_MAX && probe_presets[i].name; i++)
		on[i] = *word == 'a';
	if (all)
		return true;
	if (preset)
		on[preset - probe_presets] = *word != '-';
	if (preset)
		return true;
	return !sign && strpbrk(word, "./") ? add_file(set, word, error) : say_unknown(name, error);
}

static bool choose_all(struct probe_set *set, const char *words, bool on[static PRESETS_MAX], struct probe_error *error)
{
	bool good = true;
	char *copy = words ? text_copy(words, strlen(words)) : NULL, *save;

	for (char *word = copy ? strtok_r(copy, ",", &save) : NULL; word && good; word = strtok_r(NULL, ",", &save))
		good = choose(set, word, on, error);
	free(copy);
	return good;
}

bool probes_select(struct probe_set *set, const char *words, struct probe_error *error)
{
	bool on[PRESETS_MAX] = { 0 };
	char file[80];

	for (u32 i = 0; i < PRESETS_MAX && probe_presets[i].name; i++)
		on[i] = probe_preset_on(&probe_presets[i]);
	if (!choose_all(set, words, on, error))
		return false;
	for (u32 i = 0; i < PRESETS_MAX && probe_presets[i].name; i++) {
		const struct probe_preset *p = &probe_presets[i];

		snprintf(file, sizeof(file), "%s.probes", p->name);
		if (on[i] && !probes_add(set, file, p->text, p->length, p->name, error))
			return false;
	}
	return true;
}

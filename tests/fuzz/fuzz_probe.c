/*
 * fuzz_probe.c - libFuzzer's way into probe files and the values of their rows.
 *
 * Input: the text of a file up to the first NUL, then the text of a `probe` record. A file is refused with a place and a reason or it
 * gives rows, which then compile to a table that fits, survive the way through the stream, and answer for all their keys whatever the
 * record holds. With FUZZ_ALONE: `fuzz_probe --seeds DIR` writes the presets, `fuzz_probe --dictionary` words of the language.
 */
#include "probe/probe.h"
#include "util/array.h"

#include <stdio.h>

static const char *name_of(void *to, u64 handle)
{
	(void)to;
	return handle & 1 ? "name" : NULL;
}

static bool current(void *to, u64 handle, const char *what, u64 *value)
{
	(void)to;
	*value = handle / 2 + strlen(what);
	return handle & 1;
}

/* The table as the library takes it: every number in it leads to something. */
static void check_table(const struct probe_set *set)
{
	struct buf b = { 0 };
	const struct probe_head *h;
	const struct probe_row *row;

	if (!probes_compile(set, &b))
		abort();
	h = (const void *)b.at;
	row = (const void *)(h + 1);
	size_t fetches = sizeof(*h) + h->rows * sizeof(*row), texts = fetches + h->fetches * sizeof(struct probe_fetch);

	if (h->rows != probes_count(set) || texts + h->text_bytes + h->slots * sizeof(struct probe_slot) != b.used)
		abort();
	for (u32 i = 0; i < h->rows; i++) {
		if (row[i].symbol >= h->text_bytes || (row[i].library != PROBE_ANY && row[i].library >= h->text_bytes) ||
		    (row[i].unless != PROBE_ANY && row[i].unless >= h->text_bytes) ||
		    row[i].fetches > PROBE_FETCHES_MAX || row[i].entry_fetches > row[i].fetches || row[i].fetch + row[i].fetches > h->fetches ||
		    row[i].prefix > strlen(b.at + texts + row[i].symbol) || row[i].stack > PROBE_STACK_MAX || row[i].stack_from > 6)
			abort();
	}
	for (u32 i = 0; i < h->fetches; i++) {
		const struct probe_fetch *f = (const struct probe_fetch *)(b.at + fetches) + i;

		if (f->type >= PROBE_TYPES || f->steps > PROBE_STEPS_MAX || !f->count || f->count > PROBE_ARRAY_MAX)
			abort();
	}
	for (u32 i = 0; i < h->slots; i++) {
		const struct probe_slot *slot = (const struct probe_slot *)(b.at + texts + h->text_bytes) + i;

		if (slot->row >= h->rows || slot->table >= h->rows || !(row[slot->table].flags & PROBE_TABLE) || (i && slot[-1].table > slot->table))
			abort();
	}
	buf_release(&b);
}

static void check_source(const struct probe_set *set)
{
	struct probe_set *again = probes_new();
	struct probe_error error;
	struct buf source = { 0 };

	probes_source(set, &source);
	if (!probes_add_source(again, source.at ? source.at : "", source.used, &error) || probes_count(again) != probes_count(set))
		abort();
	for (u32 i = 0; i < probes_count(set); i++)
		if (strcmp(probes_rule(set, i)->symbol, probes_rule(again, i)->symbol) || probes_rule(set, i)->line != probes_rule(again, i)->line ||
		    probe_keys(probes_rule(set, i)) != probe_keys(probes_rule(again, i)))
			abort();
	buf_release(&source);
	probes_free(again);
}

static void ask(const struct probe_rule *rule, const u8 *record, size_t length)
{
	struct probe_values values;
	struct probe_scope scope = { .values = &values, .symbol = rule->symbol, .demangled = "a<b>::c::d(int)",
		.name_of = name_of, .current = current, .symbol_of = name_of };
	char text[64];
	double number;
	i64 whole;

	memset(&values, 0, sizeof(values));
	if (!probe_read(rule, record, (u32)(length > 256 ? 256 : length), length ? record[length - 1] : 0, &values))
		memset(&values, 0, sizeof(values));
	for (u32 i = 0; i < probe_keys(rule); i++) {
		bool there = probe_text(rule, probe_key(rule, i), &scope, text, sizeof(text));

		if (strlen(text) >= sizeof(text) || (!there && *text) || (probe_number(rule, probe_key(rule, i), &scope, &number, &whole) && !there))
			abort();
		probe_key_shown(rule, i);
		probe_key_is_text(rule, i);
	}
	probe_name(rule, &scope, text, sizeof(text));
	probe_direction(rule, &scope);
	probe_holds(rule, "when", &scope);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	const u8 *end = memchr(data, 0, size);
	size_t length = end ? (size_t)(end - data) : size;
	struct probe_set *set = probes_new(), *source = probes_new();
	struct probe_error error;

	if (probes_add(set, "f.probes", (const char *)data, length, size & 1 ? "f" : NULL, &error)) {
		check_table(set);
		check_source(set);
		for (u32 i = 0; i < probes_count(set) && i < 64; i++)
			ask(probes_rule(set, i), data + length, size - length);
	} else if (strncmp(error.text, "f.probes:", 9) || !strstr(error.text, ": expected ") || probes_count(set)) {
		abort();
	}
	probes_add_source(source, (const char *)data, size, &error);
	probes_free(set);
	probes_free(source);
	return 0;
}

#ifdef FUZZ_ALONE
static int write_seeds(const char *dir)
{
	char path[4096];

	for (const struct probe_preset *p = probe_presets; p->name; p++) {
		snprintf(path, sizeof(path), "%s/%s", dir, p->name);
		FILE *f = fopen(path, "w");

		if (!f)
			return 1;
		fwrite(p->text, 1, p->length, f);
		fclose(f);
	}
	return 0;
}

static int write_dictionary(void)
{
	static const char *const words[] = {
		"$arg1", "$farg2:f32", "$stack3", "$retval", "$fretval", "+8(", "-16(", "@ret", ":u8", ":u32", ":s64", ":f32", ":ptr", ":string", ":strv",
		"[4]", "[0]", "[sd]", "letter", "{letter}", "{wild}", "{symbol}", "{function}", "{scope}", "{base}", "{demangled}", "name=", "name(", "sym(", "cur(",
		"min(", "max(", "or(", "until=", "own=", "flops=", "bytes=", "queue=", "of=", "gx=", "key=", "val=", "from=", "as=", "heap=", "ptr=", "size=", "label=", "value=",
		"dir=h2d", "dir=fill", "at=", "9=A.b", "when=", "ok=", "lib=", "dom=", "stack=", "stack=$arg2", "min=1us", "entry", "data", "trust", "careful", "callstack", "sret", "||", "&&",
		"==", "<<", ">>", "'d'", " \\\\\\x0a", "|", "*", "#file ", "#preset ", "0x", "1e9",
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		printf("\"%s\"\n", words[i]);
	for (u32 i = 0; i < PROBE_ROLES; i++)
		printf("\" %s \"\n", probe_role_name[i]);
	return 0;
}

static int run_file(const char *path)
{
	FILE *f = fopen(path, "r");
	u8 *data = must(malloc(1 << 20));

	if (!f)
		return 1;
	size_t n = fread(data, 1, 1 << 20, f);

	fclose(f);
	LLVMFuzzerTestOneInput(data, n);
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	int bad = 0;

	if (argc == 3 && !strcmp(argv[1], "--seeds"))
		return write_seeds(argv[2]);
	if (argc == 2 && !strcmp(argv[1], "--dictionary"))
		return write_dictionary();
	for (int i = 1; i < argc; i++)
		bad |= run_file(argv[i]);
	return bad;
}
#endif

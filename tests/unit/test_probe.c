/* test_probe.c - probe files: what rows mean, the compiled table, values of a call, and what is said of bad lines. */
#include "probe/probe.h"

#include <stdlib.h>
#include <string.h>

#include "tap.h"

static struct probe_error error;

static struct probe_set *parsed(const char *text)
{
	struct probe_set *set = probes_new();

	if (probes_add(set, "x.probes", text, strlen(text), NULL, &error))
		return set;
	probes_free(set);
	return NULL;
}

/* ---- bad lines ---------------------------------------------------------------------------- */

static const struct { const char *text, *said; } bad[] = {
	{ "f",
	  "x.probes:1:2: expected a role (span, dispatch, submit, wait, copy, alloc, free, retain, counter, mark, thread, bind, alias, set, time, table, builtin, getter or module), "
	  "not the end of the row" },
	{ "# all good\n\n  f spam\n",
	  "x.probes:3:5: expected a role (span, dispatch, submit, wait, copy, alloc, free, retain, counter, mark, thread, bind, alias, set, time, table, builtin, getter or module), "
	  "not 'spam'" },
	{ "ggml_backend_sched_new|f builtin", "x.probes:1:24: expected a function that mlprof has code for: see mlprof-probes(5)" },
	{ "ggml_backend_sched_* builtin", "x.probes:1:1: expected a function that mlprof has code for: see mlprof-probes(5)" },
	{ "*gemm span", "x.probes:1:1: expected at least 2 characters before the first '*' or '?'" },
	{ "[ab]* span", "x.probes:1:1: expected at least 2 characters before the first '*' or '?'" },
	{ "malloc@GLIBC_2.2.5 span", "x.probes:1:7: expected a blank after the symbol, not '@GLIBC_2.2.5'" },
	{ "a|*b span", "x.probes:1:3: expected at least 2 characters before the first '*' or '?'" },
	{ "a|| span", "x.probes:1:3: expected a symbol, not '|'" },
	{ "a| span", "x.probes:1:3: expected a symbol, not a blank" },
	{ "=f span", "x.probes:1:1: expected a symbol, not '=f'" },
	{ "f[] span", "x.probes:1:1: expected at most one [...] in a symbol, with 1 to 8 letters in it" },
	{ "f[ab span", "x.probes:1:1: expected at most one [...] in a symbol, with 1 to 8 letters in it" },
	{ "f[ab][cd] span", "x.probes:1:1: expected at most one [...] in a symbol, with 1 to 8 letters in it" },
	{ "f]a[ span", "x.probes:1:1: expected at most one [...] in a symbol, with 1 to 8 letters in it" },
	{ "f[a*] span", "x.probes:1:1: expected at most one [...] in a symbol, with 1 to 8 letters in it" },
	{ "f[ab]|g span a=letter", "x.probes:1:16: expected [...] in each symbol of this row: 'letter' is the one that stands for it" },
	{ "f span name={letter}", "x.probes:1:13: expected [...] in each symbol of this row: 'letter' is the one that stands for it" },
	{ "f span a='ab'", "x.probes:1:10: expected a character between two ', not ''ab''" },
	{ "f,g span", "x.probes:1:2: expected a blank after the symbol, not ',g'" },
	{ "\x01 span", "x.probes:1:1: expected a symbol, not byte 0x01" },
	{ "f span fast", "x.probes:1:8: expected a flag (entry, data, trust, careful, callstack or sret) or 'fast=' and a value" },
	{ "libf.so* module name=f", "x.probes:1:17: expected no keys in a row of role module: its symbol is the name of a file" },
	{ "f span a = 1", "x.probes:1:8: expected a flag (entry, data, trust, careful, callstack or sret) or 'a=' and a value" },
	{ "f span a=", "x.probes:1:10: expected a value, not the end of the row" },
	{ "f span a= b=1", "x.probes:1:10: expected a value, not a blank" },
	{ "f span a=1 a=2", "x.probes:1:12: expected another key: 'a' is there already" },
	{ "f span a=$arg0", "x.probes:1:10: expected $argN, $fargN, $stackN, $retval or $fretval (registers count from 1), not '$arg0'" },
	{ "f span a=$arg", "x.probes:1:10: expected $argN, $fargN, $stackN, $retval or $fretval (registers count from 1), not '$arg'" },
	{ "f span a=$farg9", "x.probes:1:10: expected $argN, $fargN, $stackN, $retval or $fretval (registers count from 1), not '$farg9'" },
	{ "f span a=$retval1", "x.probes:1:10: expected $argN, $fargN, $stackN, $retval or $fretval (registers count from 1), not '$retval1'" },
	{ "f span a=$arg1:int", "x.probes:1:16: expected a type: u8 u16 u32 u64 s8 s16 s32 s64 f32 f64 ptr string strv, not 'int'" },
	{ "f span a=$arg1:u32[4]", "x.probes:1:19: expected an array of numbers in memory, such as +0($arg1):s64[4]" },
	{ "f span a=+0($arg1):u32[9]", "x.probes:1:23: expected [1] to [8], or a value of the call such as [$arg2:s32]" },
	{ "f span a=+0($arg1):u32[$arg2", "x.probes:1:23: expected [1] to [8], or a value of the call such as [$arg2:s32]" },
	{ "f span a=+0($arg1):u32[$farg1]", "x.probes:1:24: expected a whole number inside of [...]" },
	{ "f span a=+0($arg1):u32[+0($arg2):s32[2]]", "x.probes:1:24: expected a whole number inside of [...]" },
	{ "f span a=+0($arg1):u32[b] b=$arg2", "x.probes:1:23: expected [1] to [8], or a value of the call such as [$arg2:s32]" },
	{ "f span a=$arg1[$arg2]", "x.probes:1:15: expected a blank or an operator, not '[$arg2]'" },
	{ "f span a=product(b) b=$arg1", "x.probes:1:18: expected an array, such as +16($arg1):s64[4]" },
	{ "f span a=$farg1:u32", "x.probes:1:10: expected f32 or f64 for a floating-point register, not '$farg1:u32'" },
	{ "f span a=+0(x)", "x.probes:1:13: expected $argN, $fargN, $stackN, $retval or $fretval or another +OFFSET(...), not 'x)'" },
	{ "f span a=+0($arg1", "x.probes:1:18: expected ')', not the end of the row" },
	{ "f span a=+0($farg1)", "x.probes:1:10: expected a pointer inside of the brackets (ptr or u64)" },
	{ "f span a=+0($arg1:u32)", "x.probes:1:10: expected a pointer inside of the brackets (ptr or u64)" },
	{ "f span a=+0(+0(+0(+0(+0($arg1)))))", "x.probes:1:10: expected at most 4 steps from pointer to pointer" },
	{ "f span a=+99999999999($arg1)", "x.probes:1:10: expected an offset that fits in 31 bits, not '+99999999999($arg1)'" },
	{ "f span a=$arg1@later", "x.probes:1:16: expected @ret, not 'later'" },
	{ "f span a=2*", "x.probes:1:12: expected a value, not the end of the row" },
	{ "f span a=(1+2", "x.probes:1:14: expected an operator or ')', not the end of the row" },
	{ "f span a=1x", "x.probes:1:10: expected a number such as 2, 0.5, 1e9 or 0x1f, not '1x'" },
	{ "f span a=b", "x.probes:1:10: expected a key of this row, and 'b' is none" },
	{ "f span a=b b=a", "x.probes:1:14: expected a value that does not depend on itself, as 'a' does" },
	{ "f span name=\"{name}\"", "x.probes:1:14: expected a value that does not depend on itself, as 'name' does" },
	{ "f span name=\"{M}\"", "x.probes:1:14: expected a key of this row, and 'M' is none" },
	{ "f span name=\"{M\"", "x.probes:1:15: expected a key or symbol, demangled, function, scope, base, letter, wild, then '}', not 'M\"'" },
	{ "f span name=\"text", "x.probes:1:18: expected '\"' at the end of the text, not the end of the row" },
	{ "f span a=foo(1)", "x.probes:1:10: expected one of the functions name sym cur min max log2 product last or, not 'foo(1)'" },
	{ "f span a=min(1)", "x.probes:1:15: expected ',' and a second value, not ')'" },
	{ "f span a=or(1)", "x.probes:1:14: expected ',' and a second value, not ')'" },
	{ "f span a=or(1,b) b=$arg1:string", "x.probes:1:10: expected two numbers or two texts in or(a,b)" },
	{ "f span a=or(b,b) b=+0($arg1):u32[2]", "x.probes:1:10: expected two numbers or two texts in or(a,b)" },
	{ "f span a=2*or(b,sym($arg2)) b=$arg1:string", "x.probes:1:12: expected a number, this is a text" },
	{ "f wait until=$arg1:string", "x.probes:1:14: expected a number for 'until'" },
	{ "f alloc ptr=$retval size=1 own=\"yes\"", "x.probes:1:32: expected a number for 'own'" },
	{ "f span a=cur($arg1,)", "x.probes:1:20: expected a word, not ')'" },
	{ "f span a=2*b b=$arg1:string", "x.probes:1:12: expected a number, this is a text" },
	{ "f span a=2*b b=+0($arg1):u32[2]", "x.probes:1:12: expected a number, this is an array: write key[0] for its first element" },
	{ "f span a=b[2] b=+0($arg1):u32[2]", "x.probes:1:10: expected an element that the array has; the first one is [0]" },
	{ "f span a=b[0] b=1", "x.probes:1:10: expected a key whose value is an array, such as +16($arg1):s64[4]" },
	{ "f span flops=\"many\"", "x.probes:1:14: expected a number for 'flops'" },
	{ "f span tokens=$arg1:string", "x.probes:1:15: expected a number for 'tokens'" },
	{ "f span rate_images=\"many\"", "x.probes:1:20: expected a number for 'rate_images'" },
	{ "f time of=$arg1", "x.probes:1:1: expected a key 'start=' or 'end=' in a row of role time" },
	{ "f span a=$arg1:cxxstr", "x.probes:1:16: expected a type: u8 u16 u32 u64 s8 s16 s32 s64 f32 f64 ptr string strv, not 'cxxstr'" },
	{ "f span when=$arg1:string", "x.probes:1:13: expected a number for 'when'" },
	{ "f span unless= a=$arg1", "x.probes:1:15: expected a function of the same library, such as omp_get_level" },
	{ "f table at=$retval 1=f.x unless=busy\nf.x span", "x.probes:1:1: expected no 'unless=' in a row that records no calls" },
	{ "f span stack=129", "x.probes:1:14: expected a number of stack words from 0 to 128, or one of $arg1 to $arg5 that says how many" },
	{ "f span stack=$arg6", "x.probes:1:14: expected a number of stack words from 0 to 128, or one of $arg1 to $arg5 that says how many" },
	{ "f span stack=$arg", "x.probes:1:14: expected a number of stack words from 0 to 128, or one of $arg1 to $arg5 that says how many" },
	{ "f span min=1", "x.probes:1:12: expected a time such as 500ns, 1us or 2ms" },
	{ "f span min=us", "x.probes:1:12: expected a time such as 500ns, 1us or 2ms" },
	{ "f span lib=", "x.probes:1:12: expected the file name of a library, such as libcudart.so*" },
	{ "f span dom=", "x.probes:1:12: expected a name, such as gpu0 or \"GPU 0\"" },
	{ "f span a=$arg1;", "x.probes:1:15: expected a blank or an operator, not ';'" },
	{ "f span a=$arg1+8($arg2)", "x.probes:1:17: expected a blank or an operator, not '($arg2)'" },
	{ "f span entry a=$retval", "x.probes:1:16: expected a value that is there before the call: the row has the flag entry" },
	{ "f span \\\n  entry \\\n  a=+0($arg1)@ret", "x.probes:3:5: expected a value that is there before the call: the row has the flag entry" },
	{ "f span 9=a.b", "x.probes:1:8: expected a key and '=': only rows of role table have slots" },
	{ "f alloc size=$arg1", "x.probes:1:1: expected a key 'ptr=' in a row of role alloc" },
	{ "f free", "x.probes:1:1: expected a key 'ptr=' in a row of role free" },
	{ "f counter", "x.probes:1:1: expected a key 'value=' in a row of role counter" },
	{ "f bind key=$arg1", "x.probes:1:1: expected a key 'name=' in a row of role bind" },
	{ "f alias key=$arg1", "x.probes:1:1: expected a key 'from=' in a row of role alias" },
	{ "f set key=$arg1", "x.probes:1:1: expected a key 'val=' in a row of role set" },
	{ "f copy", "x.probes:1:1: expected a key 'bytes=' in a row of role copy" },
	{ "f copy bytes=1 dir=up", "x.probes:1:20: expected h2d, d2h, d2d, h2h, fill or a number" },
	{ "f table at=$retval", "x.probes:1:1: expected at least one slot in a table, such as 9=Api.Run" },
	{ "f table at=$retval+8 0=a.b\na.b span", "x.probes:1:19: expected a value that is only fetched, of type u64 or ptr, for 'at'" },
	{ "f table at=$retval 0=ab", "x.probes:1:22: expected a name with a dot for the function in this slot, such as Api.Run (at most 64 a row)" },
	{ "f table at=$retval 4096=a.b", "x.probes:1:20: expected a slot of the table, such as 9=Api.Run (at most 4095)" },
	{ "f table at=$retval 0=a.b 1=a.c 0=a.c\na.b|a.c span", "x.probes:1:32: expected another slot: 0 is there already" },
	{ "f table at=$retval 0=a.b", "x.probes:1:20: expected a row for 'a.b' in this file" },
	{ "f table entry at=$arg1 0=a.b\na.b span", "x.probes:1:18: expected a value that is there before the call: the row has the flag entry" },
	{ "f getter at=$arg2", "x.probes:1:1: expected a key 'symbol=' in a row of role getter" },
	{ "f getter symbol=$arg1 at=$arg2", "x.probes:1:17: expected a text that is there before the call, such as $arg1:string, for 'symbol'" },
	{ "f getter symbol=$arg1:string at=$arg2+8", "x.probes:1:38: expected a value that is only fetched, of type u64 or ptr, for 'at'" },
	{ "f getter symbol=$arg1:string at=$arg2 ok=$retval==0", "x.probes:1:39: expected nothing but 'symbol=' and 'at=' in a row of role getter" },
	{ "f getter entry symbol=$arg1:string at=$arg2", "x.probes:1:39: expected a value that is there before the call: the row has the flag entry" },
	{ "f span a=$arg1:string b=$arg2:string c=$arg3:string d=$arg4:string",
	  "x.probes:1:55: expected values of at most 768 bytes in one row; a text counts 242, a number 8" },
};

static void test_bad_lines(void)
{
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct probe_set *set = parsed(bad[i].text);

		ok(!set && !strcmp(error.text, bad[i].said), "%.60s", bad[i].said);
		if (set || strcmp(error.text, bad[i].said))
			printf("# row:      %s\n# said:     %s\n# expected: %s\n", bad[i].text, set ? "nothing" : error.text, bad[i].said);
		probes_free(set);
	}
}

static void test_too_much(void)
{
	char text[4096] = "f span a=1";
	size_t used = strlen(text);

	for (int i = 0; i < 300; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, "+1");
	ok(!parsed(text) && strstr(error.text, "expected a shorter row"), "a value of 300 operators is refused: %s", error.text);
	used = (size_t)snprintf(text, sizeof text, "f span a0=1");
	for (int i = 1; i < 30; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, " a%d=a%d+a%d", i, i - 1, i - 1);
	ok(!parsed(text) && strstr(error.text, "fewer steps"), "values that double are refused: %s", error.text);
	snprintf(text, sizeof text, "f span a=%040d1%040d", 0, 0);
	memset(text + 9, '(', 40);
	ok(!parsed(text) && strstr(error.text, "fewer brackets"), "brackets in brackets are refused: %s", error.text);
	memset(text + 9, '-', 40);
	ok(!parsed(text) && strstr(error.text, "fewer signs"), "so are signs in a row: %s", error.text);
	used = (size_t)snprintf(text, sizeof text, "f span");
	for (int i = 0; i < 41; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, " k%d=1", i);
	ok(!parsed(text) && strstr(error.text, "at most 40 keys"), "41 keys are refused: %s", error.text);
	used = (size_t)snprintf(text, sizeof text, "f span");
	for (int i = 0; i < 17; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, " k%d=$stack%d", i, i + 1);
	ok(!parsed(text) && strstr(error.text, "at most 16 different values"), "17 values are refused: %s", error.text);
}

/* ---- the compiled table ------------------------------------------------------------------- */

struct table {
	struct buf bytes;
	const struct probe_head *head;
	const struct probe_row *row;
	const struct probe_fetch *fetch;
	const char *text;
	const struct probe_slot *slot;
};

static struct table compiled(const struct probe_set *set)
{
	struct table t = { 0 };

	if (!probes_compile(set, &t.bytes))
		abort();
	t.head = (const void *)t.bytes.at;
	t.row = (const void *)(t.head + 1);
	t.fetch = (const void *)(t.row + t.head->rows);
	t.text = (const void *)(t.fetch + t.head->fetches);
	t.slot = (const void *)(t.text + t.head->text_bytes);
	return t;
}

static bool is_fetch(const struct probe_fetch *f, int from, int index, int type, int count, int steps, int first)
{
	return f->from == from && f->index == index && f->type == type && f->count == count && f->steps == steps && (!steps || f->offset[0] == first);
}

static void test_table(void)
{
	struct probe_set *set = parsed("# first\n"
		"cudaMalloc|hipMalloc alloc heap=gpu size=$arg2 ptr=+0($arg1):ptr@ret ok=$retval:s32==0 # out parameter\n"
		"\n"
		"ns_*_t?  span  lib=libns.so* unless=ns_busy \\\n   stack=40 min=2us callstack data trust a=$arg7 b=+8(-16($stack3)):string c=$arg7\n"
		"big span sret entry a=$arg1 b=$farg2:f32 c=$stack20 stack=$arg3\n"
		"GetApi table at=+8($retval):ptr size=+0($retval) 9=Api.Run 2=Api.Stop trust\n"
		"Api.Run span name=$arg2:string\r\n"
		"Api.Stop mark");
	struct table t = compiled(set);
	const struct probe_row *r = t.row;

	ok(t.head->magic == PROBE_MAGIC && t.head->version == PROBE_VERSION && t.head->rows == 7 && probes_count(set) == 7, "seven rows");
	ok(t.bytes.used == (size_t)((const char *)(t.slot + t.head->slots) - t.bytes.at), "the parts are as long as the head says");
	ok(!strcmp(t.text + r[0].symbol, "cudaMalloc") && !strcmp(t.text + r[1].symbol, "hipMalloc"), "a|b are two rows");
	ok(r[0].fetch == r[1].fetch && r[0].fetches == 3 && r[0].entry_fetches == 1, "with the same fetches, those at entry first");
	ok(is_fetch(&t.fetch[r[0].fetch], FROM_ARG, 2, TYPE_U64, 1, 0, 0), "the size is fetched first");
	ok(is_fetch(&t.fetch[r[0].fetch + 1], FROM_ARG, 1, TYPE_U64, 1, 1, 0), "the pointer after the call");
	ok(is_fetch(&t.fetch[r[0].fetch + 2], FROM_RETURN, 0, TYPE_S32, 1, 0, 0), "and the result");
	ok(r[0].flags == PROBE_CAREFUL && r[0].library == PROBE_ANY && r[0].stack == PROBE_STACK_DEFAULT && r[0].prefix == 10, "usual settings");
	ok(r[6].flags == (PROBE_GLOB | PROBE_CALLSTACK | PROBE_DATA | PROBE_UNLESS) && !strcmp(t.text + r[6].unless, "ns_busy") && r[0].unless == PROBE_ANY && r[6].prefix == 3 && !strcmp(t.text + r[6].library, "libns.so*"), "all settings, of the last row: others name their functions");
	ok(r[6].stack == 40 && r[6].min_ns == 2000 && r[6].fetches == 2, "stack, least time; a value is fetched once");
	const struct probe_fetch *b = &t.fetch[r[6].fetch + 1];

	ok(is_fetch(b, FROM_STACK, 3, TYPE_STRING, 1, 2, -16) && b->offset[1] == 8, "pointers are followed from the inside out");
	ok(r[2].flags == (PROBE_ENTRY | PROBE_CAREFUL) && r[2].stack == 20 && r[2].stack_from == 4 && !r[6].stack_from && is_fetch(&t.fetch[r[2].fetch], FROM_ARG, 2, TYPE_U64, 1, 0, 0),
	   "sret moves the arguments; the stack covers what is fetched");
	ok(r[3].flags == (PROBE_TABLE | PROBE_SIZED) && t.head->slots == 2 && r[3].fetches == 2 && r[3].entry_fetches == 0, "a table of functions");
	ok(is_fetch(&t.fetch[r[3].fetch + 1], FROM_RETURN, 0, TYPE_U64, 1, 1, 8), "its address is the last fetch");
	ok(t.slot[0].table == 3 && t.slot[0].index == 9 && t.slot[0].row == 4 && t.slot[1].table == 3 && t.slot[1].row == 5, "its slots know their rows");
	ok(probes_rule(set, 4)->line == 8 && !strcmp(probes_rule(set, 4)->symbol, "Api.Run") && !probes_rule(set, 7), "rows know their lines");
	ok(!strcmp(probes_rule(set, 0)->domain, "x") && !probes_rule(set, 0)->preset, "and where they are from");
	buf_release(&t.bytes);
	probes_free(set);
}

static void test_source(void)
{
	const char *text = "#file other\n#preset blas\nf span a=$arg1 # why\n  # more\n\ng mark \\\n # end\nh span";
	struct probe_set *set = parsed(text), *again = probes_new();
	struct buf source = { 0 };
	bool good = probes_add(set, "p.probes", "i mark\n", 7, "p", &error);

	probes_source(set, &source);
	good = good && probes_add_source(again, source.at, source.used, &error);
	ok(good && probes_count(again) == 4 && probes_count(set) == 4, "the source read again: as many rows");
	for (u32 i = 0; good && i < 4; i++) {
		const struct probe_rule *a = probes_rule(set, i), *b = probes_rule(again, i);

		ok(!strcmp(a->symbol, b->symbol) && a->line == b->line && !strcmp(a->file, b->file) && !a->preset == !b->preset && a->role == b->role,
		   "row %u: %s %s:%u", i, b->symbol, b->file, b->line);
	}
	ok(!probes_add_source(again, "#file y\nf", 9, &error) && !strncmp(error.text, "y:1:2: ", 7), "a bad one: %s", error.text);
	ok(probes_count(again) == 4, "leaves the rows as they were");
	buf_release(&source);
	probes_free(set);
	probes_free(again);
}

/* ---- values ------------------------------------------------------------------------------- */

static const char *name_of(void *to, u64 handle)
{
	(void)to;
	return handle == 7 ? "seven" : NULL;
}

static bool current(void *to, u64 handle, const char *what, u64 *value)
{
	(void)to;
	*value = !*what ? 7 : 8;
	return handle == 5;
}

static const char *symbol_of(void *to, u64 address)
{
	(void)to;
	return address == 5 ? "work._omp_fn.0" : NULL;
}

/* Six registers with 5, 0, -1, 2 * 2^32 + 3, 2.5, 100; then the array 4 3 2; then a text and a number that could not be read. */
static const char values_row[] = "f span r1=$arg1 r2=$arg2 r3=$arg3:s64 r4=$arg4 r5=$farg1 r6=$arg6:ptr ar=+0($arg5):s32[3] s=$arg5:string "
				 "none=+8($arg5) ";

static struct probe_values values_of(const struct probe_rule *rule, char *bytes)
{
	u64 numbers[] = { 5, 0, (u64)-1, (2ull << 32) + 3, 0, 100, 4, 3, 2 };
	double half = 2.5;
	struct probe_values v;
	u16 length = 5;
	size_t used = sizeof numbers;

	memcpy(&numbers[4], &half, 8);
	memcpy(bytes, numbers, used);
	memcpy(bytes + used, &length, 2);
	memcpy(bytes + used + 2, "hello", 5);
	used += 7;
	memset(bytes + used, 0, 8);
	used += 8;
	ok(probe_read(rule, bytes, (u32)used, 1 << 8, &v), "values are read");
	return v;
}

static const struct { const char *expression; double number; const char *text; } good[] = {
	{ "1+2*3", 7, "7" }, { "(1+2)*3", 9, "9" }, { "10-2-3", 5, "5" }, { "7/2", 3.5, "3.5" }, { "8/2", 4, "4" }, { "7%4", 3, "3" },
	{ "2/3*r6", 200.0 / 3, "66.6667" }, { "-r1", -5, "-5" }, { "!r2", 1, "1" }, { "--3", 3, "3" }, { "1<2", 1, "1" }, { "2<=1", 0, "0" },
	{ "1==1&&2!=2||3>=3", 1, "1" }, { "1<<4", 16, "16" }, { "r4>>32", 2, "2" }, { "r4&0xffffffff", 3, "3" }, { "r3", -1, "-1" },
	{ "r3<0", 1, "1" }, { "min(r1,3)", 3, "3" }, { "max( r1 , 3 )", 5, "5" }, { "r5*2", 5, "5" }, { "ar[1]", 3, "3" },
	{ "ar[0]*ar[1]*ar[2]", 24, "24" }, { "cur(5)", 7, "7" }, { "cur(5,pipe)", 8, "8" }, { "r2&&none", 0, "0" }, { "none||r1", 1, "1" },
	{ "1e3", 1000, "1000" }, { "0x10", 16, "16" }, { "'L'", 76, "76" }, { "9223372036854775807+1", 9223372036854775808.0, "9223372036854775808" },
	{ "4000000000*4000000000", 1.6e19, "16000000000000000000" }, { "5000000000*5000000000", 2.5e19, "2.5e+19" },
	{ "1<<63", 9223372036854775808.0, "9223372036854775808" }, { "-1<<63", -9223372036854775808.0, "-9223372036854775808" },
	{ "(1<<63)>1", 1, "1" }, { "(1<<63)-(1<<63)", 0, "0" }, { "(1<<63)%10", 8, "8" }, { "(1<<63)/2>>61", 2, "2" }, { "(1<<63)==-(1<<63)", 0, "0" },
	{ "(1<<63)*(1<<63)*4", 0x1p128, "3.40282e+38" }, { "(3<<62&-1)>>62", 3, "3" }, { "-1&-1", -1, "-1" }, { "-7%4", -3, "-3" }, { "1 + \t1", 2, "2" }, { "log2(8)", 3, "3" }, { "product(ar)", 24, "24" },
	{ "last(ar)*2", 4, "4" }, { "or(cur(6),3)", 3, "3" }, { "or(r2,3)", 0, "0" }, { "or(none,or(none,r1))*2", 10, "10" },
};

static const char *const unknowns[] = { "none", "none+1", "1/0", "1/r2", "5%0", "1<<64", "r5&1", "cur(6)", "none&&r1", "none==none", "log2(0)", "log2(r3)", "or(none,none)" };

static const struct { const char *value, *text; } texts[] = {
	{ "\"{r1}x{ar}\"", "5x4x3x2" }, { "s", "hello" }, { "none", NULL }, { "\"{none}|{none}\"", "?|?" }, { "name(7)", "seven" },
	{ "name(cur(r1))", "seven" }, { "name(8)", NULL }, { "or(name(8),sym(5))", "work._omp_fn.0" }, { "or(s,name(7))", "hello" }, { "or(name(8),name(9))", NULL }, { "sym(5)", "work._omp_fn.0" }, { "r6", "0x64" }, { "ar", "4x3x2" },
	{ "\"{symbol}\"", "_ZN2at4_ops2mm4callERKNS_6TensorES4_" }, { "\"{function}\"", "at::_ops::mm::call" }, { "\"{scope}\"", "mm" },
	{ "\"{base}\"", "call" }, { "{demangled}", "at::_ops::mm::call(at::Tensor const&, at::Tensor const&)" },
	{ "\"{{a}} \\\"b\\\" \\\\\"", "{a} \"b\" \\" }, { "{r1}", "5" }, { "r5", "2.5" }, { "\"\"", "" },
};

/* The same bits, with a sign and without */
static void test_signs(void)
{
	struct probe_set *set = parsed("f span u=$arg1 s=$arg1:s64 p=$arg1:ptr more=u+1 positive=u>0 same=u==s");
	const struct probe_rule *rule = probes_rule(set, 0);
	static const struct { const char *key, *text; } wanted[] = {
		{ "u", "18446744073709551615" }, { "s", "-1" }, { "p", "0xffffffffffffffff" }, { "more", "1.84467e+19" }, { "positive", "1" }, { "same", "0" },
	};
	u64 numbers[] = { UINT64_MAX, UINT64_MAX };
	struct probe_values v;
	struct probe_scope scope = { .values = &v };
	char text[PROBE_NAME_MAX];
	double number;
	i64 bits;

	ok(probe_read(rule, numbers, sizeof numbers, 0, &v), "values are read");
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
		ok(probe_text(rule, wanted[i].key, &scope, text, sizeof text) && !strcmp(text, wanted[i].text), "%s: %s", wanted[i].key, text);
	ok(probe_number(rule, "u", &scope, &number, &bits) && number > 1.8e19 && bits == -1, "a handle keeps its bits");
	probes_free(set);
}

/* An array whose length is in the call: it and its length, for each of these lengths */
static const struct { i64 length; const char *text; double product; } lengths[] = {
	{ 2, "4x3", 12 }, { 1, "4", 4 }, { 0, "", 1 }, { -3, "", 1 }, { 8, "4x3x2x1x1x1x1x5", 120 }, { 9, "4x3x2x1x1x1x1x5x...", -1 },
};

static void test_lengths(void)
{
	struct probe_set *set = parsed("f span n=$arg2:s32 ar=+0($arg1):s32[$arg2:s32] p=product(ar) first=ar[0] second=ar[1]");
	struct table t = compiled(set);
	const struct probe_rule *rule = probes_rule(set, 0);
	char text[PROBE_NAME_MAX];
	double number;

	ok(t.row[0].fetches == 3 && t.fetch[2].counted && t.fetch[2].count == PROBE_ARRAY_MAX && is_fetch(&t.fetch[1], FROM_ARG, 2, TYPE_S32, 1, 0, 0),
	   "an array stands behind its length");
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		u64 numbers[] = { (u64)lengths[i].length, (u64)lengths[i].length, 4, 3, 2, 1, 1, 1, 1, 5 };
		struct probe_values v;
		struct probe_scope scope = { .values = &v };

		ok(probe_read(rule, numbers, sizeof numbers, 0, &v), "values are read");
		ok(probe_text(rule, "ar", &scope, text, sizeof text) && !strcmp(text, lengths[i].text), "%lld: %s", (long long)lengths[i].length, text);
		bool there = probe_number(rule, "p", &scope, &number, NULL);

		ok(lengths[i].product < 0 ? !there : there && number >= lengths[i].product && number <= lengths[i].product, "its product");
		ok(probe_number(rule, "first", &scope, NULL, NULL) == (lengths[i].length > 0), "its first element");
		ok(probe_number(rule, "second", &scope, NULL, NULL) == (lengths[i].length > 1), "its second element");
		ok(probe_read(rule, numbers, sizeof numbers, 2, &v) && !probe_text(rule, "ar", &scope, text, sizeof text), "its length is not known");
	}
	buf_release(&t.bytes);
	probes_free(set);
}

static void test_values(void)
{
	struct probe_scope scope = { .symbol = "_ZN2at4_ops2mm4callERKNS_6TensorES4_",
		.demangled = "at::_ops::mm::call(at::Tensor const&, at::Tensor const&)",
		.name_of = name_of, .current = current, .symbol_of = symbol_of };
	char row[600], bytes[300], text[PROBE_NAME_MAX];
	struct probe_set *set;
	double number;

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		snprintf(row, sizeof row, "%sx=%s", values_row, good[i].expression);
		set = parsed(row);
		if (!set)
			printf("# %s\n", error.text);
		struct probe_values v = values_of(probes_rule(set, 0), bytes);

		scope.values = &v;
		bool there = probe_number(probes_rule(set, 0), "x", &scope, &number, NULL);

		ok(there && number >= good[i].number - 1e-9 && number <= good[i].number + 1e-9, "%s = %g", good[i].expression, number);
		ok(probe_text(probes_rule(set, 0), "x", &scope, text, sizeof text) && !strcmp(text, good[i].text), "... as text: %s", text);
		probes_free(set);
	}
	for (size_t i = 0; i < sizeof unknowns / sizeof *unknowns; i++) {
		snprintf(row, sizeof row, "%sx=%s", values_row, unknowns[i]);
		set = parsed(row);
		struct probe_values v = values_of(probes_rule(set, 0), bytes);

		scope.values = &v;
		ok(!probe_number(probes_rule(set, 0), "x", &scope, NULL, NULL), "%s is unknown", unknowns[i]);
		ok(!probe_holds(probes_rule(set, 0), "x", &scope), "... and does not hold");
		probes_free(set);
	}
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		snprintf(row, sizeof row, "%sx=%s", values_row, texts[i].value);
		set = parsed(row);
		struct probe_values v = values_of(probes_rule(set, 0), bytes);

		scope.values = &v;
		bool there = probe_text(probes_rule(set, 0), "x", &scope, text, sizeof text);

		ok(there == !!texts[i].text && !strcmp(text, texts[i].text ? texts[i].text : ""), "%s: %s", texts[i].value, text);
		probes_free(set);
	}
}

static void test_record_lengths(void)
{
	struct probe_set *set = parsed("f span a=$arg1 s=$arg2:string b=+0($arg3):u32[2]");
	const struct probe_rule *rule = probes_rule(set, 0);
	char bytes[64] = { 0 };
	struct probe_values v;
	u16 length = 3;

	memcpy(bytes + 8, &length, 2);
	for (u32 n = 0; n <= 40; n++) {
		bool fits = n == 0 || n == 8 || n == 13 || n == 29;

		ok(probe_read(rule, bytes, n, 0, &v) == fits, "%u bytes %s", n, fits ? "end with a value" : "are refused");
	}
	ok(probe_read(rule, bytes, 13, 0, &v) && v.count == 3 && v.at[1].known && !v.at[2].known, "what is missing at the end is unknown");
	length = PROBE_STRING_BAD;
	memcpy(bytes + 8, &length, 2);
	ok(probe_read(rule, bytes, 26, 0, &v) && v.at[0].known && !v.at[1].known && v.at[2].known, "so is a text that could not be read");
	length = PROBE_STRING_MAX + 1;
	memcpy(bytes + 8, &length, 2);
	ok(!probe_read(rule, bytes, 64, 0, &v), "a text longer than any is refused");
	probes_free(set);
}

static const struct { const char *demangled, *function, *scope; } names[] = {
	{ "main", "main", "main" },
	{ "std::vector<int, std::allocator<int> > ns::f<std::pair<int, int> >(int, long)", "ns::f<std::pair<int, int> >", "ns" },
	{ "ns::(anonymous namespace)::g(int)", "ns::(anonymous namespace)::g", "(anonymous namespace)" },
	{ "A::operator()(int) const", "A::operator()", "A" },
	{ "bool operator< <int>(A const&, A const&)", "operator< <int>", "operator< <int>" },
	{ "A::operator<<(int)", "A::operator<<", "A" },
	{ "a::b<c::d>::e", "a::b<c::d>::e", "b<c::d>" },
	{ "<<((", "<<((", "<<((" },
	{ "::", "::", "" },
};

static void test_names(void)
{
	struct probe_set *set = parsed("f span scope={scope}");
	char text[PROBE_NAME_MAX];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct probe_scope scope = { .symbol = "f", .demangled = names[i].demangled };

		probe_name(probes_rule(set, 0), &scope, text, sizeof text);
		ok(!strcmp(text, names[i].function), "the function of %s: %s", names[i].demangled, text);
		probe_text(probes_rule(set, 0), "scope", &scope, text, sizeof text);
		ok(!strcmp(text, names[i].scope), "... its scope: %s", text);
	}
	probes_free(set);
}

static void test_letters(void)
{
	struct probe_set *set = parsed("cblas_[sd]gemm|[sd]gemm_ span name=\"{letter}gemm\" size=4+4*(letter=='d')");
	static const char *const symbols[] = { "cblas_sgemm", "cblas_dgemm", "sgemm_", "dgemm_" };
	struct probe_scope scope = { .symbol = "f" };
	char name[16];
	i64 size;

	ok(set && probes_count(set) == 4, "letters in brackets make rows: %s", set ? "4" : error.text);
	for (u32 i = 0; set && i < 4; i++) {
		const struct probe_rule *r = probes_rule(set, i);

		probe_name(r, &scope, name, sizeof name);
		ok(!strcmp(r->symbol, symbols[i]) && name[0] == "sd"[i & 1] && probe_number(r, "size", &scope, NULL, &size) && size == (i & 1 ? 8 : 4),
		   "%s: %s, %d", r->symbol, name, (int)size);
	}
	probes_free(set);
}

static const struct { const char *glob, *symbol, *wild; } wilds[] = {
	{ "dnnl_*_desc_init", "dnnl_matmul_desc_init", "matmul" }, { "dnnl_*_desc_init", "dnnl_a_desc_init_desc_init", "a_desc_init" },
	{ "ab*", "abc", "c" }, { "ab*", "ab", "ab" }, { "ab*c*d", "abxcyd", "x" }, { "ab?*", "abcd", "d" }, { "abc", "abc", "abc" }, { "ab*c", "abd", "d" },
};

static void test_wild(void)
{
	char row[64], text[PROBE_NAME_MAX];

	for (size_t i = 0; i < sizeof wilds / sizeof *wilds; i++) {
		snprintf(row, sizeof row, "%s span name=\"{wild}\"", wilds[i].glob);
		struct probe_set *set = parsed(row);
		struct probe_scope scope = { .symbol = wilds[i].symbol };

		probe_name(probes_rule(set, 0), &scope, text, sizeof text);
		ok(!strcmp(text, wilds[i].wild), "%s in %s: %s", wilds[i].glob, wilds[i].symbol, text);
		probes_free(set);
	}
}

static void test_keys(void)
{
	struct probe_set *set = parsed("f copy bytes=8 dir=$arg4 why=$arg1 what=\"x\" when=1 name=n also=what\ng copy bytes=1 dir=d2h\nh copy bytes=1\ni copy bytes=1 dir=fill\nj copy bytes=1 dir=4");
	const struct probe_rule *r = probes_rule(set, 0);
	struct probe_values v = { 2, { { .type = TYPE_U64, .count = 1, .known = true, .number = { 1 } }, { .known = false } } };
	struct probe_scope scope = { .values = &v, .symbol = "f" };
	char text[4];

	ok(probe_keys(r) == 7 && !strcmp(probe_key(r, 2), "why") && !probe_key(r, 7), "keys in order");
	ok(!probe_key_shown(r, 0) && !probe_key_shown(r, 1) && probe_key_shown(r, 2) && probe_key_shown(r, 3) && !probe_key_shown(r, 4) &&
	   !probe_key_shown(r, 5), "those that the role does not know are shown");
	ok(!probe_key_is_text(r, 0) && probe_key_is_text(r, 3) && probe_key_is_text(r, 6), "some are texts");
	ok(probe_direction(r, &scope) == DIRECTION_H2D, "a direction that was fetched");
	ok(probe_direction(probes_rule(set, 1), &scope) == DIRECTION_D2H, "one that the row says");
	ok(probe_direction(probes_rule(set, 2), &scope) == DIRECTION_UNKNOWN, "none");
	ok(probe_direction(probes_rule(set, 3), &scope) == DIRECTION_FILL && probe_direction(probes_rule(set, 4), &scope) == DIRECTION_UNKNOWN,
	   "a fill is a word, not a number");
	ok(probe_holds(r, "when", &scope) && probe_holds(r, "ok", &scope), "conditions that hold, or are not there");
	ok(probe_text(r, "bytes", &scope, text, 1) && !*text, "no room, no text");
	probes_free(set);
}

/* ---- presets ------------------------------------------------------------------------------ */

static void test_presets(void)
{
	struct probe_set *set = probes_new();
	struct buf bytes = { 0 };
	char purpose[200];

	ok(probes_select(set, "all", &error), "all presets are good: %s", error.text);
	ok(probes_compile(set, &bytes), "and fit into a table of %zu bytes, %u rows", bytes.used, probes_count(set));
	probes_free(set);
	buf_release(&bytes);
	for (const struct probe_preset *p = probe_presets; p->name; p++) {
		probe_preset_purpose(p, purpose, sizeof purpose);
		ok(*purpose && strstr(p->text, "\n# default: o") && (p == probe_presets || strcmp(p[-1].name, p->name) < 0), "%s: %s", p->name, purpose);
	}
	set = probes_new();
	ok(probes_select(set, "none", &error) && !probes_count(set), "none has no rows");
	ok(!probes_select(set, "+blass", &error) && strstr(error.text, "did you mean 'blas'"), "%s", error.text);
	ok(!probes_select(set, "/nowhere/x.probes", &error) && !strcmp(error.text, "/nowhere/x.probes: No such file or directory"), "%s", error.text);
	ok(probes_select(set, "none,+blas", &error) && probes_count(set) && !strcmp(probes_rule(set, 0)->preset, "blas"), "a preset alone");
	probes_free(set);
}

/* What was made at build time is what would be made now. */
static void test_default(void)
{
	struct probe_set *set = probes_new();
	struct buf table = { 0 }, source = { 0 };
	struct probe_choice c;

	ok(probes_select(set, NULL, &error) && probes_compile(set, &table), "the default choice: %u rows", probes_count(set));
	probes_source(set, &source);
	ok(probes_choose(NULL, &c, &error) && c.table == probe_choice_default.table, "it is there already");
	ok(c.table_bytes == table.used && !memcmp(c.table, table.at, table.used), "the same table of %zu bytes", c.table_bytes);
	ok(c.source_bytes == source.used && !memcmp(c.source, source.at, source.used), "the same source of %zu bytes", c.source_bytes);
	ok(c.iree == probes_has_preset(set, "iree"), "the same of iree");
	probes_choice_release(&c);
	probes_free(set);
	buf_release(&table);
	buf_release(&source);
}

static void test_choices(void)
{
	struct probe_choice c;

	ok(probes_choose("none,+blas", &c, &error) && c.table && c.source_bytes && !memcmp(c.source, "#preset blas\n", 13) && !c.iree, "a preset alone");
	probes_choice_release(&c);
	ok(probes_choose("none,+iree", &c, &error) && !c.table && !c.source && c.iree, "iree has no rows");
	probes_choice_release(&c);
	ok(probes_choose("none", &c, &error) && !c.table && !c.source && !c.iree, "none");
	probes_choice_release(&c);
	ok(!probes_choose("+blass", &c, &error) && strstr(error.text, "did you mean"), "a mistake is said");
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	test_bad_lines();
	test_too_much();
	test_table();
	test_source();
	test_values();
	test_signs();
	test_lengths();
	test_record_lengths();
	test_names();
	test_letters();
	test_wild();
	test_keys();
	test_presets();
	test_default();
	test_choices();
	return done();
}

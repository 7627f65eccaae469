/* test_units.c - numbers as people read and write them, words of a shell, and JSON text. */
#include "util/buf.h"
#include "util/json.h"
#include "util/say.h"
#include "util/units.h"

#include <string.h>

#include "tap.h"

static void is(const char *got, const char *wanted)
{
	ok(!strcmp(got, wanted), "%s (got %s)", wanted, got);
}

static void printed(void)
{
	is(units_bytes(0), "0 B");
	is(units_bytes(1023), "1023 B");
	is(units_bytes(1024), "1.00 KiB");
	is(units_bytes(-2048), "-2.00 KiB");
	is(units_bytes(1024 * 1024 - 1), "1.00 MiB");
	is(units_bytes(3661000000), "3.41 GiB");
	is(units_time(812), "812 ns");
	is(units_time(1230000), "1.23 ms");
	is(units_time(999999999), "1.00 s");
	is(units_time(200000000000), "3 min 20 s");
	is(units_time(7500000000000), "2 h 5 min");
	is(units_count(9999), "9999");
	is(units_count(12345678), "12.3 M");
	is(units_percent(1, 3), "33.3 %");
	is(units_percent(1, 0), "0.0 %");
}

static void parsed(void)
{
	static const struct { const char *text; u64 bytes; } good[] = {
		{ "0", 0 }, { "1", 1 }, { "64K", 65536 }, { "64k", 65536 }, { "1MiB", 1 << 20 }, { "1.5 GiB", 3ull << 29 },
		{ "2GB", 2ull << 30 }, { "7B", 7 }, { "4611686018427387904", 1ull << 62 },
	};
	static const char *const bad[] = { "", "K", "-1", "1Q", "1KiBs", "0x10", "nan", "inf", "1e30", " 1", "1K 2" };
	u64 bytes;

	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		ok(units_parse_bytes(good[i].text, &bytes) && bytes == good[i].bytes, "'%s' is a size", good[i].text);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ok(!units_parse_bytes(bad[i], &bytes), "'%s' is none", bad[i]);
}

static void near(void)
{
	static const char *const words[] = { "run", "replay", "dump", "help", NULL };

	ok(nearest("rnu", words) && !strcmp(nearest("rnu", words), "run"), "rnu is near run");
	ok(nearest("reply", words) && !strcmp(nearest("reply", words), "replay"), "reply is near replay");
	ok(!nearest("frobnicate", words), "frobnicate is near nothing");
}

static void text(const char *bytes, size_t length, const char *wanted)
{
	struct json j = { 0 };

	json_text(&j, NULL, bytes, length);
	is(j.out.at, wanted);
	buf_release(&j.out);
}

static void json(void)
{
	struct json j = { 0 };

	json_open(&j, NULL, '{');
	json_number(&j, "a", -1);
	json_open(&j, "b", '[');
	json_close(&j, ']');
	json_open(&j, "c", '[');
	json_bool(&j, NULL, true);
	json_string(&j, NULL, NULL);
	json_close(&j, ']');
	json_real(&j, "d", 1.5);
	json_real(&j, "e", 0.0 / 0.0 * 1);
	json_close(&j, '}');
	is(j.out.at, "{\"a\": -1, \"b\": [], \"c\": [true, null], \"d\": 1.500, \"e\": 0.000}");
	buf_release(&j.out);
	text("a\"b\\c\n\x01\x7f", 8, "\"a\\\"b\\\\c\\n\\u0001\\u007f\"");
	text("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
	text("\xff\xc3", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\"");
	text("\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	text("\xc0\x80x", 3, "\"\xef\xbf\xbd\xef\xbf\xbdx\"");
	text("a\0b", 3, "\"a\\u0000b\"");
}

static void word(const char *from, const char *wanted)
{
	struct buf b = { 0 };

	buf_word(&b, from, strlen(from));
	is(b.at, wanted);
	buf_release(&b);
}

static void words(void)
{
	word("a-b=c/d.e", "a-b=c/d.e");
	word("", "''");
	word("two words", "'two words'");
	word("print('x')", "'print('\\''x'\\'')'");
	word("*", "'*'");
}

int main(void)
{
	words();
	printed();
	parsed();
	near();
	json();
	return done();
}

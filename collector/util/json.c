/* json.c - JSON text. */
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Length of the well-formed UTF-8 sequence at `at`, 0 if there is none: no overlong forms, no surrogates. */
static int sequence(const unsigned char *at, size_t left)
{
	int length = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : at[0] < 0xf5 ? 4 : 0;

	if (!length || (size_t)length > left)
		return 0;
	for (int i = 1; i < length; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
	    (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
		return 0;
	return length;
}

static void escaped(struct buf *b, const unsigned char *at, int length)
{
	if (!length)
		buf_text(b, "\xef\xbf\xbd");
	else if (*at == '"' || *at == '\\')
		buf_print(b, "\\%c", *at);
	else if (*at == '\n')
		buf_text(b, "\\n");
	else if (*at < 0x20 || *at == 0x7f)
		buf_print(b, "\\u%04x", *at);
	else
		buf_add(b, (const char *)at, length);
}

/* How much from here on needs no second look. */
static size_t plain(const char *text, size_t length)
{
	size_t at = 0;

	while (at < length && text[at] >= 0x20 && text[at] < 0x7f && text[at] != '"' && text[at] != '\\')
		at++;
	return at;
}

static void quoted(struct buf *b, const char *text, size_t length)
{
	buf_char(b, '"');
	for (size_t at = 0, run; at < length; at += run) {
		run = plain(text + at, length - at);
		buf_add(b, text + at, run);
		if (run)
			continue;
		int span = sequence((const unsigned char *)text + at, length - at);

		escaped(b, (const unsigned char *)text + at, span);
		run = span ? span : 1;
	}
	buf_char(b, '"');
}

static void begin(struct json *j, const char *key)
{
	if (j->more)
		buf_text(&j->out, ", ");
	j->more = true;
	if (!key)
		return;
	buf_char(&j->out, '"');
	buf_text(&j->out, key);
	buf_text(&j->out, "\": ");
}

void json_open(struct json *j, const char *key, char bracket)
{
	begin(j, key);
	buf_char(&j->out, bracket);
	j->more = false;
}

void json_close(struct json *j, char bracket)
{
	buf_char(&j->out, bracket);
	j->more = true;
}

void json_text(struct json *j, const char *key, const char *text, size_t length)
{
	begin(j, key);
	quoted(&j->out, text, length);
}

void json_string(struct json *j, const char *key, const char *text)
{
	if (text)
		json_text(j, key, text, strlen(text));
	else
		json_null(j, key);
}

void json_number(struct json *j, const char *key, i64 value)
{
	begin(j, key);
	buf_print(&j->out, "%lld", (long long)value);
}

void json_count(struct json *j, const char *key, u64 value)
{
	begin(j, key);
	buf_print(&j->out, "%llu", (unsigned long long)value);
}

void json_real(struct json *j, const char *key, double value)
{
	begin(j, key);
	buf_print(&j->out, "%.3f", isfinite(value) ? value : 0);
}

void json_bool(struct json *j, const char *key, bool value)
{
	begin(j, key);
	buf_text(&j->out, value ? "true" : "false");
}

void json_null(struct json *j, const char *key)
{
	begin(j, key);
	buf_text(&j->out, "null");
}

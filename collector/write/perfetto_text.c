/*
 * perfetto_text.c - protobuf strings are UTF-8; names of threads, files and functions are any bytes.
 *
 * A byte that is not part of a valid character becomes '?', so lengths stay.
 */
#include "perfetto.h"

static bool continues(const u8 *s, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if ((s[i] & 0xc0) != 0x80)
			return false;
	return true;
}

/* Bytes of the valid character at `s`, 0 if it is not one. The first two bytes decide about overlong forms,
 * surrogates and what lies beyond Unicode: table 3-7 of the standard. */
static size_t character_length(const u8 *s)
{
	static const struct { u8 first, last, low, high, more; } form[] = {
		{ 0x01, 0x7f, 0x00, 0xff, 0 },
		{ 0xc2, 0xdf, 0x80, 0xbf, 1 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 2 },
		{ 0xe1, 0xec, 0x80, 0xbf, 2 },
		{ 0xed, 0xed, 0x80, 0x9f, 2 },
		{ 0xee, 0xef, 0x80, 0xbf, 2 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 3 },
		{ 0xf1, 0xf3, 0x80, 0xbf, 3 },
		{ 0xf4, 0xf4, 0x80, 0x8f, 3 },
	};

	for (size_t i = 0; i < sizeof(form) / sizeof(form[0]); i++)
		if (s[0] >= form[i].first && s[0] <= form[i].last)
			return s[1] >= form[i].low && s[1] <= form[i].high && continues(s + 1, form[i].more) ?
				form[i].more + 1 : 0;
	return 0;
}

void utf8_fix(char *text)
{
	for (u8 *s = (u8 *)text; *s;) {
		size_t n = character_length(s);

		if (!n)
			*s = '?';
		s += n ? n : 1;
	}
}

char *utf8_copy(const char *text)
{
	char *copy = strdup(text);

	if (copy)
		utf8_fix(copy);
	return copy;
}

void enc_utf8(struct enc *e, u32 field, const char *text)
{
	size_t len = strlen(text);

	enc_varint(e, (u64)field << 3 | 2);
	enc_varint(e, len);
	if (!enc_room(e, len + 1))
		return;
	memcpy(e->at + e->len, text, len + 1);
	utf8_fix((char *)e->at + e->len);
	e->len += len;
}

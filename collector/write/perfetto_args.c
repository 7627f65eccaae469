/*
 * perfetto_args.c - what stands beside a slice: numbers, texts, and the "key=value" texts of a record.
 *
 * The names of the keys are written once per sequence, as far as they are few; they come from the program, so their
 * number is limited, and whatever goes beyond is written out.
 */
#include "perfetto.h"

#include <ctype.h>
#include <uthash.h>

enum { KEYS_MAX = 1024, KEY_LENGTH_MAX = 64, VALUE_MAX = 4096 };

struct arg_key {
	UT_hash_handle hh;
	char text[];
};

void arg_number(struct stacks *k, struct enc *e, const char *name, u32 field, u64 value)
{
	size_t mark = enc_open(e, EVENT_ANNOTATION);

	enc_uint(e, ARG_NAME_IID, stacks_arg_name(k, name));
	enc_uint(e, field, value);
	enc_close(e, mark);
}

void arg_real(struct stacks *k, struct enc *e, const char *name, double value)
{
	size_t mark = enc_open(e, EVENT_ANNOTATION);

	enc_uint(e, ARG_NAME_IID, stacks_arg_name(k, name));
	enc_double(e, ARG_DOUBLE, value);
	enc_close(e, mark);
}

void arg_string(struct stacks *k, struct enc *e, const char *name, const char *text)
{
	size_t mark = enc_open(e, EVENT_ANNOTATION);

	enc_uint(e, ARG_NAME_IID, stacks_arg_name(k, name));
	enc_utf8(e, ARG_TEXT, text);
	enc_close(e, mark);
}

/* The same pointer for the same key; NULL: there are too many. */
static const char *key_once(struct arg_keys *all, const char *key, size_t len)
{
	struct arg_key *known;

	HASH_FIND(hh, all->keys, key, len, known);
	if (known)
		return known->text;
	if (HASH_COUNT(all->keys) >= KEYS_MAX)
		return NULL;
	known = calloc(1, sizeof(*known) + len + 1);
	if (!known)
		return NULL;
	memcpy(known->text, key, len);
	HASH_ADD_KEYPTR(hh, all->keys, known->text, len, known);
	return known->text;
}

const char *arg_text_once(struct arg_keys *all, const char *text, size_t len)
{
	const char *once = key_once(all, text, len < KEY_LENGTH_MAX ? len : KEY_LENGTH_MAX);

	return once ? once : "...";
}

/* 19 digits always fit. */
static bool is_number(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isdigit((unsigned char)text[i]))
			return false;
	return len > 0 && len < 20;
}

/* "-12", "0.125": what is longer is more than a number can hold. */
static bool is_signed(const char *text, size_t len)
{
	return len > 1 && text[0] == '-' && is_number(text + 1, len - 1);
}

static bool is_real(const char *text, size_t len)
{
	const char *point = memchr(text, '.', len);
	size_t before = point ? (size_t)(point - text) : 0;

	return point && (is_number(text, before) || is_signed(text, before)) && is_number(point + 1, len - before - 1);
}

static bool is_address(const char *text, size_t len)
{
	if (len < 3 || len > 18 || text[0] != '0' || text[1] != 'x')
		return false;
	for (size_t i = 2; i < len; i++)
		if (!isxdigit((unsigned char)text[i]))
			return false;
	return true;
}

static void value(struct enc *e, const char *text, size_t len)
{
	char copy[VALUE_MAX];

	len = len < sizeof(copy) ? len : sizeof(copy) - 1;
	memcpy(copy, text, len);
	copy[len] = 0;
	if (is_number(copy, len))
		enc_uint(e, ARG_UINT, strtoull(copy, NULL, 10));
	else if (is_signed(copy, len))
		enc_uint(e, ARG_INT, (u64)strtoll(copy, NULL, 10));
	else if (is_real(copy, len))
		enc_double(e, ARG_DOUBLE, strtod(copy, NULL));
	else if (is_address(copy, len))
		enc_uint(e, ARG_POINTER, strtoull(copy, NULL, 16));
	else
		enc_utf8(e, ARG_TEXT, copy);
}

static void name(struct arg_keys *all, struct stacks *k, struct enc *e, const char *key, size_t len)
{
	char copy[KEY_LENGTH_MAX + 1];

	len = len < KEY_LENGTH_MAX ? len : KEY_LENGTH_MAX;
	const char *once = key_once(all, key, len);

	if (once) {
		enc_uint(e, ARG_NAME_IID, stacks_arg_name(k, once));
		return;
	}
	memcpy(copy, key, len);
	copy[len] = 0;
	enc_utf8(e, ARG_NAME, copy);
}

void args_of_text(struct arg_keys *all, struct stacks *k, struct enc *e, const struct arg_text *args)
{
	for (u32 at = 0; at < args->length;) {
		const char *text = args->at + at;
		size_t len = strnlen(text, args->length - at);
		const char *equal = memchr(text, '=', len);
		size_t key = equal ? (size_t)(equal - text) : 0, mark;

		at += len + 1;
		if (!len)
			continue;
		mark = enc_open(e, EVENT_ANNOTATION);
		name(all, k, e, key ? text : "note", key ? key : 4);
		value(e, key ? equal + 1 : text, key ? len - key - 1 : len);
		enc_close(e, mark);
	}
}

void arg_keys_free(struct arg_keys *all)
{
	struct arg_key *key, *next;

	HASH_ITER(hh, all->keys, key, next) {
		HASH_DEL(all->keys, key);
		free(key);
	}
}

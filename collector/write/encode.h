/*
 * encode.h - protobuf bytes, straight into a growing buffer.
 *
 *   enc_uint(e, 8, ns)                    tag, varint
 *   mark = enc_open(e, 11) ... enc_close  tag, length, whatever was written in between
 *
 * A nested message gets one byte for its length; when it turns out longer than 127 bytes its content is moved up.
 * That costs a copy for the few large ones and makes the many small ones as short as they can be.
 */
#ifndef ENCODE_H
#define ENCODE_H

#include <mlprof/wire.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct enc {
	u8 *at;
	size_t len, cap;
	bool failed;                    /* no memory: what is in the buffer is not whole */
};

static inline bool enc_room(struct enc *e, size_t more)
{
	if (e->len + more <= e->cap)
		return true;

	size_t cap = (e->cap + more) * 2;
	u8 *at = e->failed ? NULL : realloc(e->at, cap);

	if (!at) {
		e->failed = true;
		return false;
	}
	e->at = at;
	e->cap = cap;
	return true;
}

static inline void enc_varint(struct enc *e, u64 v)
{
	if (!enc_room(e, 10))
		return;
	u8 *at = e->at + e->len;

	while (v >= 0x80) {
		*at++ = (u8)v | 0x80;
		v >>= 7;
	}
	*at++ = (u8)v;
	e->len = at - e->at;
}

static inline void enc_uint(struct enc *e, u32 field, u64 v)
{
	enc_varint(e, (u64)field << 3);
	enc_varint(e, v);
}

static inline void enc_double(struct enc *e, u32 field, double v)
{
	enc_varint(e, (u64)field << 3 | 1);
	if (!enc_room(e, sizeof(v)))
		return;
	memcpy(e->at + e->len, &v, sizeof(v));
	e->len += sizeof(v);
}

static inline void enc_fixed(struct enc *e, u32 field, u64 v)
{
	enc_varint(e, (u64)field << 3 | 1);
	if (!enc_room(e, sizeof(v)))
		return;
	memcpy(e->at + e->len, &v, sizeof(v));
	e->len += sizeof(v);
}

static inline void enc_raw(struct enc *e, const void *from, size_t len)
{
	if (!len || !enc_room(e, len))
		return;
	memcpy(e->at + e->len, from, len);
	e->len += len;
}

static inline void enc_bytes(struct enc *e, u32 field, const void *from, size_t len)
{
	enc_varint(e, (u64)field << 3 | 2);
	enc_varint(e, len);
	enc_raw(e, from, len);
}

static inline void enc_text(struct enc *e, u32 field, const char *text)
{
	enc_bytes(e, field, text, strlen(text));
}

/* Returns where the length byte is, for enc_close(). */
static inline size_t enc_open(struct enc *e, u32 field)
{
	enc_varint(e, (u64)field << 3 | 2);
	enc_varint(e, 0);
	return e->len - 1;
}

static inline void enc_close(struct enc *e, size_t mark)
{
	size_t len = e->len - (mark + 1), extra = 0;

	if (e->failed)
		return;
	for (size_t rest = len; rest >= 0x80; rest >>= 7)
		extra++;
	if (extra) {
		if (!enc_room(e, extra))
			return;
		memmove(e->at + mark + 1 + extra, e->at + mark + 1, len);
	}
	e->len = mark;
	enc_varint(e, len);
	e->len += len;
}

static inline void enc_free(struct enc *e)
{
	free(e->at);
	*e = (struct enc){ 0 };
}

#endif

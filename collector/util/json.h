/*
 * json.h - JSON text, one value after the other; commas and escapes take care of themselves.
 *
 * A key of NULL is for values in arrays and for the outermost one.
 */
#ifndef JSON_H
#define JSON_H

#include "buf.h"

#include <mlprof/wire.h>

struct json {
	struct buf out;
	bool more;              /* a value stands before this one: comma first */
};

void json_open(struct json *j, const char *key, char bracket);   /* '{' or '[' */
void json_close(struct json *j, char bracket);                   /* '}' or ']' */
void json_text(struct json *j, const char *key, const char *text, size_t length);       /* any bytes; bad UTF-8 is replaced */
void json_string(struct json *j, const char *key, const char *text);                    /* NULL becomes null */
void json_number(struct json *j, const char *key, i64 value);
void json_count(struct json *j, const char *key, u64 value);
void json_real(struct json *j, const char *key, double value);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);

#endif

/* pjrt.h - what pjrt_plugin.c and pjrt_user.c share of PJRT's C API: places and fields as its public header has them. */
#ifndef PJRT_H
#define PJRT_H

#include <stddef.h>
#include <stdint.h>

enum { TYPE_U8 = 6, TYPE_F32 = 11, TYPE_BF16 = 13, TYPE_C128 = 15, SLOTS = 90 };

typedef void *(*function)(void *);
struct table { size_t size; void *extension; size_t version_size; void *version_extension; int major, minor; function slot[SLOTS]; };

#define HEAD size_t size; void *extension
struct one { HEAD; void *object; };                      /* event, buffer */
struct create { HEAD; void *options; size_t count; void *get, *get_arg, *put, *put_arg; void *client; };
struct program { HEAD; const char *code; size_t code_size; const char *format; size_t format_size; };
struct compile { HEAD; void *client; struct program *program; const char *options; size_t options_size; void *executable; };
struct get_executable { HEAD; void *loaded, *executable; };
struct name { HEAD; void *executable; const char *name; size_t length; };
struct from_host { HEAD; void *client; const void *data; int type; const int64_t *dims; size_t rank; const int64_t *strides; size_t strides_count;
		   int semantics; void *device, *memory, *layout; void *done, *buffer; };
struct execute { HEAD; void *executable, *options; void *const *const *arguments; size_t devices, count; void **const *outputs;
		 void **events; void *device; };
struct to_host { HEAD; void *source, *layout, *to; size_t bytes; void *event; };

_Static_assert(offsetof(struct table, slot) == 40 && offsetof(struct from_host, buffer) == 112 && offsetof(struct from_host, rank) == 48 &&
	       offsetof(struct execute, count) == 48 && offsetof(struct to_host, bytes) == 40 && offsetof(struct create, client) == 64, "layout");

#endif

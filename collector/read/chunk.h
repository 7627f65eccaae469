/*
 * chunk.h - one chunk, checked before anything else looks at it.
 *
 * chunk_check() walks a chunk once and promises to all who come after: every kind and type is known, the
 * bodies lie inside the chunk, texts fit, times never decrease and stay below TICKS_MAX. The decoder can
 * then be as short as it is fast.
 */
#ifndef CHUNK_H
#define CHUNK_H

#include "../model/window.h"

#define TICKS_MAX (1ull << 62)

enum unit { UNIT_PLAIN, UNIT_TICKS, UNIT_NS, UNIT_BYTES, UNIT_ADDR, UNIT_ID, UNIT_COUNT, UNIT_BITS };

struct field {
	const char *name;
	enum unit unit;
	const char *meaning;
};

/* What records.def says of an event. */
struct shape {
	const char *name, *meaning;
	const struct field *field;
	u32 fields;
	const char *text;               /* meaning of the text; NULL: it has none */
};

struct packed_shape {
	const char *name, *meaning;
	u32 words;
};

extern const struct shape shape_of[EVENT_TYPES];
extern const struct packed_shape packed_of[8];

/* 0 or -EINVAL. `to` is where the chunk ends. */
int chunk_check(const union chunk *c, struct extent *to);
/* Where the first `up` records of a chunk that was found good end. */
struct extent chunk_extent(const union chunk *c, u32 up);

/* The event whose word is `w` and whose body ends `down` words below the end of the chunk. */
struct event chunk_event(const union chunk *c, u64 w, u32 down);
u32 event_words(u64 w);

#endif

/*
 * own.h - the collector's own streams: what it knows and the programs do not, written down as they write.
 */
#ifndef OWN_H
#define OWN_H

#include <mlprof/wire.h>
#include <stdbool.h>

struct own {
	union chunk chunk;
	u64 last;                                       /* ticks */
	u64 pushed, kept;                               /* `used` of the chunk when it last went to the merge, to the raw file */
	void (*full)(void *to, struct own *o);          /* the chunk has no more room */
	void *to;
};

void own_init(struct own *o, u32 slot, u64 ticks, void (*full)(void *to, struct own *o), void *to);
void own_event(struct own *o, u64 ticks, u32 type, const void *fields, size_t bytes, const char *text, size_t len);

#define OWN(o, ticks, name, text, len, ...) \
	own_event(o, ticks, EVENT_##name, &(struct rec_##name) { __VA_ARGS__ }, sizeof(struct rec_##name), text, len)

#endif

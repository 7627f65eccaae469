/*
 * recording.h - what the parts of a live recording share.
 *
 *   record.c    opens and closes it, and makes its turns
 *   intake.c    the pipe: bytes become chunks, chunks go to the raw file and to the merge
 *   watch.c     process images: their rings, how far each thread has come, their ends
 *   heard.c     children that were announced and have said nothing yet
 */
#ifndef RECORDING_H
#define RECORDING_H

#include "read/feed.h"
#include "read/own.h"
#include "read/raw.h"
#include "read/ring.h"
#include "record.h"

/* A process image that is looked after until its end. */
struct watch {
	struct image *image;            /* of the merge; NULL once it is over */
	u32 pid, uid;
	u64 born;
	struct ring ring;
	int pidfd;                      /* -1: none could be had */
	bool over, dead;                /* dead: seen to be, not yet taken care of */
	bool told;                      /* the caller said how it ended */
	int how, code;
	struct watch *next;
};

enum { HEARD_MAX = 64 };

struct heard {
	u32 pid;
	int pidfd;
};

struct told {                           /* an end that the caller knew of before we knew of the process */
	u32 pid;
	int how, code;
	u64 ticks;
};

struct recording {
	char dir[512];
	int dir_fd, pipe_fd, pipe_hold, epoll_fd;
	struct control *control;
	u32 tick_kind;
	u64 ticks_per_ms;
	struct feed feed;
	bool ended;

	struct own own;
	u64 own_pushed, own_kept;       /* `used` of its chunk when it was last pushed, last kept in the raw file */
	struct raw raw;

	char part[CHUNK_BYTES];         /* of a chunk that came in pieces */
	u32 part_bytes;

	struct watch *watch;
	u32 alive;
	u32 main_pid;
	struct told told[64];
	u32 tolds;
	struct heard heard[HEARD_MAX];
	u32 heards;

	u64 start_ticks, start_ns;
	u64 clock_ticks, clock_ns;      /* of the newest clock record */
	u32 clocks;
	u32 sample_ms;
	u64 sample_due_ns;
	u64 looked_for_exit;            /* ticks */
	u32 quiet_turns;
};

u64 recording_ticks(const struct recording *r);

/* intake.c */
u32 intake_drain(struct recording *r, u32 most);        /* chunks read: at least `most`, or the pipe was empty */
void intake_chunk(struct recording *r, union chunk *c); /* takes the buffer */
void intake_own(struct recording *r);                   /* what the collector wrote reaches the merge */
void intake_own_full(void *r, const union chunk *c);

/* watch.c */
void watch_image(struct recording *r, struct image *image);
void watch_peek_all(struct recording *r, struct watch *w);
u64 watch_bound(struct recording *r, u64 now);          /* no record to come is older */
void watch_end(struct recording *r, struct watch *w, int how, int code);
void watch_ends(struct recording *r);                   /* of those that died */
void watch_release(struct recording *r);
struct watch *watch_of_pid(struct recording *r, u32 pid);

/* heard.c */
void heard_chunk(struct recording *r, const union chunk *c);    /* that has `child` records */
void heard_forget(struct recording *r, u32 pid);
void heard_ends(struct recording *r);
void heard_release(struct recording *r);

#endif

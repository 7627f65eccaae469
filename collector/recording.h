/*
 * recording.h - what the parts of a live recording share.
 *
 *   record.c    opens and closes it, and makes its turns
 *   intake.c    the pipe: bytes become chunks, chunks go to the raw file and to the merge
 *   aside.c     more pipes, for what is written in a burst
 *   watch.c     process images: their rings, how far each thread has come, their ends
 *   heard.c     children that were announced and have said nothing yet
 */
#ifndef RECORDING_H
#define RECORDING_H

#include "read/feed.h"
#include "read/own.h"
#include "read/proc.h"
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
	struct proc_files proc;
	u64 rss;                        /* when it was last sampled */
	bool over, dead;                /* dead: seen to be, not yet taken care of */
	bool read;                      /* it is dead, and all that it sent has been read */
	u64 last;                       /* ticks: then of its last record */
	u64 followed_at;                /* ticks: then another image began under its number; 0: none has */
	u64 dead_at;                    /* ticks */
	bool told;                      /* the caller said how it ended */
	int how, code;
	struct watch *next;
};

enum { HEARD_MAX = 64, INTAKE_BATCH = 16, ASIDE_PIPES = 160, PIPE_CHUNKS = 256 + 1 /* more than it holds */ };

struct aside_pipe {
	int fd[2];
	u64 after;                      /* ticks: what was sent by then is not in here, but came before */
};

struct aside {
	struct aside_pipe pipe[ASIDE_PIPES];    /* a ring */
	u32 first, used, most;
	u64 empty_at;                   /* ticks: then there was nothing in the FIFO, or it has been taken since */
};


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
	u32 cpus;
	u32 taken;                      /* chunks, in the last turn */
	u64 burst_since;                /* ticks: since then as many threads as there are CPUs have been writing; 0: not now */
	struct aside aside;
	struct control *control;
	u32 tick_kind;
	u64 ticks_per_ms;
	struct feed feed;
	bool ended;

	struct own own;
	struct own ends;                /* of processes of which it is known when: what is told of them here is older than what is told in `own` */
	struct raw raw;

	struct {                        /* read from the pipe, and on its way to the merge; see intake.c */
		union chunk *chunk[INTAKE_BATCH];
		size_t bytes;
		u32 next, count;
	} batch;
	char part[CHUNK_BYTES];         /* of a chunk that came in pieces */
	u32 part_bytes;
	bool in_pieces;                 /* one is being put together */

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
	u32 still_samples;              /* in a row in which nobody grew or shrank */
	u64 turned;                     /* ticks: when pipe and rings were last looked into */
	u64 looked_for_exit;            /* ticks */
	u32 quiet_turns;
};

u64 recording_ticks(const struct recording *r);

/* intake.c */
u32 intake_drain(struct recording *r, u32 most);        /* chunks read: at least `most`, or all that was put aside, or the pipe was empty */
u32 intake_drain_all(struct recording *r);              /* what was put aside, and what is in the pipe now; the latter in chunks */
void intake_chunk(struct recording *r, union chunk *c); /* takes the buffer */
void intake_own(struct recording *r);                   /* what the collector wrote reaches the merge ... */
void intake_own_kept(struct recording *r);              /* ... and the raw file */
void intake_own_full(void *r, struct own *o);

/* aside.c */
void aside_open(struct recording *r);
bool aside_put(struct recording *r);                    /* all that is in the pipe; false: there is no more room for it */
u64 aside_room(const struct recording *r);             /* bytes, at most */
int aside_fd(struct recording *r);                      /* where to read first; -1: in the pipe */
void aside_next(struct recording *r);                   /* there was nothing more in that */
u64 aside_after(struct recording *r);                   /* ticks: all that was sent by then has been read */
void aside_close(struct recording *r);

/* watch.c */
void watch_image(struct recording *r, struct image *image);
void watch_peek_all(struct recording *r, struct watch *w);
u64 watch_bound(struct recording *r, u64 now);          /* no record to come is older */
u32 watch_writers(struct recording *r, u64 now);        /* threads that have been writing lately */
void watch_end(struct recording *r, struct watch *w, int how, int code);
void watch_dead(struct recording *r, struct watch *w);   /* it is seen to be */
bool watch_events(struct recording *r);                 /* looks who has died; true: somebody, or something is in the pipe */
void watch_ends(struct recording *r);                   /* of those that have */
void watch_release(struct recording *r);
struct watch *watch_of_pid(struct recording *r, u32 pid);

/* heard.c */
void heard_chunk(struct recording *r, const union chunk *c);    /* that has `child` records */
void heard_forget(struct recording *r, u32 pid);
void heard_ends(struct recording *r);
void heard_release(struct recording *r);

#endif

/*
 * record.h - one live recording: the session directory and its pipe on one side, the model on the other.
 *
 *   recording_open      private directory, control page, FIFO; returns before any program runs
 *   recording_step      take what is there, merge what is certain, sample /proc; called in a loop
 *   recording_end       the programs are over (or are to be left alone): take the tails, close the model
 *   recording_close     remove the directory
 *
 * The caller owns processes, signals and outputs; a recording only reads. A second source of the same
 * stream is a raw file: replay.h.
 */
#ifndef RECORD_H
#define RECORD_H

#include "model/session.h"

struct recording;

struct recording_setup {
	char *const *command;           /* argv of the target */
	u64 large;                      /* bytes */
	u32 stacks, on_full, follow;    /* as in struct control */
	u32 device_time, apis;
	u32 check_stacks;
	u32 sample_ms;                  /* 0: no samples */
	u32 bare_pid;                   /* the program whose library started us; 0: `mlprof run` did */
	const char *library;            /* for the control page */
	const char *trace;              /* for the control page */
	const char *raw;                /* file to keep the raw stream in, or NULL */
	const char *raw_name;           /* what it is going to be called */
	const char *const *options;     /* "name=value" of options not at their default, NULL at the end */
	const void *probes;             /* the table for the library (mlprof/probes.h), or NULL */
	size_t probes_bytes;
	const char *probe_rows;         /* the source of that table */
	size_t probe_rows_bytes;
	const struct listener *listener;
};

/* 0 or -errno; *why then says what could not be done, for a message. */
int recording_open(struct recording **r, const struct recording_setup *setup, char *why, size_t why_size);
const char *recording_dir(const struct recording *r);

/*
 * One turn. Returns the milliseconds that the caller may sleep (in poll() on recording_fd() and what else it
 * waits for) before the next one; 0: there is more to take at once. While data flows it sleeps itself (0.5 ms),
 * because a reader asleep in the kernel makes every write of the program a wake-up.
 */
int recording_step(struct recording *r);
int recording_fd(const struct recording *r);

/* The caller knows how a process ended (it is its parent); else the recording finds out that it ended by pidfd. */
void recording_died(struct recording *r, u32 pid, int how, int code);
u32 recording_alive(const struct recording *r);         /* processes that said hello, or were made and may yet do so, and are not known to have ended */
bool recording_main_exiting(const struct recording *r); /* the first process said `exit`, all its destructors done */

/* For the live status line. */
struct recording_now { u64 elapsed_ns; i64 live, peak; u64 events; };
struct recording_now recording_now(const struct recording *r);

/* Programs stop sending (control.state), tails are taken, the session is complete. */
struct session *recording_end(struct recording *r);
int recording_raw_error(const struct recording *r);     /* then: -errno if the raw file is not whole */
void recording_done(struct recording *r);               /* outputs are written: lets a waiting bare program go */
void recording_close(struct recording *r);              /* its memory goes with the process, which ends: to free it block by block takes longer */

#endif

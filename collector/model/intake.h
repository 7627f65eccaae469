/*
 * intake.h - how records get into a session: chunks in, a finished session out.
 *
 * Whoever has chunks (the live recording, a raw file, a test) pushes them and says how far time has come;
 * the rest is the same for all.
 */
#ifndef INTAKE_H
#define INTAKE_H

#include "../read/merge.h"
#include "session.h"

/* Pushes a chunk of a raw file, after advancing as far as the recording had when it took it. */
void replay_chunk(struct merge *m, union chunk *c);

struct session *session_new(const struct listener *listener);   /* listener may be NULL; it is copied */
struct merge *session_merge(struct session *s);                 /* to push into and to advance */
void session_end(struct session *s);                            /* takes all that is left and closes the books */
void session_free(struct session *s);

#endif

/*
 * feed.h - a session and the merge that feeds it.
 *
 * Whoever has chunks (the live recording, a raw file, a test) pushes them and says how far time has come; the
 * rest is the same for all.
 */
#ifndef FEED_H
#define FEED_H

#include "../model/intake.h"
#include "merge.h"

struct feed {
	struct session *session;
	struct merge *merge;
};

struct feed feed_new(const struct listener *listener);
void feed_replay(struct feed *f, union chunk *c);       /* a chunk of a raw file, in a buffer of the merge */
void feed_end(struct feed *f);                          /* takes all that is left and closes the session's books */
void feed_free(struct feed *f);                         /* both; session may have been taken out before */

#endif

/*
 * feed.c - see feed.h.
 *
 * head.reserved of a chunk in a raw file says how far the recording had advanced when it took that chunk; advancing as
 * far before pushing it again makes the same records late, so a replay is the same session. The collector's own
 * chunks have 0 there.
 */
#include "feed.h"

struct feed feed_new(const struct listener *listener)
{
	struct session *s = session_new(listener);

	return (struct feed) { s, merge_new((struct sink) { s, session_window, session_early }) };
}

void feed_replay(struct feed *f, union chunk *c)
{
	u64 reached = c->head.reserved;

	if (c->head.pid && reached < TICKS_MAX && reached > merge_reached(f->merge))
		merge_advance(f->merge, reached);
	merge_push(f->merge, c);
}

void feed_end(struct feed *f)
{
	merge_advance(f->merge, UINT64_MAX);
	session_end(f->session, merge_counts(f->merge));
}

void feed_free(struct feed *f)
{
	merge_free(f->merge);
	session_free(f->session);
	*f = (struct feed) { 0 };
}

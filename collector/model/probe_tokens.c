/*
 * probe_tokens.c - how fast a language model reads and writes, from calls that say how many tokens they take (`tokens`).
 *
 *   one call of many tokens     a prompt is read:           tokens / time of the call
 *   calls of one token          the steps of a decode loop: steps / time from the first one to the last one, so with what lies between
 *                               them, such as sampling. Another prompt ends the loop.
 *
 * Where such a call makes others that say it as well, these count: they know what was taken at once.
 */
#include "inside.h"

/* Threads come and go on a stream; each has a loop of its own. */
static struct token_loop *loop_of(struct stream *s)
{
	if (s->loop.tid != s->tid)
		s->loop = (struct token_loop) { .tid = s->tid };
	return &s->loop;
}

void probed_tokens(struct probed *c, struct probe_sum *sum)
{
	const struct session *s = &c->m->s;
	u64 begin = c->call.begin, end = c->call.end, ns = session_ns(s, end) - session_ns(s, begin);
	struct token_loop *loop = loop_of(c->s);
	struct token_sum *t = &sum->tokens;
	i64 tokens;

	if (!probed_number(c, "tokens", &tokens) || tokens <= 0 || (loop->end && loop->begin >= begin))
		return;
	if (tokens == 1) {
		t->steps++;
		t->step_ns += ns;
		t->loop_ns += session_ns(s, end) - session_ns(s, loop->steps && loop->end <= begin ? loop->end : begin);
	} else {
		t->batches++;
		t->batch_tokens += (u64)tokens;
		t->batch_ns += ns;
	}
	loop->steps = tokens == 1;
	loop->begin = begin;
	loop->end = end;
}

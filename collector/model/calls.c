/*
 * calls.c - calls into APIs: told one by one, summed up by name over all processes.
 *
 * A wait may be inside of another one, where a library uses a device's own API: then each counts the time that it does not
 * share with those in it, so that the sum of all is how long the thread was blocked.
 */
#include "inside.h"

enum { CALL_NAMES_MAX = 1 << 16 };

static struct call_index *sum_of(struct model *m, const struct call *c)
{
	struct call_index probe, *i;

	memset(&probe, 0, sizeof(probe));
	probe.key.kind = c->kind;
	probe.key.name = text_once(&m->call_names, c->name, strlen(c->name));
	HASH_FIND(hh, m->calls, &probe.key, sizeof(probe.key), i);
	if (i || HASH_COUNT(m->calls) >= CALL_NAMES_MAX)
		return i;
	i = new_zeroed(1, sizeof(*i));
	i->key = probe.key;
	i->sum.kind = c->kind;
	HASH_ADD(hh, m->calls, key, sizeof(i->key), i);
	return i;
}

/* Takes out what lies in a wait that began then, and says how long that was. */
static u64 take_inner(struct stream *s, u64 begin)
{
	u64 ns = 0;

	while (s->waits && s->waited[s->waits - 1].begin >= begin)
		ns += s->waited[--s->waits].ns;
	return ns;
}

/* The two oldest become one when there is no more room. */
static void keep_wait(struct stream *s, u64 begin, u64 ns)
{
	if (s->waits == WAITS_KEPT) {
		s->waited[0].ns += s->waited[1].ns;
		memmove(&s->waited[1], &s->waited[2], (WAITS_KEPT - 2) * sizeof(*s->waited));
		s->waits--;
	}
	s->waited[s->waits++] = (struct wait_done) { begin, ns };
}

static u64 own_wait_ns(struct stream *s, const struct call *c, u64 ns)
{
	u64 inner = take_inner(s, c->begin);

	keep_wait(s, c->begin, ns);
	return ns > inner ? ns - inner : 0;
}

/* A stream may be handed on to another thread. */
static void note_waiter(struct model *m, struct stream *s)
{
	m->s.waiters += s->waiter != s->tid;
	s->waiter = s->tid;
}

void call_sum_up(struct model *m, struct stream *s, const struct call *c)
{
	struct call_index *i = sum_of(m, c);
	u64 ns = session_ns(&m->s, c->end) - session_ns(&m->s, c->begin);

	if (c->kind == CALL_WAIT) {
		ns = own_wait_ns(s, c, ns);
		note_waiter(m, s);
	}
	if (!i) {
		m->s.losses.texts++;
		return;
	}
	i->sum.calls++;
	i->sum.errors += c->error != 0;
	i->sum.total_ns += ns;
	if (ns > i->sum.max_ns)
		i->sum.max_ns = ns;
}

/* A call lies in the life of its process. */
u64 call_begin(const struct proc *p, u64 begin, u64 end)
{
	if (begin < p->p.born)
		begin = p->p.born;
	return begin < end ? begin : end;
}

void call_tell(struct model *m, struct proc *p, const struct stream *s, const struct call *c)
{
	if (m->listener.call)
		m->listener.call(m->listener.to, &p->p, live_thread(p, s->tid), c);
}

void call_event(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	const struct rec_call *r = EVENT_BODY(e, call);
	struct call c = {
		.kind = r->kind <= CALL_MEMORY ? (u32)r->kind : CALL_OTHER, .name = name_text(m, p, r->name),
		.begin = r->begin, .end = e->ticks, .work = r->work, .works = r->work ? r->works : 0, .error = (i64)r->error,
		.args = { e->text, e->text_len },
	};

	if (!c.name)
		c.name = "call";
	c.begin = call_begin(p, c.begin, c.end);
	if (c.works > UINT64_MAX - c.work)
		c.works = UINT64_MAX - c.work;
	c.node = node_of(m, p, s, (u32)r->node & NODE_MASK);
	call_sum_up(m, s, &c);
	call_tell(m, p, s, &c);
	if (c.works)
		works_called(m, p, &c);
}

static int longest_first(const void *a, const void *b)
{
	const struct call_sum *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return strcmp(x->name, y->name);
}

void calls_finish(struct model *m)
{
	struct call_index *i, *next;

	m->s.call = new_zeroed(HASH_COUNT(m->calls), sizeof(*m->s.call));
	HASH_ITER(hh, m->calls, i, next) {
		m->s.call[m->s.calls] = i->sum;
		m->s.call[m->s.calls++].name = i->key.name;
	}
	if (m->s.calls)
		qsort(m->s.call, m->s.calls, sizeof(*m->s.call), longest_first);
}

void calls_release(struct model *m)
{
	struct call_index *i, *next;
	struct known_text *t, *next_text;

	HASH_ITER(hh, m->calls, i, next) {
		HASH_DEL(m->calls, i);
		free(i);
	}
	HASH_ITER(hh, m->call_names, t, next_text) {
		HASH_DEL(m->call_names, t);
		free(t);
	}
	free(m->s.call);
}

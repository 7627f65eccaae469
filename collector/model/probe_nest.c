/*
 * probe_nest.c - probed calls inside of others on their thread.
 *
 * A call is told of when it ends, so after the calls inside of it. A list for each thread holds those that nothing was seen
 * around so far, by their beginnings; a call takes what began after it did and stands there instead:
 *
 *   aten::linear  |--------------------------|      told last: 3
 *   aten::addmm       |--------------|   |---|      told first and second: 1, 2
 *
 * From one such list comes the time that calls spent in others. Another one, for each library that computes, holds kernels until it
 * is known that they are not part of a larger one: LAPACK is made of BLAS, and the operations of both would count twice.
 */
#include "inside.h"

enum { NEST_MAX = 4096 };

struct inner {
	u64 begin, ticks;
	const char *name;
	u64 bytes;
	double flops;
};

struct nest {
	struct { u64 tid; struct dev *kernels; } key;   /* kernels NULL: calls of all kinds */
	struct inner *at;
	u32 count, room;
	UT_hash_handle hh;
};

static struct nest *nest_of(struct probed *c, struct dev *kernels)
{
	struct nest key, *n;

	memset(&key, 0, sizeof(key));
	key.key.tid = c->s->tid;
	key.key.kernels = kernels;
	HASH_FIND(hh, c->p->probes.nests, &key.key, sizeof(key.key), n);
	if (n)
		return n;
	n = new_zeroed(1, sizeof(*n));
	n->key = key.key;
	HASH_ADD(hh, c->p->probes.nests, key, sizeof(n->key), n);
	return n;
}

static void count_kernel(struct model *m, struct dev *d, const struct inner *i)
{
	u64 start = session_ns(&m->s, i->begin), end = session_ns(&m->s, i->begin + i->ticks);
	struct work w = {
		.kind = WORK_KERNEL, .name = i->name, .done = DONE_TIMED, .bytes = i->bytes, .flops = i->flops, .paced = true,
		.start = start, .end = end, .start_ns = start, .end_ns = end,
	};

	work_sum_up(m, d, &w);
}

/* The older half of so many is taken to have nothing around it that began in their midst: kernels count, other calls become one. */
static void make_room(struct model *m, struct nest *n)
{
	u32 i, old = NEST_MAX / 2, kept = !n->key.kernels;

	if (n->count < NEST_MAX)
		return;
	for (i = kept; i < old; i++) {
		if (n->key.kernels)
			count_kernel(m, n->key.kernels, &n->at[i]);
		else
			n->at[0].ticks += n->at[i].ticks;
	}
	n->count -= old - kept;
	memmove(n->at + kept, n->at + old, (n->count - kept) * sizeof(*n->at));
}

/* The sum of those that it takes the place of. */
static u64 stand_around(struct probed *c, struct nest *n, const struct inner *call)
{
	u64 inside = 0;

	while (n->count && n->at[n->count - 1].begin >= call->begin)
		inside += n->at[--n->count].ticks;
	make_room(c->m, n);
	ARRAY_ROOM(n->at, n->room, n->count + 1);
	n->at[n->count++] = *call;
	return inside;
}

u64 nest_call(struct probed *c)
{
	struct inner call = { .begin = c->call.begin, .ticks = c->call.end - c->call.begin };
	u64 inside = stand_around(c, nest_of(c, NULL), &call);

	return call.ticks > inside ? call.ticks - inside : 0;
}

void nest_kernel(struct probed *c, struct dev *d)
{
	struct inner kernel = {
		.begin = c->call.begin, .ticks = c->call.end - c->call.begin, .name = c->call.name, .bytes = c->bytes, .flops = c->flops,
	};

	stand_around(c, nest_of(c, d), &kernel);
}

void nests_close(struct model *m, struct probes *all)
{
	struct nest *n, *next;
	u32 i;

	HASH_ITER(hh, all->nests, n, next) {
		for (i = 0; n->key.kernels && i < n->count; i++)
			count_kernel(m, n->key.kernels, &n->at[i]);
		n->count = 0;
	}
}

void nests_release(struct probes *all)
{
	struct nest *n, *next;

	HASH_ITER(hh, all->nests, n, next) {
		HASH_DEL(all->nests, n);
		free(n->at);
		free(n);
	}
}

/*
 * iree_tiles.c - tiles of IREE's kernels become dispatches.
 *
 *   thread 0    |tile|tile|tile|       a run: tiles of one dispatch, one after another on one thread
 *   thread 1     |tile  |tile|
 *   dispatch    |--------------|       from the first tile's start to the last one's end
 *
 * Nothing tells us when a dispatch begins or ends. What all tiles of one share, and no other that is under way at the same
 * time, are the kernel and the addresses of its bindings and constants; later dispatches may have the same ones. But how
 * many tiles there are is known, and IREE does not take a dispatch to be over before all of them have returned: the one
 * that makes the count full ends it, and tells of all runs.
 *
 * A tile costs two stamps and one locked addition. Its thread takes a lock once a run, never around a kernel.
 */
#include "handles.h"
#include "iree.h"
#include "slots.h"

enum { BUCKETS = 256 };

struct run {
	struct run *next;
	u32 tid;
	bool again;                     /* the thread has another run at the same dispatch */
	u64 begin, end, tiles, busy;
} __attribute__((aligned(64)));         /* each is written by a thread of its own */

struct key { const void *bindings, *constants; u32 export; };

struct dispatch {
	struct dispatch *next;
	u64 done, total;                /* tiles */
	u64 number;                     /* 0: over; else no other dispatch has or had it */
	struct key key;
	u64 work;
	struct run *runs;
	bool failed;
} __attribute__((aligned(64)));

struct bucket { u32 lock; struct dispatch *first; };

static struct bucket *buckets;          /* empty again after a fork */
static struct pool dispatches = POOL(struct dispatch), runs = POOL(struct run);
static u64 numbers;

/* This thread's run. The dispatch may be over: then its number is another one. */
struct here {
	struct key key;
	u64 number;
	struct dispatch *dispatch;
	struct run *run;
};

static __thread struct here here __attribute__((tls_model("initial-exec")));

bool iree_tiles_start(void)
{
	if (!buckets)
		buckets = slots_memory(BUCKETS * sizeof *buckets);
	return buckets;
}

/* ---- a thread comes to a dispatch ------------------------------------------------------------ */

static bool same_key(const struct key *a, const struct key *b)
{
	return a->bindings == b->bindings && a->constants == b->constants && a->export == b->export;
}

static struct bucket *bucket_of(const struct key *k)
{
	u64 h = ((u64)k->bindings ^ (u64)k->constants * 3 ^ k->export) * 0x9e3779b97f4a7c15ull;

	return &buckets[h >> 56];
}

static bool is_first(const struct iree_tile_id *id) { return !id->x && !id->y && !id->z; }

static void open_dispatch(struct dispatch *s, const struct key *k, const struct iree_dispatch *d)
{
	s->key = *k;
	s->total = (u64)d->x * d->y * d->z;
	s->done = 0;
	s->runs = NULL;
	s->failed = false;
	s->work = work_numbers(1);
	s->number = __atomic_add_fetch(&numbers, 1, __ATOMIC_RELAXED);
}

/* The dispatch that the tile belongs to; NULL: it is the rest of one that has failed, or there is no memory. */
static struct dispatch *find(struct bucket *b, const struct key *k, const struct iree_dispatch *d, const struct iree_tile_id *id, bool *new)
{
	struct dispatch *s = b->first;

	while (s && !same_key(&s->key, k))
		s = s->next;
	if (s && !s->failed)
		return s;
	*new = !s || is_first(id);
	if (!s && (s = pool_get(&dispatches))) {
		s->next = b->first;
		b->first = s;
	}
	if (!s || !*new)
		return NULL;
	open_dispatch(s, k, d);
	return s;
}

static struct run *run_new(struct dispatch *s, u32 tid)
{
	struct run *r = pool_get(&runs);

	if (!r)
		return NULL;
	for (const struct run *other = s->runs; other && !r->again; other = other->next)
		r->again = other->tid == tid;
	r->tid = tid;
	r->next = s->runs;
	s->runs = r;
	return r;
}

static void tell_begin(const struct dispatch *s, const struct iree_dispatch *d)
{
	const struct iree_export *e = &iree_export[s->key.export];
	struct rec_work w = { .id = s->work, .queue = e->queue, .kind = WORK_KERNEL, .name = e->name, .x = d->x, .y = d->y, .z = d->z };

	work_note(&w, &e->args);
}

/* False: the tile is not counted. Inside of a hook, so that a signal handler's tiles keep off the lock. */
static __attribute__((noinline)) bool come(const struct key *k, const struct iree_dispatch *d, const struct iree_tile_id *id)
{
	u64 begin = ticks();            /* what is told of the dispatch's begin is time that IREE sees, too */
	struct visit v = context_enter(FRAME());
	struct bucket *b = bucket_of(k);
	struct dispatch *s;
	struct run *r = NULL;
	bool new = false;

	if (!v.context)
		return false;
	spin_lock(&b->lock);
	s = find(b, k, d, id, &new);
	if (s)
		r = run_new(s, v.context->slot->head.tid);
	if (r) {
		here = (struct here){ *k, s->number, s, r };
	} else {
		v.context->lost++;
		v.context->slot->head.lost++;
	}
	spin_unlock(&b->lock);
	context_leave(v);
	if (r && new) {
		tell_begin(s, d);
		iree_blocks_look();
	}
	if (r)
		r->begin = begin;
	return r;
}

/* ---- a dispatch ends --------------------------------------------------------------------------- */

static void tell_end(u64 work, u64 name, const struct run *list)
{
	struct rec_work_done w = { .id = work, .status = DONE_OBSERVED, .start = UINT64_MAX };

	for (const struct run *r = list; r; r = r->next) {
		run_note(&(struct rec_run){ .tid = r->tid, .work = work, .name = name, .begin = r->begin, .end = r->end, .tiles = r->tiles,
					    .busy = r->busy, .again = r->again });
		if (r->begin < w.start)
			w.start = r->begin;
		if (r->end > w.end)
			w.end = r->end;
	}
	work_done_note(&w);
}

/* All tiles have returned: nobody looks at it any more. Not found: it began before a fork, and is its parent's to tell of. */
static __attribute__((noinline)) void finish(struct dispatch *s)
{
	struct bucket *b = bucket_of(&s->key);
	struct dispatch **at = &b->first;
	struct run *r = s->runs, *next;
	struct visit v = context_enter(FRAME());
	bool found;

	spin_lock(&b->lock);
	while (*at && *at != s)
		at = &(*at)->next;
	found = *at;
	if (found)
		*at = s->next;
	__atomic_store_n(&s->number, 0, __ATOMIC_RELEASE);
	spin_unlock(&b->lock);
	if (v.context)
		context_leave(v);
	if (!found)
		return;
	tell_end(s->work, iree_export[s->key.export].name, r);
	for (; r; r = next) {
		next = r->next;
		pool_put(&runs, r);
	}
	pool_put(&dispatches, s);
}

/* A kernel says that the device is lost. Other threads may still be at it, so it stays where it is; what is left of its
 * tiles is not counted, until its first one comes again. */
static __attribute__((noinline)) void fail(struct dispatch *s)
{
	struct bucket *b = bucket_of(&s->key);
	struct visit v = context_enter(FRAME());
	bool first;

	spin_lock(&b->lock);
	first = s->number && !s->failed;
	s->failed = true;
	__atomic_store_n(&s->number, 0, __ATOMIC_RELEASE);
	spin_unlock(&b->lock);
	if (v.context)
		context_leave(v);
	if (first)
		work_done_note(&(struct rec_work_done){ .id = s->work, .status = DONE_FAILED });
}

/* ---- a tile -------------------------------------------------------------------------------------- */

__attribute__((visibility("hidden"))) int iree_tile(const void *environment, const struct iree_dispatch *d, const struct iree_tile_id *id,
						    u32 export);

int iree_tile(const void *environment, const struct iree_dispatch *d, const struct iree_tile_id *id, u32 export)
{
	struct key k = { d->bindings, d->constants, export };
	iree_kernel *real = iree_real[export];
	struct dispatch *s = here.dispatch;
	struct run *run;
	u64 begin, end;
	int r;

	if (unlikely(guest.state != GUEST_ON))
		return real(environment, d, id);
	if (unlikely(!s || !same_key(&here.key, &k) || __atomic_load_n(&s->number, __ATOMIC_RELAXED) != here.number)) {
		if (!come(&k, d, id))
			return real(environment, d, id);
		s = here.dispatch;
	}
	run = here.run;
	begin = ticks();
	r = real(environment, d, id);
	end = ticks();
	run->tiles++;
	run->busy += end - begin;
	run->end = end;
	if (unlikely(r))
		fail(s);
	else if (unlikely(__atomic_add_fetch(&s->done, 1, __ATOMIC_ACQ_REL) == s->total) && !s->failed)
		finish(s);
	return r;
}

/*
 * books.c - the hot half of the model. A window goes through two tight loops:
 *
 *   resolve   each free finds its block, rows change (resolve.c) -> entries {size, row} and steps {+-bytes, time}
 *   swing     running sum over the steps: lowest, highest, last value, up to the end of the curves' bucket
 *
 * An event (a mapping, a process, a sample ...) stops the first loop, the other one catches up, then it is taken.
 */
#include "inside.h"
#include <sys/mman.h>

/* Touched as far as it is used; a short session costs next to nothing. */
static void *pages(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? must(NULL) : p;
}

void books_init(struct model *m)
{
	struct journal *j = &m->journal;

	j->entry = pages(JOURNAL_ENTRIES * sizeof(*j->entry));
	j->step = pages(SLICE_ENTRIES * sizeof(*j->step));
}

void books_release(struct model *m)
{
	struct journal *j = &m->journal;

	munmap(j->entry, JOURNAL_ENTRIES * sizeof(*j->entry));
	munmap(j->step, SLICE_ENTRIES * sizeof(*j->step));
}

/* ---- peaks --------------------------------------------------------------------------- */

static void raise_peak(struct model *m, struct scope *s, struct mark *k, struct point p, u64 at)
{
	if (p.value <= s->peak)
		return;
	s->peak = p.value;
	s->peak_ticks = p.ticks;
	k->at = at;
	k->settled = false;
	m->journal.needed = true;
}

static struct point plus(struct point p, i64 offset)
{
	return (struct point) { p.ticks, p.value + offset };
}

static void raise_all(struct model *m, struct point p, u64 at)
{
	if (p.value <= m->s.with_devices.peak)
		return;
	raise_peak(m, &m->s.with_devices, &m->all_mark, p, at);
	m->s.devices_then = m->device_bytes;
	m->all_peaks++;
}

static void raise_tree(struct model *m, struct point p, u64 at)
{
	if (m->with_devices)
		raise_all(m, plus(p, m->device_bytes), at);
	if (p.value <= m->s.total.peak)
		return;
	raise_peak(m, &m->s.total, &m->mark, p, at);
	m->tree_peaks++;
}

static void copy_rows(const struct proc *p, struct held **held, u32 *rows)
{
	u32 i;

	*held = must(realloc(*held, (p->rows + 1) * sizeof(**held)));
	*rows = p->rows;
	for (i = 0; i < p->rows; i++)
		(*held)[i] = row_now(&p->row[i]);
}

static void undo(struct held *h, const struct entry *e)
{
	i64 sign = e->what & WHAT_OUT ? 1 : -1;

	h->bytes += sign * (i64)e->size;
	h->blocks += e->what & WHAT_BLOCK ? sign : 0;
}

static void copy_devices(struct proc *p)
{
	u32 i;

	for (i = 0; i < p->p.devices; i++) {
		struct dev *d = (struct dev *)p->p.device[i];

		if (!d->mark.settled)
			copy_rows(p, &d->peak, &d->peak_rows);
	}
}

static void copy_unsettled(struct model *m)
{
	u32 i;

	for (i = 0; i < m->s.processes; i++) {
		struct proc *p = proc_at(m, i);

		if (p->closed)
			continue;
		if (!p->mark.settled)
			copy_rows(p, &p->peak, &p->peak_rows);
		if (!m->mark.settled)
			copy_rows(p, &p->tree_peak, &p->tree_rows);
		if (!m->all_mark.settled)
			copy_rows(p, &p->all_peak, &p->all_rows);
		copy_devices(p);
	}
}

static void undo_devices(struct proc *p, const struct entry *e, u64 at)
{
	u32 i;

	for (i = 0; i < p->p.devices; i++) {
		struct dev *d = (struct dev *)p->p.device[i];

		if (!d->mark.settled && at >= d->mark.at)
			undo(&d->peak[e->row], e);
	}
}

static u64 older(u64 first, const struct mark *k)
{
	return !k->settled && k->at < first ? k->at : first;
}

/* The oldest entry that came after a peak whose rows are to be worked out. */
static u64 first_to_undo(struct model *m)
{
	u64 first = older(older(UINT64_MAX, &m->mark), &m->all_mark);
	u32 i, d;

	for (i = 0; i < m->s.processes; i++) {
		const struct proc *p = proc_at(m, i);

		first = older(first, &p->mark);
		for (d = 0; d < p->p.devices; d++)
			first = older(first, &((const struct dev *)p->p.device[d])->mark);
	}
	return first;
}

static void undo_since_peaks(struct model *m)
{
	const struct journal *j = &m->journal;
	u64 at;

	for (at = first_to_undo(m); at < j->base + j->count; at++) {
		const struct entry *e = &j->entry[at - j->base];
		struct proc *p = proc_at(m, e->what >> WHAT_PROCESS_SHIFT);

		if (p->closed)
			continue;
		if (!p->mark.settled && at >= p->mark.at)
			undo(&p->peak[e->row], e);
		if (!m->mark.settled && at >= m->mark.at)
			undo(&p->tree_peak[e->row], e);
		if (!m->all_mark.settled && at >= m->all_mark.at)
			undo(&p->all_peak[e->row], e);
		if (p->p.devices)
			undo_devices(p, e, at);
	}
}

static void begin_journal(struct journal *j)
{
	j->base += j->count;
	j->count = 0;
}

static void mark_settled(struct proc *p)
{
	u32 i;

	p->mark.settled = true;
	for (i = 0; i < p->p.devices; i++)
		((struct dev *)p->p.device[i])->mark.settled = true;
}

/* The rows at each peak that moved since last time are worked out, and the journal begins anew. */
void books_settle(struct model *m)
{
	struct journal *j = &m->journal;
	u32 i;

	copy_unsettled(m);
	undo_since_peaks(m);
	for (i = 0; i < m->s.processes; i++)
		mark_settled(proc_at(m, i));
	m->mark.settled = m->all_mark.settled = true;
	j->needed = false;
	begin_journal(j);
}

/* What nobody needs is written over: it is still in the cache. */
static void need_room(struct model *m, u32 entries)
{
	if (!m->journal.needed)
		begin_journal(&m->journal);
	else if (m->journal.count + entries > JOURNAL_ENTRIES)
		books_settle(m);
}

/* ---- swing --------------------------------------------------------------------------- */

/* The running sum from `now` over the steps [i, n) before `limit`. Returns where it stopped. */
static inline u32 swing_over(const struct step *step, u32 i, u32 n, u64 limit, i64 now, struct swing *s, u32 *highest)
{
	i64 min = INT64_MAX, max = INT64_MIN;
	u32 at_min = i, at_max = i;

	for (; i < n; i++) {
		if (unlikely(step[i].ticks >= limit))
			break;
		now += step[i].bytes;
		at_max = now > max ? i : at_max;
		max = now > max ? now : max;
		at_min = now < min ? i : at_min;
		min = now < min ? now : min;
	}
	s->min = (struct point) { step[at_min].ticks, min };
	s->max = (struct point) { step[at_max].ticks, max };
	s->last = (struct point) { step[i - 1].ticks, now };
	*highest = at_max;
	return i;
}

static void raise_pool(struct pool *pool, struct point max)
{
	if (max.value <= pool->peak)
		return;
	pool->peak = max.value;
	pool->peak_ticks = max.ticks;
}

/* A process's malloc total went along `s`. */
static void note_process(struct model *m, struct proc *p, const struct swing *s, u64 at)
{
	struct pool *malloc_pool = &p->p.pools.at[POOL_MALLOC];
	i64 rest = p->p.total.now - malloc_pool->now;

	raise_pool(malloc_pool, s->max);
	raise_peak(m, &p->p.total, &p->mark, plus(s->max, rest), at);
	curve_note(&m->curves, &p->curve[CURVE_MALLOC], s, 0);
	curve_note(&m->curves, &p->curve[CURVE_TOTAL], s, rest);
	malloc_pool->now = s->last.value;
	p->p.total.now = s->last.value + rest;
}

/* The sum of all malloc totals went along `s` + offset. */
static void note_tree(struct model *m, const struct swing *s, i64 offset, u64 at)
{
	struct pool *malloc_pool = &m->s.pools.at[POOL_MALLOC];
	i64 rest = m->s.total.now - malloc_pool->now;

	raise_pool(malloc_pool, plus(s->max, offset));
	raise_tree(m, plus(s->max, offset + rest), at);
	curve_note(&m->curves, &m->tree_curve, s, offset + rest);
	if (m->with_devices)
		curve_note(&m->curves, &m->all_curve, s, offset + rest + m->device_bytes);
	malloc_pool->now = s->last.value + offset;
	m->s.total.now = malloc_pool->now + rest;
}

static u32 swing_one(struct model *m, struct proc *p, u32 i, u32 n, u64 first)
{
	i64 now = p->p.pools.at[POOL_MALLOC].now, others = m->s.pools.at[POOL_MALLOC].now - now;
	struct swing s;
	u32 highest;

	i = swing_over(m->journal.step, i, n, m->curves.end, now, &s, &highest);
	note_tree(m, &s, others, first + highest + 1);
	note_process(m, p, &s, first + highest + 1);
	return i;
}

static void swing_step(struct swing *s, bool begins, struct point now, u64 *max_at, u64 at)
{
	if (begins || now.value < s->min.value)
		s->min = now;
	if (begins || now.value > s->max.value) {
		s->max = now;
		*max_at = at;
	}
	s->last = now;
}

/* Several processes move: each has its own running sum, and the tree has one. */
static u32 swing_many(struct model *m, u32 i, u32 n, u64 first)
{
	const struct journal *j = &m->journal;
	struct point sum = { 0, m->s.pools.at[POOL_MALLOC].now };
	struct swing tree = { .last = sum };
	u64 tree_at = 0;
	u32 procs = 0, begin = i;

	for (; i < n && j->step[i].ticks < m->curves.end; i++) {
		struct proc *p = proc_at(m, j->entry[first - j->base + i].what >> WHAT_PROCESS_SHIFT);
		struct point now;

		if (!p->moving) {
			ARRAY_ROOM(m->moving, m->moving_room, procs + 1);
			m->moving[procs++] = p;
			p->swing.last.value = p->p.pools.at[POOL_MALLOC].now;
		}
		now = (struct point) { j->step[i].ticks, p->swing.last.value + j->step[i].bytes };
		swing_step(&p->swing, !p->moving, now, &p->max_at, first + i + 1);
		p->moving = true;
		sum = (struct point) { j->step[i].ticks, sum.value + j->step[i].bytes };
		swing_step(&tree, i == begin, sum, &tree_at, first + i + 1);
	}
	note_tree(m, &tree, 0, tree_at);
	while (procs) {
		struct proc *p = m->moving[--procs];

		note_process(m, p, &p->swing, p->max_at);
		p->moving = false;
	}
	return i;
}

/* Sums and curves catch up with the journal, of which the last n entries were written with this pen. */
static void swing(struct model *m, const struct pen *w, u32 n)
{
	const struct journal *j = &m->journal;
	u64 first = j->base + j->count - n;
	u32 i = 0;

	while (i < n) {
		curves_reach(&m->curves, j->step[i].ticks);
		i = w->several ? swing_many(m, i, n, first) : swing_one(m, w->first, i, n, first);
	}
}

/* ---- windows ------------------------------------------------------------------------- */

/* The record that stopped resolve(): an event, or the first one of a process. */
static u32 take_odd_one(struct model *m, const struct window *w, u32 i)
{
	u64 ticks = w->base + (w->key[i] >> KEY_TIME_SHIFT);
	const struct rec *r = &w->rec[w->key[i] & KEY_INDEX_MASK];
	struct image *image = w->image[r->a >> REC_IMAGE_SHIFT];
	const struct extra *x = r->a & REC_PLAIN ? NULL : &w->extra[r->w];
	struct proc *p;

	if (x && x->kind == EXTRA_EVENT) {
		curves_reach(&m->curves, ticks);
		event_take(m, image, x->stream, &x->event);
		return i + 1;
	}
	p = proc_of_image(m, image, ticks);
	if (!p) {                       /* it has ended, and what it still says is not taken */
		m->s.losses.records++;
		return i + 1;
	}
	proc_tell(m, p);
	image->model = p;
	return i;
}

void books_window(struct model *m, const struct window *w)
{
	struct journal *j = &m->journal;
	u32 i = 0;

	while (i < w->count) {
		u32 end = w->count - i > SLICE ? i + SLICE : w->count, stop;
		struct pen pen = { .step = j->step };

		need_room(m, SLICE_ENTRIES);
		pen.entry = &j->entry[j->count];
		stop = resolve(m, w, i, end, &pen);
		j->count = (u32)(pen.entry - j->entry);
		swing(m, &pen, (u32)(pen.step - j->step));
		i = stop < end ? take_odd_one(m, w, stop) : stop;
	}
}

/* ---- mappings and ends ---------------------------------------------------------------- */

void books_enter(struct model *m, struct proc *p, u32 row, u64 bytes, u32 bits)
{
	struct journal *j = &m->journal;
	struct row *r = &p->row[row];

	need_room(m, 1);
	j->entry[j->count++] = (struct entry) { bytes, row, bits | p->p.index << WHAT_PROCESS_SHIFT };
	r->bytes[bits & WHAT_OUT] += bytes;
	r->count[bits & WHAT_WAY] += bits & WHAT_BLOCK ? 1 : 0;
}

static struct swing flat(u64 ticks, i64 value)
{
	struct point p = { ticks, value };

	return (struct swing) { p, p, p };
}

void books_note(struct model *m, struct curve *c, u64 ticks, i64 value)
{
	struct swing s = flat(ticks, value);

	curve_note(&m->curves, c, &s, 0);
}

static void note_trees(struct model *m, u64 ticks)
{
	books_note(m, &m->tree_curve, ticks, m->s.total.now);
	if (m->with_devices)
		books_note(m, &m->all_curve, ticks, m->s.total.now + m->device_bytes);
}

static void move_totals(struct model *m, struct proc *p, u64 ticks, i64 bytes)
{
	u64 at = m->journal.base + m->journal.count;

	p->p.total.now += bytes;
	m->s.total.now += bytes;
	raise_peak(m, &p->p.total, &p->mark, (struct point) { ticks, p->p.total.now }, at);
	raise_tree(m, (struct point) { ticks, m->s.total.now }, at);
	books_note(m, &p->curve[CURVE_TOTAL], ticks, p->p.total.now);
	note_trees(m, ticks);
}

/* A pool of mappings changed by so many bytes in one step. */
void books_maps(struct model *m, struct proc *p, u64 ticks, u32 pool, i64 bytes)
{
	int kind = p->p.pools.at[pool].kind;

	pool_move(m, p, pool, bytes, ticks);
	if (kind == MAP_KIND_ANON) {
		books_note(m, &p->curve[CURVE_MMAP], ticks, p->p.pools.at[pool].now);
		move_totals(m, p, ticks, bytes);
	} else if (kind == MAP_KIND_FILE) {
		p->files += bytes;
		books_note(m, &p->curve[CURVE_FILES], ticks, p->files);
	} else {
		p->shared += bytes;
		books_note(m, &p->curve[CURVE_SHARED], ticks, p->shared);
	}
}

/* ---- memory of devices ----------------------------------------------------------------- */

static void copy_held(struct holder_list *to, const struct holder_list *from)
{
	free(to->at);
	to->at = must(malloc((from->count + 1) * sizeof(*to->at)));
	to->count = from->count;
	if (from->count)
		memcpy(to->at, from->at, from->count * sizeof(*to->at));
}

/* From here on there are two sums over the tree; up to here they were the same. */
static void begin_second_sum(struct model *m)
{
	u32 i;

	books_settle(m);
	m->with_devices = true;
	m->s.with_devices.peak = m->s.total.peak;
	m->s.with_devices.peak_ticks = m->s.total.peak_ticks;
	m->all_peaks = m->tree_peaks;
	for (i = 0; i < m->s.processes; i++) {
		struct proc *p = proc_at(m, i);

		p->all_peaks = p->tree_peaks;
		p->all_rows = p->tree_rows;
		if (p->closed)
			copy_held(&p->all_held, &p->tree_held);
		if (!p->tree_rows)
			continue;
		p->all_peak = must(malloc(p->tree_rows * sizeof(*p->all_peak)));
		memcpy(p->all_peak, p->tree_peak, p->tree_rows * sizeof(*p->all_peak));
	}
}

void books_device_use(struct model *m, struct proc *p, struct dev *d)
{
	d->d.pool = pool_of_device(m, p, &d->d);
	if (!device_counts(&d->d) || m->with_devices)
		return;
	begin_second_sum(m);
}

void books_device(struct model *m, struct proc *p, struct dev *d, u64 ticks, i64 bytes)
{
	const struct pool *pool = &p->p.pools.at[d->d.pool];
	u64 at = m->journal.base + m->journal.count;
	i64 peak = pool->peak;

	pool_move(m, p, d->d.pool, bytes, ticks);
	if (pool->peak > peak) {
		d->mark.at = at;
		d->mark.settled = false;
		m->journal.needed = true;
	}
	if (!device_counts(&d->d))
		return;
	p->device_bytes += bytes;
	m->device_bytes += bytes;
	raise_all(m, (struct point) { ticks, m->s.total.now + m->device_bytes }, at);
	note_trees(m, ticks);
}

static void close_devices(struct proc *p)
{
	u32 i;

	p->p.device_peak = new_zeroed(p->p.devices, sizeof(*p->p.device_peak));
	for (i = 0; i < p->p.devices; i++) {
		const struct dev *d = (struct dev *)p->p.device[i];

		if (d->d.heaps)
			p->p.device_peak[i] = rows_holders(p, d->peak, d->peak_rows, ROWS_POOL + d->d.pool);
	}
}

/* ---- ends -------------------------------------------------------------------------------- */

static i64 curve_value(const struct proc *p, u32 kind)
{
	switch (kind) {
	case CURVE_MALLOC: return p->p.pools.at[POOL_MALLOC].now;
	case CURVE_MMAP:   return p->p.pools.at[POOL_MMAP].now;
	case CURVE_TOTAL:  return p->p.total.now;
	case CURVE_FILES:  return p->files;
	default:           return p->shared;
	}
}

/* Most programs are one process, and its peak is the tree's. */
static struct holder_list tree_part(const struct proc *p)
{
	if (p->peak_rows && p->tree_rows == p->peak_rows && !memcmp(p->tree_peak, p->peak, p->peak_rows * sizeof(*p->peak)))
		return holders_lent(p->p.total.at_peak);
	return rows_holders(p, p->tree_peak, p->tree_rows, ROWS_HEAP);
}

/* A process is over: its curves end, and what it held is gone from the tree, but stays in its own books. */
void books_close(struct model *m, struct proc *p, u64 ticks)
{
	u32 i;

	resolve_give_up(p);
	for (i = 0; i < CURVES; i++)
		curve_finish(&m->curves, &p->curve[i], (struct point) { ticks, curve_value(p, i) });
	for (i = 0; i < p->p.pools.count; i++)
		m->s.pools.at[p->tree_pool[i]].now -= p->p.pools.at[i].now;
	books_settle(m);
	m->s.total.now -= p->p.total.now;
	m->device_bytes -= p->device_bytes;
	note_trees(m, ticks);
	rows_totals(p);
	p->p.total.at_peak = rows_holders(p, p->peak, p->peak_rows, ROWS_HEAP);
	p->tree_held = tree_part(p);
	p->tree_peaks = m->tree_peaks;
	p->all_held = rows_holders(p, p->all_peak, p->all_rows, ROWS_WITH_DEVICES);
	p->all_peaks = m->all_peaks;
	close_devices(p);
	p->p.at_exit = rows_turned(p);
	rows_release(p);
	nodes_release(p);
	live_release(&p->live);
}

/*
 * session.c - a session from its first window to its end.
 */
#include "inside.h"

enum { NARROWEST_BUCKET_NS = 10000 };

/* The first window: by now the clocks are known. */
static void begin(struct model *m, u64 ticks)
{
	m->begun = true;
	probe_set_of(m);                /* now, while the program starts, rather than at its end, while somebody waits */
	m->s.start = ticks;
	m->curves.start = ticks;
	m->curves.least = clock_ticks(&m->clock, NARROWEST_BUCKET_NS);
	m->curves.end = ticks + m->curves.least;
	if (m->listener.begin)
		m->listener.begin(m->listener.to, &m->s);
	curve_tell(&m->curves, &m->tree_curve, (struct point) { ticks, 0 });
}

void session_window(void *session, const struct window *w)
{
	struct model *m = session;
	u64 last = w->base + (w->key[w->count - 1] >> KEY_TIME_SHIFT);

	if (!m->begun)
		begin(m, w->base + (w->key[0] >> KEY_TIME_SHIFT));
	books_window(m, w);
	m->s.end = last;
}

struct session *session_new(const struct listener *listener)
{
	struct model *m = new_zeroed(1, sizeof(*m));

	if (listener)
		m->listener = *listener;
	m->curves.listener = &m->listener;
	m->tree_curve.kind = CURVE_TOTAL;
	m->mark.settled = m->all_mark.settled = true;
	m->all_curve.kind = CURVE_WITH_DEVICES;
	books_init(m);
	return &m->s;
}

u64 session_ns(const struct session *s, u64 ticks)
{
	return clock_ns(&((const struct model *)s)->clock, ticks);
}

static void add_up(struct model *m)
{
	u32 i;

	for (i = 0; i < m->s.processes; i++) {
		const struct process *p = m->s.process[i];

		m->s.allocs += p->allocs;
		m->s.frees += p->frees;
		m->s.allocated_bytes += p->allocated_bytes;
		m->s.temporary += p->temporary;
		m->s.live_bytes += (u64)p->pools.at[POOL_MALLOC].now;
		m->s.live_blocks += (u64)p->pools.at[POOL_MALLOC].blocks;
		m->s.losses.unknown_frees += p->unknown_frees;
		m->s.losses.unseen_frees += p->unseen_frees;
	}
	if (m->s.probe_enters > m->s.probe_exits)
		m->s.losses.probe_calls = m->s.probe_enters - m->s.probe_exits;
}

static void join(struct holder_list *to, u32 *room, const struct holder_list *part)
{
	to->at = array_room(to->at, room, to->count + part->count, sizeof(*to->at));
	memcpy(to->at + to->count, part->at, part->count * sizeof(*to->at));
	to->count += part->count;
}

/* What processes held at one moment, each in order. Where it is one process, its list is that of all. */
static struct holder_list joined(const struct holder_list *const *part, u32 parts)
{
	struct holder_list l = { 0 };
	u32 i, room = 0;

	if (parts == 1)
		return holders_lent(*part[0]);
	for (i = 0; i < parts; i++)
		join(&l, &room, part[i]);
	if (parts)
		holders_sort(&l);
	return l;
}

/* Who held the tree's peak: of each process what it held then, if it had begun and not ended. */
static void join_tree_peaks(struct model *m)
{
	const struct holder_list **part = must(malloc((2 * (size_t)m->s.processes + 1) * sizeof(*part))), **all = part + m->s.processes;
	u32 i, parts = 0, alls = 0;

	for (i = 0; i < m->s.processes; i++) {
		const struct proc *p = proc_at(m, i);

		if (p->tree_peaks == m->tree_peaks && p->tree_held.count)
			part[parts++] = &p->tree_held;
		if (m->with_devices && p->all_peaks == m->all_peaks && p->all_held.count)
			all[alls++] = &p->all_held;
	}
	m->s.total.at_peak = joined(part, parts);
	if (m->with_devices)
		m->s.with_devices.at_peak = joined(all, alls);
	else
		m->s.with_devices = (struct scope) {
			.peak = m->s.total.peak, .peak_ticks = m->s.total.peak_ticks, .at_peak = holders_lent(m->s.total.at_peak),
		};
	free(part);
}

static void take_counts(struct model *m, struct intake_counts c)
{
	m->s.events = c.records;
	m->s.losses.records += c.lost;
	m->s.losses.late += c.late;
	m->s.losses.bad_chunks += c.bad_chunks;
}

void session_end(struct session *s, struct intake_counts c)
{
	struct model *m = (struct model *)s;

	if (m->ended)
		return;
	m->ended = true;
	if (!m->begun)
		begin(m, 0);
	curves_close(&m->curves, m->s.end);
	procs_finish(m);
	curves_close(&m->curves, m->s.end);
	curve_finish(&m->curves, &m->tree_curve, (struct point) { m->s.end, m->s.total.now });
	if (m->with_devices)
		curve_finish(&m->curves, &m->all_curve, (struct point) { m->s.end, m->s.total.now + m->device_bytes });
	join_tree_peaks(m);
	calls_finish(m);
	probe_sums_finish(m);
	unseen_finish(m);
	spans_finish(m);
	pools_finish(m);
	add_up(m);
	take_counts(m, c);
}

static void release_texts(struct text_list *l)
{
	while (l->count)
		free(l->at[--l->count]);
	free(l->at);
}

void session_free(struct session *s)
{
	struct model *m = (struct model *)s;

	if (!m)
		return;
	spans_release(m);
	calls_release(m);
	probe_table_release(m);
	pools_release(m);
	procs_release(m);
	books_release(m);
	clock_release(&m->clock);
	release_texts(&m->s.options);
	release_texts(&m->s.notices);
	free(m->curves.touched);
	free(m->moving);
	free(m->chain);
	holders_free(&m->s.total.at_peak);
	holders_free(&m->s.with_devices.at_peak);
	free(m->s.command);
	free(m->s.uts);
	free(m);
}

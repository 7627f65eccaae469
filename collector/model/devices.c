/*
 * devices.c - who is who among a process's devices: names, stacks, devices, queues, labels.
 *
 * Numbers belong to a process image. A child made by fork goes on with its parent's: what it does not know itself its
 * parent may. A number that nobody told of gets a device or queue without a name, so that nothing is left out.
 */
#include "inside.h"
#include <stdio.h>

enum { NAMES_MAX = 1 << 20, SITES_MAX = 1 << 20, DEVICES_MAX = 1 << 8, QUEUES_MAX = 1 << 14 };

#define LIBRARY_ID (1ull << 63)         /* numbers that no program gives */

/* ---- texts ------------------------------------------------------------------------------- */

const char *text_once(struct known_text **texts, const char *text, size_t len)
{
	struct known_text *t;

	HASH_FIND(hh, *texts, text, len, t);
	if (!t) {
		t = new_zeroed(1, sizeof(*t) + len + 1);
		memcpy(t->text, text, len);
		HASH_ADD_KEYPTR(hh, *texts, t->text, len, t);
	}
	return t->text;
}

/* The next of an event's texts, each ended by NUL; "" when there are no more. */
static char *next_text(const struct event *e, u32 *at)
{
	u32 from = *at < e->text_len ? *at : e->text_len;
	size_t len = strnlen(e->text + from, e->text_len - from);

	*at = from + (u32)len + 1;
	return text_copy(e->text + from, len);
}

/* The process whose numbers this one went on with. */
struct proc *elder(const struct proc *p)
{
	return p->p.forked ? (struct proc *)p->p.parent : NULL;
}

/* ---- names and sites ----------------------------------------------------------------------- */

void name_event(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	u64 id = EVENT_BODY(e, name)->id;
	struct name_index *n;

	(void)s;
	HASH_FIND(hh, p->devices.names, &id, sizeof(id), n);
	if (!n && HASH_COUNT(p->devices.names) >= NAMES_MAX) {
		m->s.losses.texts++;
		return;
	}
	if (!n) {
		n = new_zeroed(1, sizeof(*n));
		n->id = id;
		HASH_ADD(hh, p->devices.names, id, sizeof(n->id), n);
	}
	n->text = text_once(&p->devices.texts, e->text, strnlen(e->text, e->text_len));
}

/* NULL for number 0 and for one that nobody told of. */
const char *name_text(struct model *m, struct proc *p, u64 id)
{
	struct name_index *n = NULL;
	struct proc *q;
	u32 i;

	if (!id)
		return NULL;
	for (q = p, i = 0; q && i < GENERATIONS_MAX; q = elder(q), i++) {
		HASH_FIND(hh, q->devices.names, &id, sizeof(id), n);
		if (n)
			return q == p ? n->text : text_once(&p->devices.texts, n->text, strlen(n->text));
	}
	m->s.losses.unknown_ids++;
	return NULL;
}

void site_event(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	const struct rec_site *r = EVENT_BODY(e, site);
	struct site_index *i;

	HASH_FIND(hh, p->devices.sites, &r->id, sizeof(r->id), i);
	if (!i && HASH_COUNT(p->devices.sites) >= SITES_MAX) {
		m->s.losses.stacks++;
		return;
	}
	if (!i) {
		i = new_zeroed(1, sizeof(*i));
		i->id = r->id;
		HASH_ADD(hh, p->devices.sites, id, sizeof(i->id), i);
	}
	i->node = node_of(m, p, s, (u32)r->node & NODE_MASK);
}

u32 site_node(struct model *m, struct proc *p, u64 id)
{
	struct site_index *i;

	if (!id)
		return 0;
	HASH_FIND(hh, p->devices.sites, &id, sizeof(id), i);
	m->s.losses.unknown_ids += !i;
	return i ? i->node : 0;
}

/* ---- devices --------------------------------------------------------------------------------- */

static void set_title(struct proc *p, struct dev *d)
{
	char title[TEXT_MAX + 64];
	u32 i;

	d->d.number = 0;
	for (i = 0; i < d->d.index; i++)
		d->d.number += !strcmp(p->p.device[i]->api, d->d.api);
	if (device_is_library(&d->d))
		snprintf(title, sizeof(title), "%s", d->d.name);
	else
		snprintf(title, sizeof(title), "%s %u%s%s", d->d.api, d->d.number, *d->d.name ? ": " : "", d->d.name);
	free(d->d.title);
	d->d.title = text_copy(title, strlen(title));
}

/* The clocks that a device may turn out to use, told by their distance from CLOCK_MONOTONIC. */
static void known_clocks(const struct model *m, struct device_fit *f)
{
	const struct rec_clock *c = &m->s.first_clock;

	f->known[f->knowns++] = 0;
	if (!c->boottime || !c->realtime)
		return;
	f->known[f->knowns++] = (i64)(c->monotonic - c->boottime);
	f->known[f->knowns++] = (i64)(c->monotonic - c->realtime);
}

static struct dev *new_dev(struct model *m, struct proc *p, u64 id)
{
	struct dev *d = new_zeroed(1, sizeof(*d));

	ARRAY_ROOM(p->p.device, p->devices.device_room, p->p.devices + 1);
	d->d.index = p->p.devices;
	d->d.process = p->p.index;
	d->d.id = id;
	d->mark.settled = true;
	p->p.device[p->p.devices++] = &d->d;
	known_clocks(m, &d->fit);
	HASH_ADD(hh, p->devices.devs, d.id, sizeof(d->d.id), d);
	return d;
}

static void set_texts(struct proc *p, struct dev *d, char *api, char *name, char *driver)
{
	free(d->d.api);
	free(d->d.name);
	free(d->d.driver);
	d->d.api = api;
	d->d.name = name;
	d->d.driver = driver;
	set_title(p, d);
}

static struct dev *find_dev(const struct proc *p, u64 id)
{
	struct dev *d;

	HASH_FIND(hh, p->devices.devs, &id, sizeof(id), d);
	return d;
}

static char *copy(const char *text)
{
	return text_copy(text, strlen(text));
}

static struct dev *inherited_dev(struct model *m, struct proc *p, u64 id)
{
	struct dev *old = NULL, *d;
	struct proc *q;
	u32 i;

	for (q = elder(p), i = 0; q && !old && i < GENERATIONS_MAX; q = elder(q), i++)
		old = find_dev(q, id);
	if (!old)
		return NULL;
	d = new_dev(m, p, id);
	d->d.known = old->d.known;
	d->d.flags = old->d.flags;
	d->d.clock = old->d.clock;
	set_texts(p, d, copy(old->d.api), copy(old->d.name), copy(old->d.driver));
	return d;
}

/* Never NULL: a process with too many devices gets its last one. */
struct dev *dev_of(struct model *m, struct proc *p, u64 id)
{
	struct dev *d = find_dev(p, id);

	if (d)
		return d;
	if (p->p.devices >= DEVICES_MAX) {
		m->s.losses.unknown_ids++;
		return (struct dev *)p->p.device[p->p.devices - 1];
	}
	d = inherited_dev(m, p, id);
	if (d)
		return d;
	m->s.losses.unknown_ids++;
	d = new_dev(m, p, id);
	set_texts(p, d, copy("unknown device"), copy(""), copy(""));
	return d;
}

void device_event(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	const struct rec_device *r = EVENT_BODY(e, device);
	struct dev *d = find_dev(p, r->id);
	u32 at = 0;
	char *api, *name, *driver;

	(void)s;
	if ((d && d->d.known) || (!d && p->p.devices >= DEVICES_MAX))
		return;
	if (!d)
		d = new_dev(m, p, r->id);
	d->d.known = true;
	d->d.flags = r->flags & (DEVICE_CPU | DEVICE_GPU | DEVICE_HOST_MEMORY);
	d->d.clock = r->clock < DEVICE_CLOCKS ? (u32)r->clock : DEVICE_CLOCK_NONE;
	api = next_text(e, &at);
	name = next_text(e, &at);
	driver = next_text(e, &at);
	set_texts(p, d, api, name, driver);
}

/* What the probes of a library belong to. Never NULL. */
struct dev *dev_of_library(struct model *m, struct proc *p, const char *name)
{
	struct dev *d;
	u32 i;

	for (i = 0; i < p->p.devices; i++)
		if (device_is_library(p->p.device[i]) && !strcmp(p->p.device[i]->title, name))
			return (struct dev *)p->p.device[i];
	if (p->p.devices >= DEVICES_MAX) {
		m->s.losses.unknown_ids++;
		return (struct dev *)p->p.device[p->p.devices - 1];
	}
	d = new_dev(m, p, LIBRARY_ID | p->p.devices);
	d->d.known = true;
	d->d.flags = DEVICE_LIBRARY | DEVICE_HOST_MEMORY;
	set_texts(p, d, copy("library"), copy(name), copy(""));
	return d;
}

void device_clock_event(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	const struct rec_device_clock *r = EVENT_BODY(e, device_clock);
	struct dev *d = dev_of(m, p, r->device_id);
	u64 low = session_ns(&m->s, r->before), high = session_ns(&m->s, r->after);

	(void)s;
	if (r->monotonic && r->deviation < r->monotonic && r->monotonic < INT64_MAX && r->deviation < INT64_MAX) {
		low = r->monotonic - r->deviation;
		high = r->monotonic + r->deviation;
	}
	d->pairs++;
	d->stretches += fit_add(&d->fit, r->device, low, high);
	works_place_old(m, d);
}

/* ---- queues ---------------------------------------------------------------------------------- */

static struct que *find_que(const struct proc *p, u64 id)
{
	struct que *q;

	HASH_FIND(hh, p->devices.ques, &id, sizeof(id), q);
	return q;
}

/* "queue 2", "queue 2: copies"; what begins like this already is left as it is. */
static void set_queue_name(struct que *q, const char *text, size_t len)
{
	char name[TEXT_MAX + 64];

	if (len >= 5 && !memcmp(text, "queue", 5))
		snprintf(name, sizeof(name), "%.*s", (int)len, text);
	else
		snprintf(name, sizeof(name), "queue %u%s%.*s", q->q.number, len ? ": " : "", (int)len, text);
	free(q->q.name);
	q->q.name = copy(name);
}

static struct que *new_que(struct proc *p, u64 id, struct dev *d)
{
	struct que *q = new_zeroed(1, sizeof(*q));

	q->q.id = id;
	q->q.device = &d->d;
	q->q.number = d->d.queues++;
	HASH_ADD(hh, p->devices.ques, q.id, sizeof(q->q.id), q);
	return q;
}

static struct que *inherited_que(struct model *m, struct proc *p, u64 id)
{
	struct que *old = NULL, *q;
	struct proc *from;
	u32 i;

	for (from = elder(p), i = 0; from && !old && i < GENERATIONS_MAX; from = elder(from), i++)
		old = find_que(from, id);
	if (!old)
		return NULL;
	q = new_que(p, id, dev_of(m, p, old->q.device->id));
	q->q.flags = old->q.flags;
	q->q.name = copy(old->q.name);
	return q;
}

/* Never NULL. */
struct que *que_of(struct model *m, struct proc *p, u64 id)
{
	struct que *q = find_que(p, id);

	if (q)
		return q;
	if (HASH_COUNT(p->devices.ques) < QUEUES_MAX)
		q = inherited_que(m, p, id);
	if (q)
		return q;
	if (HASH_COUNT(p->devices.ques) >= QUEUES_MAX) {
		m->s.losses.unknown_ids++;
		return p->devices.ques;
	}
	q = new_que(p, id, dev_of(m, p, UINT64_MAX));
	set_queue_name(q, "", 0);
	m->s.losses.unknown_ids++;
	return q;
}

/* Never NULL. */
struct que *que_of_library(struct model *m, struct proc *p, struct dev *d, const char *name)
{
	struct que *q;

	if (HASH_COUNT(p->devices.ques) >= QUEUES_MAX) {
		m->s.losses.unknown_ids++;
		return p->devices.ques;
	}
	q = new_que(p, LIBRARY_ID | HASH_COUNT(p->devices.ques), d);
	q->q.known = true;
	set_queue_name(q, name, strlen(name));
	return q;
}

void queue_event(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	const struct rec_queue *r = EVENT_BODY(e, queue);
	struct que *q = find_que(p, r->id);

	(void)s;
	if (q || HASH_COUNT(p->devices.ques) >= QUEUES_MAX)
		return;
	q = new_que(p, r->id, dev_of(m, p, r->device));
	q->q.known = true;
	q->q.flags = (u32)r->flags;
	set_queue_name(q, e->text, strnlen(e->text, e->text_len));
}

/* ---- labels ---------------------------------------------------------------------------------- */

void label_event(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	const struct rec_label *r = EVENT_BODY(e, label);
	struct que *q;
	struct dev *d;

	(void)s;
	if (r->what == LABEL_MEMORY) {
		memory_label(m, p, r->id, (struct arg_text) { e->text, e->text_len });
	} else if (r->what == LABEL_QUEUE) {
		q = find_que(p, r->id);
		m->s.losses.unknown_ids += !q;
		if (q)
			set_queue_name(q, e->text, strnlen(e->text, e->text_len));
	} else if (r->what == LABEL_DEVICE) {
		d = find_dev(p, r->id);
		m->s.losses.unknown_ids += !d;
		if (d) {
			free(d->d.label);
			d->d.label = text_copy(e->text, strnlen(e->text, e->text_len));
		}
	}
}

/* ---- the end --------------------------------------------------------------------------------- */

static int longest_first(const void *a, const void *b)
{
	const struct work_sum *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	if (x->calls != y->calls)
		return x->calls > y->calls ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void close_dev(struct model *m, struct proc *p, struct dev *d, u64 ticks)
{
	i64 now = 0;
	u32 i;

	for (i = 0; i < d->d.heaps; i++)
		now += d->d.heap[i].now;
	if (d->curve.device)
		curve_finish(&m->curves, &d->curve, (struct point) { ticks, now });
	for (i = 0; d->heap_curve && i < d->d.heaps; i++)
		if (d->heap_curve[i].device)
			curve_finish(&m->curves, &d->heap_curve[i], (struct point) { ticks, d->d.heap[i].now });
	device_used_close(&d->d);
	if (d->d.kernels)
		qsort(d->d.kernel, d->d.kernels, sizeof(*d->d.kernel), longest_first);
	d->d.match.samples = d->fit.samples;
	d->d.match.rate_ppm = d->fit.slope * 1e6;
	(void)p;
}

void devices_close(struct model *m, struct proc *p, u64 ticks)
{
	u32 i;

	probes_close(m, p);
	works_close(m, p, ticks);
	memories_close(m, p);
	for (i = 0; i < p->p.devices; i++)
		close_dev(m, p, (struct dev *)p->p.device[i], ticks);
}

static void release_dev(struct dev *d)
{
	struct kernel_index *k, *next;

	HASH_ITER(hh, d->by_name, k, next) {
		HASH_DEL(d->by_name, k);
		free(k);
	}
	fit_release(&d->fit);
	free(d->heap_curve);
	free(d->ready);
	free(d->peak);
	free(d->d.api);
	free(d->d.name);
	free(d->d.driver);
	free(d->d.label);
	free(d->d.title);
	free(d->d.kernel);
	device_used_release(&d->d);
	free(d);
}

static void release_names(struct devices *all)
{
	struct name_index *n, *next_name;
	struct known_text *t, *next_text;
	struct site_index *i, *next_site;

	HASH_ITER(hh, all->names, n, next_name) {
		HASH_DEL(all->names, n);
		free(n);
	}
	HASH_ITER(hh, all->sites, i, next_site) {
		HASH_DEL(all->sites, i);
		free(i);
	}
	HASH_ITER(hh, all->texts, t, next_text) {
		HASH_DEL(all->texts, t);
		free(t);
	}
}

void devices_release(struct proc *p)
{
	struct que *q, *next;
	u32 i;

	probes_release(p);
	works_release(p);
	memories_release(p);
	HASH_ITER(hh, p->devices.ques, q, next) {
		HASH_DEL(p->devices.ques, q);
		free(q->q.name);
		free(q);
	}
	HASH_CLEAR(hh, p->devices.devs);
	for (i = 0; i < p->p.devices; i++) {
		if (p->p.device_peak)
			free(p->p.device_peak[i].at);
		release_dev((struct dev *)p->p.device[i]);
	}
	free(p->p.device_peak);
	free(p->p.device);
	release_names(&p->devices);
}

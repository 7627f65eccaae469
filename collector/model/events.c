/*
 * events.c - everything that is not a block: one function a record, one table of them.
 */
#include "inside.h"

enum { NOTICES_MAX = 100, OPTIONS_MAX = 1000, JIT_MAX = 1 << 18 };

typedef void handler(struct model *m, struct proc *p, struct stream *s, const struct event *e);

static char *event_text(const struct event *e)
{
	return text_copy(e->text, e->text_len);
}

/* ---- of a program --------------------------------------------------------------------- */

static void command(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	(void)s;
	free(p->p.command);
	p->p.command = event_text(e);
	p->p.command_bytes = e->text_len;
	m->s.losses.texts += EVENT_BODY(e, command)->whole > e->text_len;
	proc_tell(m, p);
}

static struct thread_index *find_thread(struct proc *p, u32 tid)
{
	struct thread_index *i;

	HASH_FIND(hh, p->thread_index, &tid, sizeof(tid), i);
	return i;
}

static struct thread *new_thread(struct proc *p, u32 tid, const struct event *e)
{
	struct thread_index *i = find_thread(p, tid);

	if (!i) {
		i = new_zeroed(1, sizeof(*i));
		i->tid = tid;
		HASH_ADD(hh, p->thread_index, tid, sizeof(i->tid), i);
	}
	i->at = p->p.threads;
	ARRAY_ROOM(p->p.thread, p->thread_room, p->p.threads + 1);
	p->p.thread[p->p.threads] = (struct thread) { .tid = tid, .name = event_text(e), .start = e->ticks };
	return &p->p.thread[p->p.threads++];
}

struct thread *live_thread(struct proc *p, u32 tid)
{
	struct thread_index *i = find_thread(p, tid);
	struct thread *t = i ? &p->p.thread[i->at] : NULL;

	return t && !t->end ? t : NULL;
}

static void tell_thread(struct model *m, struct proc *p, struct thread *t)
{
	if (m->listener.thread)
		m->listener.thread(m->listener.to, &p->p, t);
}

static void thread_named(struct model *m, struct proc *p, u32 tid, const struct event *e)
{
	struct thread *t = live_thread(p, tid);
	const char *known;

	if (!t) {
		tell_thread(m, p, new_thread(p, tid, e));
		return;
	}
	known = t->own_name ? t->own_name : t->name;
	if (strlen(known) == e->text_len && !memcmp(known, e->text, e->text_len))
		return;
	free(t->own_name);
	free(t->name);
	t->own_name = NULL;
	t->name = event_text(e);
	tell_thread(m, p, t);
}

/* The name holds until the program gives the thread another one. */
void thread_call(struct model *m, struct proc *p, u32 tid, const char *name)
{
	struct thread *t = live_thread(p, tid);

	if (!t || !strcmp(t->name, name))
		return;
	if (t->own_name)
		free(t->name);
	else
		t->own_name = t->name;
	t->name = text_copy(name, strlen(name));
	tell_thread(m, p, t);
}

static void thread(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	s->tid = (u32)EVENT_BODY(e, thread)->tid;
	thread_named(m, p, s->tid, e);
}

static void thread_name(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	(void)s;
	thread_named(m, p, (u32)EVENT_BODY(e, thread_name)->tid, e);
}

static void thread_end(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	u32 tid = (u32)EVENT_BODY(e, thread_end)->tid;
	struct thread *t;

	(void)s;
	if (e->text_len)
		thread_named(m, p, tid, e);
	t = live_thread(p, tid);
	if (t)
		t->end = e->ticks;
}

static void module(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	(void)m, (void)s;
	module_loaded(p, e->ticks, EVENT_BODY(e, module), e->text, e->text_len);
}

static void gone(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	(void)m, (void)s;
	module_gone(p, e->ticks, EVENT_BODY(e, module_gone)->start);
}

static void exiting(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	const struct rec_exit *r = EVENT_BODY(e, exit);

	(void)m, (void)s;
	if (r->at_once)                 /* it may be a child's: whoever watches knows better, and says so in `died` */
		return;
	p->said_exit = true;
	p->exit_status = (int)(r->status & 0xff);
}

static void add_text(struct text_list *l, u32 *room, u32 most, const char *text, u32 length)
{
	u32 i;

	for (i = 0; i < l->count; i++)
		if (strlen(l->at[i]) == length && !memcmp(l->at[i], text, length))
			return;
	if (l->count >= most)
		return;
	l->at = array_room(l->at, room, l->count + 1, sizeof(*l->at));
	l->at[l->count++] = text_copy(text, length);
}

void notice_add(struct model *m, const char *text)
{
	add_text(&m->s.notices, &m->notice_room, NOTICES_MAX, text, (u32)strlen(text));
}

static void notice(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	(void)p, (void)s;
	add_text(&m->s.notices, &m->notice_room, NOTICES_MAX, e->text, e->text_len);
}

/* ---- of the collector ------------------------------------------------------------------ */

static struct proc *open_proc(struct model *m, u64 pid)
{
	struct proc *p = proc_by_pid(m, (u32)pid);

	return p && !p->closed ? p : NULL;
}

static double cpu_percent(struct model *m, const struct proc *p, const struct rec_sample *r, u64 ticks)
{
	u64 wall = session_ns(&m->s, ticks) - session_ns(&m->s, p->sample_ticks);

	if (!p->sample_ticks || !wall || r->cpu < p->sample.cpu)
		return 0;
	return 100.0 * (double)(r->cpu - p->sample.cpu) / (double)wall;
}

static void sample(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	const struct rec_sample *r = EVENT_BODY(e, sample);

	(void)s;
	p = proc_by_pid(m, (u32)r->pid);
	if (!p)
		return;
	if (!p->closed) {               /* else it was looked at after its last word */
		proc_tell(m, p);
		if (m->listener.sample)
			m->listener.sample(m->listener.to, &p->p, e->ticks, r, cpu_percent(m, p, r, e->ticks));
	}
	p->sample = *r;
	p->sample_ticks = e->ticks;
	p->p.cpu_ns = r->cpu;
	p->p.minor_faults = r->minor;
	p->p.major_faults = r->major;
	if (r->rss_high > p->p.peak_rss)
		p->p.peak_rss = r->rss_high;
}

static void died(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	const struct rec_died *r = EVENT_BODY(e, died);
	struct image_key key = { r->born, (u32)r->pid, 0 };

	(void)s;
	HASH_FIND(hh, m->by_image, &key, sizeof(key), p);
	if (!p || p->closed)
		return;
	p->p.died = r->how <= DIED_RUNNING ? (int)r->how : DIED_UNKNOWN;
	p->p.code = (int)r->code;
	proc_close(m, p, e->ticks);
}

static const struct {
	const char *name;
	size_t at;
} loss_names[] = {
	{ "records", offsetof(struct session, losses.records) },
	{ "stacks", offsetof(struct session, losses.stacks) },
	{ "bad_chunks", offsetof(struct session, losses.bad_chunks) },
	{ "texts", offsetof(struct session, losses.texts) },
	{ "hard_stacks", offsetof(struct session, hard_stacks) },
	{ "stack_misses", offsetof(struct session, stack_misses) },
	{ "waited_ticks", offsetof(struct session, waited_ticks) },
	{ "bind_ns", offsetof(struct session, bind_ns) },
	{ "probe_sites", offsetof(struct session, probe_sites) },
	{ "probe_enters", offsetof(struct session, probe_enters) },
	{ "probe_exits", offsetof(struct session, probe_exits) },
	{ "probe_short", offsetof(struct session, short_probes) },
};

static void loss(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	size_t i;

	(void)p, (void)s;
	for (i = 0; i < sizeof(loss_names) / sizeof(*loss_names); i++)
		if (strlen(loss_names[i].name) == e->text_len && !memcmp(loss_names[i].name, e->text, e->text_len))
			*(u64 *)((char *)&m->s + loss_names[i].at) += EVENT_BODY(e, loss)->count;
}

static void jit_name(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	const struct rec_jit_name *r = EVENT_BODY(e, jit_name);

	(void)s;
	p = open_proc(m, r->pid);
	if (!p || p->p.jits >= JIT_MAX || !r->size || r->size > UINT64_MAX - r->start)
		return;
	ARRAY_ROOM(p->p.jit, p->jit_room, p->p.jits + 1);
	p->p.jit[p->p.jits++] = (struct jit_name) { r->start, r->size, event_text(e) };
}

/* ---- the table -------------------------------------------------------------------------- */

static handler *const of_program[EVENT_TYPES] = {
	[EVENT_hello] = hello_event,
	[EVENT_command] = command,
	[EVENT_thread] = thread,
	[EVENT_thread_name] = thread_name,
	[EVENT_thread_end] = thread_end,
	[EVENT_module] = module,
	[EVENT_module_gone] = gone,
	[EVENT_map] = map_event,
	[EVENT_unmap] = unmap_event,
	[EVENT_protect] = protect_event,
	[EVENT_remap] = remap_event,
	[EVENT_child] = child_event,
	[EVENT_exec] = exec_event,
	[EVENT_exec_failed] = exec_failed_event,
	[EVENT_exit] = exiting,
	[EVENT_notice] = notice,
	[EVENT_name] = name_event,
	[EVENT_device] = device_event,
	[EVENT_queue] = queue_event,
	[EVENT_call] = call_event,
	[EVENT_work] = work_event,
	[EVENT_run] = run_event,
	[EVENT_work_done] = work_done_event,
	[EVENT_device_clock] = device_clock_event,
	[EVENT_device_alloc] = device_alloc_event,
	[EVENT_device_free] = device_free_event,
	[EVENT_memory_used] = memory_used_event,
	[EVENT_label] = label_event,
	[EVENT_site] = site_event,
	[EVENT_probe_site] = probe_site_event,
	[EVENT_probe] = probe_event,
};

static handler *const of_collector[EVENT_TYPES] = {
	[EVENT_sample] = sample,
	[EVENT_died] = died,
	[EVENT_loss] = loss,
	[EVENT_jit_name] = jit_name,
	[EVENT_notice] = notice,
};

void event_take(struct model *m, struct image *image, struct stream *s, const struct event *e)
{
	struct proc *p;

	if (!image->pid) {
		if (of_collector[e->type])
			of_collector[e->type](m, NULL, s, e);
		return;
	}
	p = proc_of_image(m, image, e->ticks);
	m->s.losses.records += !p;
	if (!p || !of_program[e->type])
		return;
	if (e->type != EVENT_hello && e->type != EVENT_command)
		proc_tell(m, p);
	of_program[e->type](m, p, s, e);
}

/* What must be known before any record is looked at: the clocks above all. */
void session_early(void *session, const struct event *e)
{
	struct model *m = session;

	switch (e->type) {
	case EVENT_session:
		m->s.head = *EVENT_BODY(e, session);
		m->s.head.large += !m->s.head.large;            /* a block of no bytes is never drawn */
		m->s.large = m->s.head.large;
		free(m->s.command);
		m->s.command = event_text(e);
		m->s.command_bytes = e->text_len;
		break;
	case EVENT_clock:
		if (!m->clock.count)
			m->s.first_clock = *EVENT_BODY(e, clock);
		clock_add(&m->clock, EVENT_BODY(e, clock)->ticks, EVENT_BODY(e, clock)->monotonic);
		break;
	case EVENT_uts:
		free(m->s.uts);
		m->s.uts = new_zeroed(1, e->text_len + 4);      /* four strings, even if some are missing */
		memcpy(m->s.uts, e->text, e->text_len);
		break;
	case EVENT_probe_rows:
		probe_rows_early(m, e);
		break;
	case EVENT_option:
		add_text(&m->s.options, &m->option_room, OPTIONS_MAX, e->text, e->text_len);
		break;
	}
}

/*
 * procs.c - processes appear, become others, and end; some are only heard of.
 */
#include "inside.h"

enum { SILENT_MAX = 10000 };

static void index_pid(struct model *m, struct proc *p)
{
	struct pid_index *i;
	u32 pid = p->p.pid;

	HASH_FIND(hh, m->by_pid, &pid, sizeof(pid), i);
	if (!i) {
		i = new_zeroed(1, sizeof(*i));
		i->pid = pid;
		HASH_ADD(hh, m->by_pid, pid, sizeof(i->pid), i);
	}
	i->proc = p;
}

struct proc *proc_by_pid(struct model *m, u32 pid)
{
	struct pid_index *i;

	HASH_FIND(hh, m->by_pid, &pid, sizeof(pid), i);
	return i ? i->proc : NULL;
}

static struct proc *find(struct model *m, u32 pid, u64 born)
{
	struct image_key key = { born, pid, 0 };
	struct proc *p;

	HASH_FIND(hh, m->by_image, &key, sizeof(key), p);
	return p;
}

static struct proc *new_proc(struct model *m, u32 pid, u64 born)
{
	struct proc *p = new_zeroed(1, sizeof(*p));
	u32 i;

	ARRAY_ROOM(m->s.process, m->process_room, m->s.processes + 1);
	p->p.index = m->s.processes;
	m->s.process[m->s.processes++] = &p->p;
	p->p.pid = pid;
	p->p.born = born;
	p->p.died = DIED_RUNNING;
	p->mark.settled = true;
	pools_init(m, p);
	for (i = 0; i < CURVES; i++)
		p->curve[i] = (struct curve) { .process = &p->p, .kind = i };
	p->key = (struct image_key) { born, pid, 0 };
	return p;
}

/* The process of an image, made if need be; NULL if it has ended. */
struct proc *proc_of_image(struct model *m, struct image *image, u64 ticks)
{
	struct proc *p = image->model ? image->model : find(m, image->pid, image->born);

	if (p && p->closed)
		return NULL;
	if (!p) {
		p = new_proc(m, image->pid, image->born);
		if (p->p.born > ticks)
			p->p.born = ticks;
		HASH_ADD(hh, m->by_image, key, sizeof(p->key), p);
		index_pid(m, p);
	}
	return p;
}

/* The listener hears of a process when hello has said what it is, or at its first other record. */
void proc_tell(struct model *m, struct proc *p)
{
	static const enum curve_kind from_zero[] = { CURVE_MALLOC, CURVE_MMAP, CURVE_TOTAL };
	u32 i;

	if (p->told)
		return;
	p->told = true;
	if (!p->p.exe)
		p->p.exe = text_copy("", 0);
	if (!p->p.name)
		p->p.name = text_copy("", 0);
	if (m->listener.process)
		m->listener.process(m->listener.to, &p->p);
	for (i = 0; i < sizeof(from_zero) / sizeof(*from_zero); i++)
		curve_tell(&m->curves, &p->curve[from_zero[i]], (struct point) { p->p.born, 0 });
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void free_pending(struct pending *q)
{
	free(q->path);
	free(q);
}

static void forget_pending(struct model *m, u32 pid)
{
	struct pending *q;

	HASH_FIND(hh, m->pending, &pid, sizeof(pid), q);
	if (!q)
		return;
	HASH_DEL(m->pending, q);
	free_pending(q);
}

static struct process *parent_of(struct model *m, const struct proc *p, const struct rec_hello *r)
{
	struct proc *parent = r->flags & HELLO_FORKED ? find(m, (u32)r->ppid, r->parent) : NULL;
	struct pending *q;
	u32 pid = p->p.pid;

	if (!parent)
		parent = proc_by_pid(m, (u32)r->ppid);
	if (!parent) {                  /* adopted by init already: whoever made it may have said so */
		HASH_FIND(hh, m->pending, &pid, sizeof(pid), q);
		parent = q ? proc_at(m, q->parent) : NULL;
	}
	return parent && parent != p ? &parent->p : NULL;
}

void hello_event(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	const struct rec_hello *r = EVENT_BODY(e, hello);

	(void)s;
	if (p->told || p->p.exe)        /* the first one counts */
		return;
	p->p.ppid = (u32)r->ppid;
	p->p.uid = (u32)r->uid;
	p->p.forked = r->flags & HELLO_FORKED;
	p->p.exe = text_copy(e->text, e->text_len);
	p->p.name = text_copy(last_part(p->p.exe), strlen(last_part(p->p.exe)));
	p->p.parent = parent_of(m, p, r);
	forget_pending(m, p->p.pid);
}

/* ---- processes that are only heard of -------------------------------------------------- */

static struct pending *pending_of(struct model *m, struct proc *p, u32 pid, u64 ticks)
{
	struct pending *q;

	HASH_FIND(hh, m->pending, &pid, sizeof(pid), q);
	if (q || HASH_COUNT(m->pending) >= SILENT_MAX)
		return q;
	q = new_zeroed(1, sizeof(*q));
	*q = (struct pending) { .pid = pid, .parent = p->p.index, .ticks = ticks };
	HASH_ADD(hh, m->pending, pid, sizeof(q->pid), q);
	return q;
}

static void set_path(char **path, const struct event *e)
{
	free(*path);
	*path = e->text_len ? text_copy(e->text, e->text_len) : NULL;
}

/* A process is announced that may say hello, or may not. */
static void expect(struct model *m, struct proc *p, u32 pid, u64 before, bool followed, const struct event *e)
{
	struct pending *q = pending_of(m, p, pid, e->ticks);

	if (!q)
		return;
	q->followed = followed;
	q->before = before;
	set_path(&q->path, e);
}

void child_event(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	const struct rec_child *r = EVENT_BODY(e, child);
	struct proc *known = proc_by_pid(m, (u32)r->pid);

	(void)s;
	if (known && known != p && (!known->closed || known->p.born >= r->before))
		return;
	expect(m, p, (u32)r->pid, r->before, r->followed, e);
}

/* A process's own exec, or that of a vfork child, which writes into its parent's stream. */
void exec_event(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	const struct rec_exec *r = EVENT_BODY(e, exec);

	(void)s;
	if (r->pid == p->p.pid) {
		set_path(&p->exec_path, e);
		return;
	}
	expect(m, p, (u32)r->pid, e->ticks, r->followed, e);
}

void exec_failed_event(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	const struct rec_exec_failed *r = EVENT_BODY(e, exec_failed);
	u32 pid = (u32)r->pid;
	struct pending *q;

	(void)s;
	if (pid == p->p.pid) {
		free(p->exec_path);
		p->exec_path = NULL;
		return;
	}
	HASH_FIND(hh, m->pending, &pid, sizeof(pid), q);
	if (q) {
		free(q->path);
		q->path = NULL;
	}
}

static int by_ticks(struct pending *a, struct pending *b)
{
	if (a->ticks != b->ticks)
		return a->ticks < b->ticks ? -1 : 1;
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

/* It died in the middle of its hello, and only other threads of it have said something. */
static bool was_heard(struct model *m, const struct pending *q)
{
	struct proc *known = proc_by_pid(m, q->pid);

	return known && !known->p.parent && known->p.index != q->parent && known->p.born >= q->before;
}

static void add_silent(struct model *m, struct pending *q)
{
	struct proc *p = new_proc(m, q->pid, q->ticks);

	p->closed = true;
	p->p.silent = true;
	p->p.parent = &proc_at(m, q->parent)->p;
	p->p.ppid = p->p.parent->pid;
	p->p.exe = text_copy(q->path ? q->path : "", q->path ? strlen(q->path) : 0);
	p->p.name = text_copy(last_part(p->p.exe), strlen(last_part(p->p.exe)));
	p->p.died = DIED_UNKNOWN;
	p->p.ended = m->s.end;
	p->p.not_followed = q->path;
	p->told = true;
	if (m->listener.process)
		m->listener.process(m->listener.to, &p->p);
	free(q);
}

/* A process that said it would become another program, and whose pid was not heard of again, did. */
static void note_exec(struct model *m, struct proc *p)
{
	struct proc *newest = proc_by_pid(m, p->p.pid);

	if (!p->exec_path || newest != p) {
		free(p->exec_path);
		p->exec_path = NULL;
		return;
	}
	p->p.not_followed = p->exec_path;
	p->exec_path = NULL;
}

void procs_finish(struct model *m)
{
	struct pending *q, *next;
	u32 i, heard = m->s.processes;

	for (i = 0; i < heard; i++) {
		struct proc *p = proc_at(m, i);

		if (!p->closed)
			proc_close(m, p, m->s.end);
		note_exec(m, p);
	}
	HASH_SORT(m->pending, by_ticks);
	HASH_ITER(hh, m->pending, q, next) {
		HASH_DEL(m->pending, q);
		if (!was_heard(m, q))
			add_silent(m, q);
		else
			free_pending(q);
	}
}

/* ---- the end --------------------------------------------------------------------------- */

static void release_indexes(struct proc *p)
{
	struct huge_block *h, *next_huge;
	struct thread_index *t, *next_thread;

	HASH_ITER(hh, p->huge, h, next_huge) {
		HASH_DEL(p->huge, h);
		free(h);
	}
	HASH_ITER(hh, p->thread_index, t, next_thread) {
		HASH_DEL(p->thread_index, t);
		free(t);
	}
}

static int by_start(const void *a, const void *b)
{
	const struct jit_name *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

void proc_close(struct model *m, struct proc *p, u64 ticks)
{
	if (p->closed)
		return;
	proc_tell(m, p);
	p->p.ended = ticks;
	/* A bare program that waits for its summary is still there, but its end is decided. */
	if ((p->p.died == DIED_UNKNOWN || p->p.died == DIED_RUNNING) && p->said_exit) {
		p->p.died = DIED_EXITED;
		p->p.code = p->exit_status;
	}
	devices_close(m, p, ticks);
	books_close(m, p, ticks);
	p->closed = true;
	maps_release(p);
	release_indexes(p);
	if (p->p.jits)
		qsort(p->p.jit, p->p.jits, sizeof(*p->p.jit), by_start);
}

static void release_lists(struct process *p)
{
	u32 i;

	for (i = 0; i < p->threads; i++) {
		free(p->thread[i].name);
		free(p->thread[i].own_name);
	}
	for (i = 0; i < p->modules; i++)
		free(p->module[i].path);
	for (i = 0; i < p->jits; i++)
		free(p->jit[i].name);
	free(p->thread);
	free(p->module);
	free(p->jit);
	free(p->node);
	holders_free(&p->total.at_peak);
	holders_free(&p->at_exit);
}

static void proc_free(struct proc *p)
{
	release_lists(&p->p);
	release_indexes(p);
	rows_release(p);
	nodes_release(p);
	live_release(&p->live);
	maps_release(p);
	free(p->p.name);
	free(p->p.exe);
	free(p->p.command);
	free(p->p.not_followed);
	free(p->exec_path);
	holders_free(&p->tree_held);
	holders_free(&p->all_held);
	devices_release(p);
	free(p);
}

void procs_release(struct model *m)
{
	struct pid_index *i, *next;
	struct pending *q, *next_pending;
	u32 j;

	HASH_ITER(hh, m->by_pid, i, next) {
		HASH_DEL(m->by_pid, i);
		free(i);
	}
	HASH_ITER(hh, m->pending, q, next_pending) {
		HASH_DEL(m->pending, q);
		free(q->path);
		free(q);
	}
	HASH_CLEAR(hh, m->by_image);
	for (j = 0; j < m->s.processes; j++)
		proc_free(proc_at(m, j));
	free(m->s.process);
}

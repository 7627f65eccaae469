/*
 * ggml_ops.c - each operation that a ggml scheduler computes, through the library's own evaluation callback.
 *
 *   ggml_backend_sched_new                 the new scheduler gets our callback, and a place here for the program's own
 *   ggml_backend_sched_set_eval_callback   the program's goes to that place, ours stays
 *   callback(tensor, ask)                  the program is asked as it would be; we want them all, one by one
 *   callback(tensor, done)                 is noted as a call of "ggml.op", and the program hears of it if it wanted to
 *   ggml_backend_sched_free                the place is free again
 *
 * What the program answers counts as it would: where it ends a graph, the graph ends. Rows of role `builtin` lead here.
 */
#include "probe.h"
#include "device.h"
#include "elf_image.h"
#include "text.h"
#include <dlfcn.h>

enum { LIBRARIES = 16, PLACES = 256, APART = 8 /* ticks: more than a nanosecond */ };

typedef bool eval_callback(void *tensor, bool ask, void *data);

struct library {                        /* a copy of ggml: there may be several in one process */
	u64 id;                         /* as in struct probe_site */
	void (*set_callback)(void *scheduler, eval_callback *callback, void *data);
	const char *(*describe)(const void *tensor);
	const char *(*name)(const void *tensor);
};

struct place {
	void *scheduler;
	const struct library *library;
	eval_callback *program;
	void *data;
	u64 begin;                      /* of the operation that is under way */
	bool wanted;                    /* ... and that the program wants to hear of */
};

static struct library libraries[LIBRARIES];
static u32 library_count;
static struct place places[PLACES];
static struct probe_site *op;

/* ---- operations ------------------------------------------------------------------------ */

/* struct ggml_tensor has its shape at 16, its sources 104 bytes before its name: where that is depends on ggml's age. */
enum { SHAPE = 16, SOURCE_BEFORE_NAME = 256 - 152 };

/* Of a product of matrices. */
static u64 flops_of(const char *tensor, const char *name, const char *operation)
{
	const i64 *shape = (const i64 *)(tensor + SHAPE);
	const char *source = *(const char *const *)(name - SOURCE_BEFORE_NAME);

	if (!source || (!text_equal(operation, "MUL_MAT") && !text_equal(operation, "MUL_MAT_ID")))
		return 0;
	return 2 * (u64)(*(const i64 *)(source + SHAPE) * shape[0] * shape[1] * shape[2] * shape[3]);
}

/* Some counters stand still for 10 ns. Of calls that begin in the same nanosecond a trace cannot tell which one is inside of which. */
static u64 next_moment(void)
{
	u64 before = ticks(), now;

	while ((now = ticks()) - before < APART)
		;
	return now;
}

static bool evaluated(void *tensor, bool ask, void *at)
{
	struct place *p = at;
	bool on = guest.state == GUEST_ON;
	const char *name, *operation;

	if (ask) {
		p->wanted = p->program && p->program(tensor, true, p->data);
		p->begin = next_moment();
		next_moment();
		return p->wanted || on;
	}
	if (on) {
		name = p->library->name(tensor);
		operation = p->library->describe(tensor);
		probe_note(op, p->begin, (u64[]){ (u64)tensor, (u64)operation, flops_of(tensor, name, operation), (u64)name }, 4);
	}
	return !p->wanted || p->program(tensor, false, p->data);
}

/* ---- schedulers ------------------------------------------------------------------------ */

static struct place *place_of(const void *scheduler)
{
	for (u32 i = 0; i < PLACES; i++)
		if (__atomic_load_n(&places[i].scheduler, __ATOMIC_ACQUIRE) == scheduler)
			return &places[i];
	return NULL;
}

static struct place *take_place(void *scheduler)
{
	static bool told;

	for (u32 i = 0; i < PLACES; i++) {
		void *none = NULL;

		if (__atomic_compare_exchange_n(&places[i].scheduler, &none, scheduler, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return &places[i];
	}
	if (!__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
		notice_note("ggml: there are more schedulers at once than mlprof has room for; operations of some are not timed");
	return NULL;
}

static const struct library *library_of(const struct probe_site *s)
{
	for (u32 i = 0; i < library_count; i++)
		if (libraries[i].id == s->library)
			return &libraries[i];
	return NULL;
}

static void scheduler_made(struct probe_frame *f)
{
	void *scheduler = (void *)f->ret[0];
	const struct library *library = library_of(f->site);
	struct place *p = scheduler && library ? place_of(scheduler) : NULL;

	if (!scheduler || !library || (!p && !(p = take_place(scheduler))))
		return;
	p->program = NULL;
	p->library = library;
	library->set_callback(scheduler, evaluated, p);
}

static void callback_set(struct probe_frame *f)
{
	struct place *p = f->reg[0] ? place_of((void *)f->reg[0]) : NULL;

	if (!p)
		return;
	p->program = (eval_callback *)f->reg[1];
	p->data = (void *)f->reg[2];
	f->reg[1] = (u64)evaluated;
	f->reg[2] = (u64)p;
}

/* Before the real one: from then on the address may be another scheduler's. */
static void scheduler_ends(struct probe_frame *f)
{
	struct place *p = f->reg[0] ? place_of((void *)f->reg[0]) : NULL;

	if (p)
		__atomic_store_n(&p->scheduler, NULL, __ATOMIC_RELEASE);
}

/* ---- probed calls ---------------------------------------------------------------------- */

struct builtin {
	const char *name;
	void (*enter)(struct probe_frame *f);
	void (*exit)(struct probe_frame *f);
};

static const struct builtin builtins[] = {
	{ "ggml_backend_sched_new", NULL, scheduler_made },
	{ "ggml_backend_sched_set_eval_callback", callback_set, NULL },
	{ "ggml_backend_sched_free", scheduler_ends, NULL },
};

static bool know_library(const struct probe_site *s)
{
	struct library l = { .id = s->library };
	struct dl_find_object in;
	struct elf_image e;

	if (library_of(s))
		return true;
	if (library_count == LIBRARIES || _dl_find_object(s->real, &in) != 0 || !elf_open(&e, in.dlfo_link_map))
		return false;
	l.set_callback = (__typeof__(l.set_callback))elf_symbol(&e, "ggml_backend_sched_set_eval_callback");
	l.describe = (__typeof__(l.describe))elf_symbol(&e, "ggml_op_desc");
	l.name = (__typeof__(l.name))elf_symbol(&e, "ggml_get_name");
	if (!l.set_callback || !l.describe || !l.name)
		return false;
	libraries[library_count++] = l;
	return true;
}

void builtin_bound(struct probe_site *s)
{
	for (u32 i = 0; i < sizeof builtins / sizeof *builtins; i++)
		if (text_equal(builtins[i].name, s->symbol))
			s->builtin = &builtins[i];
	op = op ? op : probe_own_site((void *)evaluated, PROBE_GGML_OP);
	if (op && !know_library(s))
		notice_note("ggml: a library of it has no evaluation callback, or is one of too many: its operations are not timed");
}

bool builtin_enter(struct probe_frame *f)
{
	const struct builtin *b = f->site->builtin;

	if (b && b->enter)
		b->enter(f);
	return b && b->exit;
}

void builtin_exit(struct probe_frame *f)
{
	f->site->builtin->exit(f);
}

/*
 * device.c - records of calls, device work and device memory.
 */
#include "device.h"
#include "buffer.h"
#include "handles.h"
#include <string.h>

/* ---- arguments ------------------------------------------------------------------------ */

static void add(struct args *a, const char *key, size_t k, const char *value, size_t v)
{
	char *to = a->text + a->used;

	if (a->used + k + v + 2 > sizeof a->text)
		return;
	memcpy(to, key, k);
	if (k)
		to[k++] = '=';
	memcpy(to + k, value, v);
	to[k + v] = 0;
	a->used += k + v + 1;
}

void args_text(struct args *a, const char *key, const char *value) { add(a, key, text_length(key), value, text_length(value)); }
void args_word(struct args *a, const char *word) { add(a, "", 0, word, text_length(word)); }

void args_digits(struct args *a, const char *key, size_t length, u64 value)
{
	char digits[20], *end = digits + sizeof digits, *p = end;

	do
		*--p = '0' + value % 10;
	while (value /= 10);
	add(a, key, length, p, (size_t)(end - p));
}

void args_signed(struct args *a, const char *key, i64 value)
{
	char digits[24] = "";

	text_append(digits, sizeof digits, value < 0 ? "-" : "");
	text_number(digits, sizeof digits, value < 0 ? -(u64)value : (u64)value, 10);
	args_text(a, key, digits);
}

void args_hex(struct args *a, const char *key, u64 value)
{
	char digits[24] = "0x";

	text_number(digits, sizeof digits, value, 16);
	args_text(a, key, digits);
}

/* ---- numbers --------------------------------------------------------------------------- */

static u64 numbers, works, memories, names, site_count;
static struct handles name_numbers;     /* hash of the text -> its number */
static struct handles sites;            /* slot and node -> site */
static u64 told_in;                     /* image that names and sites were told in: a fork's child has to tell them again */

u64 work_numbers(u32 count) { return __atomic_fetch_add(&works, count, __ATOMIC_RELAXED) + 1; }
u64 memory_number(void) { return __atomic_add_fetch(&memories, 1, __ATOMIC_RELAXED); }
u64 device_number(void) { return __atomic_add_fetch(&numbers, 1, __ATOMIC_RELAXED); }

static void forget_if_forked(void)
{
	if (likely(told_in == process_born()))
		return;
	name_numbers.table = sites.table = NULL;
	told_in = process_born();
}

/* ---- records --------------------------------------------------------------------------- */

static void emit(u32 type, const void *fields, u32 bytes, const char *text, size_t length)
{
	struct visit v = context_enter(FRAME());

	if (!v.context)
		return;
	writing_begin(v.context);
	buffer_event(v.context, type, ticks(), fields, bytes, text, length);
	writing_end(v.context);
	context_leave(v);
}

#define TOLD(name, fields, text, length) emit(EVENT_##name, fields, sizeof(struct rec_##name), text, length)

/* Two threads may tell the same name at once, with two numbers; that does no harm. It is told before it is used. */
u64 name_number(const char *text)
{
	u64 hash, id;
	struct rec_name r;

	if (!text || !*text)
		return 0;
	if (guest.state != GUEST_ON)
		return 0;
	forget_if_forked();
	hash = text_hash(text, text_length(text));
	id = (u64)handles_find(&name_numbers, hash);
	if (id)
		return id;
	r.id = id = __atomic_add_fetch(&names, 1, __ATOMIC_RELAXED);
	TOLD(name, &r, text, text_length(text));
	handles_put(&name_numbers, hash, (void *)id);
	return id;
}

void call_note(u64 begin, const struct call *call, const struct args *args, struct caller at)
{
	struct visit v = context_enter(FRAME());
	struct rec_call r = {
		.begin = begin, .kind = call->kind, .name = call->name, .work = call->work, .works = call->works, .error = (u64)call->error,
	};
	u64 t;

	if (!v.context)
		return;
	writing_begin(v.context);
	t = ticks();
	if (call->told)
		buffer_event(v.context, EVENT_work, t, call->told, sizeof *call->told, call->told_args ? call->told_args->text : NULL,
			     call->told_args ? call->told_args->used : 0);
	r.node = stack_here(v.context, at, t);
	buffer_event(v.context, EVENT_call, t, &r, sizeof r, args ? args->text : NULL, args ? args->used : 0);
	writing_end(v.context);
	context_leave(v);
}

/* A stack's own number means something in its stream only. */
u64 site_number(struct caller at)
{
	struct visit v = context_enter(FRAME());
	struct rec_site r;
	u64 t, key;

	if (!v.context)
		return 0;
	forget_if_forked();
	writing_begin(v.context);
	t = ticks();
	r.node = stack_here(v.context, at, t);
	key = (u64)(v.context->index + 1) << 32 | r.node;
	r.id = (u64)handles_find(&sites, key);
	if (!r.id) {
		r.id = __atomic_add_fetch(&site_count, 1, __ATOMIC_RELAXED);
		buffer_event(v.context, EVENT_site, t, &r, sizeof r, NULL, 0);
		handles_put(&sites, key, (void *)r.id);
	}
	writing_end(v.context);
	context_leave(v);
	return r.id;
}

void memory_note(struct rec_device_alloc *m, const struct args *args, struct caller at)
{
	struct visit v = context_enter(FRAME());
	u64 t;

	if (!v.context)
		return;
	writing_begin(v.context);
	t = ticks();
	m->node = stack_here(v.context, at, t);
	buffer_event(v.context, EVENT_device_alloc, t, m, sizeof *m, args ? args->text : NULL, args ? args->used : 0);
	writing_end(v.context);
	context_leave(v);
}

void memory_note_bare(const struct rec_device_alloc *m, const struct args *args)
{
	TOLD(device_alloc, m, args->text, args->used);
}

void device_note(const struct rec_device *d, const char *api, const char *name, const char *driver)
{
	struct args a = { 0 };

	args_word(&a, api);
	args_word(&a, name);
	args_word(&a, driver);
	TOLD(device, d, a.text, a.used);
}

void queue_note(const struct rec_queue *q, const char *name) { TOLD(queue, q, name, text_length(name)); }
void work_done_note(const struct rec_work_done *w) { TOLD(work_done, w, NULL, 0); }
void run_note(const struct rec_run *r) { TOLD(run, r, NULL, 0); }
void device_clock_note(const struct rec_device_clock *c) { TOLD(device_clock, c, NULL, 0); }
void memory_gone_note(u64 id) { TOLD(device_free, &(struct rec_device_free){ id }, NULL, 0); }
void memory_used_note(const struct rec_memory_used *u) { TOLD(memory_used, u, NULL, 0); }
void notice_note(const char *line) { emit(EVENT_notice, NULL, 0, line, text_length(line)); }

void work_note(const struct rec_work *w, const struct args *args)
{
	TOLD(work, w, args ? args->text : NULL, args ? args->used : 0);
}

void work_failed_note(u64 work, i64 error)
{
	struct args a = { 0 };

	args_signed(&a, "error", error);
	TOLD(work_done, (&(struct rec_work_done){ work, DONE_FAILED }), a.text, a.used);
}

void label_note(u32 what, u64 id, const char *text)
{
	TOLD(label, (&(struct rec_label){ what, id }), text, text_length(text));
}

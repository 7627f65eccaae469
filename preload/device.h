/*
 * device.h - what the wrappers of a device API say: calls, work, memory, devices and their clocks.
 *
 * A wrapper looks like this:
 *
 *	u64 begin = api_enter();                        0: inside of another wrapper, or not recording: pass through
 *	r = real(...);
 *	if (begin)
 *		call_note(begin, &(struct call){ CALL_WAIT, name, .error = r }, NULL, CALLER());
 *	api_leave();
 *
 * Numbers of names, work and memory are given out here and hold for the whole process image. Nothing here fails: what
 * cannot be recorded is counted as lost by the buffer.
 */
#ifndef DEVICE_H
#define DEVICE_H

#include "stack.h"
#include "text.h"

/* "key=value" after "key=value", each ended by NUL; what does not fit is left out. */
struct args { u32 used; char text[508]; };

void args_text(struct args *a, const char *key, const char *value);
void args_digits(struct args *a, const char *key, size_t length, u64 value);
#define args_number(a, key, value) args_digits(a, key, sizeof(key) - 1, value)  /* key: a literal, as each submit says two of these */
void args_signed(struct args *a, const char *key, i64 value);
void args_hex(struct args *a, const char *key, u64 value);
void args_word(struct args *a, const char *word);               /* no key: a memory's first word */

static inline u64 api_enter(void)
{
	return tls.api_depth++ || tls.guard || guest.state != GUEST_ON ? 0 : ticks();
}

static inline void api_leave(void) { tls.api_depth--; }

u64 name_number(const char *text);              /* 0 for an empty one */

/* The same, looked up once per place and image. */
#define NAMED(text)                                                                                    \
	({                                                                                             \
		static u64 id_, in_;                                                                   \
		if (unlikely(__atomic_load_n(&in_, __ATOMIC_ACQUIRE) != process_born())) {             \
			id_ = name_number(text);                                                       \
			__atomic_store_n(&in_, process_born(), __ATOMIC_RELEASE);                      \
		}                                                                                      \
		id_;                                                                                   \
	})

u64 work_numbers(u32 count);                    /* the first of so many */
u64 memory_number(void);
u64 device_number(void);                        /* also for queues */

struct call {
	u32 kind;
	u64 name, work;
	u32 works;
	i64 error;
	const struct rec_work *told;    /* one of them, told with the call and stamped like it; may be NULL */
	const struct args *told_args;
};

void call_note(u64 begin, const struct call *call, const struct args *args, struct caller at);
u64 site_number(struct caller at);              /* for work that is recorded here and submitted elsewhere */
void device_note(const struct rec_device *d, const char *api, const char *name, const char *driver);
void queue_note(const struct rec_queue *q, const char *name);
void work_note(const struct rec_work *w, const struct args *args);
void work_done_note(const struct rec_work_done *w);
void work_failed_note(u64 work, i64 error);
void run_note(const struct rec_run *r);          /* before its work is said to be done */
void device_clock_note(const struct rec_device_clock *c);
void memory_note(struct rec_device_alloc *m, const struct args *args, struct caller at);
void memory_note_bare(const struct rec_device_alloc *m, const struct args *args);      /* without a stack */
void memory_gone_note(u64 id);                  /* before the real call */
void memory_used_note(const struct rec_memory_used *u);
void label_note(u32 what, u64 id, const char *text);
void notice_note(const char *line);             /* for the summary */

#endif

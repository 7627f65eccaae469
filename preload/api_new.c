/*
 * api_new.c - C++ new and delete, and the names that other allocators add to malloc's.
 *
 * libstdc++'s operators call malloc, so there is nothing to do but jump to them. jemalloc, tcmalloc and mimalloc bring
 * operators that do not: these are recorded here, like their own functions (mallocx, mi_malloc, tc_malloc).
 *
 * The real operator is the one that the caller would have got without us: the next in the global scope, else one in the
 * scope of the calling module. A Python extension, say, has libstdc++ in its own scope only.
 */
#include "elf_image.h"
#include "note.h"

/* The real operator for callers in one module. All four words are of one mind, or it is none: other threads may be writing them. */
struct scope {
	u64 start, size, real, check;
};

struct operator {
	const char *name;
	void *real;             /* in the global scope; NULL: not looked for yet, or to be looked for per caller */
	bool searched;
	bool record;            /* it comes with the allocator, and so does not call malloc */
	u16 written;            /* scopes, so far */
	struct scope scope[4];  /* the modules that have asked last */
};

/* ---- finding ------------------------------------------------------------------------- */

static bool search_globally(struct operator *o)
{
	void *p;

	if (!o->searched) {
		p = hook_next(o->name);
		o->record = p && PASS(malloc) && hook_same_module(p, (const void *)real.malloc);
		o->real = p;
		o->searched = true;
	}
	return o->real;
}

/* Answers for programs like Python, where only extensions know C++: by module, for a search takes long. Torn pairs do not match. */
struct answer { u64 check, real; };

static struct answer by_module[1024];

static u64 recall(const struct answer *a, u64 key)
{
	u64 found = __atomic_load_n(&a->real, __ATOMIC_RELAXED);

	return found && (__atomic_load_n(&a->check, __ATOMIC_RELAXED) ^ found) == key ? found : 0;
}

static void remember(struct answer *a, u64 key, u64 found)
{
	__atomic_store_n(&a->real, found, __ATOMIC_RELAXED);
	__atomic_store_n(&a->check, found ^ key, __ATOMIC_RELAXED);
}

/* One key for each operator, place and epoch: modules and operators alike lie at round distances from each other. */
static u64 key_of(const struct operator *o, u64 where)
{
	u64 key = (where + guest.epoch * 0xd6e8feb86659fd93ull) * 0x9e3779b97f4a7c15ull;

	return ((key ^ key >> 31) + (u64)o) * 0xbf58476d1ce4e5b9ull;
}

static u64 check_of(struct scope s)
{
	return ((s.start + guest.epoch) * 0x9e3779b97f4a7c15ull ^ s.size) * 0xbf58476d1ce4e5b9ull ^ s.real * 0xd6e8feb86659fd93ull;
}

static struct scope read_scope(const struct scope *s)
{
	return (struct scope){
		__atomic_load_n(&s->start, __ATOMIC_RELAXED), __atomic_load_n(&s->size, __ATOMIC_RELAXED),
		__atomic_load_n(&s->real, __ATOMIC_RELAXED), __atomic_load_n(&s->check, __ATOMIC_RELAXED),
	};
}

static void write_scope(struct operator *o, struct scope new)
{
	struct scope *s = &o->scope[__atomic_fetch_add(&o->written, 1, __ATOMIC_RELAXED) % 4];

	__atomic_store_n(&s->start, new.start, __ATOMIC_RELAXED);
	__atomic_store_n(&s->size, new.size, __ATOMIC_RELAXED);
	__atomic_store_n(&s->real, new.real, __ATOMIC_RELAXED);
	__atomic_store_n(&s->check, check_of(new), __ATOMIC_RELAXED);
}

static u64 find_for_module(struct operator *o, u64 pc)
{
	struct dl_find_object caller;
	struct answer *a;
	u64 key, found;

	if (_dl_find_object((void *)(pc - 1), &caller) != 0)
		return 0;
	key = key_of(o, (u64)caller.dlfo_map_start);
	a = &by_module[key >> 54];
	found = recall(a, key);
	if (!found) {
		found = (u64)elf_meaning_for((const void *)(pc - 1), o->name);
		remember(a, key, found);
	}
	if (found)
		write_scope(o, (struct scope){ (u64)caller.dlfo_map_start, (u64)caller.dlfo_map_end - (u64)caller.dlfo_map_start, found, 0 });
	return found;
}

static __attribute__((noinline)) void *find(struct operator *o, u64 pc)
{
	for (u32 i = 0; i < 4; i++) {
		struct scope s = read_scope(&o->scope[i]);

		if (pc - 1 - s.start < s.size && s.check == check_of(s))
			return (void *)s.real;
	}
	return search_globally(o) ? o->real : (void *)find_for_module(o, pc);
}

/* ---- shapes -------------------------------------------------------------------------- */

#define OPERATOR(function) static struct operator op_##function = { .name = #function }
#define FIND(function) (likely(op_##function.real) ? op_##function.real : find(&op_##function, CALLER().pc))

/* Without any real operator to be found, malloc and free are what the default ones are made of. */
#define NEW(function, params, args)                                                                    \
	OPERATOR(function);                                                                            \
	HOOKED void *function params;                                                                  \
	HOOKED void *function params                                                                   \
	{                                                                                              \
		void *(*f) params = FIND(function), *p;                                                \
		struct visit v;                                                                        \
                                                                                                       \
		if (likely(f && !op_##function.record))                                                \
			return f args;                                                                 \
		if (!f)                                                                                \
			return malloc(size);                                                           \
		v = context_enter(FRAME());                                                            \
		p = f args;                                                                            \
		if (v.context && p)                                                                    \
			note_alloc(v, p, size, CALLER());                                              \
		if (v.context)                                                                         \
			context_leave(v);                                                              \
		return p;                                                                              \
	}

#define DELETE(function, params, args)                                                                 \
	OPERATOR(function);                                                                            \
	HOOKED void function params;                                                                   \
	HOOKED void function params                                                                    \
	{                                                                                              \
		void (*f) params = FIND(function);                                                     \
		struct visit v;                                                                        \
                                                                                                       \
		if (likely(f && !op_##function.record)) {                                              \
			f args;                                                                        \
			return;                                                                        \
		}                                                                                      \
		if (!f) {                                                                              \
			free(p);                                                                       \
			return;                                                                        \
		}                                                                                      \
		v = context_enter(FRAME());                                                            \
		if (v.context && p)                                                                    \
			note_free(v, p);                                                               \
		f args;                                                                                \
		if (v.context)                                                                         \
			context_leave(v);                                                              \
	}

#define RESIZE(function, params, args)                                                                 \
	OPERATOR(function);                                                                            \
	HOOKED void *function params;                                                                  \
	HOOKED void *function params                                                                   \
	{                                                                                              \
		void *(*f) params = FIND(function), *to;                                               \
		struct visit v;                                                                        \
		u64 before;                                                                            \
                                                                                                       \
		if (!f)                                                                                \
			return realloc(p, size);                                                       \
		v = context_enter(FRAME());                                                            \
		if (!v.context)                                                                        \
			return f args;                                                                 \
		before = note_move_begin(v);                                                           \
		to = f args;                                                                           \
		if (to && p)                                                                           \
			note_move(v, before, p, to, size, CALLER());                                   \
		else                                                                                   \
			note_not_moved(v);                                                             \
		if (to && !p)                                                                          \
			note_alloc(v, to, size, CALLER());                                             \
		context_leave(v);                                                                      \
		return to;                                                                             \
	}

/* ---- C++ ----------------------------------------------------------------------------- */

NEW(_Znwm, (size_t size), (size))
NEW(_Znam, (size_t size), (size))
NEW(_ZnwmRKSt9nothrow_t, (size_t size, void *tag), (size, tag))
NEW(_ZnamRKSt9nothrow_t, (size_t size, void *tag), (size, tag))
NEW(_ZnwmSt11align_val_t, (size_t size, size_t align), (size, align))
NEW(_ZnamSt11align_val_t, (size_t size, size_t align), (size, align))
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t size, size_t align, void *tag), (size, align, tag))
NEW(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t size, size_t align, void *tag), (size, align, tag))

DELETE(_ZdlPv, (void *p), (p))
DELETE(_ZdaPv, (void *p), (p))
DELETE(_ZdlPvm, (void *p, size_t size), (p, size))
DELETE(_ZdaPvm, (void *p, size_t size), (p, size))
DELETE(_ZdlPvRKSt9nothrow_t, (void *p, void *tag), (p, tag))
DELETE(_ZdaPvRKSt9nothrow_t, (void *p, void *tag), (p, tag))
DELETE(_ZdlPvSt11align_val_t, (void *p, size_t align), (p, align))
DELETE(_ZdaPvSt11align_val_t, (void *p, size_t align), (p, align))
DELETE(_ZdlPvmSt11align_val_t, (void *p, size_t size, size_t align), (p, size, align))
DELETE(_ZdaPvmSt11align_val_t, (void *p, size_t size, size_t align), (p, size, align))
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void *p, size_t align, void *tag), (p, align, tag))
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void *p, size_t align, void *tag), (p, align, tag))

/* ---- other allocators' own names ------------------------------------------------------ */

NEW(mallocx, (size_t size, int flags), (size, flags))
RESIZE(rallocx, (void *p, size_t size, int flags), (p, size, flags))
DELETE(dallocx, (void *p, int flags), (p, flags))
DELETE(sdallocx, (void *p, size_t size, int flags), (p, size, flags))

NEW(mi_malloc, (size_t size), (size))
NEW(mi_zalloc, (size_t size), (size))
NEW(mi_malloc_aligned, (size_t size, size_t align), (size, align))
NEW(mi_zalloc_aligned, (size_t size, size_t align), (size, align))
RESIZE(mi_realloc, (void *p, size_t size), (p, size))
DELETE(mi_free, (void *p), (p))

NEW(tc_malloc, (size_t size), (size))
NEW(tc_new, (size_t size), (size))
RESIZE(tc_realloc, (void *p, size_t size), (p, size))
DELETE(tc_free, (void *p), (p))
DELETE(tc_delete, (void *p), (p))

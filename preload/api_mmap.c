/*
 * api_mmap.c - memory that the program maps itself.
 *
 * libc's own mappings (arenas, thread stacks, libraries) do not come through here. Another allocator's do: they are
 * the arenas that its blocks lie in, so calls from the module that brought malloc are passed on unrecorded.
 */
#include "iree.h"
#include "note.h"
#include "text.h"
#include <stdarg.h>

static u64 round_to_pages(u64 n)
{
	return (n + 4095) & ~4095ull;
}

static bool from_allocator(struct caller at)
{
	return hook_same_module((const void *)(at.pc - 1), (const void *)REAL(malloc));
}

static struct visit enter(u64 frame, struct caller at)
{
	struct visit v = context_enter(frame);

	if (v.context && from_allocator(at)) {
		context_leave(v);
		v.context = NULL;
	}
	return v;
}

/* What a descriptor leads to; "" if that can't be told. */
static void path_of(int fd, char *to, size_t size)
{
	char link[32] = "/proc/self/fd/";
	long n;

	text_number(link, sizeof link, (u64)fd, 10);
	n = sys_readlink(link, to, size - 1);
	to[n > 0 ? n : 0] = 0;
}

static u32 map_kind(int flags, int fd, char *path, size_t size)
{
	path[0] = 0;
	if (flags & MAP_ANONYMOUS) {
		if ((flags & MAP_TYPE) == MAP_PRIVATE)
			return MAP_KIND_ANON;
		text_copy(path, size, "anonymous");
		return MAP_KIND_SHARED;
	}
	path_of(fd, path, size);
	return text_starts(path, "/memfd:") || text_starts(path, "/dev/shm/") ? MAP_KIND_SHARED : MAP_KIND_FILE;
}

static void note_map(struct visit v, void *p, u64 length, int prot, u32 kind, const char *path, struct caller at)
{
	struct context *c = v.context;
	u64 t;
	u32 node;

	writing_begin(c);
	t = ticks();
	node = stack_here(c, at, t);
	EMIT(c, t, map, FIELDS(.addr = (u64)p, .length = round_to_pages(length), .prot = (u64)prot, .kind = kind, .node = node),
	     path, text_length(path));
	writing_end(c);
}

static inline void *map(__typeof__(mmap) *f, void *addr, size_t length, int prot, int flags, int fd, off_t offset,
			u64 frame, struct caller at)
{
	struct visit v = enter(frame, at);
	char path[1024];
	void *p;
	u32 kind;

	if (!v.context)
		return f(addr, length, prot, flags, fd, offset);
	p = f(addr, length, prot, flags, fd, offset);
	if (p != MAP_FAILED) {
		kind = map_kind(flags, fd, path, sizeof path);
		note_map(v, p, length, prot, kind, path, at);
	}
	context_leave(v);
	return p;
}

HOOKED void *mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
{
	return map(PASS(mmap), addr, length, prot, flags, fd, offset, FRAME(), CALLER());
}

HOOKED void *mmap64(void *addr, size_t length, int prot, int flags, int fd, off64_t offset)
{
	return map(PASS(mmap64), addr, length, prot, flags, fd, offset, FRAME(), CALLER());
}

HOOKED int munmap(void *addr, size_t length)
{
	struct visit v;
	u64 before;
	int r;

	if (unlikely(iree_images))
		iree_unmapping(addr, length);
	v = enter(FRAME(), CALLER());
	if (!v.context)
		return PASS(munmap)(addr, length);
	before = note_move_begin(v);
	r = REAL(munmap)(addr, length);
	writing_begin(v.context);
	if (r == 0)
		EMIT(v.context, before, unmap, FIELDS(.addr = (u64)addr, .length = round_to_pages(length)), NULL, 0);
	writing_end(v.context);
	context_leave(v);
	return r;
}

HOOKED void *mremap(void *old, size_t old_length, size_t length, int flags, ...)
{
	struct visit v = enter(FRAME(), CALLER());
	void *fixed, *p;
	va_list more;
	u64 before, t;
	u32 node;

	va_start(more, flags);
	fixed = va_arg(more, void *);
	va_end(more);
	if (!v.context)
		return PASS(mremap)(old, old_length, length, flags, fixed);
	before = note_move_begin(v);
	p = REAL(mremap)(old, old_length, length, flags, fixed);
	writing_begin(v.context);
	if (p != MAP_FAILED) {
		t = ticks();
		node = stack_here(v.context, CALLER(), t);
		EMIT(v.context, t, remap,
		     FIELDS(.before = before, .old_addr = (u64)old, .old_length = round_to_pages(old_length), .new_addr = (u64)p,
			    .new_length = round_to_pages(length), .node = node),
		     NULL, 0);
	}
	writing_end(v.context);
	context_leave(v);
	return p;
}

HOOKED int mprotect(void *addr, size_t length, int prot)
{
	struct visit v = enter(FRAME(), CALLER());
	u64 t;
	u32 node;
	int r;

	if (!v.context)
		return PASS(mprotect)(addr, length, prot);
	r = REAL(mprotect)(addr, length, prot);
	if (r == 0) {
		writing_begin(v.context);
		t = ticks();
		node = stack_here(v.context, CALLER(), t);
		EMIT(v.context, t, protect,
		     FIELDS(.addr = (u64)addr, .length = round_to_pages(length), .prot = (u64)prot, .node = node), NULL, 0);
		writing_end(v.context);
	}
	context_leave(v);
	if (r == 0 && prot & (PROT_READ | PROT_EXEC) && !(prot & PROT_WRITE))
		iree_protected(addr, length, prot);
	return r;
}

/* ---- the break: growing it is a mapping right behind the old end ----------------------- */

static void note_break(struct visit v, u64 old, u64 new, struct caller at)
{
	old = round_to_pages(old);
	new = round_to_pages(new);
	if (new > old)
		note_map(v, (void *)old, new - old, PROT_READ | PROT_WRITE, MAP_KIND_ANON, "", at);
	if (new < old) {
		writing_begin(v.context);
		EMIT(v.context, ticks(), unmap, FIELDS(.addr = new, .length = old - new), NULL, 0);
		writing_end(v.context);
	}
}

HOOKED void *sbrk(intptr_t increment)
{
	struct visit v = enter(FRAME(), CALLER());
	void *old;

	if (!v.context)
		return PASS(sbrk)(increment);
	old = REAL(sbrk)(increment);
	if (old != (void *)-1 && increment)
		note_break(v, (u64)old, (u64)old + (u64)increment, CALLER());
	context_leave(v);
	return old;
}

HOOKED int brk(void *end)
{
	struct visit v = enter(FRAME(), CALLER());
	void *old;
	int r;

	if (!v.context)
		return PASS(brk)(end);
	old = REAL(sbrk)(0);
	r = REAL(brk)(end);
	if (r == 0)
		note_break(v, (u64)old, (u64)end, CALLER());
	context_leave(v);
	return r;
}

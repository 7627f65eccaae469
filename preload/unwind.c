/*
 * unwind.c - libunwind, opened privately, to check our own walk against (control.check_stacks).
 *
 * It must not be linked: libunwind.so defines _Unwind_* too, and in the program's global scope it would take
 * over the program's C++ exceptions. RTLD_LOCAL keeps it to ourselves. Outside of tests it is not opened at all: it
 * keeps two descriptors of its own in the program (a pipe to test addresses with), and what it can do beyond our
 * rules, following frame pointers through code without CFI, stack.c does too.
 */
#define UNW_LOCAL_ONLY
#include "unwind.h"
#include <dlfcn.h>
#include <libunwind.h>

#define NAME(x) NAME_OF(x)
#define NAME_OF(x) #x

static struct {
	__typeof__(unw_init_local) *init;
	__typeof__(unw_step) *step;
	__typeof__(unw_get_reg) *get;
} lib;

static int (*get_context)(unw_context_t *);

/* Starts in our own frames, which are inside of `at`: the caller's frame is the first whose stack pointer reaches at.sp. */
static u32 unwind(struct caller at, u64 *pc, u32 max)
{
	unw_context_t context;
	unw_cursor_t cursor;
	unw_word_t ip = 0, sp = 0;
	u32 n = 0;

	if (get_context(&context) < 0 || lib.init(&cursor, &context) < 0)
		return 0;
	while (n < max && lib.step(&cursor) > 0) {
		lib.get(&cursor, UNW_REG_IP, &ip);
		lib.get(&cursor, UNW_REG_SP, &sp);
		if (!n && sp < at.sp)
			continue;
		if (!ip)
			break;
		pc[n++] = ip;
	}
	return n;
}

/* It maps memory and takes locks of its own: whatever hook that (or a signal meanwhile) comes to passes through. */
u32 unwind_stack(struct caller at, u64 *pc, u32 max)
{
	u64 before = tls.guard;
	u32 n;

	if (!get_context)
		return 0;
	tls.guard = FRAME();
	n = unwind(at, pc, max);
	tls.guard = before;
	return n;
}

void unwind_start(void)
{
	void *so = dlopen("libunwind.so.8", RTLD_LOCAL | RTLD_NOW);

	if (!so)
		return;
	lib.init = (__typeof__(lib.init))dlsym(so, NAME(unw_init_local));
	lib.step = (__typeof__(lib.step))dlsym(so, NAME(unw_step));
	lib.get = (__typeof__(lib.get))dlsym(so, NAME(unw_get_reg));
	get_context = (int (*)(unw_context_t *))dlsym(so, "_Ux86_64_getcontext");
	if (!lib.init || !lib.step || !lib.get)
		get_context = NULL;
	unwind_stack(CALLER(), (u64[4]){ 0 }, 4);       /* what it sets up once is set up here */
}

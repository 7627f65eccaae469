/*
 * opencl_callback.c - functions of the program that the driver calls.
 *
 * What the program does in one of them is its own doing, on whatever thread and inside of whichever call the driver calls it: a build's
 * may be called before clBuildProgram returns. So each is called by one of ours, which steps out of that call meanwhile. Ours are called
 * of_ and something: by that the collector knows on a stack that what is further in is the program's (write/driver.c).
 */
#include "opencl.h"
#include <string.h>

struct callback { void *function, *user; };

static struct pool callbacks = POOL(struct callback);

struct place { u32 depth, row, now; };

static struct place step_out(void)
{
	struct place was = { tls.api_depth, tls.opencl_row, opencl_now };

	tls.api_depth = 0;
	return was;
}

static void step_in(struct place was)
{
	tls.api_depth = was.depth;
	tls.opencl_row = was.row;
	opencl_now = was.now;
}

static struct callback *callback_new(void *function, void *user)
{
	struct callback *c = function ? pool_get(&callbacks) : NULL;

	if (c)
		*c = (struct callback){ function, user };
	return c;
}

/* It is called once. */
static struct callback taken(void *of)
{
	struct callback c = *(struct callback *)of;

	pool_put(&callbacks, of);
	return c;
}

void opencl_callback_drop(void *user)
{
	pool_put(&callbacks, user);
}

/* ---- builds ------------------------------------------------------------------------------- */

/* A driver may call it for each of several devices, or never: so it is kept. */
static void CL_CALLBACK of_program(cl_program p, void *of)
{
	const struct callback *c = of;
	struct place was = step_out();

	((void (CL_CALLBACK *)(cl_program, void *))c->function)(p, c->user);
	step_in(was);
}

void opencl_program_callback(opencl_on_program **function, void **user)
{
	struct callback *c = callback_new((void *)*function, *user);

	if (!c)
		return;
	*function = of_program;
	*user = c;
}

/* ---- events ------------------------------------------------------------------------------- */

static void CL_CALLBACK of_event(cl_event e, cl_int status, void *of)
{
	struct callback c = taken(of);
	struct place was = step_out();

	((void (CL_CALLBACK *)(cl_event, cl_int, void *))c.function)(e, status, c.user);
	step_in(was);
}

cl_int w_clSetEventCallback(cl_event e, cl_int type, void (CL_CALLBACK *f)(cl_event, cl_int, void *), void *user)
{
	struct callback *c = opencl_enter() ? callback_new((void *)f, user) : NULL;
	cl_int r = c ? cl.clSetEventCallback(e, type, of_event, c) : cl.clSetEventCallback(e, type, f, user);

	if (c && r != CL_SUCCESS)
		pool_put(&callbacks, c);
	opencl_leave();
	return r;
}

/* ---- ends of objects ---------------------------------------------------------------------- */

/* name of ours, of the function that it is set by, type of what ends */
#define AT_END(ours, name, type)                                                                       \
	static void CL_CALLBACK ours(type o, void *of)                                                 \
	{                                                                                              \
		struct callback c = taken(of);                                                         \
		struct place was = step_out();                                                         \
                                                                                                       \
		((void (CL_CALLBACK *)(type, void *))c.function)(o, c.user);                           \
		step_in(was);                                                                          \
	}                                                                                              \
                                                                                                       \
	cl_int w_##name(type o, void (CL_CALLBACK *f)(type, void *), void *user)                       \
	{                                                                                              \
		struct callback *c = opencl_enter() ? callback_new((void *)f, user) : NULL;            \
		cl_int r = c ? cl.name(o, ours, c) : cl.name(o, f, user);                              \
                                                                                                       \
		if (c && r != CL_SUCCESS)                                                              \
			pool_put(&callbacks, c);                                                       \
		opencl_leave();                                                                        \
		return r;                                                                              \
	}

AT_END(of_memory, clSetMemObjectDestructorCallback, cl_mem)
AT_END(of_context_end, clSetContextDestructorCallback, cl_context)
AT_END(of_program_end, clSetProgramReleaseCallback, cl_program)

/* ---- shared memory that the program frees itself ------------------------------------------- */

static void CL_CALLBACK of_free(cl_command_queue q, cl_uint n, void **pointers, void *of)
{
	struct callback c = taken(of);
	struct place was = step_out();

	((opencl_on_free *)c.function)(q, n, pointers, c.user);
	step_in(was);
}

bool opencl_free_callback(opencl_on_free **function, void **user)
{
	struct callback *c = callback_new((void *)*function, *user);

	if (!c)
		return false;
	*function = of_free;
	*user = c;
	return true;
}

/* ---- contexts ----------------------------------------------------------------------------- */

static void CL_CALLBACK of_context(const char *what, const void *about, size_t bytes, void *of)
{
	const struct callback *c = of;
	struct place was = step_out();

	((opencl_on_context *)c->function)(what, about, bytes, c->user);
	step_in(was);
}

bool opencl_context_callback(opencl_on_context **function, void **user)
{
	struct callback *c = callback_new((void *)*function, *user);

	if (!c)
		return false;
	*function = of_context;
	*user = c;
	return true;
}

/* ---- native kernels ----------------------------------------------------------------------- */

/* It has no pointer of its own, but arguments that the driver copies: ours are put before them, and keep them as aligned as they were. */
struct native { opencl_native_function *function; bool has_args; } __attribute__((aligned(128)));

static void CL_CALLBACK of_native(void *of)
{
	const struct native *n = of;
	struct place was = step_out();

	n->function(n->has_args ? (void *)(n + 1) : NULL);
	step_in(was);
}

/* What a driver has to refuse stays as it is. */
static bool is_sound(const struct opencl_native *n)
{
	return n->function && !n->args == !n->bytes && (n->args || !n->count) && !n->count == !n->where;
}

void opencl_native_wrap(struct opencl_native *n)
{
	size_t size = sizeof(struct native) + ((n->bytes + 7) & ~7ul), all = size + n->count * sizeof *n->where;
	struct native *ours = is_sound(n) ? sys_memory(all) : NULL;
	const void **where = (const void **)((char *)ours + size);

	if (!ours)
		return;
	*ours = (struct native){ n->function, n->args };
	if (n->args)
		memcpy(ours + 1, n->args, n->bytes);
	for (u32 i = 0; i < n->count; i++)
		where[i] = (char *)(ours + 1) + ((u64)n->where[i] - (u64)n->args);
	n->function = of_native;
	n->args = ours;
	n->bytes += sizeof *ours;
	n->where = n->count ? where : NULL;
	n->mapped = all;
}

void opencl_native_unwrap(const struct opencl_native *n)
{
	if (n->mapped)
		sys_munmap(n->args, n->mapped);
}

/*
 * opencl_callback.c - functions of the program that the driver calls.
 *
 * What the program does in one of them is its own doing, on whatever thread and inside of whichever call the driver calls it: a build's
 * may be called before clBuildProgram returns. So each is called by one of ours, which steps out of that call meanwhile.
 */
#include "opencl.h"

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

/* ---- memory ------------------------------------------------------------------------------- */

static void CL_CALLBACK of_memory(cl_mem m, void *of)
{
	struct callback c = taken(of);
	struct place was = step_out();

	((void (CL_CALLBACK *)(cl_mem, void *))c.function)(m, c.user);
	step_in(was);
}

cl_int w_clSetMemObjectDestructorCallback(cl_mem m, void (CL_CALLBACK *f)(cl_mem, void *), void *user)
{
	struct callback *c = opencl_enter() ? callback_new((void *)f, user) : NULL;
	cl_int r = c ? cl.clSetMemObjectDestructorCallback(m, of_memory, c) : cl.clSetMemObjectDestructorCallback(m, f, user);

	if (c && r != CL_SUCCESS)
		pool_put(&callbacks, c);
	opencl_leave();
	return r;
}

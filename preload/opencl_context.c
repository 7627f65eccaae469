/*
 * opencl_context.c - contexts: whose they are, and what they notify.
 */
#include "opencl.h"

static struct handles notifies;         /* cl_context -> ours, that its driver calls */

/* A driver may call it as long as there is the context. That this is over is certain when its handle comes again. */
static void keep_notify(cl_context c, void *ours)
{
	void *gone = c ? handles_remove(&notifies, (u64)c) : ours;

	if (gone)
		opencl_callback_drop(gone);
	if (c && ours)
		handles_put(&notifies, (u64)c, ours);
}

cl_context w_clCreateContext(const cl_context_properties *l, cl_uint n, const cl_device_id *list, opencl_on_context *f, void *user, cl_int *error)
{
	bool ours = opencl_enter() && opencl_context_callback(&f, &user);
	cl_context c = cl.clCreateContext(l, n, list, f, user, error);

	keep_notify(c, ours ? user : NULL);
	opencl_leave();
	return c;
}

cl_context w_clCreateContextFromType(const cl_context_properties *l, cl_device_type type, opencl_on_context *f, void *user, cl_int *error)
{
	bool ours = opencl_enter() && opencl_context_callback(&f, &user);
	cl_context c = cl.clCreateContextFromType(l, type, f, user, error);

	keep_notify(c, ours ? user : NULL);
	opencl_leave();
	return c;
}

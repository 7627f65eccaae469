/*
 * opencl_context.c - contexts: whose they are, and what they notify.
 */
#include "opencl.h"

static struct handles notifies;         /* cl_context -> ours, that its driver calls */
static struct handles firsts;           /* cl_context -> its first device, of those whose driver says another one */

/* ---- whose ------------------------------------------------------------------------------- */

static cl_device_id told_device(cl_context c)
{
	cl_device_id list[64];
	size_t bytes = 0;

	return cl.clGetContextInfo(c, CL_CONTEXT_DEVICES, sizeof list, list, &bytes) == CL_SUCCESS && bytes >= sizeof *list ? list[0] : NULL;
}

/* PoCL says of a sub-device's context that it is the parent's. A handle that comes again is another context's. */
static void keep_first(cl_context c, cl_device_id first)
{
	if (c && first && told_device(c) != first)
		handles_put(&firsts, (u64)c, first);
	else
		handles_remove(&firsts, (u64)c);
}

u64 opencl_context_device(cl_context c)
{
	cl_device_id first = handles_find(&firsts, (u64)c);

	return opencl_device(first ? first : told_device(c));
}

static bool is_last(cl_context c)
{
	cl_uint n = 0;

	return cl.clGetContextInfo(c, CL_CONTEXT_REFERENCE_COUNT, sizeof n, &n, NULL) == CL_SUCCESS && n == 1;
}

/* Before the call: afterwards its handle may be another thread's new context. */
cl_int w_clReleaseContext(cl_context c)
{
	cl_int r;

	opencl_enter();
	if (handles_find(&firsts, (u64)c) && is_last(c))
		handles_remove(&firsts, (u64)c);
	r = cl.clReleaseContext(c);
	opencl_leave();
	return r;
}

/* ---- what they notify, and how they are made ----------------------------------------------- */

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

	keep_first(c, n && list ? list[0] : NULL);
	keep_notify(c, ours ? user : NULL);
	opencl_leave();
	return c;
}

cl_context w_clCreateContextFromType(const cl_context_properties *l, cl_device_type type, opencl_on_context *f, void *user, cl_int *error)
{
	bool ours = opencl_enter() && opencl_context_callback(&f, &user);
	cl_context c = cl.clCreateContextFromType(l, type, f, user, error);

	keep_first(c, NULL);
	keep_notify(c, ours ? user : NULL);
	opencl_leave();
	return c;
}

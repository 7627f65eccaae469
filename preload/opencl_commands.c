/*
 * opencl_commands.c - what is in a command buffer: how many commands, and which kernels.
 *
 * It is enqueued as one (opencl_work.c), and has one event.
 */
#include "opencl.h"

struct recording {
	cl_command_queue queue;         /* that it was made for */
	u32 commands, kernels;
	cl_kernel last;
	char names[256];                /* of its kernels, as far as there is room; one that is repeated is named once */
};

static struct handles recordings;
static struct pool recording_pool = POOL(struct recording);

static void note_kernel(struct recording *r, cl_kernel k)
{
	char name[OPENCL_KERNEL_TEXT];

	r->kernels++;
	if (k == r->last)
		return;
	r->last = k;
	opencl_kernel_text(k, name);
	if (text_length(r->names) + text_length(name) + sizeof ", " > sizeof r->names)
		return;
	if (r->names[0])
		text_append(r->names, sizeof r->names, ", ");
	text_append(r->names, sizeof r->names, name);
}

cl_command_queue opencl_commands(cl_command_buffer_khr buffer, struct args *to)
{
	const struct recording *r = handles_find(&recordings, (u64)buffer);

	if (!r)
		return NULL;
	args_number(to, "commands", r->commands);
	args_number(to, "kernels", r->kernels);
	if (r->names[0])
		args_text(to, "names", r->names);
	return r->queue;
}

/* One that was known is gone, if its handle comes again. */
cl_command_buffer_khr w_clCreateCommandBufferKHR(cl_uint queues, const cl_command_queue *queue, const cl_command_buffer_properties_khr *p, cl_int *error)
{
	u64 begin = opencl_enter();
	cl_command_buffer_khr buffer = cl.clCreateCommandBufferKHR(queues, queue, p, error);
	struct recording *r = begin && buffer ? handles_find(&recordings, (u64)buffer) : NULL;

	if (begin && buffer && (r || (r = pool_get(&recording_pool)))) {
		*r = (struct recording){ .queue = queues ? queue[0] : NULL };
		handles_put(&recordings, (u64)buffer, r);
	}
	opencl_leave();
	return buffer;
}

static void note_command(u64 begin, cl_command_buffer_khr buffer, cl_int r, cl_kernel k)
{
	struct recording *known = begin && r == CL_SUCCESS ? handles_find(&recordings, (u64)buffer) : NULL;

	if (!known)
		return;
	known->commands++;
	if (k)
		note_kernel(known, k);
}

#define UNPACK(...) __VA_ARGS__
#define SYNC cl_uint n, const cl_sync_point_khr *list, cl_sync_point_khr *point, cl_mutable_command_khr *handle
#define POINTS n, list, point, handle
#define NO_KERNEL ((cl_kernel)0)

/* name, (parameters after the buffer and the queue), (the same as arguments), the kernel */
#define COMMAND(name_, PARAMS, ARGS, kernel_)                                                          \
	cl_int w_##name_(cl_command_buffer_khr buffer, cl_command_queue q, UNPACK PARAMS)              \
	{                                                                                              \
		u64 begin = opencl_enter();                                                            \
		cl_int r = cl.name_(buffer, q, UNPACK ARGS);                                           \
                                                                                                       \
		note_command(begin, buffer, r, kernel_);                                               \
		opencl_leave();                                                                        \
		return r;                                                                              \
	}

COMMAND(clCommandNDRangeKernelKHR,
	(const cl_ndrange_kernel_command_properties_khr *l, cl_kernel k, cl_uint dim, const size_t *o, const size_t *global, const size_t *local, SYNC),
	(l, k, dim, o, global, local, POINTS), k)
COMMAND(clCommandCopyBufferKHR, (cl_mem s, cl_mem d, size_t so, size_t o, size_t bytes, SYNC), (s, d, so, o, bytes, POINTS), NO_KERNEL)
COMMAND(clCommandCopyBufferRectKHR,
	(cl_mem s, cl_mem d, const size_t *so, const size_t *o, const size_t *region, size_t sr, size_t ss, size_t dr, size_t ds, SYNC),
	(s, d, so, o, region, sr, ss, dr, ds, POINTS), NO_KERNEL)
COMMAND(clCommandCopyBufferToImageKHR, (cl_mem s, cl_mem d, size_t so, const size_t *o, const size_t *region, SYNC),
	(s, d, so, o, region, POINTS), NO_KERNEL)
COMMAND(clCommandCopyImageKHR, (cl_mem s, cl_mem d, const size_t *so, const size_t *o, const size_t *region, SYNC),
	(s, d, so, o, region, POINTS), NO_KERNEL)
COMMAND(clCommandCopyImageToBufferKHR, (cl_mem s, cl_mem d, const size_t *so, const size_t *region, size_t o, SYNC),
	(s, d, so, region, o, POINTS), NO_KERNEL)
COMMAND(clCommandFillBufferKHR, (cl_mem m, const void *v, size_t vn, size_t o, size_t bytes, SYNC), (m, v, vn, o, bytes, POINTS), NO_KERNEL)
COMMAND(clCommandFillImageKHR, (cl_mem m, const void *v, const size_t *o, const size_t *region, SYNC), (m, v, o, region, POINTS), NO_KERNEL)
COMMAND(clCommandBarrierWithWaitListKHR, (SYNC), (POINTS), NO_KERNEL)

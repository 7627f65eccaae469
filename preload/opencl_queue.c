/*
 * opencl_queue.c - devices and queues, and calls that wait for them.
 *
 * Every queue is made with profiling on, so that its work has the device's own times. A program that did not ask for that
 * must not see it: not in the queue's properties, nor by getting times of an event.
 */
#include "opencl.h"

static struct handles devices, queues;         /* devices: -> number */
static struct pool queue_pool = POOL(struct cl_queue);

/* ---- devices --------------------------------------------------------------------------- */

static void info_text(cl_device_id d, cl_device_info what, char *to, size_t size)
{
	to[0] = 0;
	if (cl.clGetDeviceInfo(d, what, size - 1, to, NULL) != CL_SUCCESS)
		to[0] = 0;
	to[size - 1] = 0;
}

static bool has_timer(cl_device_id d)
{
	cl_ulong device, host;

	return cl.clGetDeviceAndHostTimer && cl.clGetDeviceAndHostTimer(d, &device, &host) == CL_SUCCESS;
}

static void tell_device(cl_device_id d, u64 id)
{
	char name[256], driver[256];
	cl_device_type type = 0;
	struct rec_device r = { .id = id };

	cl.clGetDeviceInfo(d, CL_DEVICE_TYPE, sizeof type, &type, NULL);
	info_text(d, CL_DEVICE_NAME, name, sizeof name);
	info_text(d, CL_DEVICE_VERSION, driver, sizeof driver);
	r.flags = type & CL_DEVICE_TYPE_CPU ? DEVICE_CPU | DEVICE_HOST_MEMORY : type & CL_DEVICE_TYPE_GPU ? DEVICE_GPU : 0;
	r.clock = has_timer(d) ? DEVICE_CLOCK_CALIBRATED : DEVICE_CLOCK_BOUNDED;
	device_note(&r, "OpenCL", name, driver);
}

static void read_clock(cl_device_id d, u64 id)
{
	struct rec_device_clock r = { .device_id = id, .before = ticks() };
	cl_ulong host, device;

	if (!cl.clGetDeviceAndHostTimer || cl.clGetDeviceAndHostTimer(d, &device, &host) != CL_SUCCESS)
		return;
	r.after = ticks();
	r.device = device;
	device_clock_note(&r);
}

u64 opencl_device(cl_device_id d)
{
	u64 id = (u64)handles_find(&devices, (u64)d);

	if (id || !d)
		return id;
	id = device_number();
	handles_put(&devices, (u64)d, (void *)id);
	tell_device(d, id);
	read_clock(d, id);
	return id;
}

u64 opencl_context_device(cl_context c)
{
	cl_device_id list[64];
	size_t bytes = 0;

	if (cl.clGetContextInfo(c, CL_CONTEXT_DEVICES, sizeof list, list, &bytes) != CL_SUCCESS || bytes < sizeof *list)
		return 0;
	return opencl_device(list[0]);
}

/* ---- queues ---------------------------------------------------------------------------- */

struct cl_queue *opencl_queue(cl_command_queue q)
{
	return handles_find(&queues, (u64)q);
}

static void remember(cl_command_queue q, cl_device_id device, const struct cl_queue *about, u32 flags)
{
	struct cl_queue *known = pool_get(&queue_pool);
	static u32 count;
	char name[32] = "queue ";
	struct rec_queue r = { .device = opencl_device(device), .flags = flags };

	if (!known || !r.device)
		return;
	*known = *about;
	known->id = r.id = device_number();
	text_number(name, sizeof name, __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED), 10);
	queue_note(&r, name);
	handles_put(&queues, (u64)q, known);
}

static u32 queue_flags(cl_command_queue_properties p)
{
	return p & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE ? QUEUE_OUT_OF_ORDER : 0;
}

/* An enqueue is a submission of its own: between the time of a kernel and that of a submission there is no difference. */
static bool wants_times(void)
{
	return guest.control->device_time != DEVICE_TIME_OFF;
}

cl_command_queue w_clCreateCommandQueue(cl_context c, cl_device_id d, cl_command_queue_properties p, cl_int *error)
{
	u64 begin = api_enter();
	struct cl_queue about = { .profiled = p & CL_QUEUE_PROFILING_ENABLE, .forced = begin && wants_times() && !(p & CL_QUEUE_PROFILING_ENABLE) };
	cl_command_queue q = cl.clCreateCommandQueue(c, d, about.forced ? p | CL_QUEUE_PROFILING_ENABLE : p, error);

	if (!q && about.forced) {
		about.forced = false;
		q = cl.clCreateCommandQueue(c, d, p, error);
	}
	if (q && begin)
		remember(q, d, &about, queue_flags(p));
	api_leave();
	return q;
}

/* The program's list with profiling added. What does not fit, or is a device-side queue, is left as it is. */
static bool with_profiling(const cl_queue_properties *list, struct cl_queue *about, cl_queue_properties *out, u32 room, cl_command_queue_properties *asked)
{
	bool seen = false;
	u32 n = 0;

	for (; list && list[n]; n += 2) {
		if (n + 5 > room)
			return false;
		out[n] = list[n];
		out[n + 1] = list[n + 1];
		if (list[n] != CL_QUEUE_PROPERTIES)
			continue;
		*asked = list[n + 1];
		seen = true;
		out[n + 1] |= CL_QUEUE_PROFILING_ENABLE;
	}
	about->profiled = *asked & CL_QUEUE_PROFILING_ENABLE;
	about->property_words = list ? n + 1 : 0;
	for (u32 i = 0; i < about->property_words; i++)
		about->property[i] = list[i];
	if (!seen) {
		out[n++] = CL_QUEUE_PROPERTIES;
		out[n++] = CL_QUEUE_PROFILING_ENABLE;
	}
	out[n] = 0;
	return !about->profiled && !(*asked & CL_QUEUE_ON_DEVICE) && wants_times();
}

cl_command_queue w_clCreateCommandQueueWithProperties(cl_context c, cl_device_id d, const cl_queue_properties *list, cl_int *error)
{
	u64 begin = api_enter();
	cl_queue_properties ours[34];
	cl_command_queue_properties asked = 0;
	struct cl_queue about = { 0 };
	cl_command_queue q;

	about.forced = begin && with_profiling(list, &about, ours, 34, &asked);
	q = cl.clCreateCommandQueueWithProperties(c, d, about.forced ? ours : list, error);
	if (!q && about.forced) {
		about.forced = false;
		q = cl.clCreateCommandQueueWithProperties(c, d, list, error);
	}
	if (q && begin && !(asked & CL_QUEUE_ON_DEVICE))
		remember(q, d, &about, queue_flags(asked));
	api_leave();
	return q;
}

/* ---- what the program must not see ------------------------------------------------------ */

static cl_int own_properties(const struct cl_queue *q, size_t size, void *to, size_t *needed)
{
	size_t bytes = q->property_words * sizeof *q->property;

	if (to && size < bytes)
		return CL_INVALID_VALUE;
	for (u32 i = 0; to && i < q->property_words; i++)
		((cl_queue_properties *)to)[i] = q->property[i];
	if (needed)
		*needed = bytes;
	return CL_SUCCESS;
}

cl_int w_clGetCommandQueueInfo(cl_command_queue q, cl_command_queue_info what, size_t size, void *to, size_t *needed)
{
	const struct cl_queue *known = opencl_queue(q);
	cl_int r;

	if (known && known->forced && what == CL_QUEUE_PROPERTIES_ARRAY)
		return own_properties(known, size, to, needed);
	r = cl.clGetCommandQueueInfo(q, what, size, to, needed);
	if (r == CL_SUCCESS && known && known->forced && what == CL_QUEUE_PROPERTIES && to)
		*(cl_command_queue_properties *)to &= ~(cl_command_queue_properties)CL_QUEUE_PROFILING_ENABLE;
	return r;
}

cl_int w_clGetEventProfilingInfo(cl_event e, cl_profiling_info what, size_t size, void *to, size_t *needed)
{
	const struct cl_queue *known;
	cl_command_queue q = NULL;

	if (e && cl.clGetEventInfo(e, CL_EVENT_COMMAND_QUEUE, sizeof q, &q, NULL) == CL_SUCCESS && (known = opencl_queue(q)) && known->forced)
		return CL_PROFILING_INFO_NOT_AVAILABLE;
	return cl.clGetEventProfilingInfo(e, what, size, to, needed);
}

/* ---- waits ----------------------------------------------------------------------------- */

cl_int w_clFinish(cl_command_queue q)
{
	u64 begin = api_enter();
	cl_int r = cl.clFinish(q);

	if (begin)
		call_note(begin, &(struct call){ CALL_WAIT, NAMED("clFinish"), .error = r }, NULL, CALLER());
	api_leave();
	return r;
}

cl_int w_clFlush(cl_command_queue q)
{
	u64 begin = api_enter();
	cl_int r = cl.clFlush(q);

	if (begin)
		call_note(begin, &(struct call){ CALL_OTHER, NAMED("clFlush"), .error = r }, NULL, CALLER());
	api_leave();
	return r;
}

cl_int w_clWaitForEvents(cl_uint n, const cl_event *list)
{
	u64 begin = api_enter();
	cl_int r = cl.clWaitForEvents(n, list);
	struct args a = { 0 };

	if (begin) {
		args_number(&a, "events", n);
		call_note(begin, &(struct call){ CALL_WAIT, NAMED("clWaitForEvents"), .error = r }, &a, CALLER());
	}
	api_leave();
	return r;
}

/*
 * opencl_queue.c - devices and queues, calls that wait for them, and calls that they wait for.
 *
 * Every queue is made with profiling on, so that its work has the device's own times. A program that did not ask for that
 * must not see it: not in the queue's properties, nor by getting times of an event.
 *
 * A device's clock drifts against the host's, so where it can be read it is read again and again: when the device is first
 * seen, on calls that enqueue or wait, and when a queue is released. Seldom, because it may be slow.
 */
#include "opencl.h"

enum { CLOCK_FIRST_NS = 4000000, CLOCK_EVERY_NS = 100000000 };

/* A device's clock, if it can be read. */
struct cl_timer {
	cl_device_id device;
	u64 id;                         /* of the device */
	u64 last, every;                /* when it was read (ns), and how long it then is good for */
	u32 busy;
};

static struct handles devices, timers, queues; /* devices: -> number */
static struct pool queue_pool = POOL(struct cl_queue), timer_pool = POOL(struct cl_timer);

/* ---- clocks ------------------------------------------------------------------------------ */

static u64 coarse_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (u64)t.tv_sec * 1000000000ull + (u64)t.tv_nsec;
}

/* Twice, because the first call finds nothing in the caches; the shorter one says more. */
static void read_clock(const struct cl_timer *t)
{
	struct rec_device_clock best = { 0 };

	for (u32 i = 0; i < 2; i++) {
		cl_ulong host, device;
		u64 before = ticks(), after;

		if (cl.clGetDeviceAndHostTimer(t->device, &device, &host) != CL_SUCCESS)
			return;
		after = ticks();
		if (!i || after - before < best.after - best.before)
			best = (struct rec_device_clock){ .device_id = t->id, .before = before, .after = after, .device = device };
	}
	device_clock_note(&best);
}

/* At first it is soon read again, so that short runs have more than one reading. */
void opencl_read_clock(struct cl_timer *t, bool is_end)
{
	u64 now;

	if (likely(!t))
		return;
	now = coarse_ns();
	if (likely(now - __atomic_load_n(&t->last, __ATOMIC_RELAXED) < (is_end ? CLOCK_FIRST_NS : t->every)) ||
	    __atomic_exchange_n(&t->busy, 1, __ATOMIC_ACQUIRE))
		return;
	t->every = t->every * 2 < CLOCK_EVERY_NS ? t->every * 2 : CLOCK_EVERY_NS;
	__atomic_store_n(&t->last, now, __ATOMIC_RELAXED);
	read_clock(t);
	__atomic_store_n(&t->busy, 0, __ATOMIC_RELEASE);
}

static void add_timer(cl_device_id d, u64 id)
{
	struct cl_timer *t = pool_get(&timer_pool);

	if (!t)
		return;
	*t = (struct cl_timer){ .device = d, .id = id, .last = coarse_ns(), .every = CLOCK_FIRST_NS };
	read_clock(t);
	handles_put(&timers, (u64)d, t);
}

/* A driver of an older version may have a table of functions that ends before this one. */
static bool has_timer(cl_device_id d, const char *version)
{
	cl_ulong device, host;

	if (!cl.clGetDeviceAndHostTimer || !text_starts(version, "OpenCL ") || text_starts(version, "OpenCL 1.") || text_starts(version, "OpenCL 2.0"))
		return false;
	return cl.clGetDeviceAndHostTimer(d, &device, &host) == CL_SUCCESS;
}

/* ---- devices --------------------------------------------------------------------------- */

static void info_text(cl_device_id d, cl_device_info what, char *to, size_t size)
{
	to[0] = 0;
	if (cl.clGetDeviceInfo(d, what, size - 1, to, NULL) != CL_SUCCESS)
		to[0] = 0;
	to[size - 1] = 0;
}

static void tell_device(cl_device_id d, u64 id)
{
	char name[256], version[256];
	cl_device_type type = 0;
	cl_device_id parent = NULL;
	struct rec_device r = { .id = id };

	cl.clGetDeviceInfo(d, CL_DEVICE_TYPE, sizeof type, &type, NULL);
	info_text(d, CL_DEVICE_NAME, name, sizeof name);
	if (cl.clGetDeviceInfo(d, CL_DEVICE_PARENT_DEVICE, sizeof parent, &parent, NULL) == CL_SUCCESS && parent)
		text_append(name, sizeof name, ", sub-device");
	info_text(d, CL_DEVICE_VERSION, version, sizeof version);
	r.flags = type & CL_DEVICE_TYPE_CPU ? DEVICE_CPU | DEVICE_HOST_MEMORY : type & CL_DEVICE_TYPE_GPU ? DEVICE_GPU : 0;
	r.clock = has_timer(d, version) ? DEVICE_CLOCK_CALIBRATED : DEVICE_CLOCK_BOUNDED;
	device_note(&r, "OpenCL", name, version);
	if (r.clock == DEVICE_CLOCK_CALIBRATED)
		add_timer(d, id);
}

u64 opencl_device(cl_device_id d)
{
	u64 id = (u64)handles_find(&devices, (u64)d), first;

	if (id || !d)
		return id;
	id = device_number();
	first = (u64)handles_add(&devices, (u64)d, (void *)id);
	if (first == id)
		tell_device(d, id);
	return first;
}

/* ---- queues ---------------------------------------------------------------------------- */

static u64 tell_queue(u64 device, u32 flags)
{
	static u32 count;
	char name[32] = "queue ";
	struct rec_queue r = { .id = device_number(), .device = device, .flags = flags };

	text_number(name, sizeof name, __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED), 10);
	queue_note(&r, name);
	return r.id;
}

/*
 * One that was known is gone, if its handle comes again. One like it goes on in its place: some programs make a queue for every
 * kernel, and nobody wants to see thousands.
 */
static struct cl_queue *remember(cl_command_queue q, cl_device_id d, const struct cl_queue *about, u32 flags)
{
	struct cl_queue *known = handles_find(&queues, (u64)q);
	u64 device = opencl_device(d), id = known && known->device == device && known->out_of_order == !!(flags & QUEUE_OUT_OF_ORDER) ? known->id : 0;

	if (!device || (!known && !(known = pool_get(&queue_pool))))
		return NULL;
	*known = *about;
	known->out_of_order = flags & QUEUE_OUT_OF_ORDER;
	known->timer = handles_find(&timers, (u64)d);
	known->device = device;
	known->id = id ? id : tell_queue(device, flags);
	handles_put(&queues, (u64)q, known);
	return known;
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
	u64 begin = opencl_enter();
	struct cl_queue about = { .profiled = p & CL_QUEUE_PROFILING_ENABLE, .forced = begin && wants_times() && !(p & CL_QUEUE_PROFILING_ENABLE) };
	cl_command_queue q = cl.clCreateCommandQueue(c, d, about.forced ? p | CL_QUEUE_PROFILING_ENABLE : p, error);

	if (!q && about.forced) {
		about.forced = false;
		q = cl.clCreateCommandQueue(c, d, p, error);
	}
	if (q && begin)
		remember(q, d, &about, queue_flags(p));
	opencl_leave();
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

typedef cl_command_queue create_queue(cl_context, cl_device_id, const cl_queue_properties *, cl_int *);

static cl_command_queue create(create_queue *real, cl_context c, cl_device_id d, const cl_queue_properties *list, cl_int *error)
{
	u64 begin = opencl_enter();
	cl_queue_properties ours[34];
	cl_command_queue_properties asked = 0;
	struct cl_queue about = { 0 };
	cl_command_queue q;

	about.forced = begin && with_profiling(list, &about, ours, 34, &asked);
	q = real(c, d, about.forced ? ours : list, error);
	if (!q && about.forced) {
		about.forced = false;
		q = real(c, d, list, error);
	}
	if (q && begin && !(asked & CL_QUEUE_ON_DEVICE))
		remember(q, d, &about, queue_flags(asked));
	opencl_leave();
	return q;
}

cl_command_queue w_clCreateCommandQueueWithProperties(cl_context c, cl_device_id d, const cl_queue_properties *list, cl_int *error)
{
	return create(cl.clCreateCommandQueueWithProperties, c, d, list, error);
}

cl_command_queue w_clCreateCommandQueueWithPropertiesKHR(cl_context c, cl_device_id d, const cl_queue_properties_khr *list, cl_int *error)
{
	return create(cl.clCreateCommandQueueWithPropertiesKHR, c, d, list, error);
}

/* One that was made where we did not see it: it is as the program wants it. */
static struct cl_queue *adopt(cl_command_queue q)
{
	cl_device_id device = NULL;
	cl_command_queue_properties p = 0;

	if (cl.clGetCommandQueueInfo(q, CL_QUEUE_DEVICE, sizeof device, &device, NULL) != CL_SUCCESS ||
	    cl.clGetCommandQueueInfo(q, CL_QUEUE_PROPERTIES, sizeof p, &p, NULL) != CL_SUCCESS)
		return NULL;
	return remember(q, device, &(struct cl_queue){ .profiled = p & CL_QUEUE_PROFILING_ENABLE }, queue_flags(p));
}

struct cl_queue *opencl_queue(cl_command_queue q)
{
	struct cl_queue *known = handles_find(&queues, (u64)q);

	return known || !q ? known : adopt(q);
}

cl_int w_clReleaseCommandQueue(cl_command_queue q)
{
	u64 begin = opencl_enter();
	const struct cl_queue *known = begin ? handles_find(&queues, (u64)q) : NULL;
	cl_int r;

	if (known)
		opencl_read_clock(known->timer, true);
	r = cl.clReleaseCommandQueue(q);
	opencl_leave();
	return r;
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
	const struct cl_queue *known = handles_find(&queues, (u64)q);
	bool hides = known && known->forced;
	cl_int r;

	opencl_enter();
	if (hides && what == CL_QUEUE_PROPERTIES_ARRAY) {
		r = own_properties(known, size, to, needed);
	} else {
		r = cl.clGetCommandQueueInfo(q, what, size, to, needed);
		if (hides && r == CL_SUCCESS && what == CL_QUEUE_PROPERTIES && to)
			*(cl_command_queue_properties *)to &= ~(cl_command_queue_properties)CL_QUEUE_PROFILING_ENABLE;
	}
	opencl_leave();
	return r;
}

static const struct cl_queue *queue_of(cl_event e)
{
	cl_command_queue q = NULL;

	return e && cl.clGetEventInfo(e, CL_EVENT_COMMAND_QUEUE, sizeof q, &q, NULL) == CL_SUCCESS ? handles_find(&queues, (u64)q) : NULL;
}

cl_int w_clGetEventProfilingInfo(cl_event e, cl_profiling_info what, size_t size, void *to, size_t *needed)
{
	const struct cl_queue *known;
	cl_int r;

	opencl_enter();
	known = queue_of(e);
	r = known && known->forced ? CL_PROFILING_INFO_NOT_AVAILABLE : cl.clGetEventProfilingInfo(e, what, size, to, needed);
	opencl_leave();
	return r;
}

/* ---- waits ----------------------------------------------------------------------------- */

static void waited(const struct cl_queue *q)
{
	if (q)
		opencl_read_clock(q->timer, false);
}

cl_int w_clFinish(cl_command_queue q)
{
	u64 begin = opencl_enter();
	cl_int r = cl.clFinish(q);

	if (begin) {
		call_note(begin, &(struct call){ CALL_WAIT, NAMED("clFinish"), .error = r }, NULL, CALLER());
		waited(handles_find(&queues, (u64)q));
	}
	opencl_leave();
	return r;
}

cl_int w_clFlush(cl_command_queue q)
{
	u64 begin = opencl_enter();
	cl_int r = cl.clFlush(q);

	if (begin)
		call_note(begin, &(struct call){ CALL_OTHER, NAMED("clFlush"), .error = r }, NULL, CALLER());
	opencl_leave();
	return r;
}

cl_int w_clWaitForEvents(cl_uint n, const cl_event *list)
{
	u64 begin = opencl_enter();
	cl_int r = cl.clWaitForEvents(n, list);
	struct args a = { 0 };

	if (begin) {
		args_number(&a, "events", n);
		call_note(begin, &(struct call){ CALL_WAIT, NAMED("clWaitForEvents"), .error = r }, &a, CALLER());
		if (r == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
			opencl_wait_failed(n, list);
		if (timers.table && n && list)
			waited(queue_of(list[0]));
	}
	opencl_leave();
	return r;
}

/* ---- what the device waits for ------------------------------------------------------------ */

cl_event w_clCreateUserEvent(cl_context c, cl_int *error)
{
	u64 begin = opencl_enter();
	cl_int r = CL_SUCCESS;
	cl_event e = cl.clCreateUserEvent(c, &r);

	if (error)
		*error = r;
	if (begin)
		call_note(begin, &(struct call){ CALL_OTHER, NAMED("clCreateUserEvent"), .error = r }, NULL, CALLER());
	opencl_leave();
	return e;
}

cl_int w_clSetUserEventStatus(cl_event e, cl_int status)
{
	u64 begin = opencl_enter();
	cl_int r = cl.clSetUserEventStatus(e, status);
	struct args a = { 0 };

	if (begin) {
		args_signed(&a, "status", status);
		call_note(begin, &(struct call){ CALL_OTHER, NAMED("clSetUserEventStatus"), .error = r }, &a, CALLER());
	}
	opencl_leave();
	return r;
}

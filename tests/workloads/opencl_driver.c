// cc: -shared -fPIC -pthread -Wl,-Bsymbolic,-z,nodelete
/*
 * opencl_driver.c - an OpenCL driver for what PoCL does not do: clocks that drift, devices that fail, unified memory, pipes, imports.
 *
 * It computes nothing but copies. A kernel's name says what becomes of it:
 *
 *   busy_N     runs for N us                   refuse_N   cannot be enqueued: error -N
 *   fail_N     its event ends with status -N   lost       the device is gone, with all that is enqueued or will be
 *   held       runs until somebody calls clFinish
 *
 * A buffer of more than 1 GiB cannot be made, which the context is notified of, nor a program be built with the option -broken. There are three devices, the first of which has a part; each has a clock of its own, and clHostTimeSTANDIN()
 * knows what CLOCK_MONOTONIC was when it showed a time. A loader finds the driver by OCL_ICD_VENDORS; it can be opened itself, too.
 */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include "opencl_driver.h"
#include <CL/cl_icd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES_MAX (1ull << 30)

struct object { const struct _cl_icd_dispatch *dispatch; int references; };

static const struct _cl_icd_dispatch dispatch;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;

static void *new_object(size_t bytes)
{
	struct object *o = calloc(1, bytes);

	*o = (struct object){ &dispatch, 1 };
	return o;
}

static cl_int retain(void *object)
{
	__atomic_add_fetch(&((struct object *)object)->references, 1, __ATOMIC_SEQ_CST);
	return CL_SUCCESS;
}

static bool release(void *object)
{
	return __atomic_sub_fetch(&((struct object *)object)->references, 1, __ATOMIC_SEQ_CST) == 0;
}

static cl_int give(const void *value, size_t bytes, size_t size, void *to, size_t *needed)
{
	if (needed)
		*needed = bytes;
	if (to && size < bytes)
		return CL_INVALID_VALUE;
	if (to)
		memcpy(to, value, bytes);
	return CL_SUCCESS;
}

#define GIVE(type, value) give(&(type){ value }, sizeof(type), size, to, needed)
#define GIVE_TEXT(text) give(text, strlen(text) + 1, size, to, needed)

/* ---- devices and their clocks ------------------------------------------------------------- */

struct _cl_platform_id { struct object o; };

struct _cl_device_id {
	struct object o;
	const char *name, *version;
	cl_device_id parent;
	double rate;                    /* seconds of its clock in a second of the host's */
	long long ahead;
	bool works, lost, finishing;
	struct _cl_event *first, **last;        /* what is enqueued */
	long long timer_reads;
};

static struct _cl_platform_id platform = { { &dispatch, 1 } };
static struct _cl_device_id devices[4] = {
	{ .o = { &dispatch, 1 }, .name = "steady", .version = "OpenCL 1.2 stand-in", .rate = 1, .ahead = 1000000000 },
	{ .o = { &dispatch, 1 }, .name = "fast", .version = "OpenCL 3.0 stand-in", .rate = 1.0002, .ahead = 7 * 3600000000000ll },
	{ .o = { &dispatch, 1 }, .name = "slow", .version = "OpenCL 2.1 stand-in", .rate = 0.9997, .ahead = -2000000000 },
	{ .o = { &dispatch, 1 }, .name = "steady", .version = "OpenCL 1.2 stand-in", .rate = 1, .ahead = 1000000000, .parent = &devices[0] },
};
static long long began;

static long long host_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static cl_ulong device_now(const struct _cl_device_id *d)
{
	return (cl_ulong)(began + d->ahead + (long long)((double)(host_now() - began) * d->rate));
}

static cl_ulong CL_API_CALL clHostTimeSTANDIN(cl_device_id d, cl_ulong shown)
{
	return (cl_ulong)(began + (long long)((double)((long long)shown - d->ahead - began) / d->rate));
}

static cl_ulong CL_API_CALL clTimerReadsSTANDIN(cl_device_id d)
{
	return (cl_ulong)__atomic_load_n(&d->timer_reads, __ATOMIC_SEQ_CST);
}

/* A driver of OpenCL 1.2 has no such function: a call goes who knows where. */
cl_int clGetDeviceAndHostTimer(cl_device_id d, cl_ulong *device, cl_ulong *host)
{
	if (strstr(d->version, "1.2"))
		abort();
	__atomic_add_fetch(&d->timer_reads, 1, __ATOMIC_SEQ_CST);
	*device = device_now(d);
	*host = (cl_ulong)host_now();
	return CL_SUCCESS;
}

static void __attribute__((constructor)) start(void)
{
	began = host_now();
	for (unsigned i = 0; i < sizeof devices / sizeof *devices; i++)
		devices[i].last = &devices[i].first;
}

cl_int clIcdGetPlatformIDsKHR(cl_uint n, cl_platform_id *list, cl_uint *count)
{
	if (list && n)
		list[0] = &platform;
	if (count)
		*count = 1;
	return CL_SUCCESS;
}

cl_int clGetPlatformIDs(cl_uint n, cl_platform_id *list, cl_uint *count)
{
	return clIcdGetPlatformIDsKHR(n, list, count);
}

cl_int clGetPlatformInfo(cl_platform_id p, cl_platform_info what, size_t size, void *to, size_t *needed)
{
	(void)p;
	switch (what) {
	case CL_PLATFORM_EXTENSIONS: return GIVE_TEXT("cl_khr_icd");
	case CL_PLATFORM_ICD_SUFFIX_KHR: return GIVE_TEXT("STANDIN");
	case CL_PLATFORM_VERSION: return GIVE_TEXT("OpenCL 3.0 stand-in");
	case CL_PLATFORM_PROFILE: return GIVE_TEXT("FULL_PROFILE");
	case CL_PLATFORM_NAME: return GIVE_TEXT("stand-in");
	case CL_PLATFORM_VENDOR: return GIVE_TEXT("mlprof's tests");
	}
	return CL_INVALID_VALUE;
}

cl_int clGetDeviceIDs(cl_platform_id p, cl_device_type type, cl_uint n, cl_device_id *list, cl_uint *count)
{
	(void)p, (void)type;
	for (cl_uint i = 0; list && i < n && i < 3; i++)
		list[i] = &devices[i];
	if (count)
		*count = 3;
	return CL_SUCCESS;
}

cl_int clGetDeviceInfo(cl_device_id d, cl_device_info what, size_t size, void *to, size_t *needed)
{
	switch (what) {
	case CL_DEVICE_TYPE: return GIVE(cl_device_type, CL_DEVICE_TYPE_GPU);
	case CL_DEVICE_NAME: return GIVE_TEXT(d->name);
	case CL_DEVICE_VERSION: return GIVE_TEXT(d->version);
	case CL_DEVICE_PLATFORM: return GIVE(cl_platform_id, &platform);
	case CL_DEVICE_PARENT_DEVICE: return GIVE(cl_device_id, d->parent);
	}
	return CL_INVALID_VALUE;
}

cl_int clCreateSubDevices(cl_device_id d, const cl_device_partition_property *how, cl_uint n, cl_device_id *list, cl_uint *count)
{
	(void)how;
	if (d != &devices[0])
		return CL_DEVICE_PARTITION_FAILED;
	if (list && n)
		list[0] = &devices[3];
	if (count)
		*count = 1;
	return CL_SUCCESS;
}

/* ---- contexts, queues --------------------------------------------------------------------- */

struct _cl_context {
	struct object o;
	cl_device_id device[8];
	cl_uint devices;
	void (CL_CALLBACK *notify)(const char *, const void *, size_t, void *);
	void *user;
};

struct _cl_command_queue { struct object o; cl_context context; cl_device_id device; cl_command_queue_properties properties; };

cl_context clCreateContext(const cl_context_properties *l, cl_uint n, const cl_device_id *list,
			   void (CL_CALLBACK *f)(const char *, const void *, size_t, void *), void *user, cl_int *error)
{
	cl_context c = new_object(sizeof *c);

	(void)l;
	c->notify = f;
	c->user = user;
	c->devices = n < 8 ? n : 8;
	memcpy(c->device, list, c->devices * sizeof *list);
	if (error)
		*error = CL_SUCCESS;
	return c;
}

cl_int clRetainContext(cl_context c) { return retain(c); }

cl_int clReleaseContext(cl_context c)
{
	if (release(c))
		free(c);
	return CL_SUCCESS;
}

/* As PoCL does, it says the parents of sub-devices. */
cl_int clGetContextInfo(cl_context c, cl_context_info what, size_t size, void *to, size_t *needed)
{
	cl_device_id whole[8];

	for (cl_uint i = 0; i < c->devices; i++)
		whole[i] = c->device[i]->parent ? c->device[i]->parent : c->device[i];
	switch (what) {
	case CL_CONTEXT_DEVICES: return give(whole, c->devices * sizeof *whole, size, to, needed);
	case CL_CONTEXT_REFERENCE_COUNT: return GIVE(cl_uint, (cl_uint)c->o.references);
	}
	return CL_INVALID_VALUE;
}

static void *worker(void *device);

cl_command_queue clCreateCommandQueue(cl_context c, cl_device_id d, cl_command_queue_properties p, cl_int *error)
{
	cl_command_queue q = new_object(sizeof *q);
	pthread_t thread;

	q->context = c;
	q->device = d;
	q->properties = p;
	if (!__atomic_exchange_n(&d->works, true, __ATOMIC_SEQ_CST) && pthread_create(&thread, NULL, worker, d) == 0)
		pthread_detach(thread);
	if (error)
		*error = CL_SUCCESS;
	return q;
}

cl_command_queue clCreateCommandQueueWithProperties(cl_context c, cl_device_id d, const cl_queue_properties *l, cl_int *error)
{
	cl_command_queue_properties p = 0;

	for (; l && *l; l += 2)
		if (*l == CL_QUEUE_PROPERTIES)
			p = l[1];
	return clCreateCommandQueue(c, d, p, error);
}

cl_int clRetainCommandQueue(cl_command_queue q) { return retain(q); }

cl_int clReleaseCommandQueue(cl_command_queue q)
{
	if (release(q))
		free(q);
	return CL_SUCCESS;
}

cl_int clGetCommandQueueInfo(cl_command_queue q, cl_command_queue_info what, size_t size, void *to, size_t *needed)
{
	switch (what) {
	case CL_QUEUE_PROPERTIES: return GIVE(cl_command_queue_properties, q->properties);
	case CL_QUEUE_DEVICE: return GIVE(cl_device_id, q->device);
	case CL_QUEUE_CONTEXT: return GIVE(cl_context, q->context);
	}
	return CL_INVALID_VALUE;
}

/* ---- memory ------------------------------------------------------------------------------- */

struct _cl_mem {
	struct object o;
	cl_context context;
	size_t bytes;
	char *data;
	void (CL_CALLBACK *gone)(cl_mem, void *);
	void *user;
};

static cl_mem new_memory(cl_context c, size_t bytes, cl_int *error)
{
	cl_mem m = NULL;
	cl_int r = bytes > BYTES_MAX ? CL_MEM_OBJECT_ALLOCATION_FAILURE : bytes ? CL_SUCCESS : CL_INVALID_BUFFER_SIZE;

	if (r != CL_SUCCESS && c->notify)
		c->notify("no memory", &bytes, sizeof bytes, c->user);
	if (r == CL_SUCCESS) {
		m = new_object(sizeof *m);
		m->context = c;
		m->bytes = bytes;
		m->data = calloc(1, bytes);
	}
	if (error)
		*error = r;
	return m;
}

cl_mem clCreateBuffer(cl_context c, cl_mem_flags f, size_t n, void *p, cl_int *error)
{
	(void)f, (void)p;
	return new_memory(c, n, error);
}

/* Who gives us a handle owns what it stands for. */
cl_mem clCreateBufferWithProperties(cl_context c, const cl_mem_properties *l, cl_mem_flags f, size_t n, void *p, cl_int *error)
{
	(void)l, (void)f, (void)p;
	return new_memory(c, n, error);
}

cl_mem clImportMemoryARM(cl_context c, cl_mem_flags f, const cl_import_properties_arm *l, void *p, size_t n, cl_int *error)
{
	(void)f, (void)l, (void)p;
	return new_memory(c, n, error);
}

cl_mem clCreateFromGLBuffer(cl_context c, cl_mem_flags f, cl_GLuint buffer, cl_int *error)
{
	(void)f;
	return new_memory(c, buffer, error);
}

cl_mem clCreatePipe(cl_context c, cl_mem_flags f, cl_uint size, cl_uint packets, const cl_pipe_properties *l, cl_int *error)
{
	(void)f, (void)l;
	return new_memory(c, (size_t)size * packets, error);
}

cl_int clRetainMemObject(cl_mem m) { return retain(m); }

cl_int clReleaseMemObject(cl_mem m)
{
	if (!release(m))
		return CL_SUCCESS;
	if (m->gone)
		m->gone(m, m->user);
	free(m->data);
	free(m);
	return CL_SUCCESS;
}

cl_int clSetMemObjectDestructorCallback(cl_mem m, void (CL_CALLBACK *f)(cl_mem, void *), void *user)
{
	m->gone = f;
	m->user = user;
	return CL_SUCCESS;
}

cl_int clGetMemObjectInfo(cl_mem m, cl_mem_info what, size_t size, void *to, size_t *needed)
{
	switch (what) {
	case CL_MEM_SIZE: return GIVE(size_t, m->bytes);
	case CL_MEM_CONTEXT: return GIVE(cl_context, m->context);
	}
	return CL_INVALID_VALUE;
}

cl_int clGetImageInfo(cl_mem m, cl_image_info what, size_t size, void *to, size_t *needed)
{
	(void)m, (void)what, (void)size, (void)to, (void)needed;
	return CL_INVALID_MEM_OBJECT;
}

/* ---- programs and kernels ----------------------------------------------------------------- */

struct _cl_program { struct object o; bool broken; };
struct _cl_kernel { struct object o; char name[2048]; int number; };

cl_program clCreateProgramWithSource(cl_context c, cl_uint n, const char **text, const size_t *length, cl_int *error)
{
	(void)c, (void)n, (void)text, (void)length;
	if (error)
		*error = CL_SUCCESS;
	return new_object(sizeof(struct _cl_program));
}

cl_int clBuildProgram(cl_program p, cl_uint n, const cl_device_id *list, const char *options, void (CL_CALLBACK *f)(cl_program, void *), void *user)
{
	(void)n, (void)list;
	if (f)
		f(p, user);
	p->broken = options && !strcmp(options, "-broken");
	return p->broken ? CL_BUILD_PROGRAM_FAILURE : CL_SUCCESS;
}

cl_int clGetProgramBuildInfo(cl_program p, cl_device_id d, cl_program_build_info what, size_t size, void *to, size_t *needed)
{
	char log[4096] = "";

	(void)d, (void)what;
	for (int i = 0; p->broken && i < 20; i++)
		strcat(log, "k.cl:1:1: warning: this is only a warning\n");
	for (int i = 0; p->broken && i < 20; i++)
		strcat(log, i ? "k.cl:3:1: error: another one\n" : "k.cl:2:1: error: the first one\n");
	return GIVE_TEXT(log);
}

cl_int clGetProgramInfo(cl_program p, cl_program_info what, size_t size, void *to, size_t *needed)
{
	(void)p;
	return what == CL_PROGRAM_DEVICES ? GIVE(cl_device_id, &devices[0]) : CL_INVALID_VALUE;
}

cl_int clReleaseProgram(cl_program p)
{
	if (release(p))
		free(p);
	return CL_SUCCESS;
}

cl_kernel clCreateKernel(cl_program p, const char *name, cl_int *error)
{
	cl_kernel k = new_object(sizeof *k);
	const char *number = strchr(name, '_');

	(void)p;
	strncpy(k->name, name, sizeof k->name - 1);
	k->number = number ? atoi(number + 1) : 0;
	if (error)
		*error = CL_SUCCESS;
	return k;
}

cl_int clReleaseKernel(cl_kernel k)
{
	if (release(k))
		free(k);
	return CL_SUCCESS;
}

cl_int clSetKernelArg(cl_kernel k, cl_uint n, size_t bytes, const void *value)
{
	(void)k, (void)n, (void)bytes, (void)value;
	return CL_SUCCESS;
}

cl_int clGetKernelInfo(cl_kernel k, cl_kernel_info what, size_t size, void *to, size_t *needed)
{
	return what == CL_KERNEL_FUNCTION_NAME ? GIVE_TEXT(k->name) : CL_INVALID_VALUE;
}

/* ---- events ------------------------------------------------------------------------------- */

struct callback { struct callback *next; void (CL_CALLBACK *f)(cl_event, cl_int, void *); void *user; };

struct _cl_event {
	struct object o;
	cl_command_queue queue;
	struct _cl_event *next;
	cl_int status;
	cl_ulong stamp[4];              /* queued, submitted, start, end */
	struct callback *callbacks;

	/* what there is to do */
	int busy_us;
	cl_int ends_with;
	bool loses_device, is_held;
	const void *from;
	void *to;
	size_t bytes, pattern;          /* pattern: bytes of what it is filled with */
};

cl_int clRetainEvent(cl_event e) { return retain(e); }

cl_int clReleaseEvent(cl_event e)
{
	if (release(e))
		free(e);
	return CL_SUCCESS;
}

static cl_int wait_for(cl_event e)
{
	cl_int status;

	pthread_mutex_lock(&lock);
	while (e->status > 0)
		pthread_cond_wait(&change, &lock);
	status = e->status;
	pthread_mutex_unlock(&lock);
	return status;
}

cl_int clWaitForEvents(cl_uint n, const cl_event *list)
{
	cl_int r = CL_SUCCESS;

	for (cl_uint i = 0; i < n; i++)
		if (wait_for(list[i]) < 0)
			r = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
	return r;
}

cl_int clGetEventInfo(cl_event e, cl_event_info what, size_t size, void *to, size_t *needed)
{
	switch (what) {
	case CL_EVENT_COMMAND_QUEUE: return GIVE(cl_command_queue, e->queue);
	case CL_EVENT_COMMAND_EXECUTION_STATUS: return GIVE(cl_int, e->status);
	case CL_EVENT_REFERENCE_COUNT: return GIVE(cl_uint, (cl_uint)e->o.references);
	}
	return CL_INVALID_VALUE;
}

cl_int clGetEventProfilingInfo(cl_event e, cl_profiling_info what, size_t size, void *to, size_t *needed)
{
	if (!(e->queue->properties & CL_QUEUE_PROFILING_ENABLE) || e->status != CL_COMPLETE)
		return CL_PROFILING_INFO_NOT_AVAILABLE;
	return what >= CL_PROFILING_COMMAND_QUEUED && what <= CL_PROFILING_COMMAND_END ? GIVE(cl_ulong, e->stamp[what - CL_PROFILING_COMMAND_QUEUED])
										       : CL_INVALID_VALUE;
}

cl_int clSetEventCallback(cl_event e, cl_int when, void (CL_CALLBACK *f)(cl_event, cl_int, void *), void *user)
{
	struct callback *c = malloc(sizeof *c);
	cl_int status;

	(void)when;
	pthread_mutex_lock(&lock);
	status = e->status;
	if (status > 0) {
		*c = (struct callback){ e->callbacks, f, user };
		e->callbacks = c;
	}
	pthread_mutex_unlock(&lock);
	if (status > 0)
		return CL_SUCCESS;
	free(c);
	f(e, status, user);
	return CL_SUCCESS;
}

/* ---- the device at work ------------------------------------------------------------------- */

static void run(cl_event e)
{
	long long until = host_now() + e->busy_us * 1000ll;

	for (size_t i = 0; e->pattern && i < e->bytes; i++)
		((char *)e->to)[i] = ((const char *)e->from)[i % e->pattern];
	if (!e->pattern && e->bytes)
		memcpy(e->to, e->from, e->bytes);
	while (host_now() < until || (e->is_held && !__atomic_load_n(&e->queue->device->finishing, __ATOMIC_ACQUIRE)))
		;
}

static void finish(cl_event e, cl_int status)
{
	struct callback *c, *next;

	pthread_mutex_lock(&lock);
	e->status = status;
	c = e->callbacks;
	pthread_mutex_unlock(&lock);
	for (; c; c = next) {
		next = c->next;
		c->f(e, status, c->user);
		free(c);
	}
	if (e->pattern)
		free((void *)e->from);
	pthread_mutex_lock(&lock);
	e->queue->device->first = e->next;
	if (!e->next)
		e->queue->device->last = &e->queue->device->first;
	pthread_cond_broadcast(&change);
	pthread_mutex_unlock(&lock);
	clReleaseCommandQueue(e->queue);
	clReleaseEvent(e);
}

static void *worker(void *device)
{
	cl_device_id d = device;

	for (;;) {
		cl_event e;

		pthread_mutex_lock(&lock);
		while (!d->first)
			pthread_cond_wait(&change, &lock);
		e = d->first;
		pthread_mutex_unlock(&lock);
		e->stamp[2] = device_now(d);
		if (!d->lost)
			run(e);
		e->stamp[3] = device_now(d);
		d->lost = d->lost || e->loses_device;
		finish(e, d->lost ? CL_DEVICE_NOT_AVAILABLE : e->ends_with);
	}
	return NULL;
}

static cl_int enqueue(cl_command_queue q, struct _cl_event about, bool blocking, cl_uint n, const cl_event *list, cl_event *event)
{
	cl_event e;
	cl_int r = CL_SUCCESS;

	if (!q)
		return CL_INVALID_COMMAND_QUEUE;
	if (q->device->lost)
		return CL_DEVICE_NOT_AVAILABLE;
	if (clWaitForEvents(n, list) != CL_SUCCESS)
		return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
	e = new_object(sizeof *e);
	about.o = e->o;
	*e = about;
	e->queue = q;
	e->status = CL_QUEUED;
	e->stamp[0] = device_now(q->device);
	e->stamp[1] = device_now(q->device);
	retain(q);
	e->o.references = 1 + (event != NULL) + blocking;
	if (event)
		*event = e;
	pthread_mutex_lock(&lock);
	*q->device->last = e;
	q->device->last = &e->next;
	pthread_cond_broadcast(&change);
	pthread_mutex_unlock(&lock);
	if (blocking) {
		r = wait_for(e);
		clReleaseEvent(e);
	}
	return r;
}

#define WAIT_LIST cl_uint n, const cl_event *list, cl_event *event

cl_int clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint dim, const size_t *offset, const size_t *global, const size_t *local, WAIT_LIST)
{
	struct _cl_event about = { .loses_device = !strcmp(k->name, "lost"), .is_held = !strcmp(k->name, "held") };

	(void)dim, (void)offset, (void)global, (void)local;
	if (!strncmp(k->name, "refuse_", 7))
		return -k->number;
	if (!strncmp(k->name, "busy_", 5))
		about.busy_us = k->number;
	if (!strncmp(k->name, "fail_", 5))
		about.ends_with = -k->number;
	return enqueue(q, about, false, n, list, event);
}

cl_int clEnqueueReadBuffer(cl_command_queue q, cl_mem m, cl_bool b, size_t at, size_t bytes, void *p, WAIT_LIST)
{
	return enqueue(q, (struct _cl_event){ .from = m->data + at, .to = p, .bytes = bytes }, b, n, list, event);
}

cl_int clEnqueueWriteBuffer(cl_command_queue q, cl_mem m, cl_bool b, size_t at, size_t bytes, const void *p, WAIT_LIST)
{
	return enqueue(q, (struct _cl_event){ .from = p, .to = m->data + at, .bytes = bytes }, b, n, list, event);
}

cl_int clEnqueueMarkerWithWaitList(cl_command_queue q, WAIT_LIST)
{
	return enqueue(q, (struct _cl_event){ 0 }, false, n, list, event);
}

cl_int clEnqueueMarker(cl_command_queue q, cl_event *event) { return clEnqueueMarkerWithWaitList(q, 0, NULL, event); }
cl_int clEnqueueBarrier(cl_command_queue q) { return clEnqueueMarkerWithWaitList(q, 0, NULL, NULL); }
cl_int clEnqueueWaitForEvents(cl_command_queue q, cl_uint n, const cl_event *list) { return clEnqueueMarkerWithWaitList(q, n, list, NULL); }

cl_int clFlush(cl_command_queue q)
{
	return q->device->lost ? CL_DEVICE_NOT_AVAILABLE : CL_SUCCESS;
}

cl_int clFinish(cl_command_queue q)
{
	__atomic_store_n(&q->device->finishing, true, __ATOMIC_RELEASE);
	pthread_mutex_lock(&lock);
	while (q->device->first)
		pthread_cond_wait(&change, &lock);
	pthread_mutex_unlock(&lock);
	__atomic_store_n(&q->device->finishing, false, __ATOMIC_RELEASE);
	return clFlush(q);
}

/* ---- unified memory ----------------------------------------------------------------------- */

static void *usm(size_t bytes, cl_int *error)
{
	if (error)
		*error = bytes > BYTES_MAX ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
	return bytes > BYTES_MAX ? NULL : calloc(1, bytes);
}

void *clHostMemAllocINTEL(cl_context c, const cl_mem_properties_intel *l, size_t bytes, cl_uint align, cl_int *error)
{
	(void)c, (void)l, (void)align;
	return usm(bytes, error);
}

void *clDeviceMemAllocINTEL(cl_context c, cl_device_id d, const cl_mem_properties_intel *l, size_t bytes, cl_uint align, cl_int *error)
{
	(void)c, (void)d, (void)l, (void)align;
	return usm(bytes, error);
}

cl_int clMemFreeINTEL(cl_context c, void *p)
{
	if (!c)
		return CL_INVALID_CONTEXT;
	free(p);
	return CL_SUCCESS;
}

cl_int clMemBlockingFreeINTEL(cl_context c, void *p)
{
	for (cl_uint i = 0; c && i < c->devices; i++) {
		pthread_mutex_lock(&lock);
		while (c->device[i]->first)
			pthread_cond_wait(&change, &lock);
		pthread_mutex_unlock(&lock);
	}
	return clMemFreeINTEL(c, p);
}

cl_int clSetKernelArgMemPointerINTEL(cl_kernel k, cl_uint n, const void *p)
{
	(void)n;
	return k && p ? CL_SUCCESS : CL_INVALID_ARG_VALUE;
}

cl_int clEnqueueMemcpyINTEL(cl_command_queue q, cl_bool b, void *to, const void *from, size_t bytes, WAIT_LIST)
{
	return enqueue(q, (struct _cl_event){ .from = from, .to = to, .bytes = bytes }, b, n, list, event);
}

cl_int clEnqueueMemFillINTEL(cl_command_queue q, void *to, const void *pattern, size_t size, size_t bytes, WAIT_LIST)
{
	void *kept = malloc(size);

	memcpy(kept, pattern, size);
	return enqueue(q, (struct _cl_event){ .from = kept, .to = to, .bytes = bytes, .pattern = size }, false, n, list, event);
}

cl_int clEnqueueMigrateMemINTEL(cl_command_queue q, const void *p, size_t bytes, cl_mem_migration_flags f, WAIT_LIST)
{
	(void)p, (void)bytes, (void)f;
	return enqueue(q, (struct _cl_event){ 0 }, false, n, list, event);
}

cl_int clEnqueueMemAdviseINTEL(cl_command_queue q, const void *p, size_t bytes, cl_mem_advice_intel advice, WAIT_LIST)
{
	(void)p, (void)bytes, (void)advice;
	return enqueue(q, (struct _cl_event){ 0 }, false, n, list, event);
}

/* ---- memory of others --------------------------------------------------------------------- */

#define NOTHING(name, ...)                                                                             \
	cl_int name(cl_command_queue q, __VA_ARGS__, WAIT_LIST)                                        \
	{                                                                                              \
		(void)count, (void)objects;                                                            \
		return enqueue(q, (struct _cl_event){ 0 }, false, n, list, event);                     \
	}

NOTHING(clEnqueueAcquireGLObjects, cl_uint count, const cl_mem *objects)
NOTHING(clEnqueueReleaseGLObjects, cl_uint count, const cl_mem *objects)
NOTHING(clEnqueueAcquireExternalMemObjectsKHR, cl_uint count, const cl_mem *objects)
NOTHING(clEnqueueReleaseExternalMemObjectsKHR, cl_uint count, const cl_mem *objects)
NOTHING(clEnqueueMigrateMemObjectEXT, cl_uint count, const cl_mem *objects, cl_mem_migration_flags_ext f)
NOTHING(clEnqueueWaitSemaphoresKHR, cl_uint count, const cl_semaphore_khr *objects, const cl_semaphore_payload_khr *values)
NOTHING(clEnqueueSignalSemaphoresKHR, cl_uint count, const cl_semaphore_khr *objects, const cl_semaphore_payload_khr *values)

cl_int clEnqueueMemsetINTEL(cl_command_queue q, void *to, cl_int value, size_t bytes, WAIT_LIST)
{
	char byte = (char)value;

	return clEnqueueMemFillINTEL(q, to, &byte, 1, bytes, n, list, event);
}

/* ---- the way in --------------------------------------------------------------------------- */

void *clGetExtensionFunctionAddress(const char *name)
{
	static const struct { const char *name; void *function; } rows[] = {
#define ROW(name) { #name, (void *)name }
		ROW(clIcdGetPlatformIDsKHR), ROW(clHostMemAllocINTEL), ROW(clDeviceMemAllocINTEL), ROW(clMemFreeINTEL), ROW(clMemBlockingFreeINTEL),
		ROW(clSetKernelArgMemPointerINTEL), ROW(clEnqueueMemcpyINTEL), ROW(clEnqueueMemFillINTEL), ROW(clEnqueueMigrateMemINTEL),
		ROW(clEnqueueMemAdviseINTEL), ROW(clEnqueueMemsetINTEL), ROW(clImportMemoryARM), ROW(clEnqueueMigrateMemObjectEXT),
		ROW(clEnqueueAcquireExternalMemObjectsKHR), ROW(clEnqueueReleaseExternalMemObjectsKHR), ROW(clEnqueueWaitSemaphoresKHR),
		ROW(clEnqueueSignalSemaphoresKHR), ROW(clHostTimeSTANDIN), ROW(clTimerReadsSTANDIN),
		{ "clSharedMemAllocINTEL", (void *)clDeviceMemAllocINTEL },
		{ "clCreateBufferWithPropertiesINTEL", (void *)clCreateBufferWithProperties },
		{ "clCreateCommandQueueWithPropertiesKHR", (void *)clCreateCommandQueueWithProperties },
#undef ROW
	};

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
		if (!strcmp(rows[i].name, name))
			return rows[i].function;
	return NULL;
}

void *clGetExtensionFunctionAddressForPlatform(cl_platform_id p, const char *name)
{
	(void)p;
	return clGetExtensionFunctionAddress(name);
}

static const struct _cl_icd_dispatch dispatch = {
#define ROW(name) .name = name
	ROW(clGetPlatformIDs), ROW(clGetPlatformInfo), ROW(clGetDeviceIDs), ROW(clGetDeviceInfo), ROW(clCreateSubDevices), ROW(clCreateContext), ROW(clRetainContext),
	ROW(clReleaseContext), ROW(clGetContextInfo), ROW(clCreateCommandQueue), ROW(clCreateCommandQueueWithProperties), ROW(clRetainCommandQueue),
	ROW(clReleaseCommandQueue), ROW(clGetCommandQueueInfo), ROW(clCreateBuffer), ROW(clCreatePipe), ROW(clRetainMemObject), ROW(clReleaseMemObject),
	ROW(clGetMemObjectInfo), ROW(clGetImageInfo), ROW(clSetMemObjectDestructorCallback), ROW(clCreateProgramWithSource), ROW(clBuildProgram),
	ROW(clGetProgramInfo), ROW(clGetProgramBuildInfo), ROW(clReleaseProgram), ROW(clCreateKernel), ROW(clReleaseKernel), ROW(clSetKernelArg), ROW(clGetKernelInfo),
	ROW(clWaitForEvents), ROW(clGetEventInfo), ROW(clRetainEvent), ROW(clReleaseEvent), ROW(clGetEventProfilingInfo), ROW(clSetEventCallback),
	ROW(clFlush), ROW(clFinish), ROW(clEnqueueNDRangeKernel), ROW(clEnqueueReadBuffer), ROW(clEnqueueWriteBuffer),
	ROW(clEnqueueMarkerWithWaitList), ROW(clEnqueueMarker), ROW(clEnqueueBarrier), ROW(clEnqueueWaitForEvents), ROW(clGetExtensionFunctionAddress), ROW(clGetExtensionFunctionAddressForPlatform),
	ROW(clGetDeviceAndHostTimer), ROW(clCreateBufferWithProperties), ROW(clCreateFromGLBuffer), ROW(clEnqueueAcquireGLObjects),
	ROW(clEnqueueReleaseGLObjects),
#undef ROW
};

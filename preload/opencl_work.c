/*
 * opencl_work.c - everything that is enqueued, and its end.
 *
 *   enqueue: real call with the program's event, or with one of ours --> `work` and `call` records --> callback set
 *   end:     the driver calls us back, on a thread of its own or inside of clSetEventCallback --> times, `work_done`
 *
 * No reference to the event is kept, not even to our own: a driver keeps an event until its callbacks have run. The cl_kernel
 * is not touched later: the program may have released it. What could not be enqueued is work that failed, and so is what the
 * program learns of by a wait: not every driver calls back for that. Whoever takes a job's event tells its end, and gives it back.
 */
#include "opencl.h"

enum { FEW = 6 };

/* Memory that is gone when work has ended; 0: of no number that we know. */
struct leaving { void *at; u64 id; };

/* Work on its way. */
struct job {
	u64 work;
	u64 begin;                      /* of its call */
	cl_event event;                 /* NULL: its end is told */
	struct cl_queue *queue;
	u32 row;                        /* whose functions it was enqueued with */
	bool is_group;
	bool timed;                     /* its queue takes times; else its end is when we are called back */
	u32 frees;                      /* clEnqueueSVMFree: how much memory it frees */
	struct leaving *freed, few[FEW];        /* few: where that is said, if it is not more */
};

static struct pool jobs = POOL(struct job);

static void job_put(struct job *job)
{
	if (job->frees > FEW)
		sys_munmap(job->freed, job->frees * sizeof *job->freed);
	pool_put(&jobs, job);
}

/* ---- memory that it frees --------------------------------------------------------------- */

/* Taken before the call: afterwards an address may be another's already. */
static void take_memory(struct job *job, u32 n, void **pointers)
{
	struct leaving *to = !job || !pointers ? NULL : n <= FEW ? job->few : sys_memory(n * sizeof *to);

	if (!to)
		return;
	for (u32 i = 0; i < n; i++)
		to[i] = (struct leaving){ pointers[i], opencl_svm_take(pointers[i]) };
	job->freed = to;
	job->frees = n;
}

static void tell_freed(const struct job *job)
{
	for (u32 i = 0; i < job->frees; i++)
		if (job->freed[i].id)
			memory_gone_note(job->freed[i].id);
}

/* What failed freed nothing. */
static void keep_memory(const struct job *job)
{
	for (u32 i = 0; i < job->frees; i++)
		opencl_svm_put_back(job->freed[i].at, job->freed[i].id);
}

/* ---- the end ---------------------------------------------------------------------------- */

static bool read_times(cl_event e, struct rec_work_done *r)
{
	static const cl_profiling_info what[] = { CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT, CL_PROFILING_COMMAND_START,
						  CL_PROFILING_COMMAND_END };
	u64 *const to[] = { &r->queued, &r->submitted, &r->start, &r->end };
	cl_ulong t;

	for (u32 i = 0; i < 4; i++) {
		if (cl.clGetEventProfilingInfo(e, what[i], sizeof t, &t, NULL) != CL_SUCCESS)
			return false;
		*to[i] = t;
	}
	return true;
}

/*
 * PoCL says of a command buffer that it started when all its commands were over. What is certain is that they began after it
 * was queued, and in a queue that keeps order after what was before them.
 */
static void start_group(const struct cl_queue *q, struct rec_work_done *r)
{
	u64 before = q->out_of_order ? 0 : __atomic_load_n(&q->last_end, __ATOMIC_RELAXED), start = r->queued > before ? r->queued : before;

	if (start < r->start)
		r->start = start;
}

static void queue_ended(struct cl_queue *q, u64 end)
{
	u64 last = __atomic_load_n(&q->last_end, __ATOMIC_RELAXED);

	while (last < end && !__atomic_compare_exchange_n(&q->last_end, &last, end, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void tell_failed(const struct job *job, cl_int error)
{
	work_failed_note(job->work, error);
	keep_memory(job);
}

static void tell_end(cl_event e, const struct job *job)
{
	struct rec_work_done r = { .id = job->work, .status = DONE_UNTIMED };

	if (!job->timed)
		r = (struct rec_work_done){ .id = job->work, .status = DONE_OBSERVED, .start = job->begin, .end = ticks() };
	else if (opencl_is_there(job->row) && read_times(e, &r))
		r.status = DONE_TIMED;
	if (r.status == DONE_TIMED && job->is_group)
		start_group(job->queue, &r);
	if (r.status == DONE_TIMED)
		queue_ended(job->queue, r.end);
	work_done_note(&r);
	tell_freed(job);
}

static bool take(struct job *job, cl_event e)
{
	return e && __atomic_compare_exchange_n(&job->event, &e, NULL, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void CL_CALLBACK ended(cl_event e, cl_int status, void *user)
{
	struct job *job = user;
	u32 before = opencl_now;

	tls.api_depth++;                        /* what the driver calls for us is not the program's */
	opencl_now = job->row;
	if (take(job, e)) {
		if (status < 0)
			tell_failed(job, status);
		else
			tell_end(e, job);
		job_put(job);
	}
	opencl_now = before;
	tls.api_depth--;
}

static void fail_if_of(void *object, void *event)
{
	struct job *job = object;
	cl_int status = 0;

	if (__atomic_load_n(&job->event, __ATOMIC_ACQUIRE) != event)
		return;
	cl.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
	if (status < 0 && take(job, event)) {
		tell_failed(job, status);
		job_put(job);
	}
}

void opencl_wait_failed(cl_uint n, const cl_event *list)
{
	for (u32 i = 0; i < n; i++)
		pool_each(&jobs, fail_if_of, list[i]);
}

/* ---- enqueueing ------------------------------------------------------------------------- */

/* One enqueue call while it lasts. */
struct enqueue {
	u64 begin;
	struct cl_queue *queue;
	cl_event *event, own;           /* where the driver puts the event */
	struct job *job;
};

/* What is worth telling of it. */
struct about {
	u32 kind;
	u64 name, bytes;
	u64 size[3], local;
	bool blocking;
	u64 work_name;                  /* if it is another than the call's */
	const struct args *args;
};

/* False: it is to be passed on. */
static bool enqueue_begin(struct enqueue *e, cl_command_queue q, cl_event *event)
{
	*e = (struct enqueue){ .begin = opencl_enter(), .event = event };
	if (!e->begin || !(e->queue = opencl_queue(q)))
		return false;
	e->job = pool_get(&jobs);               /* none: the call is told, not its work */
	if (e->job && !event)
		e->event = &e->own;
	return true;
}

static void tell_unwatched(const struct job *job)
{
	work_done_note(&(struct rec_work_done){ .id = job->work, .status = DONE_UNTIMED });
	tell_freed(job);
}

/* The work is known, and its end will be. Once there is a callback the job is no longer ours. */
static void watch(struct job *job, cl_event event)
{
	__atomic_store_n(&job->event, event, __ATOMIC_RELEASE);
	if (event && cl.clSetEventCallback(event, CL_COMPLETE, ended, job) == CL_SUCCESS)
		return;
	if (event && !take(job, event))
		return;
	tell_unwatched(job);
	job_put(job);
}

static void enqueue_end(struct enqueue *e, cl_int r, struct about *about, struct caller at)
{
	struct call call = { about->blocking ? CALL_WAIT : CALL_ENQUEUE, about->name, .error = r };
	struct rec_work work = {
		.queue = e->queue->id, .kind = about->kind, .name = about->work_name ? about->work_name : about->name, .bytes = about->bytes,
		.x = about->size[0], .y = about->size[1], .z = about->size[2], .local = about->local,
	};
	struct job *job = e->job;

	if (job) {
		job->work = call.work = work.id = work_numbers(1);
		job->begin = e->begin;
		job->queue = e->queue;
		job->row = opencl_now;
		job->is_group = about->kind == WORK_GROUP;
		job->timed = e->queue->profiled || e->queue->forced;
		call.works = 1;
		call.told = &work;
		call.told_args = about->args;
	}
	call_note(e->begin, &call, NULL, at);
	if (job && r == CL_SUCCESS) {
		watch(job, *e->event);
	} else if (job) {
		tell_failed(job, r);
		job_put(job);
	}
	if (e->own)
		cl.clReleaseEvent(e->own);
	opencl_read_clock(e->queue->timer, false);
	opencl_leave();
}

/* Only then is it left: inside of another call, whose row may be another, this one's holds until here. */
#define PASSED_ON(call)                                                                                \
	({                                                                                             \
		__typeof__(call) r_ = call;                                                            \
		opencl_leave();                                                                        \
		r_;                                                                                    \
	})

#define UNPACK(...) __VA_ARGS__
#define WAIT_LIST cl_uint waits, const cl_event *list, cl_event *event

/* name, (parameters between the queue and the wait list), (the same as arguments), fields of struct about */
#define ENQUEUE(name_, PARAMS, ARGS, ...)                                                              \
	cl_int w_##name_(cl_command_queue q, UNPACK PARAMS, WAIT_LIST)                                 \
	{                                                                                              \
		struct enqueue e;                                                                      \
		cl_int r;                                                                              \
                                                                                                       \
		if (!enqueue_begin(&e, q, event))                                                      \
			return PASSED_ON(cl.name_(q, UNPACK ARGS, waits, list, event));                \
		r = cl.name_(q, UNPACK ARGS, waits, list, e.event);                                    \
		enqueue_end(&e, r, &(struct about){ .name = NAMED(#name_), __VA_ARGS__ }, CALLER());   \
		return r;                                                                              \
	}

static u64 volume(const size_t *region)
{
	return region ? region[0] * region[1] * region[2] : 0;
}

static u64 image_bytes(cl_mem image, const size_t *region)
{
	size_t element = 0;

	cl.clGetImageInfo(image, CL_IMAGE_ELEMENT_SIZE, sizeof element, &element, NULL);
	return element * volume(region);
}

ENQUEUE(clEnqueueReadBuffer, (cl_mem m, cl_bool b, size_t o, size_t n, void *p), (m, b, o, n, p), .kind = WORK_READ, .bytes = n, .blocking = b)
ENQUEUE(clEnqueueWriteBuffer, (cl_mem m, cl_bool b, size_t o, size_t n, const void *p), (m, b, o, n, p), .kind = WORK_WRITE, .bytes = n, .blocking = b)
ENQUEUE(clEnqueueCopyBuffer, (cl_mem s, cl_mem d, size_t so, size_t o, size_t n), (s, d, so, o, n), .kind = WORK_COPY, .bytes = n)
ENQUEUE(clEnqueueFillBuffer, (cl_mem m, const void *p, size_t ps, size_t o, size_t n), (m, p, ps, o, n), .kind = WORK_FILL, .bytes = n)
ENQUEUE(clEnqueueReadBufferRect,
	(cl_mem m, cl_bool b, const size_t *bo, const size_t *ho, const size_t *region, size_t br, size_t bs, size_t hr, size_t hs, void *p),
	(m, b, bo, ho, region, br, bs, hr, hs, p), .kind = WORK_READ, .bytes = volume(region), .blocking = b)
ENQUEUE(clEnqueueWriteBufferRect,
	(cl_mem m, cl_bool b, const size_t *bo, const size_t *ho, const size_t *region, size_t br, size_t bs, size_t hr, size_t hs, const void *p),
	(m, b, bo, ho, region, br, bs, hr, hs, p), .kind = WORK_WRITE, .bytes = volume(region), .blocking = b)
ENQUEUE(clEnqueueCopyBufferRect,
	(cl_mem s, cl_mem d, const size_t *so, const size_t *o, const size_t *region, size_t sr, size_t ss, size_t dr, size_t ds),
	(s, d, so, o, region, sr, ss, dr, ds), .kind = WORK_COPY, .bytes = volume(region))
ENQUEUE(clEnqueueReadImage, (cl_mem m, cl_bool b, const size_t *o, const size_t *region, size_t row, size_t slice, void *p),
	(m, b, o, region, row, slice, p), .kind = WORK_READ, .bytes = image_bytes(m, region), .blocking = b)
ENQUEUE(clEnqueueWriteImage, (cl_mem m, cl_bool b, const size_t *o, const size_t *region, size_t row, size_t slice, const void *p),
	(m, b, o, region, row, slice, p), .kind = WORK_WRITE, .bytes = image_bytes(m, region), .blocking = b)
ENQUEUE(clEnqueueCopyImage, (cl_mem s, cl_mem d, const size_t *so, const size_t *o, const size_t *region), (s, d, so, o, region),
	.kind = WORK_COPY, .bytes = image_bytes(s, region))
ENQUEUE(clEnqueueFillImage, (cl_mem m, const void *color, const size_t *o, const size_t *region), (m, color, o, region),
	.kind = WORK_FILL, .bytes = image_bytes(m, region))
ENQUEUE(clEnqueueCopyImageToBuffer, (cl_mem s, cl_mem d, const size_t *so, const size_t *region, size_t o), (s, d, so, region, o),
	.kind = WORK_COPY, .bytes = image_bytes(s, region))
ENQUEUE(clEnqueueCopyBufferToImage, (cl_mem s, cl_mem d, size_t so, const size_t *o, const size_t *region), (s, d, so, o, region),
	.kind = WORK_COPY, .bytes = image_bytes(d, region))
ENQUEUE(clEnqueueUnmapMemObject, (cl_mem m, void *p), (m, p), .kind = WORK_UNMAP)
ENQUEUE(clEnqueueMigrateMemObjects, (cl_uint n, const cl_mem *m, cl_mem_migration_flags f), (n, m, f), .kind = WORK_OTHER)
ENQUEUE(clEnqueueTask, (cl_kernel k), (k), .kind = WORK_KERNEL, .work_name = opencl_kernel_name(k), .size = { 1, 1, 1 }, .local = PACK3(1, 1, 1))
ENQUEUE(clEnqueueSVMMemcpy, (cl_bool b, void *d, const void *s, size_t n), (b, d, s, n), .kind = WORK_COPY, .bytes = n, .blocking = b)
ENQUEUE(clEnqueueSVMMemFill, (void *p, const void *v, size_t vn, size_t n), (p, v, vn, n), .kind = WORK_FILL, .bytes = n)
ENQUEUE(clEnqueueSVMMap, (cl_bool b, cl_map_flags f, void *p, size_t n), (b, f, p, n), .kind = WORK_MAP, .bytes = n, .blocking = b)
ENQUEUE(clEnqueueSVMUnmap, (void *p), (p), .kind = WORK_UNMAP)
ENQUEUE(clEnqueueSVMMigrateMem, (cl_uint n, const void **p, const size_t *sizes, cl_mem_migration_flags f), (n, p, sizes, f), .kind = WORK_OTHER)
ENQUEUE(clEnqueueMemcpyINTEL, (cl_bool b, void *d, const void *s, size_t n), (b, d, s, n), .kind = WORK_COPY, .bytes = n, .blocking = b)
ENQUEUE(clEnqueueMemFillINTEL, (void *d, const void *v, size_t vn, size_t n), (d, v, vn, n), .kind = WORK_FILL, .bytes = n)
ENQUEUE(clEnqueueMigrateMemINTEL, (const void *p, size_t n, cl_mem_migration_flags f), (p, n, f), .kind = WORK_OTHER, .bytes = n)
ENQUEUE(clEnqueueMemsetINTEL, (void *d, cl_int v, size_t n), (d, v, n), .kind = WORK_FILL, .bytes = n)
ENQUEUE(clEnqueueMigrateMemObjectEXT, (cl_uint n, const cl_mem *m, cl_mem_migration_flags_ext f), (n, m, f), .kind = WORK_OTHER)
ENQUEUE(clEnqueueAcquireGLObjects, (cl_uint n, const cl_mem *m), (n, m), .kind = WORK_OTHER)
ENQUEUE(clEnqueueReleaseGLObjects, (cl_uint n, const cl_mem *m), (n, m), .kind = WORK_OTHER)
ENQUEUE(clEnqueueAcquireExternalMemObjectsKHR, (cl_uint n, const cl_mem *m), (n, m), .kind = WORK_OTHER)
ENQUEUE(clEnqueueReleaseExternalMemObjectsKHR, (cl_uint n, const cl_mem *m), (n, m), .kind = WORK_OTHER)
ENQUEUE(clEnqueueWaitSemaphoresKHR, (cl_uint n, const cl_semaphore_khr *s, const cl_semaphore_payload_khr *v), (n, s, v), .kind = WORK_MARK)
ENQUEUE(clEnqueueSignalSemaphoresKHR, (cl_uint n, const cl_semaphore_khr *s, const cl_semaphore_payload_khr *v), (n, s, v), .kind = WORK_MARK)
ENQUEUE(clEnqueueMemAdviseINTEL, (const void *p, size_t n, cl_mem_advice_intel advice), (p, n, advice), .kind = WORK_OTHER)

/* ---- those of another shape -------------------------------------------------------------- */

#define MARK(name_)                                                                                    \
	cl_int w_##name_(cl_command_queue q, WAIT_LIST)                                                \
	{                                                                                              \
		struct enqueue e;                                                                      \
		cl_int r;                                                                              \
                                                                                                       \
		if (!enqueue_begin(&e, q, event))                                                      \
			return PASSED_ON(cl.name_(q, waits, list, event));                             \
		r = cl.name_(q, waits, list, e.event);                                                 \
		enqueue_end(&e, r, &(struct about){ WORK_MARK, NAMED(#name_) }, CALLER());             \
		return r;                                                                              \
	}

MARK(clEnqueueMarkerWithWaitList)
MARK(clEnqueueBarrierWithWaitList)

static void sizes_of(struct about *a, cl_uint n, const size_t *global, const size_t *local)
{
	for (u32 i = 0; i < 3; i++)
		a->size[i] = i < n && global ? global[i] : 1;
	if (local)
		a->local = PACK3(local[0], n > 1 ? local[1] : 1, n > 2 ? local[2] : 1);
}

cl_int w_clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint n, const size_t *offset, const size_t *global, const size_t *local, WAIT_LIST)
{
	struct enqueue e;
	struct about about;
	cl_int r;

	if (!enqueue_begin(&e, q, event))
		return PASSED_ON(cl.clEnqueueNDRangeKernel(q, k, n, offset, global, local, waits, list, event));
	about = (struct about){ WORK_KERNEL, NAMED("clEnqueueNDRangeKernel"), .work_name = opencl_kernel_name(k) };
	sizes_of(&about, n, global, local);
	r = cl.clEnqueueNDRangeKernel(q, k, n, offset, global, local, waits, list, e.event);
	enqueue_end(&e, r, &about, CALLER());
	return r;
}

cl_int w_clEnqueueNativeKernel(cl_command_queue q, opencl_native_function *f, void *a, size_t an, cl_uint n, const cl_mem *m, const void **where, WAIT_LIST)
{
	struct opencl_native native = { f, a, an, where, n };
	struct enqueue e;
	cl_int r;

	if (!enqueue_begin(&e, q, event))
		return PASSED_ON(cl.clEnqueueNativeKernel(q, f, a, an, n, m, where, waits, list, event));
	opencl_native_wrap(&native);
	r = cl.clEnqueueNativeKernel(q, native.function, native.args, native.bytes, n, m, native.where, waits, list, e.event);
	opencl_native_unwrap(&native);
	enqueue_end(&e, r, &(struct about){ WORK_KERNEL, NAMED("clEnqueueNativeKernel"), .work_name = NAMED("native kernel") }, CALLER());
	return r;
}

#define MAPPED(name_, PARAMS, ARGS, bytes_)                                                            \
	void *w_##name_(cl_command_queue q, UNPACK PARAMS, WAIT_LIST, cl_int *error)                   \
	{                                                                                              \
		struct enqueue e;                                                                      \
		cl_int r = CL_SUCCESS;                                                                 \
		void *p;                                                                               \
                                                                                                       \
		if (!enqueue_begin(&e, q, event))                                                      \
			return PASSED_ON(cl.name_(q, UNPACK ARGS, waits, list, event, error));         \
		p = cl.name_(q, UNPACK ARGS, waits, list, e.event, &r);                                \
		if (error)                                                                             \
			*error = r;                                                                    \
		enqueue_end(&e, r, &(struct about){ WORK_MAP, NAMED(#name_), bytes_, .blocking = b }, CALLER()); \
		return p;                                                                              \
	}

MAPPED(clEnqueueMapBuffer, (cl_mem m, cl_bool b, cl_map_flags f, size_t o, size_t n), (m, b, f, o, n), n)
MAPPED(clEnqueueMapImage, (cl_mem m, cl_bool b, cl_map_flags f, const size_t *o, const size_t *region, size_t *row, size_t *slice),
       (m, b, f, o, region, row, slice), image_bytes(m, region))

/* What it frees is gone when it has run, unless that is left to the program's function. */
cl_int w_clEnqueueSVMFree(cl_command_queue q, cl_uint n, void **pointers, opencl_on_free *f, void *user, WAIT_LIST)
{
	struct enqueue e;
	bool ours;
	cl_int r;

	if (!enqueue_begin(&e, q, event))
		return PASSED_ON(cl.clEnqueueSVMFree(q, n, pointers, f, user, waits, list, event));
	if (!f)
		take_memory(e.job, n, pointers);
	ours = opencl_free_callback(&f, &user);
	r = cl.clEnqueueSVMFree(q, n, pointers, f, user, waits, list, e.event);
	if (r != CL_SUCCESS && ours)
		opencl_callback_drop(user);
	enqueue_end(&e, r, &(struct about){ WORK_OTHER, NAMED("clEnqueueSVMFree") }, CALLER());
	return r;
}

/* One event for all of it: what its commands took each is not to be known. */
cl_int w_clEnqueueCommandBufferKHR(cl_uint queues, cl_command_queue *queue, cl_command_buffer_khr buffer, WAIT_LIST)
{
	struct args a = { 0 };
	cl_command_queue first = opencl_commands(buffer, &a);
	struct enqueue e;
	cl_int r;

	first = queues && queue ? queue[0] : first;
	if (!enqueue_begin(&e, first, event))
		return PASSED_ON(cl.clEnqueueCommandBufferKHR(queues, queue, buffer, waits, list, event));
	r = cl.clEnqueueCommandBufferKHR(queues, queue, buffer, waits, list, e.event);
	enqueue_end(&e, r, &(struct about){ WORK_GROUP, NAMED("clEnqueueCommandBufferKHR"), .work_name = NAMED("command buffer"), .args = &a }, CALLER());
	return r;
}

/* ---- of OpenCL 1.0 ----------------------------------------------------------------------- */

cl_int w_clEnqueueMarker(cl_command_queue q, cl_event *event)
{
	struct enqueue e;
	cl_int r;

	if (!event)
		return cl.clEnqueueMarker(q, event);
	if (!enqueue_begin(&e, q, event))
		return PASSED_ON(cl.clEnqueueMarker(q, event));
	r = cl.clEnqueueMarker(q, event);
	enqueue_end(&e, r, &(struct about){ WORK_MARK, NAMED("clEnqueueMarker") }, CALLER());
	return r;
}

cl_int w_clEnqueueBarrier(cl_command_queue q)
{
	u64 begin = opencl_enter();
	cl_int r = cl.clEnqueueBarrier(q);

	if (begin)
		call_note(begin, &(struct call){ CALL_ENQUEUE, NAMED("clEnqueueBarrier"), .error = r }, NULL, CALLER());
	opencl_leave();
	return r;
}

cl_int w_clEnqueueWaitForEvents(cl_command_queue q, cl_uint n, const cl_event *list)
{
	u64 begin = opencl_enter();
	cl_int r = cl.clEnqueueWaitForEvents(q, n, list);

	if (begin)
		call_note(begin, &(struct call){ CALL_ENQUEUE, NAMED("clEnqueueWaitForEvents"), .error = r }, NULL, CALLER());
	opencl_leave();
	return r;
}

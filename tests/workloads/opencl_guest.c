// cc: -lOpenCL
/*
 * opencl_guest.c - looks hard for a difference: everything it prints must be the same with mlprof and without.
 *
 * Queue properties, reference counts of everything, error codes, callbacks and their order, profiling that it did not ask
 * for, blocking and unblocking commands of all kinds, user events, out-of-order queues, sub-buffers, images, SVM,
 * sub-devices, command buffers.
 */
#include "opencl.h"
#include <CL/cl_ext.h>

static int called;

static void CL_CALLBACK on_event(cl_event e, cl_int status, void *user)
{
	(void)e;
	__atomic_add_fetch((int *)user, status == CL_COMPLETE ? 1 : 1000, __ATOMIC_SEQ_CST);
}

static void CL_CALLBACK on_destroyed(cl_mem m, void *user)
{
	(void)m;
	__atomic_add_fetch((int *)user, 1, __ATOMIC_SEQ_CST);
}

/* Callbacks in the order in which they are called. */
static char order[64];

static void CL_CALLBACK on_first(cl_mem m, void *user)
{
	(void)m;
	strcat(order, user);
}

static void CL_CALLBACK on_status(cl_event e, cl_int status, void *user)
{
	(void)e;
	__atomic_add_fetch(&((int *)user)[status < 0 ? 3 : status], 1, __ATOMIC_SEQ_CST);
}

static void CL_CALLBACK on_built(cl_program p, void *user)
{
	(void)p;
	__atomic_store_n((int *)user, 1, __ATOMIC_SEQ_CST);
}

static unsigned references(cl_event e)
{
	cl_uint n = 0;

	MUST(clGetEventInfo(e, CL_EVENT_REFERENCE_COUNT, sizeof n, &n, NULL));
	return n;
}

/* PoCL's thread lets go of what is over a moment after it said so. */
static unsigned references_in_the_end(cl_event e)
{
	for (int i = 0; i < 1000 && references(e) > 1; i++)
		usleep(1000);
	return references(e);
}

static void properties(const struct cl *c)
{
	static const cl_command_queue_properties asked[] = { 0, CL_QUEUE_PROFILING_ENABLE, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE };

	for (int i = 0; i < 3; i++) {
		cl_command_queue q[2] = { cl_queue(c, asked[i]) };
		cl_int error;

		q[1] = clCreateCommandQueue(c->context, c->device, asked[i], &error);
		for (int j = 0; j < 2; j++) {
			cl_command_queue_properties p = 77;
			cl_queue_properties list[8] = { 0 };
			size_t size = 99, need = 99;
			cl_int r = clGetCommandQueueInfo(q[j], CL_QUEUE_PROPERTIES, sizeof p, &p, &size);
			cl_int s = clGetCommandQueueInfo(q[j], CL_QUEUE_PROPERTIES_ARRAY, sizeof list, list, &need);

			say("queue %d.%d: %d properties %lu of %zu; array %d %zu: %lu %lu\n", i, j, r, (unsigned long)p, size, s, need,
			    (unsigned long)list[0], (unsigned long)list[1]);
			clReleaseCommandQueue(q[j]);
		}
	}
}

static void profiling(const struct cl *c, cl_mem m)
{
	for (int i = 0; i < 2; i++) {
		cl_command_queue q = cl_queue(c, i ? CL_QUEUE_PROFILING_ENABLE : 0);
		cl_ulong t;
		cl_event e;

		MUST(clEnqueueFillBuffer(q, m, &(float){ 1 }, 4, 0, 4096, 0, NULL, &e));
		MUST(clWaitForEvents(1, &e));
		say("profiling %d: %d\n", i, clGetEventProfilingInfo(e, CL_PROFILING_COMMAND_END, sizeof t, &t, NULL));
		clReleaseEvent(e);
		clReleaseCommandQueue(q);
	}
}

static void commands(const struct cl *c, cl_mem m)
{
	cl_command_queue q = cl_queue(c, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	cl_kernel k = cl_kernel_of(c, "scale");
	size_t global = 1024, origin[3] = { 0 }, region[3] = { 64, 4, 1 };
	float host[1024], by = 3;
	cl_event gate = clCreateUserEvent(c->context, NULL), e[3];
	cl_mem other = cl_buffer(c, 65536, CL_MEM_READ_WRITE, NULL);
	cl_int error;
	float *p;

	MUST(clSetKernelArg(k, 0, sizeof m, &m));
	MUST(clSetKernelArg(k, 1, sizeof by, &by));
	MUST(clEnqueueFillBuffer(q, m, &(float){ 2 }, 4, 0, 65536, 0, NULL, &e[0]));
	MUST(clEnqueueNDRangeKernel(q, k, 1, NULL, &global, NULL, 1, &e[0], &e[1]));
	MUST(clSetEventCallback(e[1], CL_COMPLETE, on_event, &called));
	MUST(clEnqueueCopyBuffer(q, m, other, 0, 0, 4096, 1, &e[1], &e[2]));
	MUST(clEnqueueReadBuffer(q, other, CL_TRUE, 0, sizeof host, host, 1, &e[2], NULL));
	say("read %g %g\n", host[0], host[1023]);
	MUST(clEnqueueNDRangeKernel(q, k, 1, NULL, &global, NULL, 1, &gate, NULL));
	MUST(clFlush(q));
	MUST(clSetUserEventStatus(gate, CL_COMPLETE));
	MUST(clFinish(q));
	p = clEnqueueMapBuffer(q, m, CL_TRUE, CL_MAP_READ, 0, 4096, 0, NULL, NULL, &error);
	say("mapped %g %d\n", p[5], error);
	MUST(clEnqueueUnmapMemObject(q, m, p, 0, NULL, NULL));
	MUST(clEnqueueReadBufferRect(q, m, CL_TRUE, origin, origin, region, 64, 0, 64, 0, host, 0, NULL, NULL));
	say("rect %g\n", host[3]);
	MUST(clEnqueueMarkerWithWaitList(q, 0, NULL, NULL));
	MUST(clEnqueueBarrierWithWaitList(q, 0, NULL, NULL));
	MUST(clEnqueueMigrateMemObjects(q, 1, &m, CL_MIGRATE_MEM_OBJECT_HOST, 0, NULL, NULL));
	MUST(clFinish(q));
	say("errors %d %d %d\n", clEnqueueNDRangeKernel(q, k, 4, NULL, &global, NULL, 0, NULL, NULL),
	    clEnqueueReadBuffer(q, m, CL_TRUE, 1 << 20, 16, host, 0, NULL, NULL), clEnqueueNDRangeKernel(NULL, k, 1, NULL, &global, NULL, 0, NULL, NULL));
	for (int i = 0; i < 3; i++) {
		say("references %d: %u\n", i, references_in_the_end(e[i]));
		clReleaseEvent(e[i]);
	}
	clReleaseEvent(gate);
	clReleaseMemObject(other);
	clReleaseKernel(k);
	clReleaseCommandQueue(q);
}

static void memory(const struct cl *c, cl_command_queue q)
{
	cl_buffer_region region = { 4096, 4096 };
	cl_mem m = cl_buffer(c, 16384, CL_MEM_READ_WRITE, NULL), sub;
	cl_image_format format = { CL_RGBA, CL_UNORM_INT8 };
	cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 64, .image_height = 32 };
	cl_mem image;
	cl_int error;
	cl_uint n = 0;
	void *svm;

	sub = clCreateSubBuffer(m, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
	MUST(error);
	MUST(clSetMemObjectDestructorCallback(m, on_destroyed, &called));
	MUST(clGetMemObjectInfo(m, CL_MEM_REFERENCE_COUNT, sizeof n, &n, NULL));
	say("buffer references %u\n", n);
	clReleaseMemObject(m);
	clReleaseMemObject(sub);
	image = clCreateImage(c->context, CL_MEM_READ_WRITE, &format, &desc, NULL, &error);
	say("image %d\n", error);
	if (image)
		clReleaseMemObject(image);
	clCreateBuffer(c->context, CL_MEM_READ_WRITE, 0, NULL, &error);
	say("no bytes: %d\n", error);
	svm = clSVMAlloc(c->context, CL_MEM_READ_WRITE, 8192, 0);
	say("svm %d\n", svm != NULL);
	MUST(clEnqueueSVMMemFill(q, svm, &(int){ 7 }, 4, 8192, 0, NULL, NULL));
	MUST(clFinish(q));
	say("svm %d\n", ((int *)svm)[9]);
	clSVMFree(c->context, svm);
	svm = clSVMAlloc(c->context, CL_MEM_READ_WRITE, 4096, 0);
	MUST(clEnqueueSVMFree(q, 1, &svm, NULL, NULL, 0, NULL, NULL));
	MUST(clFinish(q));
}

static void sub_devices(const struct cl *c)
{
	cl_device_partition_property how[] = { CL_DEVICE_PARTITION_EQUALLY, 1, 0 };
	cl_device_id part[8];
	cl_uint n = 0;
	cl_int r = clCreateSubDevices(c->device, how, 8, part, &n), error;

	say("sub-devices %d: %d\n", r, n > 1);
	for (cl_uint i = 0; r == CL_SUCCESS && i < n && i < 2; i++) {
		cl_context context = clCreateContext(NULL, 1, &part[i], NULL, NULL, &error);
		cl_command_queue q = clCreateCommandQueueWithProperties(context, part[i], NULL, &error);
		cl_mem m = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &error);
		int seven = 7, got = 0;

		MUST(clEnqueueFillBuffer(q, m, &seven, 4, 0, 4096, 0, NULL, NULL));
		MUST(clEnqueueReadBuffer(q, m, CL_TRUE, 0, 4, &got, 0, NULL, NULL));
		MUST(clFinish(q));
		say("sub-device %u: %d\n", i, got);    /* nothing of it is released: PoCL 3.1 crashes on that now and then */
	}
}

#define EXTENSION(name) name##_fn name##_ = (name##_fn)clGetExtensionFunctionAddressForPlatform(c->platform, #name)

/* One command buffer of two kernels, enqueued three times. */
static void command_buffer(const struct cl *c, cl_command_queue q, cl_mem m)
{
	EXTENSION(clCreateCommandBufferKHR);
	EXTENSION(clFinalizeCommandBufferKHR);
	EXTENSION(clReleaseCommandBufferKHR);
	EXTENSION(clEnqueueCommandBufferKHR);
	EXTENSION(clCommandNDRangeKernelKHR);
	cl_kernel k = cl_kernel_of(c, "scale");
	cl_command_buffer_khr buffer;
	size_t global = 64;
	float by = 2, got = 0;
	cl_int error;

	say("command buffers %d\n", clCreateCommandBufferKHR_ && clEnqueueCommandBufferKHR_);
	if (!clCreateCommandBufferKHR_ || !clEnqueueCommandBufferKHR_)
		return;
	MUST(clSetKernelArg(k, 0, sizeof m, &m));
	MUST(clSetKernelArg(k, 1, sizeof by, &by));
	MUST(clEnqueueFillBuffer(q, m, &(float){ 1 }, 4, 0, 4096, 0, NULL, NULL));
	buffer = clCreateCommandBufferKHR_(1, &q, NULL, &error);
	MUST(error);
	for (int i = 0; i < 2; i++)
		MUST(clCommandNDRangeKernelKHR_(buffer, NULL, NULL, k, 1, NULL, &global, NULL, 0, NULL, NULL, NULL));
	MUST(clFinalizeCommandBufferKHR_(buffer));
	for (int i = 0; i < 3; i++) {
		MUST(clEnqueueCommandBufferKHR_(0, NULL, buffer, 0, NULL, NULL));
		MUST(clFinish(q));
	}
	MUST(clEnqueueReadBuffer(q, m, CL_TRUE, 0, sizeof got, &got, 0, NULL, NULL));
	say("command buffer: %g\n", got);
	clReleaseCommandBufferKHR_(buffer);
	clReleaseKernel(k);
}

#define COUNT(function, object, what) ({ cl_uint n_ = 99; MUST(function(object, what, sizeof n_, &n_, NULL)); n_; })

/* Nothing of what it holds is held by somebody else. */
static void all_references(const struct cl *c)
{
	cl_command_queue q = cl_queue(c, 0);
	cl_kernel k = cl_kernel_of(c, "scale");
	cl_mem m = cl_buffer(c, 4096, CL_MEM_READ_WRITE, NULL);
	float by = 1;
	size_t global = 16;
	cl_event e;

	MUST(clSetKernelArg(k, 0, sizeof m, &m));
	MUST(clSetKernelArg(k, 1, sizeof by, &by));
	MUST(clEnqueueNDRangeKernel(q, k, 1, NULL, &global, NULL, 0, NULL, &e));
	MUST(clFinish(q));
	/* a driver may let go of them a moment later */
	for (int i = 0; i < 1000 && (COUNT(clGetEventInfo, e, CL_EVENT_REFERENCE_COUNT) > 2 || COUNT(clGetCommandQueueInfo, q, CL_QUEUE_REFERENCE_COUNT) > 2); i++)
		usleep(1000);
	say("references: event %u, kernel %u, program %u, queue %u, memory %u, context %u\n", COUNT(clGetEventInfo, e, CL_EVENT_REFERENCE_COUNT),
	    COUNT(clGetKernelInfo, k, CL_KERNEL_REFERENCE_COUNT), COUNT(clGetProgramInfo, c->program, CL_PROGRAM_REFERENCE_COUNT),
	    COUNT(clGetCommandQueueInfo, q, CL_QUEUE_REFERENCE_COUNT), COUNT(clGetMemObjectInfo, m, CL_MEM_REFERENCE_COUNT),
	    COUNT(clGetContextInfo, c->context, CL_CONTEXT_REFERENCE_COUNT));
	clReleaseEvent(e);
	MUST(clRetainMemObject(m));
	say("retained %u\n", COUNT(clGetMemObjectInfo, m, CL_MEM_REFERENCE_COUNT));
	say("released %d\n", clReleaseMemObject(m));
	clReleaseKernel(k);
	clReleaseMemObject(m);
	clReleaseCommandQueue(q);
}

static void callbacks(const struct cl *c)
{
	cl_command_queue q = cl_queue(c, 0);
	cl_mem m = cl_buffer(c, 4096, CL_MEM_READ_WRITE, NULL);
	cl_event gate = clCreateUserEvent(c->context, NULL), e;
	const char *source = "__kernel void nothing(__global int *a) { }";
	cl_program p = clCreateProgramWithSource(c->context, 1, &source, NULL, NULL);
	static int status[4], built;

	MUST(clSetMemObjectDestructorCallback(m, on_first, "first "));
	MUST(clSetMemObjectDestructorCallback(m, on_first, "second "));
	MUST(clEnqueueFillBuffer(q, m, "x", 1, 0, 4096, 1, &gate, &e));
	for (cl_int i = CL_COMPLETE; i <= CL_SUBMITTED; i++)
		MUST(clSetEventCallback(e, i, on_status, status));
	say("no such status: %d\n", clSetEventCallback(e, 77, on_status, status));
	MUST(clSetUserEventStatus(gate, CL_COMPLETE));
	MUST(clFinish(q));
	say("told of complete %d, running %d, submitted %d, failure %d\n", status[0], status[1], status[2], status[3]);
	clReleaseEvent(e);
	clReleaseEvent(gate);
	clReleaseMemObject(m);
	say("destroyed: %s\n", order);
	say("build %d, ", clBuildProgram(p, 0, NULL, "", on_built, &built));
	while (!__atomic_load_n(&built, __ATOMIC_SEQ_CST))
		usleep(1000);
	say("told\n");
	clReleaseProgram(p);
	clReleaseCommandQueue(q);
}

static void queue_errors(const struct cl *c)
{
	cl_queue_properties unknown[] = { 0x9999, 1, 0 }, bits[] = { CL_QUEUE_PROPERTIES, 1 << 20, 0 };
	const cl_queue_properties *list[] = { unknown, bits };
	cl_int error;

	for (int i = 0; i < 2; i++) {
		cl_command_queue q = clCreateCommandQueueWithProperties(c->context, c->device, list[i], &error);

		say("queue: %d %d\n", q != NULL, error);
		if (q)
			clReleaseCommandQueue(q);
	}
	clCreateCommandQueue(c->context, c->device, 1 << 20, &error);
	say("queue: %d, without asking why %d\n", error, clCreateCommandQueue(c->context, c->device, 1 << 20, NULL) != NULL);
	clCreateCommandQueue(NULL, c->device, 0, &error);
	say("no context: %d\n", error);
	say("nothing to wait for: %d, finish %d\n", clWaitForEvents(0, NULL), clFinish(NULL));
}

/* Each question about an event's times, of a queue that takes none. */
static void times(const struct cl *c, cl_mem m)
{
	cl_command_queue q = cl_queue(c, 0);
	cl_ulong t = 5;
	size_t size = 5;
	cl_event e, user = clCreateUserEvent(c->context, NULL);

	MUST(clEnqueueFillBuffer(q, m, "x", 1, 0, 4096, 0, NULL, &e));
	MUST(clFinish(q));
	for (cl_profiling_info what = CL_PROFILING_COMMAND_QUEUED; what <= CL_PROFILING_COMMAND_COMPLETE; what++)
		say("%d ", clGetEventProfilingInfo(e, what, sizeof t, &t, &size));
	say("%d, of a user event %d, of none %d; %lu %zu\n", clGetEventProfilingInfo(e, CL_PROFILING_COMMAND_END, 1, &t, NULL),
	    clGetEventProfilingInfo(user, CL_PROFILING_COMMAND_END, sizeof t, &t, NULL),
	    clGetEventProfilingInfo(NULL, CL_PROFILING_COMMAND_END, sizeof t, &t, NULL), (unsigned long)t, size);
	clReleaseEvent(e);
	clReleaseEvent(user);
	clReleaseCommandQueue(q);
}

/* Compiled and linked in two steps, all kernels at once. */
static void in_steps(const struct cl *c)
{
	const char *good = "__kernel void one(__global int *a) { a[0] = 1; } __kernel void two(__global int *a) { a[0] = 2; }", *bad = "__kernel int";
	cl_program p = clCreateProgramWithSource(c->context, 1, &good, NULL, NULL), q, linked;
	cl_uint count = 99;
	cl_kernel k[4] = { 0 };
	char name[32] = "";
	cl_int error = 77;

	say("compile %d\n", clCompileProgram(p, 0, NULL, "", 0, NULL, NULL, NULL, NULL));
	linked = clLinkProgram(c->context, 0, NULL, "", 1, &p, NULL, NULL, &error);
	say("link %d %d\n", linked != NULL, error);
	say("kernels %d", clCreateKernelsInProgram(linked, 0, NULL, &count));
	say(" %u %d", count, clCreateKernelsInProgram(linked, 4, k, NULL));
	say(" %d\n", clCreateKernelsInProgram(linked, 1, k, &count));
	for (int i = 0; i < 2; i++)
		if (k[i] && clGetKernelInfo(k[i], CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL) == CL_SUCCESS)
			say("kernel %s\n", name);
	q = clCreateProgramWithSource(c->context, 1, &bad, NULL, NULL);
	say("compile %d\n", clCompileProgram(q, 1, &c->device, "", 0, NULL, NULL, NULL, NULL));
	say("no such kernel %d %d\n", clCreateKernel(linked, "three", &error) != NULL, error);
	say("again %d\n", clCreateKernel(linked, "three", NULL) != NULL);
	for (int i = 0; i < 2; i++)
		clReleaseKernel(k[i]);
	clReleaseProgram(p);
	clReleaseProgram(q);
	clReleaseProgram(linked);
}

static void broken_build(const struct cl *c)
{
	const char *source = "__kernel void broken(__global float *a) { a[0] = nothing_of_that_name; }";
	cl_program p = clCreateProgramWithSource(c->context, 1, &source, NULL, NULL);

	say("build %d\n", clBuildProgram(p, 1, &c->device, "-DSOMETHING", NULL, NULL));
	clReleaseProgram(p);
	p = clCreateProgramWithSource(c->context, 1, &source, NULL, NULL);
	say("build for all %d\n", clBuildProgram(p, 0, NULL, NULL, NULL, NULL));
	clReleaseProgram(p);
}

/* Its log is longer than anybody shows, and the first error is far from its end. */
static void very_broken_build(const struct cl *c)
{
	char text[4096] = "";
	const char *source = text;
	cl_program p;

	strcat(text, "__kernel void broken(__global float *a) {\n");
	for (int i = 0; i < 20; i++)
		sprintf(text + strlen(text), "a[%d] = %s;\n", i, i ? "nothing_either" : "the_first_one");
	strcat(text, "}\n");
	p = clCreateProgramWithSource(c->context, 1, &source, NULL, NULL);
	say("long build %d\n", clBuildProgram(p, 1, &c->device, "-DMANY_WORDS_OF_OPTIONS_THAT_TAKE_ROOM_AS_WELL -DAND_ONE_MORE_THAT_IS_NOT_SHORT_EITHER", NULL, NULL));
	clReleaseProgram(p);
}

int main(void)
{
	struct cl c = cl_start();
	cl_command_queue q = cl_queue(&c, 0);
	cl_mem m = cl_buffer(&c, 65536, CL_MEM_READ_WRITE, NULL);

	properties(&c);
	profiling(&c, m);
	commands(&c, m);
	memory(&c, q);
	sub_devices(&c);
	command_buffer(&c, q, m);
	all_references(&c);
	callbacks(&c);
	queue_errors(&c);
	times(&c, m);
	in_steps(&c);
	broken_build(&c);
	very_broken_build(&c);
	clReleaseMemObject(m);
	clReleaseCommandQueue(q);
	cl_stop(&c);
	say("called %d\n", called);
	return 0;
}

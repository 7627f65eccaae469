/*
 * opencl_memory.c - buffers, images, pipes and shared virtual memory.
 *
 * A memory object ends when its driver says so, not when the program releases it: a kernel or a sub-buffer may still need
 * it. What lies in other memory (sub-buffers, host pointers) has no bytes of its own.
 */
#include "opencl.h"

static struct handles objects, shared;  /* -> number of the memory */

static void CL_CALLBACK destroyed(cl_mem m, void *id)
{
	memory_gone_note((u64)id);
	handles_remove(&objects, (u64)m);
}

static u64 flags_of(cl_mem_flags f)
{
	return (f & CL_MEM_USE_HOST_PTR ? MEMORY_HOST_POINTER : 0) | (f & CL_MEM_ALLOC_HOST_PTR ? MEMORY_HOST_VISIBLE : MEMORY_DEVICE_LOCAL);
}

static void args_flags(struct args *a, cl_mem_flags f)
{
	static const struct { cl_mem_flags bit; const char *name; } names[] = {
		{ CL_MEM_READ_WRITE, "read-write" }, { CL_MEM_READ_ONLY, "read-only" }, { CL_MEM_WRITE_ONLY, "write-only" },
		{ CL_MEM_USE_HOST_PTR, "use-host-ptr" }, { CL_MEM_ALLOC_HOST_PTR, "alloc-host-ptr" }, { CL_MEM_COPY_HOST_PTR, "copy-host-ptr" },
		{ CL_MEM_HOST_NO_ACCESS, "host-no-access" },
	};
	char text[128] = "";

	for (u32 i = 0; i < sizeof names / sizeof *names; i++)
		if (f & names[i].bit) {
			if (text[0])
				text_append(text, sizeof text, " ");
			text_append(text, sizeof text, names[i].name);
		}
	if (text[0])
		args_text(a, "flags", text);
}

static void remember(cl_mem m, u64 id)
{
	handles_put(&objects, (u64)m, (void *)id);
	cl.clSetMemObjectDestructorCallback(m, destroyed, (void *)id);
}

static void made(cl_context c, cl_mem m, cl_mem_flags f, const char *what, struct caller at)
{
	struct rec_device_alloc r = { .id = memory_number(), .device = opencl_context_device(c), .flags = flags_of(f) };
	struct args a = { 0 };
	size_t bytes = 0;

	cl.clGetMemObjectInfo(m, CL_MEM_SIZE, sizeof bytes, &bytes, NULL);
	r.bytes = f & CL_MEM_USE_HOST_PTR ? 0 : bytes;
	r.length = bytes;
	args_word(&a, what);
	args_flags(&a, f);
	memory_note(&r, &a, at);
	remember(m, r.id);
}

/* name, (parameters before the error), (as arguments), flags, what it is */
#define CREATE(name_, PARAMS, ARGS, flags, what)                                                       \
	cl_mem w_##name_(cl_context c, UNPACK PARAMS, cl_int *error)                                   \
	{                                                                                              \
		u64 begin = api_enter();                                                               \
		cl_int r = CL_SUCCESS;                                                                 \
		cl_mem m = cl.name_(c, UNPACK ARGS, &r);                                               \
                                                                                                       \
		if (error)                                                                             \
			*error = r;                                                                    \
		if (begin) {                                                                           \
			call_note(begin, &(struct call){ CALL_MEMORY, NAMED(#name_), .error = r }, NULL, CALLER()); \
			if (m)                                                                         \
				made(c, m, flags, what, CALLER());                                     \
		}                                                                                      \
		api_leave();                                                                           \
		return m;                                                                              \
	}
#define UNPACK(...) __VA_ARGS__

CREATE(clCreateBuffer, (cl_mem_flags f, size_t n, void *p), (f, n, p), f, "buffer")
CREATE(clCreateBufferWithProperties, (const cl_mem_properties *l, cl_mem_flags f, size_t n, void *p), (l, f, n, p), f, "buffer")
CREATE(clCreateImage, (cl_mem_flags f, const cl_image_format *form, const cl_image_desc *d, void *p), (f, form, d, p),
       f | (d && d->mem_object ? CL_MEM_USE_HOST_PTR : 0), "image")
CREATE(clCreateImageWithProperties, (const cl_mem_properties *l, cl_mem_flags f, const cl_image_format *form, const cl_image_desc *d, void *p),
       (l, f, form, d, p), f | (d && d->mem_object ? CL_MEM_USE_HOST_PTR : 0), "image")
CREATE(clCreateImage2D, (cl_mem_flags f, const cl_image_format *form, size_t x, size_t y, size_t row, void *p), (f, form, x, y, row, p), f, "image")
CREATE(clCreateImage3D, (cl_mem_flags f, const cl_image_format *form, size_t x, size_t y, size_t z, size_t row, size_t slice, void *p),
       (f, form, x, y, z, row, slice, p), f, "image")
CREATE(clCreatePipe, (cl_mem_flags f, cl_uint size, cl_uint packets, const cl_pipe_properties *l), (f, size, packets, l), f, "pipe")

cl_mem w_clCreateSubBuffer(cl_mem parent, cl_mem_flags f, cl_buffer_create_type type, const void *about, cl_int *error)
{
	u64 begin = api_enter();
	cl_int r = CL_SUCCESS;
	cl_mem m = cl.clCreateSubBuffer(parent, f, type, about, &r);

	if (error)
		*error = r;
	if (begin && m && type == CL_BUFFER_CREATE_TYPE_REGION) {
		const cl_buffer_region *region = about;
		struct rec_device_alloc record = {
			.id = memory_number(), .parent = (u64)handles_find(&objects, (u64)parent), .offset = region->origin, .length = region->size, .flags = flags_of(f),
		};
		struct args a = { 0 };
		cl_context c = NULL;

		cl.clGetMemObjectInfo(m, CL_MEM_CONTEXT, sizeof c, &c, NULL);
		record.device = opencl_context_device(c);
		args_word(&a, "sub-buffer");
		memory_note(&record, &a, CALLER());
		remember(m, record.id);
	}
	api_leave();
	return m;
}

/* ---- shared virtual memory ----------------------------------------------------------------- */

static void svm_made(const void *p, u64 bytes, u64 device, u64 flags, const char *what, struct caller at)
{
	struct rec_device_alloc r = { .id = memory_number(), .device = device, .bytes = bytes, .length = bytes, .flags = flags };
	struct args a = { 0 };

	args_word(&a, what);
	args_hex(&a, "address", (u64)p);
	memory_note(&r, &a, at);
	handles_put(&shared, (u64)p, (void *)r.id);
}

void opencl_svm_gone(const void *p)
{
	u64 id = (u64)handles_remove(&shared, (u64)p);

	if (id)
		memory_gone_note(id);
}

void *w_clSVMAlloc(cl_context c, cl_svm_mem_flags f, size_t n, cl_uint align)
{
	u64 begin = api_enter();
	void *p = cl.clSVMAlloc(c, f, n, align);

	if (begin && p)
		svm_made(p, n, opencl_context_device(c), MEMORY_SHARED | MEMORY_HOST_VISIBLE, "SVM", CALLER());
	api_leave();
	return p;
}

void w_clSVMFree(cl_context c, void *p)
{
	u64 begin = api_enter();

	if (begin && p)
		opencl_svm_gone(p);
	cl.clSVMFree(c, p);
	api_leave();
}

void *w_clHostMemAllocINTEL(cl_context c, const cl_mem_properties_intel *l, size_t n, cl_uint align, cl_int *error)
{
	u64 begin = api_enter();
	void *p = cl.clHostMemAllocINTEL(c, l, n, align, error);

	if (begin && p)
		svm_made(p, n, opencl_context_device(c), MEMORY_SHARED | MEMORY_HOST_VISIBLE, "USM host", CALLER());
	api_leave();
	return p;
}

void *w_clDeviceMemAllocINTEL(cl_context c, cl_device_id d, const cl_mem_properties_intel *l, size_t n, cl_uint align, cl_int *error)
{
	u64 begin = api_enter();
	void *p = cl.clDeviceMemAllocINTEL(c, d, l, n, align, error);

	if (begin && p)
		svm_made(p, n, opencl_device(d), MEMORY_DEVICE_LOCAL, "USM device", CALLER());
	api_leave();
	return p;
}

void *w_clSharedMemAllocINTEL(cl_context c, cl_device_id d, const cl_mem_properties_intel *l, size_t n, cl_uint align, cl_int *error)
{
	u64 begin = api_enter();
	void *p = cl.clSharedMemAllocINTEL(c, d, l, n, align, error);

	if (begin && p)
		svm_made(p, n, d ? opencl_device(d) : opencl_context_device(c), MEMORY_SHARED | MEMORY_HOST_VISIBLE, "USM shared", CALLER());
	api_leave();
	return p;
}

cl_int w_clMemFreeINTEL(cl_context c, void *p)
{
	u64 begin = api_enter();
	cl_int r;

	if (begin && p)
		opencl_svm_gone(p);
	r = cl.clMemFreeINTEL(c, p);
	api_leave();
	return r;
}

cl_int w_clMemBlockingFreeINTEL(cl_context c, void *p)
{
	u64 begin = api_enter();
	cl_int r;

	if (begin && p)
		opencl_svm_gone(p);
	r = cl.clMemBlockingFreeINTEL(c, p);
	if (begin)
		call_note(begin, &(struct call){ CALL_WAIT, NAMED("clMemBlockingFreeINTEL"), .error = r }, NULL, CALLER());
	api_leave();
	return r;
}

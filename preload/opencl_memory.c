/*
 * opencl_memory.c - buffers, images, pipes, shared and unified memory.
 *
 * A memory object ends when its driver says so, not when the program releases it: a kernel or a sub-buffer may still need
 * it. What lies in other memory (sub-buffers, host pointers) or was made by somebody else (imports) has no bytes of its own.
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

static void made(cl_mem m, cl_mem_flags f, struct rec_device_alloc *r, const char *what, struct caller at)
{
	struct args a = { 0 };
	cl_context c = NULL;

	cl.clGetMemObjectInfo(m, CL_MEM_CONTEXT, sizeof c, &c, NULL);
	r->id = memory_number();
	r->device = opencl_context_device(c);
	r->flags |= flags_of(f);
	args_word(&a, what);
	args_flags(&a, f);
	memory_note(r, &a, at);
	remember(m, r->id);
}

#define ELSEWHERE ((cl_mem)-1)          /* what it lies in is somebody else's */

/* An object that may lie in another one, in the program's own memory, or elsewhere. */
static void made_whole(cl_mem m, cl_mem_flags f, cl_mem parent, const char *what, struct caller at)
{
	struct rec_device_alloc r = { .parent = parent && parent != ELSEWHERE ? (u64)handles_find(&objects, (u64)parent) : 0 };
	size_t bytes = 0;

	cl.clGetMemObjectInfo(m, CL_MEM_SIZE, sizeof bytes, &bytes, NULL);
	r.flags = parent == ELSEWHERE ? MEMORY_IMPORTED : 0;
	r.bytes = parent || f & CL_MEM_USE_HOST_PTR ? 0 : bytes;
	r.length = bytes;
	made(m, f, &r, what, at);
}

static void call_memory(u64 begin, u64 name, u64 bytes, cl_int error, struct caller at)
{
	struct args a = { 0 };

	if (bytes)
		args_number(&a, "bytes", bytes);
	call_note(begin, &(struct call){ CALL_MEMORY, name, .error = error }, &a, at);
}

/* name, (parameters before the error), (as arguments), bytes that are asked for, what it lies in, what it is; all have flags f */
#define CREATE(name_, PARAMS, ARGS, bytes_, parent_, what)                                             \
	cl_mem w_##name_(cl_context c, UNPACK PARAMS, cl_int *error)                                   \
	{                                                                                              \
		u64 begin = opencl_enter();                                                            \
		cl_int r = CL_SUCCESS;                                                                 \
		cl_mem m = cl.name_(c, UNPACK ARGS, &r);                                               \
                                                                                                       \
		if (error)                                                                             \
			*error = r;                                                                    \
		if (begin) {                                                                           \
			call_memory(begin, NAMED(#name_), bytes_, r, CALLER());                        \
			if (m)                                                                         \
				made_whole(m, f, parent_, what, CALLER());                             \
		}                                                                                      \
		opencl_leave();                                                                        \
		return m;                                                                              \
	}
#define UNPACK(...) __VA_ARGS__
#define IMAGE_PARENT (d ? d->mem_object : NULL)

/* A property that is a handle of memory which exists already. */
static cl_mem imported(const cl_mem_properties *list)
{
	enum { FIRST_HANDLE = CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR, LAST_HANDLE = 0x206f };

	for (; list && *list; list += 2)
		if (*list >= FIRST_HANDLE && *list <= LAST_HANDLE)
			return ELSEWHERE;
	return NULL;
}

CREATE(clCreateBuffer, (cl_mem_flags f, size_t n, void *p), (f, n, p), n, NULL, "buffer")
CREATE(clCreateBufferWithProperties, (const cl_mem_properties *l, cl_mem_flags f, size_t n, void *p), (l, f, n, p), n, imported(l), "buffer")
CREATE(clCreateBufferWithPropertiesINTEL, (const cl_mem_properties_intel *l, cl_mem_flags f, size_t n, void *p), (l, f, n, p), n, imported(l), "buffer")
CREATE(clImportMemoryARM, (cl_mem_flags f, const cl_import_properties_arm *l, void *p, size_t n), (f, l, p, n), n, ELSEWHERE, "imported memory")
CREATE(clCreateFromGLBuffer, (cl_mem_flags f, cl_GLuint b), (f, b), 0, ELSEWHERE, "OpenGL buffer")
CREATE(clCreateFromGLTexture, (cl_mem_flags f, cl_GLenum t, cl_GLint level, cl_GLuint b), (f, t, level, b), 0, ELSEWHERE, "OpenGL texture")
CREATE(clCreateFromGLRenderbuffer, (cl_mem_flags f, cl_GLuint b), (f, b), 0, ELSEWHERE, "OpenGL renderbuffer")
CREATE(clCreateImage, (cl_mem_flags f, const cl_image_format *form, const cl_image_desc *d, void *p), (f, form, d, p), 0, IMAGE_PARENT, "image")
CREATE(clCreateImageWithProperties, (const cl_mem_properties *l, cl_mem_flags f, const cl_image_format *form, const cl_image_desc *d, void *p),
       (l, f, form, d, p), 0, imported(l) ? ELSEWHERE : IMAGE_PARENT, "image")
CREATE(clCreateImage2D, (cl_mem_flags f, const cl_image_format *form, size_t x, size_t y, size_t row, void *p), (f, form, x, y, row, p), 0, NULL, "image")
CREATE(clCreateImage3D, (cl_mem_flags f, const cl_image_format *form, size_t x, size_t y, size_t z, size_t row, size_t slice, void *p),
       (f, form, x, y, z, row, slice, p), 0, NULL, "image")
CREATE(clCreatePipe, (cl_mem_flags f, cl_uint size, cl_uint packets, const cl_pipe_properties *l), (f, size, packets, l), (u64)size * packets, NULL, "pipe")

cl_mem w_clCreateSubBuffer(cl_mem parent, cl_mem_flags f, cl_buffer_create_type type, const void *about, cl_int *error)
{
	u64 begin = opencl_enter();
	cl_int r = CL_SUCCESS;
	cl_mem m = cl.clCreateSubBuffer(parent, f, type, about, &r);
	const cl_buffer_region *region = type == CL_BUFFER_CREATE_TYPE_REGION ? about : NULL;

	if (error)
		*error = r;
	if (begin)
		call_memory(begin, NAMED("clCreateSubBuffer"), region ? region->size : 0, r, CALLER());
	if (begin && m && region) {
		struct rec_device_alloc record = { .parent = (u64)handles_find(&objects, (u64)parent), .offset = region->origin, .length = region->size };

		made(m, f, &record, "sub-buffer", CALLER());
	}
	opencl_leave();
	return m;
}

cl_int w_clReleaseMemObject(cl_mem m)
{
	u64 begin = opencl_enter();
	cl_int r = cl.clReleaseMemObject(m);

	if (begin)
		call_memory(begin, NAMED("clReleaseMemObject"), 0, r, CALLER());
	opencl_leave();
	return r;
}

/* ---- memory with an address ---------------------------------------------------------------- */

struct addressed { u64 device, flags; const char *what; };

static void addressed_made(const void *p, u64 bytes, const struct addressed *about, struct caller at)
{
	struct rec_device_alloc r = { .id = memory_number(), .device = about->device, .bytes = bytes, .length = bytes, .flags = about->flags };
	struct args a = { 0 };

	args_word(&a, about->what);
	args_hex(&a, "address", (u64)p);
	memory_note(&r, &a, at);
	handles_put(&shared, (u64)p, (void *)r.id);
}

u64 opencl_svm_take(const void *p)
{
	return (u64)handles_remove(&shared, (u64)p);
}

void opencl_svm_put_back(const void *p, u64 id)
{
	if (id)
		handles_put(&shared, (u64)p, (void *)id);
}

#define SHARED_HERE (MEMORY_SHARED | MEMORY_HOST_VISIBLE)

void *w_clSVMAlloc(cl_context c, cl_svm_mem_flags f, size_t n, cl_uint align)
{
	u64 begin = opencl_enter();
	void *p = cl.clSVMAlloc(c, f, n, align);

	if (begin) {
		call_memory(begin, NAMED("clSVMAlloc"), n, p ? CL_SUCCESS : CL_OUT_OF_RESOURCES, CALLER());
		if (p)
			addressed_made(p, n, &(struct addressed){ opencl_context_device(c), SHARED_HERE, "SVM" }, CALLER());
	}
	opencl_leave();
	return p;
}

void w_clSVMFree(cl_context c, void *p)
{
	u64 begin = opencl_enter(), id = begin && p ? opencl_svm_take(p) : 0;

	if (id)
		memory_gone_note(id);
	cl.clSVMFree(c, p);
	if (begin)
		call_memory(begin, NAMED("clSVMFree"), 0, CL_SUCCESS, CALLER());
	opencl_leave();
}

/* name, (parameters between the context and the size), (the same as arguments), device, flags, what it is */
#define UNIFIED(name_, PARAMS, ARGS, device_, flags_, what_)                                           \
	void *w_##name_(cl_context c, UNPACK PARAMS, size_t n, cl_uint align, cl_int *error)           \
	{                                                                                              \
		u64 begin = opencl_enter();                                                            \
		cl_int r = CL_SUCCESS;                                                                 \
		void *p = cl.name_(c, UNPACK ARGS, n, align, &r);                                      \
                                                                                                       \
		if (error)                                                                             \
			*error = r;                                                                    \
		if (begin) {                                                                           \
			call_memory(begin, NAMED(#name_), n, r, CALLER());                             \
			if (p)                                                                         \
				addressed_made(p, n, &(struct addressed){ device_, flags_, what_ }, CALLER()); \
		}                                                                                      \
		opencl_leave();                                                                        \
		return p;                                                                              \
	}

UNIFIED(clHostMemAllocINTEL, (const cl_mem_properties_intel *l), (l), opencl_context_device(c), SHARED_HERE, "USM host")
UNIFIED(clDeviceMemAllocINTEL, (cl_device_id d, const cl_mem_properties_intel *l), (d, l), opencl_device(d), MEMORY_DEVICE_LOCAL, "USM device")
UNIFIED(clSharedMemAllocINTEL, (cl_device_id d, const cl_mem_properties_intel *l), (d, l), d ? opencl_device(d) : opencl_context_device(c),
	SHARED_HERE, "USM shared")

#define UNIFIED_FREE(name_, kind)                                                                      \
	cl_int w_##name_(cl_context c, void *p)                                                        \
	{                                                                                              \
		u64 begin = opencl_enter(), id = begin && p ? opencl_svm_take(p) : 0;                  \
		cl_int r = cl.name_(c, p);                                                             \
                                                                                                       \
		if (id && r == CL_SUCCESS)                                                             \
			memory_gone_note(id);                                                          \
		else                                                                                   \
			opencl_svm_put_back(p, id);                                                    \
		if (begin)                                                                             \
			call_note(begin, &(struct call){ kind, NAMED(#name_), .error = r }, NULL, CALLER()); \
		opencl_leave();                                                                        \
		return r;                                                                              \
	}

UNIFIED_FREE(clMemFreeINTEL, CALL_MEMORY)
UNIFIED_FREE(clMemBlockingFreeINTEL, CALL_WAIT)

/*
 * opencl.h - what the OpenCL wrappers share.
 *
 *   opencl_names.h   the names of all functions that we deal with
 *   api_opencl.c     the table of entry points, and how the real functions are found
 *   opencl_context.c contexts: whose they are, and what they notify
 *   opencl_queue.c   devices, queues (profiling is switched on, and hidden from the program), waits
 *   opencl_work.c    everything that is enqueued, and its end
 *   opencl_commands.c  what is in a command buffer
 *   opencl_memory.c  buffers, images, SVM
 *   opencl_program.c builds, kernels and their names
 *   opencl_callback.c  functions of the program that the driver calls
 *
 * A wrapper is called w_NAME. The real function is cl.NAME.
 */
#ifndef OPENCL_H
#define OPENCL_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include "device.h"
#include "handles.h"
#include "opencl_names.h"
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_gl.h>

typedef __typeof__(&clImportMemoryARM) clImportMemoryARM_fn;    /* which the header lacks */

/*
 * A process may have several loaders, or call drivers itself. Only the function that is called tells which one is meant, so
 * each entry point has several doors (opencl_doors_x86_64.S). A row is what was found behind one set of doors: the functions
 * of one loader, or of one driver's extensions and the loader that gave them out.
 */
struct opencl {
#define X(name) __typeof__(&name) name;
	OPENCL_WRAPPED(X)
#undef X
#define X(name) name##_fn name;
	OPENCL_EXTENSIONS(X)
#undef X
#define X(name) __typeof__(&name) name;
	OPENCL_USED(X) OPENCL_USED_IF_THERE(X)
#undef X
};

extern struct opencl opencl_rows[OPENCL_LOADERS];
extern __thread u32 opencl_now __attribute__((tls_model("initial-exec")));     /* the row that this thread's call is meant for */
#define cl (opencl_rows[opencl_now])

#define X(name) __typeof__(name) w_##name;
OPENCL_WRAPPED(X)
#undef X
#define X(name) __typeof__(*(name##_fn)0) w_##name;
OPENCL_EXTENSIONS(X)
#undef X

bool opencl_is_there(u32 row);                  /* its loader was not closed */

/* A callback of the program, inside of a real call, may have come in by another door. */
static inline u64 opencl_enter(void)
{
	if (!tls.api_depth)
		tls.opencl_row = opencl_now;
	return api_enter();
}

static inline void opencl_leave(void)
{
	api_leave();
	opencl_now = tls.opencl_row;
}

struct cl_timer;

struct cl_queue {
	u64 id, device;
	struct cl_timer *timer;         /* of its device; NULL: it has none */
	bool out_of_order;
	u64 last_end;                   /* device's stamp: when the last of its work was over */
	bool profiled;                  /* the program asked for it itself */
	bool forced;                    /* ... it did not, and we switched it on */
	u32 property_words;             /* of the program's own list, with its end; 0: it gave none */
	cl_queue_properties property[32];
};

struct cl_queue *opencl_queue(cl_command_queue q);              /* NULL: it is none */
void opencl_read_clock(struct cl_timer *t, bool is_end);        /* if it is time for that */
u64 opencl_device(cl_device_id d);                              /* its number; told when it is first seen */
u64 opencl_context_device(cl_context c);                        /* number of its first device */
u64 opencl_kernel_name(cl_kernel k);

enum { OPENCL_KERNEL_TEXT = TEXT_MAX };         /* instances of templates have names of many hundred letters */
void opencl_kernel_text(cl_kernel k, char to[OPENCL_KERNEL_TEXT]);
void opencl_wait_failed(cl_uint n, const cl_event *list);       /* some of these may have failed */
u64 opencl_svm_take(const void *p);                             /* its number, 0: none; it is about to be freed */
void opencl_svm_put_back(const void *p, u64 id);                /* ... and was not */

typedef void CL_CALLBACK opencl_on_program(cl_program, void *);
void opencl_program_callback(opencl_on_program **function, void **user);        /* the program's, to be given to the driver: made ours */

typedef void CL_CALLBACK opencl_on_free(cl_command_queue, cl_uint, void **, void *);
typedef void CL_CALLBACK opencl_on_context(const char *, const void *, size_t, void *);
bool opencl_free_callback(opencl_on_free **function, void **user);              /* true: they are made ours */
bool opencl_context_callback(opencl_on_context **function, void **user);
void opencl_callback_drop(void *user);                          /* ours, which will not be called (any more) */

typedef void CL_CALLBACK opencl_native_function(void *);
struct opencl_native {
	opencl_native_function *function;
	void *args;
	size_t bytes;
	const void **where;             /* in the arguments: memory objects' places, so many */
	cl_uint count;
	size_t mapped;                  /* 0: it is the program's own */
};
void opencl_native_wrap(struct opencl_native *n);
void opencl_native_unwrap(const struct opencl_native *n);       /* after the call */

cl_command_queue opencl_commands(cl_command_buffer_khr buffer, struct args *to);        /* its own queue, if any, and what is in it */

#endif

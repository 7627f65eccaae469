/*
 * opencl_program.c - builds, and kernels with their names.
 */
#include "opencl.h"

static struct handles kernels;          /* cl_kernel -> number of its name */

/* ---- kernels ------------------------------------------------------------------------------ */

void opencl_kernel_text(cl_kernel k, char to[OPENCL_KERNEL_TEXT])
{
	to[0] = 0;
	if (cl.clGetKernelInfo(k, CL_KERNEL_FUNCTION_NAME, OPENCL_KERNEL_TEXT, to, NULL) != CL_SUCCESS || !to[0])
		text_copy(to, OPENCL_KERNEL_TEXT, "kernel");
}

static u64 remember(cl_kernel k)
{
	char name[OPENCL_KERNEL_TEXT];
	u64 id;

	opencl_kernel_text(k, name);
	id = name_number(name);
	handles_put(&kernels, (u64)k, (void *)id);
	return id;
}

/* A handle may come again for another kernel, so each creation is looked at; a fork's child tells names anew. */
u64 opencl_kernel_name(cl_kernel k)
{
	static u64 in;
	u64 id;

	if (in != process_born()) {
		in = process_born();
		kernels.table = NULL;
	}
	id = (u64)handles_find(&kernels, (u64)k);
	return id || !k ? id : remember(k);
}

cl_kernel w_clCreateKernel(cl_program p, const char *name, cl_int *error)
{
	u64 begin = opencl_enter();
	cl_kernel k = cl.clCreateKernel(p, name, error);

	if (k && begin)
		remember(k);
	opencl_leave();
	return k;
}

cl_int w_clCreateKernelsInProgram(cl_program p, cl_uint n, cl_kernel *list, cl_uint *made)
{
	u64 begin = opencl_enter();
	cl_uint count = 0;
	cl_int r = cl.clCreateKernelsInProgram(p, n, list, &count);

	if (made && r == CL_SUCCESS)
		*made = count;
	for (u32 i = 0; begin && list && r == CL_SUCCESS && i < count && i < n; i++)
		remember(list[i]);
	opencl_leave();
	return r;
}

cl_kernel w_clCloneKernel(cl_kernel from, cl_int *error)
{
	u64 begin = opencl_enter();
	cl_kernel k = cl.clCloneKernel(from, error);

	if (k && begin)
		remember(k);
	opencl_leave();
	return k;
}

/* ---- builds ------------------------------------------------------------------------------- */

/* A build for no device in particular is for all of the program's. */
static cl_device_id device_of(cl_program p, cl_uint n, const cl_device_id *list)
{
	cl_device_id all[64];
	size_t bytes = 0;

	if (n && list)
		return list[0];
	return cl.clGetProgramInfo(p, CL_PROGRAM_DEVICES, sizeof all, all, &bytes) == CL_SUCCESS && bytes >= sizeof *all ? all[0] : NULL;
}

/* A log may begin with pages of warnings: it is shown from the line with the first error. */
static const char *first_error(const char *log)
{
	const char *line = log;

	for (const char *p = log; *p; p++) {
		if (text_starts(p, "error") || text_starts(p, "Error") || text_starts(p, "ERROR"))
			return line;
		if (*p == '\n')
			line = p + 1;
	}
	return log;
}

/* As much of it as there is room for. */
static void args_log(struct args *a, const char *log)
{
	static const char cut[] = " ... ";
	char text[sizeof a->text];
	size_t size = sizeof text - a->used - sizeof "log=" + 1;

	if (text_length(log) >= size) {
		const char *from = first_error(log), *skipped = from > log ? cut : "";

		text_join(text, size, skipped, from);
		if (text_length(skipped) + text_length(from) >= size)
			text_copy(text + size - sizeof cut, sizeof cut, cut);
		log = text;
	}
	args_text(a, "log", log);
}

static void add_log(struct args *a, cl_program p, cl_uint n, const cl_device_id *list)
{
	cl_device_id d = device_of(p, n, list);
	size_t size = 0;
	char *log;

	if (!d || cl.clGetProgramBuildInfo(p, d, CL_PROGRAM_BUILD_LOG, 0, NULL, &size) != CL_SUCCESS || size < 2 || size > 1 << 20)
		return;
	log = sys_memory(size + 1);
	if (!log)
		return;
	if (cl.clGetProgramBuildInfo(p, d, CL_PROGRAM_BUILD_LOG, size, log, NULL) == CL_SUCCESS)
		args_log(a, log);
	sys_munmap(log, size + 1);
}

static void add_options(struct args *a, const char *options)
{
	if (options && options[0] && text_length(options) < 200)
		args_text(a, "options", options);
}

cl_int w_clBuildProgram(cl_program p, cl_uint n, const cl_device_id *list, const char *options, void (CL_CALLBACK *f)(cl_program, void *), void *user)
{
	u64 begin = opencl_enter();
	struct args a = { 0 };
	cl_int r;

	if (begin)
		opencl_program_callback(&f, &user);
	r = cl.clBuildProgram(p, n, list, options, f, user);
	if (begin) {
		add_options(&a, options);
		if (r != CL_SUCCESS)
			add_log(&a, p, n, list);
		call_note(begin, &(struct call){ CALL_BUILD, NAMED("clBuildProgram"), .error = r }, &a, CALLER());
	}
	opencl_leave();
	return r;
}

cl_int w_clCompileProgram(cl_program p, cl_uint n, const cl_device_id *list, const char *options, cl_uint headers, const cl_program *header,
			  const char **names, void (CL_CALLBACK *f)(cl_program, void *), void *user)
{
	u64 begin = opencl_enter();
	struct args a = { 0 };
	cl_int r;

	if (begin)
		opencl_program_callback(&f, &user);
	r = cl.clCompileProgram(p, n, list, options, headers, header, names, f, user);
	if (begin) {
		add_options(&a, options);
		if (r != CL_SUCCESS)
			add_log(&a, p, n, list);
		call_note(begin, &(struct call){ CALL_BUILD, NAMED("clCompileProgram"), .error = r }, &a, CALLER());
	}
	opencl_leave();
	return r;
}

cl_program w_clLinkProgram(cl_context c, cl_uint n, const cl_device_id *list, const char *options, cl_uint programs, const cl_program *program,
			   void (CL_CALLBACK *f)(cl_program, void *), void *user, cl_int *error)
{
	u64 begin = opencl_enter();
	cl_int r = CL_SUCCESS;
	struct args a = { 0 };
	cl_program p;

	if (begin)
		opencl_program_callback(&f, &user);
	p = cl.clLinkProgram(c, n, list, options, programs, program, f, user, &r);
	if (error)
		*error = r;
	if (begin) {
		add_options(&a, options);
		if (r != CL_SUCCESS && p)
			add_log(&a, p, n, list);
		call_note(begin, &(struct call){ CALL_BUILD, NAMED("clLinkProgram"), .error = r }, &a, CALLER());
	}
	opencl_leave();
	return p;
}

// cc: -lOpenCL
/*
 * opencl_imports.c - memory that somebody else made (of OpenGL, a file descriptor, a pointer), taken over and given back, and semaphores, on
 * the stand-in driver. Of the device's memory only two buffers are its own.
 */
#include "opencl.h"
#include "opencl_driver.h"

typedef __typeof__(&clImportMemoryARM) clImportMemoryARM_fn;

#define EXTENSION(name) static name##_fn name##_
EXTENSION(clEnqueueAcquireExternalMemObjectsKHR);
EXTENSION(clEnqueueReleaseExternalMemObjectsKHR);
EXTENSION(clEnqueueWaitSemaphoresKHR);
EXTENSION(clEnqueueSignalSemaphoresKHR);
EXTENSION(clEnqueueMigrateMemObjectEXT);
EXTENSION(clEnqueueMemsetINTEL);
EXTENSION(clCreateBufferWithPropertiesINTEL);
EXTENSION(clImportMemoryARM);

enum { OWN = 2, ALL = 6 };

static void make(const struct cl *c, cl_mem *m)
{
	static const cl_mem_properties file[] = { CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR, 7, 0 };
	cl_int error[ALL];

	m[0] = clCreateBufferWithProperties(c->context, NULL, CL_MEM_READ_WRITE, 3000, NULL, &error[0]);
	m[1] = clCreateBufferWithPropertiesINTEL_(c->context, NULL, CL_MEM_READ_WRITE, 5000, NULL, &error[1]);
	m[2] = clCreateBufferWithProperties(c->context, file, CL_MEM_READ_WRITE, 100000, NULL, &error[2]);
	m[3] = clImportMemoryARM_(c->context, CL_MEM_READ_WRITE, NULL, &error, 200000, &error[3]);
	m[4] = clCreateFromGLBuffer(c->context, CL_MEM_READ_WRITE, 300000, &error[4]);
	m[5] = clCreateBufferWithPropertiesINTEL_(c->context, file, CL_MEM_READ_WRITE, 400000, NULL, &error[5]);
	for (int i = 0; i < ALL; i++)
		MUST(error[i]);
}

int main(void)
{
	struct cl c = cl_start();
	cl_command_queue q = cl_queue(&c, 0);
	char bytes[64];
	cl_mem m[ALL];

#define GET(name) name##_ = (name##_fn)clGetExtensionFunctionAddressForPlatform(c.platform, #name)
	GET(clEnqueueAcquireExternalMemObjectsKHR), GET(clEnqueueReleaseExternalMemObjectsKHR), GET(clEnqueueWaitSemaphoresKHR);
	GET(clEnqueueSignalSemaphoresKHR), GET(clEnqueueMigrateMemObjectEXT), GET(clEnqueueMemsetINTEL), GET(clCreateBufferWithPropertiesINTEL);
	GET(clImportMemoryARM);
	make(&c, m);
	MUST(clEnqueueAcquireGLObjects(q, 1, &m[4], 0, NULL, NULL));
	MUST(clEnqueueReleaseGLObjects(q, 1, &m[4], 0, NULL, NULL));
	MUST(clEnqueueAcquireExternalMemObjectsKHR_(q, 1, &m[2], 0, NULL, NULL));
	MUST(clEnqueueReleaseExternalMemObjectsKHR_(q, 1, &m[2], 0, NULL, NULL));
	MUST(clEnqueueMigrateMemObjectEXT_(q, ALL, m, 0, 0, NULL, NULL));
	MUST(clEnqueueWaitSemaphoresKHR_(q, 0, NULL, NULL, 0, NULL, NULL));
	MUST(clEnqueueSignalSemaphoresKHR_(q, 0, NULL, NULL, 0, NULL, NULL));
	MUST(clEnqueueMemsetINTEL_(q, bytes, 'x', sizeof bytes, 0, NULL, NULL));
	MUST(clFinish(q));
	say("set %.4s\n", bytes);
	for (int i = 0; i < ALL; i++)
		MUST(clReleaseMemObject(m[i]));
	clReleaseCommandQueue(q);
	expect("devices.0.peak_bytes", 8000);
	expect("devices.0.live_at_exit_bytes", 0);
	expect("devices.0.works_timed", 8);
	expect("devices.0.works_unfinished", 0);
	cl_stop(&c);
	return 0;
}

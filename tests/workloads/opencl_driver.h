/*
 * opencl_driver.h - what the stand-in driver (opencl_driver.c) offers beyond OpenCL: the truth about its clocks.
 */
#ifndef OPENCL_DRIVER_H
#define OPENCL_DRIVER_H

#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_gl.h>

typedef cl_ulong (CL_API_CALL *clHostTimeSTANDIN_fn)(cl_device_id device, cl_ulong shown);     /* CLOCK_MONOTONIC, in ns */
typedef cl_ulong (CL_API_CALL *clTimerReadsSTANDIN_fn)(cl_device_id device);                   /* how often its timer was read */

#endif

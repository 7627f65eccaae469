// cc: -std=c++20
// tt_metal_user.cc - workloads on the stand-in for tt-metal; the numbers are in tests/e2e/metal.py.
#include "tt_metal.h"

#include <cstdio>

using namespace tt::tt_metal;

static void add(distributed::MeshWorkload &workload, const std::string &file)
{
	Program program;

	CreateKernel(program, file, tt::xy_pair { 0, 0 }, ComputeConfig { true });
	workload.add_program(distributed::MeshCoordinateRange(), std::move(program));
}

int main()
{
	AllocatorImpl allocator;
	Buffer weights((6 << 20) - 5), activations(1 << 20);
	distributed::MeshCommandQueue queue;
	distributed::MeshWorkload matmul, eltwise;

	printf("at %d\n", allocator.allocate_buffer(&weights) < allocator.allocate_buffer(&activations));
	add(matmul, "compute/bmm.cpp");
	add(eltwise, "compute/a_file_with_a_name_that_is_not_kept_inside_of_the_string.cpp");
	for (int i = 0; i < 3; i++) {
		distributed::EnqueueMeshWorkload(queue, matmul, false);
		distributed::EnqueueMeshWorkload(queue, eltwise, false);
		distributed::Finish(queue);
	}
	distributed::EnqueueMeshWorkload(queue, matmul, true);
	allocator.deallocate_buffer(&activations);      // the weights are left
	tt_books();
}

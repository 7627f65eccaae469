// cc: -shared -fPIC -std=c++20
// tt_metal.cc - a stand-in for tt-metal (see tt_metal.h), which needs a card.
#include "tt_metal.h"
#include "standin.h"

namespace tt::tt_metal {

enum { WORKLOAD_US = 2500 };

std::uint64_t Buffer::aligned_size() const
{
	return (bytes + 31) / 32 * 32;
}

std::uint64_t AllocatorImpl::allocate_buffer(Buffer *buffer)
{
	static std::uint64_t next = 4096;
	std::uint64_t at = next;

	next += buffer->aligned_size();
	return at;
}

void AllocatorImpl::deallocate_buffer(Buffer *)
{
}

unsigned CreateKernel(Program &program, const std::string &file, const std::variant<xy_pair, CoreRange, CoreRangeSet> &,
		      const std::variant<DataMovementConfig, ComputeConfig> &)
{
	program.kernel = file;
	return 0;
}

namespace distributed {

void MeshWorkload::add_program(const MeshCoordinateRange &, Program &&program)
{
	kernel = std::move(program.kernel);
}

void EnqueueMeshWorkload(MeshCommandQueue &, MeshWorkload &workload, bool blocking)
{
	standin_hand(workload.kernel.c_str(), WORKLOAD_US);
	if (blocking)
		standin_wait();
}

void Finish(MeshCommandQueue &, std::span<const SubDeviceId>)
{
	standin_wait();
}

}
}

void tt_books()
{
	standin_print();
}

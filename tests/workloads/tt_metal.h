/*
 * tt_metal.h - as much of tt-metal's C++ interface as the stand-in has: names and parameters are those that its linker sees.
 */
#ifndef TT_METAL_H
#define TT_METAL_H

#include <cstdint>
#include <span>
#include <string>
#include <variant>

namespace ttsl {
template <typename T, typename Tag> struct StrongType { T value; };
}

namespace tt {
struct xy_pair { std::size_t x, y; };
}

namespace tt::tt_metal {

struct CoreRange { xy_pair start, end; };
struct CoreRangeSet { CoreRange one; };
struct DataMovementConfig { int processor; };
struct ComputeConfig { bool approximate; };
struct SubDeviceIdTag;
using SubDeviceId = ttsl::StrongType<unsigned char, SubDeviceIdTag>;

class Program {
public:
	std::string kernel;
};

class Buffer {
public:
	explicit Buffer(std::uint64_t size) : bytes(size) {}
	std::uint64_t aligned_size() const;
private:
	const std::uint64_t bytes;
};

class AllocatorImpl {
public:
	std::uint64_t allocate_buffer(Buffer *buffer);
	void deallocate_buffer(Buffer *buffer);
};

unsigned CreateKernel(Program &program, const std::string &file, const std::variant<xy_pair, CoreRange, CoreRangeSet> &cores,
		      const std::variant<DataMovementConfig, ComputeConfig> &config);

namespace distributed {

class MeshCoordinateRange {};

class MeshCommandQueue {
public:
	int number = 0;
};

class MeshWorkload {
public:
	void add_program(const MeshCoordinateRange &range, Program &&program);
	std::string kernel;
};

void EnqueueMeshWorkload(MeshCommandQueue &queue, MeshWorkload &workload, bool blocking);
void Finish(MeshCommandQueue &queue, std::span<const SubDeviceId> devices = {});

}
}

void tt_books();                        // what really ran: not of tt-metal

#endif

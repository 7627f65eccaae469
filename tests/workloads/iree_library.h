/*
 * iree_library.h - the tables of an IREE executable, for stand-ins: what the compiler puts out, in version 5 or 6.
 */
#include <stddef.h>
#include <stdint.h>

struct dispatch_state {
	uint32_t size_x, size_y;
	uint16_t size_z, constant_count;
	uint32_t x, y;
	uint16_t z;
	uint8_t max_concurrency, binding_count;
	const uint32_t *constants;
	void *const *bindings;
	const size_t *lengths;
};

struct workgroup_state {
	uint32_t x, y;
	uint16_t z, reserved;
	uint32_t processor;
	void *local_memory;
	uint32_t local_memory_size;
};

typedef int kernel(const void *environment, const struct dispatch_state *, const struct workgroup_state *);

struct source { uint32_t line, path_length; const char *path; };
struct header { uint32_t version; const char *name; uint32_t features, sanitizer; };

struct library6 {
	const struct header *header;
	struct { uint32_t count; const char *const *symbols; } imports;
	struct {
		uint32_t count;
		kernel *const *kernels;
		const void *attributes, *params, *occupancy;
		const char *const *names, *const *tags;
		const void *parameter_names;
		const struct source *sources;
		const void *stages;
	} exports;
	uint32_t constants;
};

struct library5 {
	const struct header *header;
	struct { uint32_t count; const char *const *symbols; } imports;
	struct {
		uint32_t count;
		kernel *const *kernels;
		const void *attributes;
		const char *const *names, *const *tags;
		const struct source *sources;
		const void *stages;
	} exports;
	uint32_t constants;
};

typedef const void *query_function(uint32_t version, const void *environment);

enum { NOP, COUNT, SPIN, FAIL, CALL, KERNELS };

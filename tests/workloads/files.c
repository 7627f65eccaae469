/*
 * files.c - mapped files and shared memory are pools of their own and no part of the heap's total.
 */
#include "expect.h"
#include <fcntl.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
	const char *path = argv[1];             /* absolute: this is the pool's name */
	size_t size = 3 << 20, heap = 100000;
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), shm = memfd_create("cache", MFD_CLOEXEC);
	char key[600], *weights, *shared, *block;

	if (argc < 2 || fd < 0 || shm < 0 || ftruncate(fd, size) || ftruncate(shm, 2 << 20))
		abort();
	weights = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	shared = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, shm, 0);
	block = used(malloc(heap));
	munmap(weights + (1 << 20), 1 << 20);
	munmap(shared, 2 << 20);
	snprintf(key, sizeof key, "pools.file:%s.peak_bytes", path);
	expect(key, size);
	snprintf(key, sizeof key, "pools.file:%s.live_at_exit_bytes", path);
	expect(key, 2 << 20);
	expect("peak.bytes", heap);
	expect("pools.malloc.peak_bytes", heap);
	free(block);
	return 0;
}

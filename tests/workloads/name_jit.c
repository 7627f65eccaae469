/*
 * name_jit.c - code made at run time, named by /tmp/perf-PID.map as JIT compilers do, allocates.
 */
#include "expect.h"
#include <sys/mman.h>

__attribute__((noinline)) static void *allocate(void)
{
	void *p = used(malloc(6 << 20));

	return used(p);
}

int main(void)
{
	/* push %rbp; mov %rsp, %rbp; movabs $allocate, %rax; call *%rax; pop %rbp; ret */
	unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, 0x5d, 0xc3 };
	void *target = allocate, *page, *block;
	char path[64];
	FILE *map;

	memcpy(code + 6, &target, 8);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(page, code, sizeof code);
	snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	fprintf(map, "%lx %x jit_matmul_f32\n", (unsigned long)page, (unsigned)sizeof code);
	fclose(map);
	block = ((void *(*)(void))page)();
	free(block);
	return 0;
}

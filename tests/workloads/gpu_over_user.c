/* gpu_over_user.c - two allocations through gpu_over.c. */
#include <stddef.h>

int cudaMalloc(void **to, size_t bytes);
int gpu_over_books(void);

int main(void)
{
	void *a, *b;

	cudaMalloc(&a, 1 << 20);
	cudaMalloc(&b, 1 << 21);
	return gpu_over_books();
}

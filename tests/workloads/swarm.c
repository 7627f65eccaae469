/*
 * swarm.c - 200 processes alive at once, half of them by fork alone and half by exec, each with a known heap.
 */
#include "expect.h"
#include <sys/wait.h>

enum { COUNT = 200, EACH = 100, SIZE = 1000 };

static void member(int ready, int go)
{
	char *p[EACH], c;

	for (int i = 0; i < EACH; i++)
		p[i] = used(malloc(SIZE));
	write(ready, "r", 1);
	read(go, &c, 1);
	for (int i = 0; i < EACH; i++)
		free(p[i]);
	_exit(0);
}

int main(int argc, char **argv)
{
	int ready[2], go[2], bad = 0, status;
	struct books b = { 0 };
	char c, in[12], out[12];

	if (argc > 2)
		member(atoi(argv[1]), atoi(argv[2]));
	pipe(ready);
	pipe(go);
	snprintf(in, sizeof in, "%d", ready[1]);
	snprintf(out, sizeof out, "%d", go[0]);
	for (int i = 0; i < COUNT; i++) {
		if (!fork()) {
			close(go[1]);
			if (i % 2)
				execl("/proc/self/exe", "swarm", in, out, NULL);
			member(ready[1], go[0]);
		}
		for (int k = 0; k < EACH; k++)
			books_alloc(&b, SIZE);
	}
	for (int i = 0; i < COUNT; i++)
		read(ready[0], &c, 1);
	close(go[1]);
	while (wait(&status) > 0)
		bad += status != 0;
	b.frees = COUNT * EACH;
	b.live = b.blocks = 0;
	books_say(&b);
	return bad != 0;
}

/*
 * tree.c - a tree of processes made by fork, all alive at once at the peak.
 *
 *   root: 1 MiB -- fork --> child i: (i + 1) * 100000 bytes -- fork --> grandchild: 50000 bytes
 *
 * Everybody allocates, tells the root, and waits for its word before giving anything back. Blocks that a
 * child inherits are its parent's; freeing them in the child changes no book.
 */
#include "expect.h"
#include <sys/wait.h>

enum { CHILDREN = 5 };

static int ready[2], go[2];

static void hold(char *inherited, size_t size)
{
	char *p = used(malloc(size)), c;

	free(inherited);
	write(ready[1], "r", 1);
	read(go[0], &c, 1);                     /* end of file: the root has closed it */
	free(p);
}

static void child(int number, char *inherited)
{
	char *mine = used(malloc((number + 1) * 100000));

	close(go[1]);
	if (!fork()) {
		hold(inherited, 50000);
		_exit(0);
	}
	hold(inherited, 10);
	wait(NULL);
	free(mine);
	_exit(0);
}

int main(void)
{
	struct books b = { 0 };
	char *root = used(malloc(1 << 20)), c;

	pipe(ready);
	pipe(go);
	books_alloc(&b, 1 << 20);
	for (int i = 0; i < CHILDREN; i++) {
		if (!fork())
			child(i, root);
		books_alloc(&b, (i + 1) * 100000);
		books_alloc(&b, 50000);
		books_alloc(&b, 10);
	}
	for (int i = 0; i < 2 * CHILDREN; i++)
		read(ready[0], &c, 1);
	close(go[1]);
	while (wait(NULL) > 0)
		;
	b.frees = 3 * CHILDREN;
	b.live = 1 << 20;
	b.blocks = 1;
	books_say(&b);
	return 0;
}

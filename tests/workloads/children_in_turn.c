/*
 * children_in_turn.c - processes of 2 MiB, each begun when the one before is over: no two of them have their memory at once.
 *
 *   children_in_turn            a hundred children, one after another
 *   children_in_turn exec [N]   a hundred images of one process, or N more of them
 *   children_in_turn forge      as children; somebody sends the collector the exit of a process that will begin in a far future
 */
#include "expect.h"
#include <fcntl.h>
#include <mlprof/wire.h>
#include <sys/wait.h>

enum { MANY = 100, BYTES = 2 << 20 };

static void live(void)
{
	memset(used(malloc(BYTES)), 1, BYTES);
	usleep(8000);
}

static int become(const char *self, int more)
{
	char left[16];

	live();
	if (!more)
		return 0;
	snprintf(left, sizeof left, "%d", more - 1);
	execl(self, self, "exec", left, NULL);
	return 1;
}

static void forge(void)
{
	const u64 far = 1ull << 61;
	char path[600];
	union chunk c = { .head = { .magic = CHUNK_MAGIC, .version = WIRE_VERSION, .pid = 99999, .born = far, .t0 = 1, .node_base = 1 } };
	int fd;

	c.word[CHUNK_HEAD_WORDS] = KIND_event | (u64)EVENT_exit << 3;
	c.head.used = USED_STEP(1, sizeof(struct rec_exit) / 8);
	snprintf(path, sizeof path, "%s/pipe", getenv("MLPROF_SESSION") ? getenv("MLPROF_SESSION") : "");
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, &c, sizeof c) != sizeof c)
		_exit(9);
	close(fd);
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	int status, bad = 0;

	if (!strcmp(way, "exec"))
		return become(argv[0], argc > 2 ? atoi(argv[2]) : MANY);
	for (int i = 0; i < MANY; i++) {
		if (fork() == 0) {
			live();
			if (i % 2)
				exit(0);
			_exit(0);
		}
		bad += wait(&status) < 0 || status != 0;
		if (i == 0 && !strcmp(way, "forge"))
			forge();
	}
	return bad != 0;
}

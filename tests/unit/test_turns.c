/*
 * test_turns.c - two processes take turns, of any length: every record is counted for the process that made it.
 */
#include "fed.h"
#include "tap.h"

enum { TURNS = 6, LONGEST = 70 };

static void begin(struct gen *g, u32 pid)
{
	gen_init(g, pid, 500, 0, fed_keep, NULL);
	g->last = 1000;
	gen_begin(g, 0);
	GEN_EVENT(g, 1001, hello, "/bin/test", .pid = pid);
	gen_node(g, 0, 0x400000);
}

/* Each makes `length` blocks in its turn, at the same addresses as the other; then frees them, in such turns too. */
static struct session *run(u32 length)
{
	struct gen g[2];
	u64 t = 50000;
	u32 i, turn, free;

	fed_begin(1000, 1 << 20);
	for (i = 0; i < 2; i++)
		begin(&g[i], 7 + i);
	for (free = 0; free < 2; free++)
		for (turn = 0; turn < TURNS; turn++)
			for (i = 0; i < length; i++) {
				u64 addr = 0x10000 + (turn / 2 * LONGEST + i) * 64;

				t += 10;
				if (free)
					gen_free(&g[turn % 2], t, addr);
				else
					gen_alloc(&g[turn % 2], t, addr, 10 + turn % 2, 1);
			}
	for (i = 0; i < 2; i++)
		gen_flush(&g[i]);
	return fed_session();
}

static bool right(const struct process *p, u32 each, u32 size)
{
	return p->allocs == each && p->frees == each && !p->total.now && p->total.peak == (i64)each * size;
}

int main(void)
{
	u32 length, wrong = 0;

	for (length = 1; length <= LONGEST; length++) {
		struct session *s = run(length);
		u32 each = length * TURNS / 2;

		if (!right(s->process[0], each, 10) || !right(s->process[1], each, 11) || s->losses.unknown_frees)
			wrong++;
		session_free(s);
	}
	ok(!wrong, "%u of %u lengths of a turn are counted wrongly", wrong, LONGEST);
	free(fed.chunk);
	return done();
}

/* test_chunk.c - what the reader refuses. */
#include "../../collector/read/chunk.h"
#include "gen.h"
#include "tap.h"
#include <errno.h>

static union chunk good;

static void keep(void *to, const union chunk *c)
{
	(void)to;
	good = *c;
}

static void make_good(void)
{
	struct gen g;

	gen_init(&g, 7, 1000, 0, keep, NULL);
	GEN_EVENT(&g, 1000, hello, "/bin/x", .pid = 7);
	gen_node(&g, 0, 0x1234);
	gen_alloc(&g, 1010, 0x7f0000001000, 64, 1);
	gen_free(&g, 1020, 0x7f0000001000);
	GEN_EVENT(&g, 1030, exit, NULL, .status = 3);
	gen_flush(&g);
}

static int check(union chunk c)
{
	struct extent to;

	return chunk_check(&c, &to);
}

static void refuse_heads(void)
{
	union chunk c = good;

	c.head.magic++;
	ok(check(c) == -EINVAL, "another magic");
	c = good;
	c.head.version++;
	ok(check(c) == -EINVAL, "another version");
	c = good;
	c.head.used = USED_STEP(CHUNK_ROOM + 1, 0);
	ok(check(c) == -EINVAL, "more words up than there is room");
	c = good;
	c.head.used = USED_STEP(CHUNK_ROOM, CHUNK_ROOM);
	ok(check(c) == -EINVAL, "words up and down overlap");
	c = good;
	c.head.used = ~0ull;
	ok(check(c) == -EINVAL, "lengths that wrap");
	c = good;
	c.head.t0 = ~0ull;
	ok(check(c) == -EINVAL, "a time that would wrap");
	c = good;
	c.head.node_base = UINT32_MAX;
	ok(check(c) == -EINVAL, "node numbers that would wrap");
}

static void refuse_records(void)
{
	union chunk c = good;

	c.word[CHUNK_HEAD_WORDS] &= ~7ull;
	ok(check(c) == -EINVAL, "kind 0");
	c.word[CHUNK_HEAD_WORDS] |= 7;
	ok(check(c) == -EINVAL, "kind 7");
	c = good;
	c.word[CHUNK_HEAD_WORDS] = KIND_event | 63ull << 3;
	ok(check(c) == -EINVAL, "an event of an unknown type");
	c.word[CHUNK_HEAD_WORDS] = KIND_event | 200ull << 3;
	ok(check(c) == -EINVAL, "an event type out of range");
	c = good;
	c.word[CHUNK_HEAD_WORDS] |= 0xfffull << 11;
	ok(check(c) == -EINVAL, "a text longer than the chunk");
	c = good;
	c.word[CHUNK_HEAD_WORDS + 4] |= 8ull << 11;
	ok(check(c) == -EINVAL, "a text where none may be");
	c = good;
	c.head.used -= USED_STEP(0, 1);
	ok(check(c) == -EINVAL, "a body that is not there");
	c.head.used += USED_STEP(0, 2);
	ok(check(c) == -EINVAL, "a body that nobody owns");
}

static void refuse_jump_back(void)
{
	struct gen g;

	gen_init(&g, 7, 1000, 0, keep, NULL);
	GEN_EVENT(&g, 2000, at, NULL, .ticks = 1500);
	gen_flush(&g);
	ok(check(good) == -EINVAL, "time that jumps back");
}

int main(void)
{
	struct extent to;

	make_good();
	ok(!chunk_check(&good, &to), "a good chunk is good");
	ok(to.records == 4 && to.nodes == 1 && to.ticks == 1030 && to.exits, "and is measured");
	refuse_heads();
	refuse_records();
	refuse_jump_back();
	return done();
}

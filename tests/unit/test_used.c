/*
 * test_used.c - ranges of device memory that were used: those that overlap count once, what makes no sense is not
 * believed, and the summary keeps the largest blocks that were there at the peak.
 */
#include "../../collector/read/feed.h"
#include "gen.h"
#include "tap.h"

enum { BLOCKS = 20, MIB = 1 << 20 };

static struct { u32 ends; struct used_ranges of[4]; struct used_range largest[4]; } heard;      /* by number of the memory */

static void hear_end(void *to, struct process *p, struct device_memory *m)
{
	(void)to;
	(void)p;
	heard.ends++;
	if (m->id >= 4)
		return;
	heard.of[m->id] = m->used;
	if (m->used.count)
		heard.largest[m->id] = m->used.at[0];
}

static void range(struct gen *g, u64 t, u64 id, u64 offset, u64 length)
{
	GEN_EVENT(g, t, memory_used, NULL, .id = id, .offset = offset, .length = length, .name = 1);
}

/* A buffer over most of a block, and a small one behind it. */
static void one_block(struct gen *g, u64 t)
{
	GEN_EVENT(g, t, device_alloc, "memory", .id = 1, .device = 1, .bytes = 8 * MIB, .length = 8 * MIB);
	GEN_EVENT(g, t, device_alloc, "buffer", .id = 2, .device = 1, .parent = 1, .offset = 4096, .length = 6 * MIB);
	GEN_EVENT(g, t, device_alloc, "buffer", .id = 3, .device = 1, .parent = 1, .offset = 7 * MIB, .length = MIB);
	range(g, t, 2, 50, 100);
	range(g, t, 2, 0, 100);
	range(g, t, 2, 60, 10);
	range(g, t, 2, 200, 120);
	range(g, t, 2, 6 * MIB - 1, 2);
	range(g, t, 2, ~0ull, ~0ull);
	range(g, t, 3, 0, MIB);
	GEN_EVENT(g, t, memory_used, NULL, .id = 2, .more = 5);
	GEN_EVENT(g, t + 1, device_free, NULL, .id = 2);
	GEN_EVENT(g, t + 2, device_free, NULL, .id = 3);
	GEN_EVENT(g, t + 3, device_free, NULL, .id = 1);
}

/* Later there are more at a time, of which one has ranges that nobody told of. */
static void blocks(struct gen *g, u64 t)
{
	for (u32 i = 0; i < BLOCKS; i++) {
		GEN_EVENT(g, t, device_alloc, "memory", .id = 10 + i, .device = 1, .bytes = (1 + i) * MIB, .length = (1 + i) * MIB);
		range(g, t, 10 + i, i, 1);
	}
	GEN_EVENT(g, t, device_alloc, "memory", .id = 50, .device = 1, .bytes = MIB, .length = MIB);
	for (u32 i = 0; i < BLOCKS / 2; i++)
		GEN_EVENT(g, t + 1, device_free, NULL, .id = 10 + i);
	GEN_EVENT(g, t + 2, device_alloc, "memory", .id = 60, .device = 1, .bytes = MIB, .length = MIB);
	range(g, t + 2, 60, 0, 1);
}

static void check_ranges(void)
{
	ok(heard.of[2].known && heard.of[2].count == 4 && heard.of[2].bytes == 150 + 120, "ranges of the buffer: %llu bytes", (unsigned long long)heard.of[2].bytes);
	ok(heard.of[2].more == 5 && heard.of[1].more == 5, "uses that were left out");
	ok(heard.of[1].count == 4 && heard.of[1].bytes == 270, "and of the block that it takes up");
	ok(heard.largest[1].offset == 4096 + 200 && heard.largest[1].length == 120 && !strcmp(heard.largest[1].name, "matmul"), "the largest, and by whom");
	ok(heard.of[3].count == 1 && heard.of[3].bytes == MIB, "those of a small buffer are its own");
}

static void check_blocks(const struct device *d)
{
	bool sorted = true;

	for (u32 i = 0; i < d->blocks; i++)
		sorted &= d->block[i].bytes == (u64)(BLOCKS - i) * MIB && d->block[i].used.bytes == 1 && d->block[i].range[0].offset == BLOCKS - 1 - i;
	ok(d->blocks == USED_BLOCKS && sorted, "the largest blocks of the peak: %u", d->blocks);
	ok(d->heap[0].blocks_left_out == BLOCKS - USED_BLOCKS && d->heap[0].left_out_at == d->heap[0].peak_ticks, "%llu are left out",
	   (unsigned long long)d->heap[0].blocks_left_out);
}

static void push(void *to, const union chunk *c)
{
	struct feed *f = to;
	union chunk *copy = merge_chunk(f->merge);

	*copy = *c;
	merge_push(f->merge, copy);
}

int main(void)
{
	struct listener l = { .memory_end = hear_end };
	struct feed f = feed_new(&l);
	struct gen own, g;

	gen_init(&own, 0, 0, 0, push, &f);
	gen_session(&own, 1000, 1 << 30);
	gen_flush(&own);
	gen_init(&g, 50, 2000, 0, push, &f);
	GEN_EVENT(&g, 2000, hello, "/bin/x", .pid = 50);
	GEN_EVENT(&g, 2000, name, "matmul", .id = 1);
	one_block(&g, 3000);
	blocks(&g, 4000);
	gen_flush(&g);
	feed_end(&f);
	check_ranges();
	check_blocks(f.session->process[0]->device[0]);
	feed_free(&f);
	return done();
}

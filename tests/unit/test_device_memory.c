/*
 * test_device_memory.c - the memory of devices against a plain model: exact peaks of each device, and of host and devices
 * together, each with who held it.
 *
 * Two processes; each has a device with memory of its own and one whose memory is the host's.
 */
#include "../../collector/read/feed.h"
#include "../../collector/util/array.h"
#include "gen.h"
#include "tap.h"

enum { PROCESSES = 2, DEVICES = 2, NODES = 10, SLOTS = 64, RECORDS = 60000, POOLS = 1 + DEVICES };

struct truth {
	i64 now, peak;
	u64 peak_ticks;
	i64 at_peak[PROCESSES][POOLS][NODES + 1];
};

static struct truth device_truth[PROCESSES][DEVICES], host_truth, all_truth;
static i64 row[PROCESSES][POOLS][NODES + 1];
static struct gen gen[PROCESSES];
static struct { u64 id, bytes; u32 node; } slot[PROCESSES][POOLS][SLOTS];
static struct feed feed;

static void push(void *to, const union chunk *c)
{
	union chunk *copy = merge_chunk(feed.merge);

	(void)to;
	*copy = *c;
	merge_push(feed.merge, copy);
}

static void raise(struct truth *t, u64 ticks, i64 bytes)
{
	t->now += bytes;
	if (t->now <= t->peak)
		return;
	t->peak = t->now;
	t->peak_ticks = ticks;
	memcpy(t->at_peak, row, sizeof(row));
}

/* Pool 0: malloc; 1: the device with its own memory; 2: the one whose memory is the host's. */
static void step(u32 process, u32 pool, u32 node, u64 ticks, i64 bytes)
{
	row[process][pool][node] += bytes;
	if (pool)
		raise(&device_truth[process][pool - 1], ticks, bytes);
	if (!pool)
		raise(&host_truth, ticks, bytes);
	if (pool < 2)
		raise(&all_truth, ticks, bytes);
}

static void take(u32 process, u32 pool, u32 i, u64 t, u64 bytes, u32 node)
{
	static u64 ids;
	struct gen *g = &gen[process];

	slot[process][pool][i].id = ++ids;
	slot[process][pool][i].bytes = bytes;
	slot[process][pool][i].node = node;
	if (!pool)
		gen_alloc(g, t, 0x10000 + i * 0x1000, bytes, node);
	else
		GEN_EVENT(g, t, device_alloc, "buffer", .id = ids, .device = pool, .heap = ids % 3, .bytes = bytes, .node = node);
	step(process, pool, node, t, (i64)bytes);
}

static void give(u32 process, u32 pool, u32 i, u64 t)
{
	if (!pool)
		gen_free(&gen[process], t, 0x10000 + i * 0x1000);
	else
		GEN_EVENT(&gen[process], t, device_free, NULL, .id = slot[process][pool][i].id);
	step(process, pool, slot[process][pool][i].node, t, -(i64)slot[process][pool][i].bytes);
	slot[process][pool][i].id = 0;
}

static void generate(void)
{
	static const char text[2][16] = { "Vulkan\0GPU\0d", "OpenCL\0CPU\0d" };
	struct gen own;
	u64 seed = 77, t = 2000;

	gen_init(&own, 0, 0, 0, push, NULL);
	gen_session(&own, 1000, 1 << 30);
	gen_flush(&own);
	for (u32 i = 0; i < PROCESSES; i++) {
		gen_init(&gen[i], 60 + i, 2000, 0, push, NULL);
		GEN_EVENT(&gen[i], t, hello, "/bin/x", .pid = 60 + i);
		for (u32 k = 0; k < NODES; k++)
			gen_node(&gen[i], k, 0x400000 + k * 16);
		for (u32 k = 0; k < DEVICES; k++) {
			struct rec_device d = { .id = k + 1, .flags = k ? DEVICE_CPU | DEVICE_HOST_MEMORY : DEVICE_GPU };
			u64 *body = gen_put(&gen[i], KIND_event | (u64)EVENT_device << 3 | 16ull << 11, sizeof(d) / 8 + 2);

			memcpy(body, &d, sizeof(d));
			memcpy((char *)body + sizeof(d), text[k], 16);
		}
	}
	for (u32 n = 0; n < RECORDS; n++) {
		u64 r = gen_random(&seed);
		u32 process = r & 1, pool = (r >> 4) % POOLS, i = (r >> 16) % SLOTS;

		if (!pool && n < RECORDS / 20 && process)        /* the host's peak may come before any device's first block */
			continue;
		t += 1 + (r >> 40) % 2000;
		if (slot[process][pool][i].id)
			give(process, pool, i, t);
		else
			take(process, pool, i, t, 1 + gen_random(&seed) % 100000, 1 + (u32)(r >> 24) % NODES);
	}
	for (u32 i = 0; i < PROCESSES; i++)
		gen_flush(&gen[i]);
}

static i64 truth_of(const struct truth *t, u32 process, u32 pool, u32 node)
{
	return t->at_peak[process][pool][node];
}

static bool same_peak(const struct scope *s, const struct truth *t)
{
	return s->peak == t->peak && s->peak_ticks == t->peak_ticks;
}

/* Each row of a list is in the truth with as many bytes, and the sum is the peak. */
static bool same_rows(const struct session *s, const struct holder_list *l, const struct truth *t, int only)
{
	i64 sum = 0;

	for (u32 i = 0; i < l->count; i++) {
		const struct holder *h = &l->at[i];
		const struct process *p = s->process[h->process];
		u32 pool = 0;

		for (u32 k = 0; k < p->devices; k++)
			if (p->device[k]->pool == h->pool)
				pool = k + 1;
		if (only >= 0 && pool != (u32)only)
			return false;
		if (h->bytes != truth_of(t, h->process, pool, (u32)((p->node[h->node].pc - 0x400000) / 16) + 1))
			return false;
		sum += h->bytes;
	}
	return sum == t->peak;
}

int main(void)
{
	const struct session *s;
	u32 good = 0, rows = 0;

	feed = feed_new(NULL);
	generate();
	feed_end(&feed);
	s = feed.session;
	ok(same_peak(&s->total, &host_truth) && same_rows(s, &s->total.at_peak, &host_truth, 0), "the host's peak: %lld", (long long)s->total.peak);
	ok(same_peak(&s->with_devices, &all_truth), "host and devices: %lld of %lld", (long long)s->with_devices.peak, (long long)all_truth.peak);
	ok(same_rows(s, &s->with_devices.at_peak, &all_truth, -1), "and who held it");
	for (u32 i = 0; i < PROCESSES; i++)
		for (u32 k = 0; k < DEVICES; k++) {
			const struct process *p = s->process[i];
			const struct pool *pool = &p->pools.at[p->device[k]->pool];
			const struct truth *t = &device_truth[i][k];

			good += pool->peak == t->peak && pool->peak_ticks == t->peak_ticks && pool->now == t->now;
			rows += same_rows(s, &p->device_peak[k], t, (int)k + 1);
		}
	ok(good == PROCESSES * DEVICES, "peaks of devices");
	ok(rows == PROCESSES * DEVICES, "and who held them");
	ok(s->devices_then > 0 && s->with_devices.peak > s->total.peak, "devices with memory of their own add %lld", (long long)s->devices_then);
	ok(s->process[0]->device[0]->heaps == 3, "heaps");
	feed_free(&feed);
	return done();
}

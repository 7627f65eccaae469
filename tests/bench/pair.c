// cc: -pthread -fno-optimize-sibling-calls
/*
 * pair.c - the pair benchmark: what one malloc and one free cost.
 *
 *   each thread:  256 slots; again and again: free a random one, allocate 16..528 bytes for it
 *
 * The loop runs at the end of a chain of DEPTH calls. --walk=N makes each allocation come from another one of
 * N stacks through the same two functions: with many of them no cache of stacks can hold them, while all the
 * code is known. Prints ns per pair, by the clock and of the thread's
 * own CPU time, when it ended, and with --books what it did.
 */
#include "../workloads/expect.h"
#include <pthread.h>
#include <time.h>

enum { SLOTS = 256 };

static long threads = 1, pairs = 1000000, depth = 20, walk, idle, seconds, live, say_books;

struct option {
	const char *name;
	long *value;
};

static const struct option options[] = {
	{ "--threads=", &threads }, { "--pairs=", &pairs }, { "--depth=", &depth }, { "--walk=", &walk },
	{ "--idle=", &idle }, { "--seconds=", &seconds }, { "--live=", &live }, { "--books", &say_books }, { 0 },
};

struct worker {
	pthread_t id;
	uint64_t state;
	struct books books;
	double ns, cpu_ns;              /* a pair */
	void *slot[SLOTS];
	size_t bytes[SLOTS];
};

static pthread_barrier_t barrier;

static double clock_of(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static double now(void)
{
	return clock_of(CLOCK_MONOTONIC);
}

static inline void pair(struct worker *w)
{
	uint32_t r = dice(&w->state);
	int i = r % SLOTS;
	size_t size = 16 + (r >> 8) % 513;

	if (w->slot[i]) {
		free(w->slot[i]);
		w->books.frees++;
		w->books.live -= w->bytes[i];
	}
	w->slot[i] = used(malloc(size));
	*(char *)w->slot[i] = 1;
	w->bytes[i] = size;
	w->books.allocs++;
	w->books.allocated += size;
	w->books.live += size;
}

__attribute__((noinline)) static void loop(struct worker *w)
{
	double end = now() + seconds * 1e9;

	do {
		for (long i = 0; i < (seconds ? 100000 : pairs); i++)
			pair(w);
	} while (seconds && now() < end);
}

__attribute__((noinline)) static void down(struct worker *w, long left, void (*leaf)(struct worker *))
{
	if (left > 0)
		down(w, left - 1, leaf);
	else
		leaf(w);
	__asm__ volatile("");
}

/* Two functions with frames of different sizes: the bits of `path` choose which calls which. */
static void left_turn(struct worker *w, long left, uint64_t path);

__attribute__((noinline)) static void turn(struct worker *w, long left, uint64_t path)
{
	if (left <= 0)
		pair(w);
	else if (path & 1)
		turn(w, left - 1, path >> 1);
	else
		left_turn(w, left - 1, path >> 1);
	__asm__ volatile("");
}

__attribute__((noinline)) static void left_turn(struct worker *w, long left, uint64_t path)
{
	char room[32];

	__asm__ volatile("" : : "r"(room) : "memory");
	if (left <= 0)
		pair(w);
	else if (path & 1)
		turn(w, left - 1, path >> 1);
	else
		left_turn(w, left - 1, path >> 1);
	__asm__ volatile("");
}

static void walk_some(struct worker *w, long count)
{
	for (long i = 0; i < count; i++)
		turn(w, depth, (i % walk + 1) * 0x9e3779b97f4a7c15u >> 10);
}

static void walk_loop(struct worker *w)
{
	walk_some(w, pairs);
}

/* So that no stack is new in the loop, if it comes to all of them. */
static void walk_all(struct worker *w)
{
	if (walk <= pairs)
		walk_some(w, walk);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	double start, cpu;
	long before;

	if (walk)
		down(w, 0, walk_all);
	before = w->books.allocs;
	pthread_barrier_wait(&barrier);
	start = now();
	cpu = clock_of(CLOCK_THREAD_CPUTIME_ID);
	down(w, walk ? 0 : depth, walk ? walk_loop : loop);
	w->cpu_ns = (clock_of(CLOCK_THREAD_CPUTIME_ID) - cpu) / (w->books.allocs - before);
	w->ns = (now() - start) / (w->books.allocs - before);
	return NULL;
}

static void *sleeper(void *arg)
{
	free(used(malloc(10)));
	pthread_barrier_wait(&barrier);
	pause();
	return arg;
}

static void parse(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		for (const struct option *o = options; o->name; o++)
			if (!strncmp(argv[i], o->name, strlen(o->name)))
				*o->value = strchr(argv[i], '=') ? atol(strchr(argv[i], '=') + 1) : 1;
}

/* Blocks that stay: what a live block costs the collector. */
static void hold(struct books *b)
{
	for (long i = 0; i < live; i++) {
		used(malloc(16 + i % 64));
		b->allocs++;
		b->allocated += 16 + i % 64;
		b->live += 16 + i % 64;
	}
}

int main(int argc, char **argv)
{
	static struct worker worker[64];
	struct books all = { 0 };
	double ns = 0, cpu_ns = 0;
	pthread_t id;

	parse(argc, argv);
	hold(&all);
	pthread_barrier_init(&barrier, NULL, threads + idle);
	for (long i = 0; i < idle; i++)
		pthread_create(&id, NULL, sleeper, NULL);
	for (long i = 0; i < threads; i++) {
		worker[i].state = i + 1;
		pthread_create(&worker[i].id, NULL, work, &worker[i]);
	}
	for (long i = 0; i < threads; i++) {
		pthread_join(worker[i].id, NULL);
		all.allocs += worker[i].books.allocs;
		all.frees += worker[i].books.frees;
		all.allocated += worker[i].books.allocated;
		all.live += worker[i].books.live;
		ns += worker[i].ns / threads;
		cpu_ns += worker[i].cpu_ns / threads;
	}
	say("ns %.2f\ncpu %.2f\nend %.0f\n", ns, cpu_ns, now());
	if (say_books) {
		expect("totals.allocs", all.allocs);
		expect("totals.frees", all.frees);
		expect("totals.allocated_bytes", all.allocated);
		expect("totals.live_at_exit_bytes", all.live);
	}
	return 0;
}

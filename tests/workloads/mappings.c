/*
 * mappings.c - mmap, munmap, mprotect and mremap at random over a few pages, and what of it is accessible
 * anonymous memory. The state of each page is kept in an array; the books are its sum.
 */
#include "expect.h"
#include <fcntl.h>
#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 256, STEPS = 3000 };
enum state { GONE, CLOSED, OPEN, FROM_FILE };   /* CLOSED: PROT_NONE */

static enum state page[PAGES];
static char *arena;
static long long live, peak;
static int file;

static void set(int first, int count, enum state to)
{
	for (int i = first; i < first + count; i++) {
		live += ((to == OPEN) - (page[i] == OPEN)) * PAGE;
		page[i] = to;
	}
	if (live > peak)
		peak = live;
}

static void map(int first, int count, int prot, enum state to)
{
	int flags = MAP_PRIVATE | MAP_FIXED | (to == FROM_FILE ? 0 : MAP_ANONYMOUS);

	if (mmap(arena + first * PAGE, count * PAGE, prot, flags, to == FROM_FILE ? file : -1, 0) == MAP_FAILED)
		abort();
	set(first, count, to);
}

static void unmap(int first, int count)
{
	munmap(arena + first * PAGE, count * PAGE);
	set(first, count, GONE);
}

/* Only where all is mapped and anonymous: a range with a hole changes in part and then fails. */
static int anonymous(int first, int count)
{
	for (int i = first; i < first + count; i++)
		if (page[i] != OPEN && page[i] != CLOSED)
			return 0;
	return 1;
}

static void protect(int first, int count, int prot)
{
	if (!anonymous(first, count))
		return;
	if (mprotect(arena + first * PAGE, count * PAGE, prot))
		abort();
	set(first, count, prot == PROT_NONE ? CLOSED : OPEN);
}

static int all_open(int first, int count)
{
	for (int i = first; i < first + count; i++)
		if (page[i] != OPEN)
			return 0;
	return 1;
}

/* mremap wants one mapping: make it so, then move it over whatever is at the target. */
static void move(int from, int to, int count)
{
	if ((from < to ? from + count > to : to + count > from) || !all_open(from, count))
		return;
	map(from, count, PROT_READ | PROT_WRITE, OPEN);
	if (mremap(arena + from * PAGE, count * PAGE, count * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, arena + to * PAGE) == MAP_FAILED)
		abort();
	/* one step: the bytes move, what was at the target goes */
	for (int i = 0; i < count; i++) {
		live -= (page[from + i] == OPEN) * PAGE + (page[to + i] == OPEN) * PAGE - PAGE;
		page[from + i] = GONE;
		page[to + i] = OPEN;
	}
}

static void step(uint64_t *state)
{
	int count = 1 + dice(state) % 24, first = dice(state) % (PAGES - count);

	switch (dice(state) % 7) {
	case 0: case 1: map(first, count, PROT_READ | PROT_WRITE, OPEN); break;
	case 2: map(first, count, PROT_NONE, CLOSED); break;
	case 3: unmap(first, count); break;
	case 4: protect(first, count, dice(state) % 2 ? PROT_NONE : PROT_READ); break;
	case 5: move(first, dice(state) % (PAGES - count), count); break;
	case 6: map(first, count, PROT_READ, FROM_FILE); break;
	}
}

/* Growth in place and by moving, shrinking, and a mapping of an odd length. */
static void grow(void)
{
	size_t size = 64 << 10;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *odd = mmap(NULL, 5000, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	live += size + 2 * PAGE;
	for (; size < 4 << 20; size *= 2, live += size / 2)
		p = mremap(p, size, size * 2, MREMAP_MAYMOVE);
	if (live > peak)
		peak = live;
	p = mremap(p, size, size / 4, 0);
	live -= size / 4 * 3;
	munmap(odd, 5000);
	live -= 2 * PAGE;
}

int main(void)
{
	uint64_t state = 7;
	char name[] = "mappings.data";

	file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (file < 0 || ftruncate(file, PAGES * PAGE))
		abort();
	arena = mmap(NULL, PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	set(0, PAGES, CLOSED);
	for (int i = 0; i < STEPS; i++)
		step(&state);
	grow();
	expect("pools.mmap.peak_bytes", peak);
	expect("pools.mmap.live_at_exit_bytes", live);
	expect("peak.bytes", peak);
	expect("totals.allocs", 0);
	return 0;
}

/* cc: -shared -fPIC -Wl,-z,relro,-z,now */
/* table_lib.c - a library whose functions are behind tables: constant, sized, on the heap, locked, an object's virtual ones; it keeps books. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static unsigned long calls[8];
enum { ADD, TEXT, MUL, ONE, TWO, THREE, SUM, GET };

static void count(int what) { __atomic_add_fetch(&calls[what], 1, __ATOMIC_RELAXED); }

static long add(long a, long b) { count(ADD); return a + b; }
static const char *text(const char *what) { count(TEXT); return what ? what : "nothing"; }
static double mul(double a, double b) { count(MUL); return a * b; }
static long one(void) { count(ONE); return 1; }
static long two(void) { count(TWO); return 2; }
static long three(void) { count(THREE); return 3; }

static double sum(void *self, int a, int b, int c, int d, int e, int f, int g, double h, int i)
{
	count(SUM);
	return self ? a + b + c + d + e + f + g + h + i : 0;
}

/* Two versions; the first one is shorter, and what lies behind it is not its own. */
typedef void (*function)(void);
static const function api[2][4] = { { (function)add, (function)text }, { (function)add, (function)text, (function)mul } };

static const void *get(unsigned version)
{
	count(GET);
	return version == 1 || version == 2 ? api[version - 1] : NULL;
}

static const struct { const void *(*get)(unsigned); long (*one)(void); } base = { get, one };
const void *tab_base(void) { return &base; }

/* The size of the first covers two functions, though three are there. */
static struct { size_t size; function f[3]; } sized[2] = {
	{ 24, { (function)one, (function)two, (function)three } }, { 32, { (function)one, (function)two, (function)three } },
};
const void *tab_sized(int which) { return which < 2 ? &sized[which] : NULL; }

function *tab_heap(void)
{
	static function *table;

	if (!table && (table = malloc(2 * sizeof *table)))
		table[0] = (function)one, table[1] = NULL;
	return table;
}

/* Read-only memory of nobody's file. */
function *tab_locked(void)
{
	static function *table;

	if (!table) {
		table = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		table[0] = (function)two;
		mprotect(table, 4096, PROT_READ);
	}
	return table;
}

static const function methods[3] = { (function)one, NULL, (function)sum };
static struct { const function *vptr; } object = { methods };
void *tab_object(void) { return &object; }

void tab_books(void)
{
	printf("books");
	for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++)
		printf(" %lu", calls[i]);
	printf("\n");
}

// cc: -pthread
/*
 * probe_values: calls functions of its own library with values known to the test, good and bad pointers among them. Built twice: as
 * the library (-DLIBRARY) and as the program.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct shape { signed char s8; short s16; int s32; long ne[4]; float f32; double f64; const char *name; char text[16]; struct shape *next; };
struct view { const char *at; size_t length; };

long v_numbers(long a, int b, struct shape *s, double c, float d, long e, long f, long g, unsigned char h);
const char *v_text(const char *text, struct view *view, struct shape *s);
double v_results(struct shape *out, long *gone);
void v_entry(long a);
void v_slow(unsigned us);
long v_stack(long a, long b, long c, long d, long e, long f, long g, long h);
void v_many(int n, const int *numbers);

#ifdef LIBRARY
long v_numbers(long a, int b, struct shape *s, double c, float d, long e, long f, long g, unsigned char h)
{
	(void)s;
	return a + b + (long)c + (long)d + e + f + g + h;
}

const char *v_text(const char *text, struct view *view, struct shape *s) { (void)view, (void)s; return text; }
void v_entry(long a) { (void)a; }
void v_many(int n, const int *numbers) { (void)n, (void)numbers; }
void v_slow(unsigned us) { if (us) usleep(us); }
long v_stack(long a, long b, long c, long d, long e, long f, long g, long h) { return a + b + c + d + e + f + g + h; }

double v_results(struct shape *out, long *gone)
{
	out->ne[1] = 4242;
	(void)gone;
	return 2.5;
}
#else
int main(void)
{
	struct shape b = { .ne = { 50, 60, 70, 80 }, .name = "the next one" };
	struct shape a = { .s8 = -5, .s16 = -600, .s32 = -70000, .ne = { 10, 20, -30, 40 }, .f32 = 1.5f, .f64 = -2.25, .name = "a tensor", .text = "inline", .next = &b };
	char *room = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *end = room + 2 * 4096;
	char longer[500];
	struct view view = { "viewed text", 6 }, empty = { NULL, 0 }, wrong = { (char *)8, 5 }, open = { end - 9, -1 }, none = { NULL, -1 };
	long sum = 0;

	mprotect(end, 4096, PROT_NONE);
	memset(longer, 'x', sizeof longer);
	longer[499] = 0;
	memcpy(end - 9, "last one", 9);
	memset(end - 4096 - 60, 'y', 300);      /* over a page's end */
	end[-4096 + 240] = 0;
	sum += v_numbers(-1, -2, &a, 3.5, 4.5f, 5, 6, 7, 200);
	sum += v_numbers(1l << 40, 7, NULL, -0.5, 0.25f, 5, 6, -7, 1);
	printf("%c", v_text("plain", &view, &a)[0]);
	printf("%c", v_text("", &empty, &b)[0] + '0');
	printf("%c", v_text(longer, &wrong, &a)[0]);
	printf("%c", v_text(end - 9, &view, &a)[0]);
	printf("%c\n", v_text(end - 4096 - 60, &view, &a)[0]);
	v_text(NULL, NULL, NULL);
	v_text((char *)8, &open, NULL);
	v_text(NULL, &none, NULL);
	printf("%.1f %ld\n", v_results(&a, (long *)end), sum);
	for (long i = 0; i < 10; i++)
		v_entry(i);
	for (int i = 0; i < 20; i++)
		v_slow(i % 2 ? 2000 : 0);
	printf("%ld\n", v_stack(1, 2, 3, 4, 5, 6, 77, 88));
	for (int i = 0; i < 10; i++)
		((int *)end)[i - 10] = i - 2;
	v_many(0, (int *)end);
	v_many(1, (int *)end - 1);
	v_many(2, (int *)end - 2);
	v_many(9, (int *)end - 10);
	v_many(-1, NULL);
	v_many(2, NULL);
	/* What no row that is known to be right would be given: only for careful rows. */
	if (getenv("WILD")) {
		v_text(end, (struct view *)end, (struct shape *)end);
		v_numbers(0, 0, (struct shape *)(end - 4), 0, 0, 0, 0, 0, 0);
	}
	return 0;
}
#endif

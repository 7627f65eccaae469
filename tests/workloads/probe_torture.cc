// cc: -pthread -lunwind
/*
 * probe_torture: calls what is in probe_lib.cc in every way and prints what came back. Run with a file name it leaves the
 * library's books there. What it prints must be the same with and without probes.
 */
#include "probe_lib.h"
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdexcept>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#define UNW_LOCAL_ONLY
#include <libunwind.h>

/* ---- values ------------------------------------------------------------------------------------ */

static void values(void)
{
	struct words6 s6 = { { 1, 2, 3, 4, 5, 6 } };
	struct words60 s60;
	long numbers[2] = { 41, 0 };

	for (int i = 0; i < 60; i++)
		s60.w[i] = i * i - 7;
	printf("ints %ld\n", t_ints(1, 2, 3, 4, 5, 6));
	printf("floats %.3f\n", t_floats(1.5f, 2.5, 3.5f, 4.5, 5.5, 6.5f, 7.5, 8.5f));
	printf("eleven %ld\n", t_eleven(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
	printf("sibling %ld\n", t_sibling(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
	printf("twenty %.3f\n", t_twenty(1, 2.5, 3, 4.5f, 5, 6.5, 7, 8.5, 9, 10.5, 11, 12.5, 13.5, 14.5, 15.5, 16, 17, 18.5, 19.5f, 200));
	s6 = t_struct48(7);
	printf("struct48 %ld %ld %ld\n", s6.w[0], s6.w[3], s6.w[5]);
	struct mixed_pair m = t_mixed_pair(9.5, 41);
	printf("mixed %ld %.3f\n", m.n, m.d);
	struct double_pair d = t_double_pair(1.25, 2.25);
	printf("doubles %.3f %.3f\n", d.a, d.b);
	struct float4 f = t_float4(1.5f);
	printf("float4 %.2f %.2f %.2f %.2f\n", f.v[0], f.v[1], f.v[2], f.v[3]);
	__int128 big = t_int128(((__int128)1 << 70) + 5, -3);
	printf("int128 %lx %lx\n", (long)(big >> 64), (long)big);
	printf("long double %.6Lf\n", t_long_double(1.0L / 3, 5, 0.25L));
	double _Complex c;
	float _Complex half;
	__real__ c = 1, __imag__ c = 2, __real__ half = 3, __imag__ half = -1;
	c = t_complex(c, half);
	printf("complex %.3f %.3f\n", __real__ c, __imag__ c);
	printf("by value %ld %ld\n", t_by_value48(1, s6, 3), t_by_value480(1, s60, 3));
	printf("variadic %.3f\n", t_variadic("dididddddddddid", 1.5, 2, 3.5, 4, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5, 11.5, 12.5, 13.5, 14, 15.5));
	printf("variadic without doubles %.3f\n", t_variadic("iiii", 1, 2, 3, 4));
	printf("variadic long double %.3f\n", t_variadic("idLd", 1, 2.5, 3.25L, 4.5));
	errno = 0;
	int e = t_errno(77);
	printf("errno %d %d\n", e, errno);
	printf("text %s\n", t_text("hello", numbers, &s6));
	printf("out %ld\n", s6.w[0]);
	for (int i = 0; i < 1000; i++)
		t_nothing();
	if (errno != 77)
		printf("errno was lost: %d\n", errno);
}

__attribute__((target("avx2"))) static void wide(void)
{
	__m256d a = _mm256_set_pd(1, 2, 3, 4), r;
	double v[4];

	if (!t_wide_supported())
		return;
	r = t_wide(a, a + 1);
	_mm256_storeu_pd(v, r);
	printf("wide %.1f %.1f %.1f %.1f\n", v[0], v[1], v[2], v[3]);
	r = t_wide_stack(3, a, a + 1, a + 2, a + 3, a + 4, a + 5, a + 6, a + 7, a + 8, 5, a + 9);
	_mm256_storeu_pd(v, r);
	printf("wide stack %.1f %.1f %.1f %.1f\n", v[0], v[1], v[2], v[3]);
}

__attribute__((target("avx512f"))) static void widest(void)
{
	double v[8];

	if (!t_widest_supported())
		return;
	_mm512_storeu_pd(v, t_widest(_mm512_set_pd(1, 2, 3, 4, 5, 6, 7, 8), _mm512_set1_pd(10)));
	printf("widest %.1f %.1f %.1f %.1f\n", v[0], v[3], v[4], v[7]);
}

/* ---- ways to call ------------------------------------------------------------------------------ */

typedef long one(long);
static one *const in_data = t_pointer;

/* As code does that is not a compiler's: the stack lies eight bytes off. */
static long askew(one *f, long a)
{
	long r;

	asm volatile("mov %%rsp, %%rbx\n\tsub $256, %%rsp\n\tand $-16, %%rsp\n\tsub $8, %%rsp\n\tcall *%2\n\tmov %%rbx, %%rsp"
		     : "=a"(r), "+D"(a) : "r"(f) : "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc",
		       "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
	return r;
}

static void ways(void)
{
	Probed *volatile p = book_object(5);
	one *volatile pointer = t_pointer;
	one *found = (one *)dlsym(RTLD_DEFAULT, "t_pointer");
	one *next = (one *)dlsym(RTLD_NEXT, "t_pointer");
	long (Probed::*volatile member)(long) const = &Probed::add;

	printf("recursion %ld\n", t_fibonacci(15));
	printf("itself %ld\n", t_outer(4));
	printf("member %ld virtual %ld static %ld pointer %ld\n", p->add(3), p->shift(2), Probed::twice(9), (p->*member)(4));
	printf("function pointer %ld\n", pointer(1));
	printf("askew %ld\n", askew(pointer, 6));
	printf("dlsym %ld next %ld\n", found ? found(2) : -1, next ? next(3) : -1);
	printf("no such symbol %d\n", dlsym(RTLD_DEFAULT, "t_no_such") == NULL && dlerror() != NULL);
	printf("data %ld\n", in_data(4));
}

/* ---- ways out ---------------------------------------------------------------------------------- */

static void out(void)
{
	jmp_buf back;
	int value;

	printf("catch %d\n", t_catch(5));
	for (int i = 0; i < 50; i++)
		try {
			t_throw(i);
		} catch (const std::runtime_error &e) {
			if (atoi(e.what()) != i)
				printf("another exception: %s\n", e.what());
		}
	for (volatile int i = 1; i <= 20; i++)
		if ((value = setjmp(back)) == 0)
			t_jump(back, i);
		else if (value != i)
			printf("jumped with %d\n", value);
	printf("still right %ld\n", t_ints(6, 5, 4, 3, 2, 1));
	printf("fork: %d %d %d\n", t_fork(1), t_fork(2), 0);
	fflush(stdout);
	int r = t_fork(0);
	if (r < 0)
		_exit(t_ints(1, 0, 0, 0, 0, 0) == 1 ? 23 : 24);
	printf("child returned: %d\n", r);
}

/* ---- threads and signals -------------------------------------------------------------------------- */

static void *thread(void *n)
{
	long s = 0;

	for (long i = 0; i < 5000; i++)
		s += t_eleven(i, 1, 2, 3, 4, 5, 6, 7, 8, 9, (long)n);
	return (void *)s;
}

static void *cancelled(void *unused)
{
	t_wait();
	return unused;
}

static void *on_little_stack(void *n)
{
	struct words6 s = t_struct48((long)n);

	return (void *)(t_by_value48(1, s, 2) + t_eleven(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
}

static void threads(void)
{
	pthread_t t[8];
	pthread_attr_t little;
	void *result;

	for (long i = 0; i < 8; i++)
		pthread_create(&t[i], NULL, thread, (void *)i);
	for (int i = 0; i < 8; i++) {
		pthread_join(t[i], &result);
		printf("thread %d: %ld\n", i, (long)result);
	}
	for (int i = 0; i < 10; i++) {
		pthread_create(&t[0], NULL, cancelled, NULL);
		usleep(1000);
		pthread_cancel(t[0]);
		pthread_join(t[0], &result);
		if (result != PTHREAD_CANCELED)
			printf("not cancelled\n");
	}
	pthread_attr_init(&little);
	pthread_attr_setstacksize(&little, 16384);
	for (long i = 0; i < 20; i++) {
		pthread_create(&t[0], &little, i % 2 ? t_start : on_little_stack, (void *)i);
		pthread_join(t[0], &result);
		printf("little stack %ld\n", (long)result);
	}
}

static volatile int alarms;

static void on_alarm(int number)
{
	t_in_handler(number);
	if (t_ints(number, 0, 0, 0, 0, 0) != number)
		_exit(98);
	alarms++;
}

static void signals(void)
{
	struct itimerval often = { { 0, 250 }, { 0, 250 } }, never = { { 0, 0 }, { 0, 0 } };
	static char room[65536];
	stack_t other = { .ss_sp = room, .ss_flags = 0, .ss_size = sizeof room };
	struct sigaction action = {};
	long wrong = 0;

	action.sa_handler = on_alarm;
	sigaction(SIGALRM, &action, NULL);
	for (int round = 0; round < 2; round++) {
		alarms = 0;
		setitimer(ITIMER_REAL, &often, NULL);
		for (long i = 0; alarms < 25; i++)
			wrong += t_eleven(i, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11) != (i ^ 2l << 3 ^ 3l << 6 ^ 4l << 9 ^ 5l << 12 ^ 6l << 15 ^ 7l << 18 ^ 8l << 21 ^ 9l << 24 ^ 10l << 27 ^ 11l << 30);
		setitimer(ITIMER_REAL, &never, NULL);
		sigaltstack(&other, NULL);
		action.sa_flags = SA_ONSTACK;
		sigaction(SIGALRM, &action, NULL);
	}
	printf("signals: %ld wrong\n", wrong);
}

/* ---- other stacks ----------------------------------------------------------------------------------- */

static ucontext_t main_context, fiber_context;
static long fiber_sum;

static void fiber(int a, int b, int c, int d, int e, int f, int g, int h)
{
	for (int i = 0; i < 10; i++) {
		fiber_sum += t_eleven(a, b, c, d, e, f, g, h, i, 1, 2);
		swapcontext(&fiber_context, &main_context);
	}
}

static void swap(void *unused)
{
	(void)unused;
	swapcontext(&main_context, &fiber_context);
}

/* The stack ends where its mapping does: nothing can be read behind it. */
static void fibers(void)
{
	char *room = (char *)mmap(NULL, 65536 + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(room + 65536, 4096, PROT_NONE);
	getcontext(&fiber_context);
	fiber_context.uc_stack.ss_sp = room;
	fiber_context.uc_stack.ss_size = 65536;
	fiber_context.uc_link = &main_context;
	makecontext(&fiber_context, (void (*)())fiber, 8, 1, 2, 3, 4, 5, 6, 7, 8);
	for (int i = 0; i < 11; i++)
		t_call(swap, NULL);
	printf("fiber %ld\n", fiber_sum);
	getcontext(&fiber_context);                     /* a probed function is the fiber, its arguments are at the very end */
	fiber_context.uc_stack.ss_sp = room;
	fiber_context.uc_stack.ss_size = 65536;
	fiber_context.uc_link = &main_context;
	makecontext(&fiber_context, (void (*)())t_eleven, 11, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
	t_call(swap, NULL);
	printf("fiber came back\n");
}

/* ---- unwinders --------------------------------------------------------------------------------------- */

static void look_back(void *main_seen)
{
	void *frame[64];
	int n = backtrace(frame, 64), reached = 0;
	Dl_info info;
	unw_context_t here;
	unw_cursor_t cursor;
	char name[64];
	unw_word_t offset;

	for (int i = 0; i < n; i++)
		reached |= dladdr(frame[i], &info) && info.dli_sname && !strcmp(info.dli_sname, "main");
	((int *)main_seen)[0] = reached;
	unw_getcontext(&here);
	unw_init_local(&cursor, &here);
	while (unw_step(&cursor) > 0)
		if (!unw_get_proc_name(&cursor, name, sizeof name, &offset) && !strcmp(name, "main"))
			((int *)main_seen)[1] = 1;
}

static void unwinders(void)
{
	int main_seen[2] = { 0, 0 };

	t_call(look_back, main_seen);
	printf("backtrace reaches main: %d, libunwind: %d\n", main_seen[0], main_seen[1]);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	values();
	wide();
	widest();
	ways();
	out();
	threads();
	signals();
	fibers();
	unwinders();
	t_call([](void *) { printf("done\n"); }, NULL);
	if (argc > 1 && book_write(argv[1]))
		return 1;
	return 3;
}

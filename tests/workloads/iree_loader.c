// cc: -pthread -ldl
/*
 * iree_loader.c - does with a stand-in executable (iree_library.c) what IREE does with a real one.
 *
 *   iree_loader LIBRARY VERSION count      dispatches of several grids on 3 threads, each tile must run exactly once
 *   iree_loader LIBRARY VERSION fail       a kernel that fails in the middle; the same dispatch again, which does not
 *   iree_loader LIBRARY VERSION reload N   loaded, run and unloaded so often
 *   iree_loader LIBRARY VERSION own        says whether the table still has the library's own kernels
 *   iree_loader LIBRARY VERSION bench      ns for each tile of a kernel that does nothing
 *   iree_loader LIBRARY VERSION wall       ns that dispatches of some length took, by the loader's own clock
 *   iree_loader LIBRARY VERSION fork       10 dispatches here, one whose last tile forks, 10 in the child
 *   iree_loader LIBRARY VERSION kill       10 dispatches, and one that is killed at its second tile
 *   iree_loader LIBRARY VERSION odd        images that only begin like an executable
 *
 * With LOADER=dlopen in the environment by dlopen, else as IREE's own loader: reserve, copy, relocate, protect.
 */
#include "iree_library.h"
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3 };

#define MUST(what) do { if (!(what)) { printf("failed: %s\n", #what); exit(1); } } while (0)

struct loaded { char *base; size_t bytes; void *handle; const struct library6 *library; };

static const uint64_t environment[12];

/* ---- loading ------------------------------------------------------------------------------------ */

static char *file;
static size_t file_bytes;

static void read_file(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY);

	MUST(fd >= 0 && fstat(fd, &st) == 0 && (file = malloc(st.st_size)));
	MUST(read(fd, file, st.st_size) == st.st_size);
	file_bytes = st.st_size;
	close(fd);
}

static size_t page_down(size_t n) { return n & ~4095ul; }
static size_t page_up(size_t n) { return page_down(n + 4095); }

static void relocate(char *base, const Elf64_Dyn *d)
{
	size_t rela = 0, bytes = 0;

	for (; d->d_tag != DT_NULL; d++) {
		rela = d->d_tag == DT_RELA ? d->d_un.d_ptr : rela;
		bytes = d->d_tag == DT_RELASZ ? d->d_un.d_val : bytes;
	}
	for (size_t i = 0; i < bytes / sizeof(Elf64_Rela); i++) {
		const Elf64_Rela *r = (const Elf64_Rela *)(base + rela) + i;

		MUST(ELF64_R_TYPE(r->r_info) == R_X86_64_RELATIVE);
		*(char **)(base + r->r_offset) = base + r->r_addend;
	}
}

static void *symbol(char *base, const Elf64_Dyn *d, const char *name)
{
	const Elf64_Sym *symbols = NULL;
	const char *strings = NULL;
	const uint32_t *hash = NULL;

	for (; d->d_tag != DT_NULL; d++) {
		symbols = d->d_tag == DT_SYMTAB ? (void *)(base + d->d_un.d_ptr) : symbols;
		strings = d->d_tag == DT_STRTAB ? base + d->d_un.d_ptr : strings;
		hash = d->d_tag == DT_HASH ? (void *)(base + d->d_un.d_ptr) : hash;
	}
	for (uint32_t i = 0; i < hash[1]; i++)
		if (!strcmp(strings + symbols[i].st_name, name))
			return base + symbols[i].st_value;
	return NULL;
}

static struct loaded load_embedded(uint32_t version)
{
	const Elf64_Ehdr *h = (const Elf64_Ehdr *)file;
	const Elf64_Phdr *p = (const Elf64_Phdr *)(file + h->e_phoff);
	const Elf64_Dyn *dynamic = NULL;
	struct loaded l = { 0 };
	query_function *query;

	for (int i = 0; i < h->e_phnum; i++)
		if (p[i].p_type == PT_LOAD && page_up(p[i].p_vaddr + p[i].p_memsz) > l.bytes)
			l.bytes = page_up(p[i].p_vaddr + p[i].p_memsz);
	MUST((l.base = mmap(NULL, l.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED);
	for (int i = 0; i < h->e_phnum; i++) {
		size_t from = page_down(p[i].p_vaddr), to = page_up(p[i].p_vaddr + p[i].p_memsz);

		if (p[i].p_type == PT_DYNAMIC)
			dynamic = (const Elf64_Dyn *)(l.base + p[i].p_vaddr);
		if (p[i].p_type != PT_LOAD)
			continue;
		MUST(mmap(l.base + from, to - from, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
		memcpy(l.base + p[i].p_vaddr, file + p[i].p_offset, p[i].p_filesz);
	}
	relocate(l.base, dynamic);
	for (int i = 0; i < h->e_phnum; i++) {
		size_t from = page_down(p[i].p_vaddr), to = page_up(p[i].p_vaddr + p[i].p_memsz);
		int prot = (p[i].p_flags & PF_R ? PROT_READ : 0) | (p[i].p_flags & PF_W ? PROT_WRITE : 0) | (p[i].p_flags & PF_X ? PROT_EXEC : 0);

		if (p[i].p_type == PT_LOAD)
			MUST(mprotect(l.base + from, to - from, prot) == 0);
	}
	for (int i = 0; i < h->e_phnum; i++)
		if (p[i].p_type == PT_GNU_RELRO)
			MUST(mprotect(l.base + page_down(p[i].p_vaddr), page_up(p[i].p_vaddr + p[i].p_memsz) - page_down(p[i].p_vaddr), PROT_READ) == 0);
	MUST((query = (query_function *)symbol(l.base, dynamic, "iree_hal_executable_library_query")));
	MUST((l.library = query(version, environment)));
	return l;
}

static struct loaded load(const char *path, uint32_t version)
{
	struct loaded l = { 0 };
	query_function *query;

	if (!getenv("LOADER"))
		return load_embedded(version);
	MUST((l.handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL)));
	MUST((query = (query_function *)dlsym(l.handle, "iree_hal_executable_library_query")));
	MUST((l.library = query(version, environment)));
	return l;
}

static void unload(struct loaded *l)
{
	if (l->handle)
		dlclose(l->handle);
	else
		munmap(l->base, l->bytes);
}

/* ---- running: every thread has a state of its own, and takes the next tile until none is left ------ */

struct job {
	kernel *kernel;
	uint32_t x, y, z;
	const uint32_t *constants;
	void *bindings[1];
	uint32_t next, failed;
	pthread_barrier_t *start, *end;
};

static void tiles(struct job *j)
{
	struct dispatch_state d = { .x = j->x, .y = j->y, .z = j->z, .max_concurrency = THREADS, .binding_count = 1, .constants = j->constants, .bindings = j->bindings };
	struct workgroup_state w = { 0 };
	uint32_t i;

	while (!j->failed && (i = __atomic_fetch_add(&j->next, 1, __ATOMIC_RELAXED)) < j->x * j->y * j->z) {
		w.x = i % j->x;
		w.y = i / j->x % j->y;
		w.z = i / j->x / j->y;
		if (j->kernel(environment, &d, &w))
			j->failed = 1;
	}
}

static struct job job;
static int over;

static void *worker(void *number)
{
	char name[16];

	snprintf(name, sizeof name, "stand-in-%d", (int)(intptr_t)number);
	pthread_setname_np(pthread_self(), name);
	for (;;) {
		pthread_barrier_wait(job.start);
		if (over)
			return NULL;
		tiles(&job);
		pthread_barrier_wait(job.end);
	}
}

static pthread_t thread[THREADS];
static pthread_barrier_t start, end;

static void workers_start(void)
{
	pthread_barrier_init(&start, NULL, THREADS + 1);
	pthread_barrier_init(&end, NULL, THREADS + 1);
	job.start = &start;
	job.end = &end;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, worker, (void *)(intptr_t)i);
}

static void workers_end(void)
{
	over = 1;
	pthread_barrier_wait(&start);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

static kernel *table(const struct library6 *l, int which) { return l->exports.kernels[which]; }

static void dispatch(kernel *k, uint32_t x, uint32_t y, uint32_t z, const uint32_t *constants, void *binding)
{
	job.kernel = k;
	job.x = x, job.y = y, job.z = z;
	job.constants = constants;
	job.bindings[0] = binding;
	job.next = job.failed = 0;
	pthread_barrier_wait(&start);
	pthread_barrier_wait(&end);
}

/* ---- what is done -------------------------------------------------------------------------------- */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void counted(const struct library6 *l)
{
	static const uint32_t grids[][3] = { { 1, 1, 1 }, { 64, 1, 1 }, { 5, 7, 3 }, { 2, 3, 2 }, { 1000, 1, 1 } };
	static uint32_t seen[1000];
	uint32_t constant = 0, wrong = 0;

	for (int i = 0; i < 200; i++) {
		const uint32_t *g = grids[i % 5];

		memset(seen, 0, sizeof seen);
		dispatch(table(l, COUNT), g[0], g[1], g[2], &constant, seen);
		for (uint32_t t = 0; t < 1000; t++)
			wrong += seen[t] != (t < g[0] * g[1] * g[2]);
	}
	printf("wrong %u\nexpect_dispatches stand_in_count 200 %u\n", wrong, 40 * (1 + 64 + 5 * 7 * 3 + 12 + 1000));
}

static void failing(const struct library6 *l)
{
	uint32_t good = ~0u, bad = 5, none = 0;
	uint32_t *constant = &none;

	for (int i = 0; i < 4; i++) {
		none = i == 2 ? bad : good;
		dispatch(table(l, FAIL), 64, 1, 1, constant, NULL);
		printf("failed %d\n", job.failed);
	}
}

static void once(const struct library6 *l)
{
	struct dispatch_state d = { .x = 4, .y = 1, .z = 1, .max_concurrency = 1 };
	struct workgroup_state w = { 0 };
	uint32_t constant = 0;

	d.constants = &constant;
	for (w.x = 0; w.x < 4; w.x++)
		MUST(table(l, NOP)(environment, &d, &w) == 0);
}

static pid_t child;

static void fork_at_last(uint32_t tile)
{
	if (tile == 3)
		child = fork();
}

static void forked(const struct library6 *l)
{
	void *const bindings[] = { (void *)fork_at_last };
	struct dispatch_state d = { .x = 4, .y = 1, .z = 1, .binding_count = 1, .bindings = bindings };
	struct workgroup_state w = { 0 };
	int status;

	for (int i = 0; i < 10; i++)
		once(l);
	for (w.x = 0; w.x < 4; w.x++)
		table(l, CALL)(environment, &d, &w);
	if (!child) {
		for (int i = 0; i < 10; i++)
			once(l);
		_exit(0);
	}
	MUST(waitpid(child, &status, 0) == child && status == 0);
}

static void killed(const struct library6 *l)
{
	struct dispatch_state d = { .x = 4, .y = 1, .z = 1 };
	struct workgroup_state w = { 0 };

	for (int i = 0; i < 10; i++)
		once(l);
	table(l, NOP)(environment, &d, &w);
	kill(getpid(), SIGKILL);
}

static void own(const struct loaded *l)
{
	int mine = 0;

	for (int i = 0; i < KERNELS; i++)
		mine += (char *)table(l->library, i) >= l->base && (char *)table(l->library, i) < l->base + l->bytes;
	printf("own %d\n", mine);
}

static int by_value(const void *a, const void *b) { return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b); }

/* Grids of 1000 tiles, so that what a dispatch costs is shared by many. */
static void bench(const struct library6 *l)
{
	enum { ROUNDS = 200, TILES = 1000 };
	struct dispatch_state d = { .x = TILES, .y = 1, .z = 1, .max_concurrency = 1 };
	struct workgroup_state w = { 0 };
	uint32_t constant = 0;
	double ns[ROUNDS];
	kernel *k = table(l, NOP);

	d.constants = &constant;
	for (int i = 0; i < ROUNDS; i++) {
		double begin = now();

		for (w.x = 0; w.x < TILES; w.x++)
			k(environment, &d, &w);
		ns[i] = (now() - begin) / TILES;
	}
	qsort(ns, ROUNDS, sizeof *ns, by_value);
	printf("ns %.2f\n", ns[ROUNDS / 4]);
}

/* On one thread, so that nothing but the dispatch lies between the two stamps. */
static void wall(const struct library6 *l)
{
	struct dispatch_state d = { .x = 16, .y = 1, .z = 1, .max_concurrency = 1 };
	struct workgroup_state w = { 0 };
	uint32_t rounds = 5000;
	double sum = 0;

	d.constants = &rounds;
	for (int i = 0; i < 100; i++) {
		double begin = now();

		for (w.x = 0; w.x < 16; w.x++)
			table(l, SPIN)(environment, &d, &w);
		sum += now() - begin;
	}
	printf("time %.0f\n", sum);
}

/* Pages that begin like an executable, then its code; but headers and tables are damaged, or what they lead to is not there. */
static void odd(void)
{
	char *at = mmap(NULL, 16 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static const char query[] = "iree_hal_executable_library_query";
	char *name = memmem(file, file_bytes, query, sizeof query);
	unsigned seed = 1;

	MUST(name);
	*name = 'x';                    /* it must be nobody's to call */

	for (int i = 0; i < 3000; i++) {
		size_t bytes = file_bytes < 8 * 4096 ? file_bytes : 8 * 4096;

		MUST(mprotect(at, 16 * 4096, PROT_READ | PROT_WRITE) == 0);
		memcpy(at, file, bytes);
		for (int k = 0; k < 1 + i % 8; k++)
			at[4 + rand_r(&seed) % (i % 2 ? 600 : bytes - 4)] = (char)rand_r(&seed);
		MUST(mprotect(at + 8 * 4096, 8 * 4096, PROT_NONE) == 0);
		MUST(mprotect(at, 4096, PROT_READ) == 0);
		if (i % 3 == 0)
			MUST(mprotect(at + 2 * 4096, 6 * 4096, PROT_NONE) == 0);
		MUST(mprotect(at + 4096, 4096, PROT_READ | PROT_EXEC) == 0);
	}
	munmap(at, 16 * 4096);
	printf("done\n");
}

int main(int argc, char **argv)
{
	const char *what = argc > 3 ? argv[3] : "";
	uint32_t version = argc > 2 ? atoi(argv[2]) : 0;
	struct loaded l;

	setvbuf(stdout, NULL, _IOLBF, 0);
	MUST(argc > 3);
	read_file(argv[1]);
	if (!strcmp(what, "odd")) {
		odd();
		return 0;
	}
	for (int i = !strcmp(what, "reload") ? atoi(argv[4]) : 0; i > 0; i--) {
		l = load(argv[1], version);
		once(l.library);
		unload(&l);
	}
	l = load(argv[1], version);
	workers_start();
	if (!strcmp(what, "count"))
		counted(l.library);
	if (!strcmp(what, "fail"))
		failing(l.library);
	if (!strcmp(what, "fork"))
		forked(l.library);
	if (!strcmp(what, "kill"))
		killed(l.library);
	if (!strcmp(what, "own"))
		own(&l);
	if (!strcmp(what, "bench"))
		bench(l.library);
	if (!strcmp(what, "wall"))
		wall(l.library);
	workers_end();
	unload(&l);
	return 0;
}

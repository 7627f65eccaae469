/* test_symbols.c - real stacks of a real library become functions, files, lines and inlined frames. */
#include "../../collector/model/symbols.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tap.h"

typedef void (*leaf_function)(void);

static struct process process;
static void *stack[64];
static int depth, first;

/* ---- a process made of this one ---------------------------------------------------- */

static void build_id(struct module *m, const struct dl_phdr_info *info, const ElfW(Phdr) *h)
{
	const char *at = (const char *)info->dlpi_addr + h->p_vaddr, *end = at + h->p_memsz;

	while (at + sizeof(ElfW(Nhdr)) <= end) {
		const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
		const char *name = at + sizeof(*note), *desc = name + ((note->n_namesz + 3) & ~3u);

		if (note->n_type == NT_GNU_BUILD_ID && !memcmp(name, "GNU", 4)) {
			m->build_len = note->n_descsz;
			memcpy(m->build_id, desc, note->n_descsz < 24 ? note->n_descsz : 24);
		}
		at = desc + ((note->n_descsz + 3) & ~3u);
	}
}

static int add_module(struct dl_phdr_info *info, size_t size, void *exe)
{
	struct module m = { .bias = info->dlpi_addr, .start = UINT64_MAX, .epoch_gone = UINT32_MAX };

	(void)size;
	m.path = strdup(*info->dlpi_name ? info->dlpi_name : exe);
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		u64 low = info->dlpi_addr + h->p_vaddr, high = low + h->p_memsz;

		if (h->p_type == PT_NOTE)
			build_id(&m, info, h);
		if (h->p_type != PT_LOAD)
			continue;
		m.start = low < m.start ? low : m.start;
		m.end = high > m.end ? high : m.end;
	}
	process.module = realloc(process.module, (process.modules + 1) * sizeof(m));
	process.module[process.modules++] = m;
	return 0;
}

static u32 add_node(u64 pc, u32 parent)
{
	process.node = realloc(process.node, (process.nodes + 1) * sizeof(*process.node));
	process.node[process.nodes] = (struct node){ .pc = pc, .parent = parent };
	return process.nodes++;
}

struct module *process_module(const struct process *p, u64 pc, u32 epoch)
{
	(void)epoch;
	for (u32 i = 0; i < p->modules; i++)
		if (pc - 1 >= p->module[i].start && pc - 1 < p->module[i].end)
			return &p->module[i];
	return NULL;
}

static __attribute__((noinline)) void leaf(void)
{
	depth = backtrace(stack, 64);
	for (first = 0; first < depth && stack[first] != __builtin_return_address(0);)
		first++;
}

/* The stack of the last leaf() as nodes, from its caller on. */
static u32 add_stack(void)
{
	u32 node = 0;

	for (int i = depth; i-- > first;)
		node = add_node((u64)stack[i], node);
	return node;
}

static u32 line_of_mark(const char *source, const char *mark)
{
	char text[512], wanted[64];
	u32 line = 0;
	FILE *f = fopen(source, "r");

	snprintf(wanted, sizeof(wanted), "// MARK %s\n", mark);
	while (f && fgets(text, sizeof(text), f)) {
		line++;
		if (strstr(text, wanted))
			break;
	}
	if (f)
		fclose(f);
	return line;
}

/* ---- tests ------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end)
{
	return text && strlen(text) >= strlen(end) && !strcmp(text + strlen(text) - strlen(end), end);
}

/* clang gives functions that it inlines a linkage name, gcc does not: so with or without parameters. */
static int is_called(const char *ours, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(ours, name, n) && (!ours[n] || ours[n] == '(');
}

static void check_frame(const struct frame *f, const char *function, const char *source, const char *mark)
{
	ok(is_called(f->function, function), "%s is %s", f->function, function);
	ok(ends_with(f->file, "symbols_sample.cc"), "in %s", f->file ? f->file : "no file");
	ok(f->line == line_of_mark(source, mark), "at the line marked %s (%u)", mark, f->line);
	ok(f->named && !f->internal, "named, not internal");
}

static void inlined_frames(struct symbols *y, const char *source, u32 node)
{
	struct frames f = symbols_frames(y, &process, node);

	ok(f.count == 3, "one address, three frames (%u)", f.count);
	if (f.count != 3)
		return;
	check_frame(&f.at[0], "shop::pick", source, "pick");
	check_frame(&f.at[1], "shop::choose", source, "choose");
	check_frame(&f.at[2], "shop::basket<int>::fill(int, void (*)())", source, "fill");
	ok(!strcmp(f.at[2].linkage, "_ZN4shop6basketIiE4fillEiPFvvE"), "linkage name %s", f.at[2].linkage);
	ok(f.module && ends_with(f.module->path, "symbols_sample.so"), "module");
	ok(f.rel_pc == process.node[node].pc - 1 - f.module->bias, "address in the file");

	f = symbols_frames(y, &process, process.node[node].parent);
	ok(f.count == 1, "its caller is one frame");
	check_frame(&f.at[0], "sample_enter", source, "enter");
}

static void owner(struct symbols *y, u32 vector_node)
{
	const struct module *m;
	const struct frame *f = symbols_owner(y, &process, vector_node, &m);

	ok(!strcmp(f->function, "element::element()"), "a constructor called from std::vector owns: %s", f->function);
	f = symbols_owner(y, &process, process.node[vector_node].parent, &m);
	ok(!f->internal, "walking outwards finds %s", f->function);
	ok(!strcmp(symbols_owner(y, &process, 0, NULL)->function, "[no stack]"), "no stack has an owner too");
}

/* The same addresses, but the module that was mapped had another build id. */
static void replaced_file(u32 node)
{
	struct symbols *y = symbols_new(false);
	struct module *m = process_module(&process, process.node[node].pc, 0);
	char expected[64];

	m->build_id[0] ^= 1;
	struct frames f = symbols_frames(y, &process, node);

	snprintf(expected, sizeof(expected), "+0x%llx", (unsigned long long)f.rel_pc);
	ok(f.count == 1 && !f.at[0].named, "a replaced file is not believed");
	ok(strstr(f.at[0].function, "symbols_sample.so+0x") && ends_with(f.at[0].function, expected), "but named by offset: %s",
	   f.at[0].function);
	ok(symbols_unnamed(y) > 0, "and counted");
	m->build_id[0] ^= 1;
	symbols_free(y);
}

static void jit_code(struct symbols *y)
{
	static char first[] = "py::forward", second[] = "py::backward";
	struct jit_name jit[] = { { 0x1000, 0x100, first }, { 0x1100, 0x80, second } };
	u32 inside = add_node(0x1101 + 1, 0), end = add_node(0x1100, 0), outside = add_node(0x1181, 0);

	process.jit = jit;
	process.jits = 2;
	ok(!strcmp(symbols_frames(y, &process, inside).at[0].function, "py::backward"), "JIT code by its map");
	ok(!strcmp(symbols_frames(y, &process, end).at[0].function, "py::forward"), "a call at the end of a JIT function");
	ok(!symbols_frames(y, &process, outside).at[0].named, "beyond it nobody knows");
	process.jits = 0;
}

static void demangling(struct symbols *y)
{
	static const struct { const char *linkage, *function; bool internal; } name[] = {
		{ "_ZN5alloc5boxed3Box3new17h0123456789abcdefE", "alloc::boxed::Box::new", true },
		{ "_RNvC6_123foo3bar", "123foo::bar", false },
		{ "_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back(int const&)", true },
		{ "_Znwm", "operator new(unsigned long)", true },
		{ "PyMem_Malloc", "PyMem_Malloc", true },
		{ "_Znot a name", "_Znot a name", false },
		{ "forward", "forward", false },
	};

	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		struct jit_name jit = { 0x100000 + i * 0x100, 0x100, (char *)name[i].linkage };
		u32 node = add_node(jit.start + 8, 0);

		process.jit = &jit;
		process.jits = 1;
		const struct frame *f = symbols_frames(y, &process, node).at;

		ok(!strcmp(f->function, name[i].function), "%s: %s", name[i].linkage, f->function);
		ok(f->internal == name[i].internal, "%s", name[i].internal ? "nobody's memory" : "somebody's memory");
	}
	process.jits = 0;
}

/* A name whose substitutions double: it must neither take for ever nor fill memory. */
static void endless_name(struct symbols *y)
{
	char linkage[4096] = "_Z1fISt4pairIiiE", *to = linkage + strlen(linkage);
	struct jit_name jit = { 0x900000, 0x100, linkage };

	for (int i = 0; i < 60; i++)
		to += sprintf(to, "St4pairIS%c_S%c_E", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i % 36], "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i % 36]);
	sprintf(to, "Evv");
	process.jit = &jit;
	process.jits = 1;
	u32 node = add_node(jit.start + 8, 0);

	ok(strlen(symbols_frames(y, &process, node).at[0].function) <= 8192, "a name that unfolds without end is left as it is");
	process.jits = 0;
}

/* ---- against addr2line ------------------------------------------------------------- */

enum { STEP = 3, ADDRESSES = 400 };

static bool next_line(FILE *from, char *text, size_t size)
{
	if (!fgets(text, size, from))
		return false;
	text[strcspn(text, "\n")] = 0;
	return true;
}

/* Frames of one address as "file:line file:line ...", files without their directories. */
static void our_lines(struct symbols *y, u32 node, char *text, size_t size)
{
	struct frames f = symbols_frames(y, &process, node);
	size_t at = 0;

	text[0] = 0;
	for (u32 i = 0; i < f.count && at < size; i++) {
		const char *slash = f.at[i].file ? strrchr(f.at[i].file, '/') : NULL;

		at += snprintf(text + at, size - at, "%s:%u ", slash ? slash + 1 : "??", f.at[i].line);
	}
}

/* The same of addr2line, which prints a function and a place for each frame, and before them the address. */
static bool their_lines(FILE *from, char *ahead, char *text, size_t size)
{
	char function[4096], place[4096];
	size_t at = 0;

	text[0] = 0;
	if (strncmp(ahead, "0x", 2))
		return false;
	while (next_line(from, function, sizeof(function)) && strncmp(function, "0x", 2) && next_line(from, place, sizeof(place))) {
		char *slash = strrchr(place, '/');

		place[strcspn(place, " ")] = 0;
		at += snprintf(text + at, at < size ? size - at : 0, "%s ", slash ? slash + 1 : place);
	}
	snprintf(ahead, 4096, "%s", function);
	return true;
}

static FILE *ask_addr2line(const char *library, u64 low)
{
	static char command[ADDRESSES * 24 + 4096];
	int at = snprintf(command, sizeof(command), "addr2line -a -f -i -e '%s'", library);

	for (u32 i = 0; i < ADDRESSES; i++)
		at += snprintf(command + at, sizeof(command) - at, " 0x%llx", (unsigned long long)(low + i * STEP));
	return popen(command, "r");
}

static void as_addr2line_says(const char *library, u64 start)
{
	struct symbols *y = symbols_new(false);
	struct module *m = process_module(&process, start, 0);
	char ahead[4096] = "", ours[4096], theirs[4096];
	u64 low = start - 0x200;
	u32 same = 0, known = 0;
	FILE *from = system("addr2line --version >/dev/null 2>&1") ? NULL : ask_addr2line(library, low - m->bias);

	if (!from) {
		printf("# no addr2line here\n");
		symbols_free(y);
		return;
	}
	next_line(from, ahead, sizeof(ahead));
	for (u32 i = 0; i < ADDRESSES && their_lines(from, ahead, theirs, sizeof(theirs)); i++) {
		u32 node = add_node(low + i * STEP + 1, 0);

		if (strchr(theirs, '?'))
			continue;
		our_lines(y, node, ours, sizeof(ours));
		known++;
		same += !strcmp(ours, theirs);
		if (strcmp(ours, theirs))
			printf("# 0x%llx: ours %s, theirs %s\n", (unsigned long long)(low + i * STEP - m->bias), ours, theirs);
	}
	pclose(from);
	ok(known > 50 && same == known, "files, lines and inlined frames of %u addresses as addr2line has them", known);
	symbols_free(y);
}

/* Many addresses of libc, as a large recording asks for. */
static void many_addresses(void)
{
	struct symbols *y = symbols_new(false);
	struct module *libc = NULL;
	struct timespec a, b;
	u32 nodes[20000], named = 0;

	for (u32 i = 0; i < process.modules; i++)
		if (strstr(process.module[i].path, "libc.so"))
			libc = &process.module[i];
	if (!libc)
		return;
	for (u32 i = 0; i < 20000; i++)
		nodes[i] = add_node(libc->start + 0x28000 + i * 64 + 5, 0);
	clock_gettime(CLOCK_MONOTONIC, &a);
	symbols_prepare(y, &process, nodes, 20000);
	clock_gettime(CLOCK_MONOTONIC, &b);
	for (u32 i = 0; i < 20000; i++)
		named += symbols_frames(y, &process, nodes[i]).at[0].named;
	ok(named > 1000, "%u of 20000 addresses of libc have a name", named);
	printf("# 20000 addresses took %.0f ms\n", (b.tv_sec - a.tv_sec) * 1e3 + (b.tv_nsec - a.tv_nsec) / 1e6);
	symbols_free(y);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 99;
	void *library = dlopen(argv[1], RTLD_NOW);
	void (*enter)(leaf_function) = library ? (void (*)(leaf_function))dlsym(library, "sample_enter") : NULL;
	void (*vector)(leaf_function) = library ? (void (*)(leaf_function))dlsym(library, "sample_vector") : NULL;
	struct symbols *y = symbols_new(false);

	ok(enter && vector, "the sample is there");
	if (!enter || !vector)
		return done();
	add_node(0, 0);
	enter(leaf);
	u32 inlined = add_stack();
	vector(leaf);
	u32 in_vector = add_stack();

	dl_iterate_phdr(add_module, argv[0]);
	symbols_prepare(y, &process, (u32[]){ inlined, in_vector }, 2);
	inlined_frames(y, argv[2], inlined);
	owner(y, in_vector);
	replaced_file(inlined);
	jit_code(y);
	demangling(y);
	endless_name(y);
#ifdef __clang__
	/* binutils' addr2line shows one frame where clang has inlined six: it can judge gcc's code only. */
	printf("# addr2line is asked about code that gcc made\n");
	(void)as_addr2line_says;
#else
	as_addr2line_says(argv[1], (u64)enter);
#endif
	many_addresses();
	symbols_free(y);
	return done();
}

/*
 * iree.c - IREE's executables as they are loaded: recognised, and their tables of kernels led to our thunks.
 *
 *   embedded ELF     IREE's own loader: copies, relocates, then mprotect(R) of the page with the ELF header, mprotect(R|X)
 *                    of the code, mprotect of the data. We come in after the second: the code can run, the table
 *                    is relocated and not sealed yet, and nobody has read it.
 *   system library   dlopen, then dlsym of the one function that an executable has. We come in before it is answered.
 *
 * That function gives the library's table for the version it is asked for, if that is its own. A version that we do not
 * know is left alone: its tables may look otherwise. Others load ELF images too, so what is found is looked at with
 * care: nothing is read that the kernel has not said to be readable.
 */
#include "iree.h"
#include "bind.h"
#include "handles.h"
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <signal.h>

enum { EXPORTS_MAX = 4096, SEGMENTS_MAX = 64, DYNAMIC_BYTES_MAX = 1 << 16, SYMBOLS_MAX = 4096, PAGE = 4096 };

#define QUERY "iree_hal_executable_library_query"

typedef void *query_function(u32 version, const void *environment);

extern const char iree_thunks[] __attribute__((visibility("hidden")));

iree_kernel *iree_real[IREE_THUNKS];
struct iree_export *iree_export;
u32 iree_images;

struct executable {
	struct executable *next;
	u64 start, end;
	bool by_loader;                 /* by ld.so */
	u32 first;                      /* of its exports, 0: none; they are numbered from 1 in these lists */
};

static struct pool image_pool = POOL(struct executable);
static struct executable *images;
static u32 lock;                        /* of the images and of which exports are free */
static u32 free_exports, fresh_exports; /* a list; below IREE_THUNKS: never used */

/* ---- reading with care ----------------------------------------------------------------------- */

static bool readable(const void *p, u64 bytes)
{
	u64 at = (u64)p & ~7ull, end = (u64)p + bytes;

	if (!p || end < at)
		return false;
	for (; at < end; at = (at | (PAGE - 1)) + 1)
		if (!sys_readable((const void *)at))
			return false;
	return true;
}

/* At most `size` bytes with the NUL; "" if it can't be read. */
static void text_taken(char *to, size_t size, const char *from, size_t length)
{
	size_t i = 0;

	for (; i + 1 < size && i < length; i++) {
		if ((i == 0 || ((u64)(from + i) & (PAGE - 1)) == 0) && !readable(from + i, 1))
			break;
		if (!from[i])
			break;
		to[i] = from[i];
	}
	to[i] = 0;
}

/* Stores a word of a table, which may be sealed already. The kernel is made to write to it first, to see whether it can. */
static void store(void **at, void *value)
{
	u64 page = (u64)at & ~(u64)(PAGE - 1);
	bool sealed = sys4(SYS_rt_sigprocmask, SIG_BLOCK, NULL, at, 8) < 0;

	if (sealed && sys(SYS_mprotect, page, PAGE, PROT_READ | PROT_WRITE) < 0)
		return;
	__atomic_store_n(at, value, __ATOMIC_RELEASE);
	if (sealed)
		sys(SYS_mprotect, page, PAGE, PROT_READ);
}

/* ---- the library's tables ----------------------------------------------------------------------- */

struct header { u32 version, pad; const char *name; };
struct source { u32 line, path_length; const char *path; };

/* Where a version has what in its table of exports. */
struct layout { u32 version, names, sources; };

static const struct layout layouts[] = { { 6, 40, 64 }, { 5, 24, 40 } };

enum { EXPORTS = 24, EXPORTS_END = 104, COUNT = 0, KERNELS = 8 };

struct library {
	char name[64];
	u32 version, count;
	void **kernels;
	const char **names;             /* may be NULL */
	const struct source *sources;   /* may be NULL */
};

static void *word_at(const void *p, u64 offset) { return *(void **)((const char *)p + offset); }

static bool library_read(struct library *l, const void *table, const struct layout *layout)
{
	const struct header *h;
	const char *exports = (const char *)table + EXPORTS;

	if (!readable(table, EXPORTS_END) || !(h = word_at(table, 0)) || !readable(h, sizeof *h) || h->version != layout->version)
		return false;
	*l = (struct library){
		.version = h->version, .count = *(const u32 *)(exports + COUNT), .kernels = word_at(exports, KERNELS),
		.names = word_at(exports, layout->names), .sources = word_at(exports, layout->sources),
	};
	text_taken(l->name, sizeof l->name, h->name, ~0ul);
	if (l->names && !readable(l->names, l->count * sizeof *l->names))
		l->names = NULL;
	if (l->sources && !readable(l->sources, l->count * sizeof *l->sources))
		l->sources = NULL;
	return l->count && l->count <= EXPORTS_MAX && readable(l->kernels, l->count * sizeof *l->kernels);
}

/* Asked for a version that is not its own, a library says NULL. */
static bool library_find(struct library *l, query_function *query)
{
	static const u64 environment[16];

	for (u32 i = 0; i < sizeof layouts / sizeof *layouts; i++) {
		const void *table = query(layouts[i].version, environment);

		if (table && library_read(l, table, &layouts[i]))
			return true;
	}
	return false;
}

/* ---- exports ------------------------------------------------------------------------------------- */

static void *thunk(u32 export) { return (void *)(iree_thunks + (u64)export * IREE_THUNK_BYTES); }

static bool is_thunk(const void *p)
{
	return (const char *)p >= iree_thunks && (const char *)p < iree_thunks + IREE_THUNKS * IREE_THUNK_BYTES;
}

static bool start(void)
{
	if (!iree_export)
		iree_export = sys_memory(IREE_THUNKS * sizeof *iree_export);
	return iree_export && iree_tiles_start();
}

/* One for all that runs on the CPU. Nobody gets its number before it was told. */
static struct rec_queue cpu(void)
{
	static struct rec_queue queue;
	static u32 telling, told;
	struct rec_queue r = { .flags = QUEUE_OUT_OF_ORDER };

	if (__atomic_load_n(&told, __ATOMIC_ACQUIRE))
		return queue;
	spin_lock(&telling);
	if (!told) {
		r.device = device_number();
		r.id = device_number();
		device_note(&(struct rec_device){ .id = r.device, .flags = DEVICE_CPU | DEVICE_HOST_MEMORY, .clock = DEVICE_CLOCK_NONE }, "IREE", "CPU",
			    "local executables");
		queue_note(&r, "dispatches");
		queue = r;
		__atomic_store_n(&told, 1, __ATOMIC_RELEASE);
	}
	spin_unlock(&telling);
	return queue;
}

u64 iree_device(void) { return cpu().device; }

/* FILE:LINE; of a long path the end. */
static void source_text(char *to, size_t size, const struct source *s)
{
	size_t room = size - 12, skip = s->path_length > room ? s->path_length - room : 0;

	text_taken(to, room, s->path ? s->path + skip : NULL, s->path_length - skip);
	if (!to[0])
		return;
	text_append(to, size, ":");
	text_number(to, size, s->line, 10);
}

static void describe(struct iree_export *e, const struct library *l, u32 i)
{
	char name[256], source[160] = "";

	e->args.used = 0;
	text_taken(name, sizeof name, l->names ? l->names[i] : NULL, ~0ul);
	if (l->sources)
		source_text(source, sizeof source, &l->sources[i]);
	if (!name[0]) {
		text_join(name, sizeof name, l->name, " export ");
		text_number(name, sizeof name, i, 10);
	}
	args_text(&e->args, "executable", l->name);
	if (source[0])
		args_text(&e->args, "source", source);
	e->name = name_number(name);
	e->queue = cpu().id;
}

/* 0: none is left; else one more than its index. */
static u32 export_take(void)
{
	u32 e = free_exports;

	if (e)
		free_exports = iree_export[e - 1].next;
	else if (fresh_exports < IREE_THUNKS)
		e = ++fresh_exports;
	return e;
}

static void exports_give(u32 first)
{
	while (first) {
		u32 next = iree_export[first - 1].next;

		iree_export[first - 1].next = free_exports;
		free_exports = first;
		first = next;
	}
}

/* ---- images -------------------------------------------------------------------------------------- */

/* With the lock held. */
static void forget_images(bool (*is_gone)(const struct executable *i, const void *from, u64 bytes), const void *from, u64 bytes)
{
	struct executable **at = &images, *i;

	while ((i = *at)) {
		if (!is_gone(i, from, bytes)) {
			at = &i->next;
			continue;
		}
		*at = i->next;
		exports_give(i->first);
		pool_put(&image_pool, i);
		__atomic_sub_fetch(&iree_images, 1, __ATOMIC_RELAXED);
	}
}

static bool is_inside(const struct executable *i, const void *from, u64 bytes)
{
	return i->start >= (u64)from && i->start - (u64)from < bytes;
}

static bool is_unloaded(const struct executable *i, const void *from, u64 bytes)
{
	struct dl_find_object object;

	(void)from, (void)bytes;
	return i->by_loader && (_dl_find_object((void *)i->start, &object) != 0 || (u64)object.dlfo_map_start != i->start);
}

static void forget(bool (*is_gone)(const struct executable *i, const void *from, u64 bytes), const void *from, u64 bytes)
{
	struct visit v = context_enter(FRAME());

	if (!v.context)
		return;
	spin_lock(&lock);
	forget_images(is_gone, from, bytes);
	spin_unlock(&lock);
	context_leave(v);
}

/* Before it is done, because then others may map there; a whole mapping that was there can be unmapped. */
void iree_unmapping(const void *addr, size_t length) { forget(is_inside, addr, length); }
void iree_unloaded(void) { forget(is_unloaded, NULL, 0); }

/* Thunks for all of them, or none. */
static struct executable *image_new(const struct library *l, u64 start, u64 end, bool by_loader)
{
	struct visit v = context_enter(FRAME());
	struct executable *i = v.context ? pool_get(&image_pool) : NULL;
	u32 taken = 0, e;

	if (!i) {
		if (v.context)
			context_leave(v);
		return NULL;
	}
	*i = (struct executable){ .start = start, .end = end, .by_loader = by_loader };
	spin_lock(&lock);
	forget_images(is_inside, (const void *)start, end - start);     /* its end was not seen */
	for (; taken < l->count && (e = export_take()); taken++) {
		iree_export[e - 1].next = i->first;
		i->first = e;
	}
	if (taken < l->count) {
		exports_give(i->first);
	} else {
		i->next = images;
		images = i;
		__atomic_add_fetch(&iree_images, 1, __ATOMIC_RELAXED);
	}
	spin_unlock(&lock);
	context_leave(v);
	return taken < l->count ? NULL : i;
}

/* ---- an executable was loaded ---------------------------------------------------------------------- */

static bool wanted(void) { return guest.state == GUEST_ON && !tls.guard && guest.control->apis & API_IREE; }

static void say_once(u32 *said, const char *line)
{
	if (!__atomic_exchange_n(said, 1, __ATOMIC_RELAXED))
		notice_note(line);
}

static void wrap(query_function *query, u64 from, u64 to, bool by_loader)
{
	static u32 said_unknown, said_many;
	struct library l;
	struct executable *image;
	u32 e, i = 0;

	if (!library_find(&l, query)) {
		say_once(&said_unknown, "an IREE executable has a library version that mlprof does not know: its dispatches are not shown");
		return;
	}
	if (is_thunk(l.kernels[0]))
		return;
	image = start() ? image_new(&l, from, to, by_loader) : NULL;
	if (!image) {
		say_once(&said_many, "too many IREE executables are loaded at once: dispatches of the last ones are not shown");
		return;
	}
	for (e = image->first; e; e = iree_export[e - 1].next, i++) {
		iree_real[e - 1] = (iree_kernel *)l.kernels[i];
		describe(&iree_export[e - 1], &l, i);
		if (l.kernels[i])
			store(&l.kernels[i], thunk(e - 1));
	}
}

/* ---- IREE's own loader ------------------------------------------------------------------------------ */

/* An ELF header was made readable by this thread; IREE goes on with its other segments. */
static __thread struct { u64 at, bytes; } candidate __attribute__((tls_model("initial-exec")));

struct elf { u64 bias, start, end; const Elf64_Dyn *dynamic; u64 dynamics; };

static bool is_elf(const void *p, u64 bytes)
{
	const Elf64_Ehdr *h = p;

	return bytes >= sizeof *h && readable(p, sizeof *h) && *(const u32 *)h->e_ident == 0x464c457f && h->e_ident[EI_CLASS] == ELFCLASS64 &&
	       h->e_machine == EM_X86_64 && h->e_type == ET_DYN && h->e_phentsize == sizeof(Elf64_Phdr) && h->e_phnum && h->e_phnum <= SEGMENTS_MAX &&
	       h->e_phoff <= bytes && h->e_phnum * sizeof(Elf64_Phdr) <= bytes - h->e_phoff && readable((const char *)p + h->e_phoff, h->e_phnum * sizeof(Elf64_Phdr));
}

static u64 page_of(u64 address) { return address & ~(u64)(PAGE - 1); }

static bool inside(const struct elf *e, u64 address, u64 bytes)
{
	return address >= e->start && address < e->end && bytes <= e->end - address && readable((const void *)address, bytes);
}

/* False: `code` is not where its code was to be made executable. */
static bool elf_read(struct elf *e, const void *base, u64 code)
{
	const Elf64_Ehdr *h = base;
	const Elf64_Phdr *p = (const Elf64_Phdr *)((const char *)base + h->e_phoff), *dynamic = NULL;
	u64 low = UINT64_MAX, high = 0;
	bool has_code = false;

	for (u32 i = 0; i < h->e_phnum; i++)
		if (p[i].p_type == PT_LOAD) {
			low = p[i].p_vaddr < low ? page_of(p[i].p_vaddr) : low;
			high = p[i].p_vaddr + p[i].p_memsz > high ? p[i].p_vaddr + p[i].p_memsz : high;
		}
	if (low >= high || high - low > 1ull << 32)
		return false;
	*e = (struct elf){ .bias = (u64)base - low, .start = (u64)base, .end = (u64)base + page_of(high - low + PAGE - 1) };
	for (u32 i = 0; i < h->e_phnum; i++) {
		has_code |= p[i].p_type == PT_LOAD && p[i].p_flags & PF_X && page_of(p[i].p_vaddr) + e->bias == code;
		if (p[i].p_type == PT_DYNAMIC)
			dynamic = &p[i];
	}
	if (!has_code || !dynamic || dynamic->p_memsz > DYNAMIC_BYTES_MAX || !inside(e, e->bias + dynamic->p_vaddr, dynamic->p_memsz))
		return false;
	e->dynamic = (const Elf64_Dyn *)(e->bias + dynamic->p_vaddr);
	e->dynamics = dynamic->p_memsz / sizeof *e->dynamic;
	return true;
}

/* IREE's loader leaves these addresses as the file has them. */
static u64 dynamic_value(const struct elf *e, i64 tag)
{
	for (u64 i = 0; i < e->dynamics && e->dynamic[i].d_tag != DT_NULL; i++)
		if (e->dynamic[i].d_tag == tag)
			return e->bias + e->dynamic[i].d_un.d_ptr;
	return 0;
}

static query_function *find_query(const struct elf *e)
{
	u64 strings = dynamic_value(e, DT_STRTAB), symbols = dynamic_value(e, DT_SYMTAB), hash = dynamic_value(e, DT_HASH);
	const Elf64_Sym *s = (const Elf64_Sym *)symbols;
	u32 count;

	if (!inside(e, hash, 8) || (count = ((const u32 *)hash)[1]) > SYMBOLS_MAX || !inside(e, symbols, count * sizeof *s))
		return NULL;
	for (u32 i = 0; i < count; i++) {
		char name[sizeof QUERY + 1];

		if (s[i].st_shndx == SHN_UNDEF || !inside(e, strings + s[i].st_name, 1) || !inside(e, e->bias + s[i].st_value, 1))
			continue;
		text_taken(name, sizeof name, (const char *)strings + s[i].st_name, ~0ul);
		if (text_equal(name, QUERY))
			return (query_function *)(e->bias + s[i].st_value);
	}
	return NULL;
}

void iree_protected(const void *addr, size_t length, int prot)
{
	u64 base = candidate.at;
	query_function *query;
	struct elf e;

	if (!wanted())
		return;
	if (prot == PROT_READ && is_elf(addr, length)) {
		candidate.at = (u64)addr;
		candidate.bytes = length;
	}
	if (!(prot & PROT_EXEC) || !base || !is_elf((const void *)base, candidate.bytes) || !elf_read(&e, (const void *)base, (u64)addr))
		return;
	candidate.at = 0;
	query = find_query(&e);
	if (query)
		wrap(query, e.start, e.end, false);
}

/* ---- ld.so -------------------------------------------------------------------------------------------- */

static void *asked_for(void *query)
{
	struct dl_find_object object;

	if (wanted() && _dl_find_object(query, &object) == 0)
		wrap((query_function *)query, (u64)object.dlfo_map_start, (u64)object.dlfo_map_end, true);
	return query;
}

const struct entry iree_entries[] = {
	{ .name = QUERY, .pick = asked_for, .asked_only = true },
	{ 0 }
};

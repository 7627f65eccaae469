/*
 * bind_got.c - references of loaded modules: their GOT entries are made to lead to our wrappers and stubs.
 *
 *   JUMP_SLOT, GLOB_DAT       calls, also those of a library to its own exported functions
 *   data (R_X86_64_64)        function pointers in data: for device APIs, for probe rows that say so, and where the module
 *                             also takes the function's address in code, as it may compare the two
 *
 * What a slot holds is what ld.so has bound it to, by its own rules; that is what the stub will call. Only lazy slots that
 * were never used have to be resolved first: ld.so is asked as if the module itself did. (A library that is loaded for all
 * to see only after that, and before the first call, comes too late to take the call over.)
 *
 * A module is looked at once, when it has come: at start, or when the program calls dlsym or dlopen after it was loaded (a
 * Python extension's PyInit_*, a plugin's first function). What a plugin's own constructors call is not seen.
 */
#include "bind.h"
#include "elf_image.h"
#include "hook.h"
#include "probe.h"
#include "slots.h"
#include "text.h"
#include <string.h>

enum { DONE = 4096 };

struct module {
	const struct link_map *map;
	u64 relro, relro_end;           /* read-only once relocated */
	enum { UNKNOWN, SEALED, OPENED, NEVER_SEALED } state;
	const void *ret;                /* of its code; NULL: not looked for yet */
	bool driver;
};

/* ---- which modules ------------------------------------------------------------------- */

static const struct link_map *map_of(const void *code)
{
	struct dl_find_object object;

	return _dl_find_object((void *)code, &object) == 0 ? object.dlfo_link_map : NULL;
}

static bool is_driver(const struct link_map *m)
{
	static const char *const files[] = { "libvulkan", "libOpenCL", "libVkLayer", "libpocl" };
	static const char *const marks[] = { "vk_icdNegotiateLoaderICDInterfaceVersion", "vkNegotiateLoaderLayerInterfaceVersion",
					     "clIcdGetPlatformIDsKHR" };
	struct elf_image e;

	for (u32 i = 0; i < sizeof files / sizeof *files; i++)
		if (text_starts(elf_file(m), files[i]))
			return true;
	if (!elf_open(&e, m))
		return false;
	for (u32 i = 0; i < sizeof marks / sizeof *marks; i++)
		if (elf_symbol(&e, marks[i]))
			return true;
	return false;
}

bool bind_is_driver(const void *code)
{
	const struct link_map *m = map_of(code);

	return m && is_driver(m);
}

/* ---- slots that are read-only -------------------------------------------------------- */

static bool set_protection(const struct module *m, int protection)
{
	return sys(SYS_mprotect, m->relro, m->relro_end - m->relro, protection) == 0;
}

/* The region is opened once for all slots of the module. One that is being relocated by this very thread is open still. */
static void write_slot(struct module *m, void **slot, void *value)
{
	if ((u64)slot >= m->relro && (u64)slot < m->relro_end) {
		if (m->state == UNKNOWN)
			m->state = sys_rewrite(slot) == sizeof *slot ? NEVER_SEALED : set_protection(m, PROT_READ | PROT_WRITE) ? OPENED : SEALED;
		if (m->state == SEALED)
			return;
	}
	__atomic_store_n(slot, value, __ATOMIC_RELEASE);
}

static void seal(const struct module *m)
{
	if (m->state == OPENED)
		set_protection(m, PROT_READ);
}

/* ---- what a slot means --------------------------------------------------------------- */

static void *defined_at(const void *code, const char *name)
{
	const struct link_map *map = map_of(code);
	struct elf_image e;

	return map && elf_open(&e, map) ? elf_symbol(&e, name) : NULL;
}

/*
 * ld.so has not come to this slot yet, and will write it. Small values are offsets in the module, or addresses in an executable that
 * lies low; what is not a jump slot is 0 at first, and a jump slot leads to its PLT, which is no function of that name there.
 */
static bool unrelocated(const struct elf_image *e, u32 type, const char *name, const void *value)
{
	if ((u64)value >= e->bias || (u64)value >= 1 << 30)
		return false;
	return type == RELOC_CALL ? defined_at(value, name) != value : !map_of(value);
}

/* A jump slot that leads back into its own module, but not to a function of that name: to the PLT, and from there to ld.so. */
static bool is_lazy(const struct module *m, const struct elf_image *e, const char *name, const void *value)
{
	return map_of(value) == m->map && elf_symbol(e, name) != value;
}

/* Asked for a version, dlvsym passes over definitions without one, and ld.so itself does not. */
static void *look_up(const void *ret, void *handle, const char *name, const char *version)
{
	void *any = bind_as(ret, handle, name, NULL);

	return !any || !version || elf_serves_all_versions(any, name) ? any : bind_as(ret, handle, name, version);
}

/* What ld.so would find for the module: in its own scope, in its own order, of the version it wants. */
static void *resolve(const struct module *m, const struct elf_image *e, const char *name, const char *version)
{
	void *real = look_up(m->ret, RTLD_DEFAULT, name, version);

	if (real && elf_is_stand_in(real, name)) {
		real = look_up(bind_next_ret(real), RTLD_NEXT, name, version);
		if (!real)
			real = elf_meaning(e, name);
	}
	return real;
}

/* ---- one module ---------------------------------------------------------------------- */

enum { SYMBOLS = 1 << 19 };

static u64 in_code[SYMBOLS / 64];       /* symbols of the module at hand whose GOT entry is a stub */

static void note_in_code(u32 symbol)
{
	if (symbol < SYMBOLS)
		in_code[symbol / 64] |= 1ull << symbol % 64;
}

static bool is_in_code(u32 symbol)
{
	return symbol < SYMBOLS && in_code[symbol / 64] >> symbol % 64 & 1;
}

static bool is_reference(u32 type)
{
	return type == RELOC_CALL || type == RELOC_CODE || type == RELOC_DATA;
}

/* What the module calls by that name: what the slot holds, or will when it is first used. */
static void *meant(struct module *m, const struct elf_image *e, const Elf64_Rela *r, const char *name, void *value)
{
	if (ELF64_R_TYPE(r->r_info) != RELOC_CALL || !is_lazy(m, e, name, value))
		return value;
	if (!m->ret)
		m->ret = bind_next_ret(value);
	return resolve(m, e, name, elf_version(e, ELF64_R_SYM(r->r_info)));
}

/* Or a variable that has a function's name, or an entry of an executable's PLT, whose own slot is another. */
static bool is_function(const void *value, const char *name)
{
	return defined_at(value, name);
}

static void bind_entry(struct module *m, const struct elf_image *e, const Elf64_Rela *r, const struct entry *entry, void **slot)
{
	void *real = *slot;

	if (!real || r->r_addend || hook_same_module(real, (const void *)bind_entry))
		return;
	real = meant(m, e, r, entry->name, real);
	if (real && is_function(real, entry->name))
		write_slot(m, slot, bind_found(entry, real));
}

static void bind_probe(struct module *m, const struct elf_image *e, const Elf64_Rela *r, const char *name, void **slot)
{
	u32 type = ELF64_R_TYPE(r->r_info), symbol = ELF64_R_SYM(r->r_info);
	void *real = *slot, *stub;

	if (!real || probe_is_stub(real) || (type == RELOC_DATA && r->r_addend))
		return;
	real = meant(m, e, r, name, real);
	stub = real ? probe_stub(real, name, type == RELOC_DATA && !is_in_code(symbol)) : NULL;
	if (!stub)
		return;
	write_slot(m, slot, stub);
	if (type == RELOC_CODE)
		note_in_code(symbol);
}

/* Data comes last, when it is known what code refers to. */
enum part { CODE, DATA };

static bool is_wanted(u32 type, u32 symbol, const char *name, enum part part)
{
	if (part == CODE)
		return type != RELOC_DATA && probe_wants(name, false);
	return type == RELOC_DATA && (is_in_code(symbol) || (probes_in_data() && probe_wants(name, true)));
}

/* False: some slots have to wait. */
static bool bind_relocations(struct module *m, const struct elf_image *e, const Elf64_Rela *r, u64 n, enum part part)
{
	bool all = true;

	for (u64 i = 0; i < n; i++) {
		u32 type = ELF64_R_TYPE(r[i].r_info), symbol = ELF64_R_SYM(r[i].r_info);
		const Elf64_Sym *s = &e->symbols[symbol];
		void **slot = (void **)(e->bias + r[i].r_offset);
		const char *name = e->strings + s->st_name;
		const struct entry *entry;

		if (!is_reference(type) || !*name)
			continue;
		entry = s->st_shndx == SHN_UNDEF && !m->driver && part == DATA ? entry_find(name) : NULL;
		if (entry && entry->asked_only)
			continue;
		if (!entry && !is_wanted(type, symbol, name, part))
			continue;
		if (unrelocated(e, type, name, *slot))
			all = false;
		else if (entry)
			bind_entry(m, e, &r[i], entry, slot);
		else
			bind_probe(m, e, &r[i], name, slot);
	}
	return all;
}

static bool bind_module(struct module *m)
{
	struct elf_image e;
	bool all = true;

	if (!elf_open(&e, m->map))
		return true;
	m->driver = is_driver(m->map);
	memset(in_code, 0, sizeof in_code);
	for (enum part part = CODE; part <= DATA; part++) {
		all &= bind_relocations(m, &e, e.plt, e.plts, part);
		all &= bind_relocations(m, &e, e.rela + e.relatives, e.relas - e.relatives, part);
	}
	seal(m);
	return all;
}

/* ---- all that are new ---------------------------------------------------------------- */

static u64 seen_adds, seen_subs;        /* what ld.so had loaded and unloaded when we last looked */
static u64 done[DONE];                  /* modules that need not be looked at again */
static u32 at_work;                     /* the process that is, or 0 */

static u64 *place_of(const struct link_map *m)
{
	u32 h = (u32)(((u64)m->l_ld >> 4) * 0x9e3779b1u) % DONE;

	for (u32 i = 0; i < DONE; i++) {
		u64 *at = &done[(h + i) % DONE];

		if (!*at || *at == (u64)m->l_ld)
			return at;
	}
	return NULL;
}

static bool is_loader(const struct link_map *m)
{
	return text_starts(elf_file(m), "ld-linux") || text_starts(elf_file(m), "linux-vdso");
}

static struct module found[DONE];       /* those that are new */
static u32 found_count;

/* ld.so holds its list's lock meanwhile, and a child that is forked then never gets it: so here they are only noted. */
static int look_at(struct dl_phdr_info *info, size_t size, void *unused)
{
	struct module m = { .map = info->dlpi_phnum ? map_of(info->dlpi_phdr) : NULL };
	const u64 *place;

	(void)size, (void)unused;
	if (info->dlpi_subs != seen_subs) {     /* something else may lie where a known module lay */
		memset(done, 0, sizeof done);
		seen_subs = info->dlpi_subs;
	}
	__atomic_store_n(&seen_adds, info->dlpi_adds, __ATOMIC_RELEASE);
	if (!m.map || !(place = place_of(m.map)) || *place || is_loader(m.map) || hook_same_module(info->dlpi_phdr, (const void *)look_at))
		return 0;
	for (u32 i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {        /* whole pages, as ld.so takes them */
			m.relro = (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) & ~4095ull;
			m.relro_end = (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz) & ~4095ull;
		}
	if (found_count < DONE)
		found[found_count++] = m;
	return 0;
}

static void bind_all(bool *waiting)
{
	found_count = 0;
	bind_read_list(look_at, NULL);
	for (u32 i = 0; i < found_count; i++) {
		u64 *place = place_of(found[i].map);

		if (!bind_module(&found[i]))
			*waiting = true;
		else if (place)
			*place = (u64)found[i].map->l_ld;
	}
}

static u32 own_pid(void) { return image && image->pid ? image->pid : (u32)sys_getpid(); }

/*
 * With ld.so's lock held from the first mark to the last: who sees that we are at work, and goes on without us, gets the lock for what
 * it was about to do only when all that was loaded before is bound.
 */
static void look_at_all(void *waiting)
{
	bool claimed = bind_claim();

	__atomic_store_n(&at_work, own_pid(), __ATOMIC_RELEASE);
	bind_all(waiting);
	if (*(bool *)waiting)
		__atomic_store_n(&seen_adds, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&at_work, 0, __ATOMIC_RELEASE);
	if (claimed)
		bind_release();
}

static int count_adds(struct dl_phdr_info *info, size_t size, void *to)
{
	(void)size;
	*(u64 *)to = info->dlpi_adds;
	return 1;
}

static u64 cpu_ns(void)
{
	struct timespec t = { 0 };

	sys(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &t, 0);
	return (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec;
}

static void note_cost(u64 took)
{
	struct segment *s = image ? image->segment[0] : NULL;

	if (!s)
		return;
	s->head.bind_ns += took;
	s->head.probe_sites = probes_made();
}

/*
 * Is there anything that no thread of ours has looked at, or is looking at? A thread of the process that we were forked from may
 * have been at it: it did not come along, and all is looked at once more.
 */
static bool is_work(u64 adds)
{
	u32 who = __atomic_load_n(&at_work, __ATOMIC_ACQUIRE);

	return who ? who != own_pid() : adds != __atomic_load_n(&seen_adds, __ATOMIC_ACQUIRE);
}

void bind_modules(void)
{
	bool waiting = false;
	u64 adds = 0, begin;

	bind_read_list(count_adds, &adds);
	if (likely(!is_work(adds)))
		return;
	begin = cpu_ns();
	bind_with_lock(look_at_all, &waiting);
	note_cost(cpu_ns() - begin);
}

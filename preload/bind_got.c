/*
 * bind_got.c - modules that are linked to an API: their GOT entries are made to lead to our wrappers.
 *
 * A module is looked at once, when it has come: at start, or when the program asks dlsym for something after dlopen (a
 * Python extension's PyInit_*, a plugin's first function). What a plugin's own constructors call is not seen.
 */
#include "bind.h"
#include "elf_image.h"
#include "hook.h"
#include "text.h"
#include <string.h>

enum { DONE = 4096 };

struct module {
	const struct link_map *map;
	u64 relro, relro_end;           /* read-only once relocated */
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

/* ---- one module ---------------------------------------------------------------------- */

static void write_slot(const struct module *m, void **slot, void *value)
{
	u64 page = (u64)slot & ~4095ull;
	bool sealed = (u64)slot >= m->relro && (u64)slot < m->relro_end;

	if (sealed && sys(SYS_mprotect, page, 4096, PROT_READ | PROT_WRITE) < 0)
		return;
	__atomic_store_n(slot, value, __ATOMIC_RELEASE);
	if (sealed)
		sys(SYS_mprotect, page, 4096, PROT_READ);
}

/* ld.so has not come to this slot yet, and will write it. */
static bool unrelocated(const struct elf_image *e, const void *value)
{
	return (u64)value < e->bias && (u64)value < 1 << 30;
}

/* False: some slots have to wait. */
static bool bind_relocations(const struct module *m, const struct elf_image *e, const Elf64_Rela *r, u64 n)
{
	bool all = true;

	for (u64 i = 0; i < n; i++) {
		u32 type = ELF64_R_TYPE(r[i].r_info);
		const Elf64_Sym *s = &e->symbols[ELF64_R_SYM(r[i].r_info)];
		void **slot = (void **)(e->bias + r[i].r_offset), *real;
		const struct entry *entry;

		if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT && type != R_X86_64_64) || s->st_shndx != SHN_UNDEF)
			continue;
		if (!(entry = entry_find(e->strings + s->st_name)) || entry->asked_only || *slot == entry->wrapper || !(real = elf_meaning(e, entry->name)))
			continue;
		if (unrelocated(e, *slot)) {
			all = false;
			continue;
		}
		write_slot(m, slot, bind_found(entry, real));
	}
	return all;
}

static bool bind_module(const struct module *m)
{
	struct elf_image e;
	bool all;

	if (!elf_open(&e, m->map) || is_driver(m->map))
		return true;
	all = bind_relocations(m, &e, e.plt, e.plts);
	return bind_relocations(m, &e, e.rela + e.relatives, e.relas - e.relatives) && all;
}

/* ---- all that are new ---------------------------------------------------------------- */

static u64 seen_adds, seen_subs;        /* what ld.so had loaded and unloaded when we last looked */
static u64 done[DONE];                  /* modules that need not be looked at again */
static u32 at_work;

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

/* ld.so calls this with its list locked: modules stay. Nothing here may ask it for more. */
static int look_at(struct dl_phdr_info *info, size_t size, void *waiting)
{
	struct module m = { .map = info->dlpi_phnum ? map_of(info->dlpi_phdr) : NULL };
	u64 *place;

	(void)size;
	if (info->dlpi_subs != seen_subs) {     /* something else may lie where a known module lay */
		memset(done, 0, sizeof done);
		seen_subs = info->dlpi_subs;
	}
	__atomic_store_n(&seen_adds, info->dlpi_adds, __ATOMIC_RELEASE);
	if (!m.map || !(place = place_of(m.map)) || *place || hook_same_module(info->dlpi_phdr, (const void *)look_at))
		return 0;
	for (u32 i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
			m.relro = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			m.relro_end = m.relro + info->dlpi_phdr[i].p_memsz;
		}
	if (bind_module(&m))
		*place = (u64)m.map->l_ld;
	else
		*(bool *)waiting = true;
	return 0;
}

static int count_adds(struct dl_phdr_info *info, size_t size, void *to)
{
	(void)size;
	*(u64 *)to = info->dlpi_adds;
	return 1;
}

void bind_modules(void)
{
	bool waiting = false;
	u64 adds = 0;

	dl_iterate_phdr(count_adds, &adds);
	if (likely(adds == __atomic_load_n(&seen_adds, __ATOMIC_ACQUIRE)) || __atomic_exchange_n(&at_work, 1, __ATOMIC_ACQUIRE))
		return;
	dl_iterate_phdr(look_at, &waiting);
	if (waiting)
		__atomic_store_n(&seen_adds, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&at_work, 0, __ATOMIC_RELEASE);
}

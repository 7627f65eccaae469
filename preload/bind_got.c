/*
 * bind_got.c - modules that are linked to an API: their GOT entries are made to lead to our wrappers.
 *
 * A module is looked at once, when it has come: at start, or when the program asks dlsym for something after dlopen (a
 * Python extension's PyInit_*, a plugin's first function). What a plugin's own constructors call is not seen.
 */
#include "bind.h"
#include "context.h"
#include "elf_image.h"
#include "hook.h"
#include "stack.h"
#include "text.h"
#include <string.h>

enum { BATCH = 512, DONE = 4096 };

struct module {
	const struct link_map *map;
	u64 relro, relro_end;           /* read-only once relocated */
};

struct batch {
	struct module module[BATCH];
	u32 count;
	u64 adds, subs;
};

/* ---- which modules ------------------------------------------------------------------- */

static const struct link_map *map_of(const void *code)
{
	struct dl_find_object object;

	return _dl_find_object((void *)code, &object) == 0 ? object.dlfo_link_map : NULL;
}

static bool named_like(const struct link_map *m, const char *start)
{
	const char *base = m->l_name;

	for (const char *c = m->l_name; *c; c++)
		if (*c == '/')
			base = c + 1;
	return text_starts(base, start);
}

static bool is_driver(const struct link_map *m)
{
	static const char *const files[] = { "libvulkan", "libOpenCL", "libVkLayer", "libpocl" };
	static const char *const marks[] = { "vk_icdNegotiateLoaderICDInterfaceVersion", "vkNegotiateLoaderLayerInterfaceVersion",
					     "clIcdGetPlatformIDsKHR" };
	struct elf_image e;

	for (u32 i = 0; i < sizeof files / sizeof *files; i++)
		if (named_like(m, files[i]))
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

/* Real: what the module's own scope says, whether its slot has been bound yet or not. */
static void bind_relocations(const struct module *m, const struct elf_image *e, const Elf64_Rela *r, u64 n, void *handle)
{
	for (u64 i = 0; i < n; i++) {
		u32 type = ELF64_R_TYPE(r[i].r_info);
		const Elf64_Sym *s = &e->symbols[ELF64_R_SYM(r[i].r_info)];
		const struct entry *entry;
		void *real;

		if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT && type != R_X86_64_64) || s->st_shndx != SHN_UNDEF)
			continue;
		if (!(entry = entry_find(e->strings + s->st_name)))
			continue;
		if (!(real = bind_real_dlsym(handle, entry->name)))
			continue;
		bind_found(entry, real);
		write_slot(m, (void **)(e->bias + r[i].r_offset), entry->wrapper);
	}
}

/* The handle keeps the module where it is meanwhile. */
static void bind_module(const struct module *m)
{
	void *handle = dlopen(m->map->l_name[0] ? m->map->l_name : NULL, RTLD_LAZY | RTLD_NOLOAD);
	struct elf_image e;

	if (!handle)
		return;
	if (elf_open(&e, m->map) && !is_driver(m->map)) {
		bind_relocations(m, &e, e.plt, e.plts, handle);
		bind_relocations(m, &e, e.rela + e.relatives, e.relas - e.relatives, handle);
	}
	dlclose(handle);
}

/* ---- all that are new ---------------------------------------------------------------- */

static u64 seen_adds, seen_subs;        /* what ld.so had loaded and unloaded when we last looked */
static u64 done[DONE];                  /* modules that need not be looked at again */
static u32 at_work;

/* Marks it, if it is not marked yet. A full table only means that modules are looked at again. */
static bool is_new(const struct link_map *m)
{
	u32 h = (u32)(((u64)m->l_ld >> 4) * 0x9e3779b1u) % DONE;

	for (u32 i = 0; i < DONE; i++) {
		u64 *at = &done[(h + i) % DONE];

		if (*at == (u64)m->l_ld)
			return false;
		if (!*at) {
			*at = (u64)m->l_ld;
			return true;
		}
	}
	return true;
}

static int collect(struct dl_phdr_info *info, size_t size, void *to)
{
	struct batch *b = to;
	struct module *m = &b->module[b->count];

	(void)size;
	b->adds = info->dlpi_adds;
	b->subs = info->dlpi_subs;
	if (b->subs != seen_subs) {             /* something else may lie where a known module lay */
		memset(done, 0, sizeof done);
		seen_subs = b->subs;
	}
	if (b->count == BATCH) {
		b->adds = 0;                    /* the rest next time */
		return 1;
	}
	*m = (struct module){ .map = info->dlpi_phnum ? map_of(info->dlpi_phdr) : NULL };
	for (u32 i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
			m->relro = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			m->relro_end = m->relro + info->dlpi_phdr[i].p_memsz;
		}
	b->count += m->map && is_new(m->map) && !hook_same_module(info->dlpi_phdr, (const void *)collect);
	return 0;
}

static int count_adds(struct dl_phdr_info *info, size_t size, void *to)
{
	(void)size;
	*(u64 *)to = info->dlpi_adds;
	return 1;
}

static void bind_new_modules(struct batch *b)
{
	u64 guard = tls.guard;

	tls.guard = FRAME();                    /* what ld.so allocates for us is not the program's */
	dl_iterate_phdr(collect, b);
	for (u32 i = 0; i < b->count; i++)
		bind_module(&b->module[i]);
	dlerror();                              /* what ld.so had to say to us: asked for, and given back */
	dlerror();
	tls.guard = guard;
	__atomic_store_n(&seen_adds, b->adds, __ATOMIC_RELEASE);
}

void bind_modules(void)
{
	struct batch *b;
	u64 adds = 0;

	dl_iterate_phdr(count_adds, &adds);
	if (likely(adds == __atomic_load_n(&seen_adds, __ATOMIC_ACQUIRE)) || __atomic_exchange_n(&at_work, 1, __ATOMIC_ACQUIRE))
		return;
	b = sys_memory(sizeof *b);
	if (b) {
		bind_new_modules(b);
		sys_munmap(b, sizeof *b);
	}
	__atomic_store_n(&at_work, 0, __ATOMIC_RELEASE);
}

/*
 * modules.c - tells the collector of code the first time a stack meets it.
 *
 * Nobody has to watch dlopen for that: an address is only of interest once it is on a stack, and the walk
 * finds its module anyway. The table is filled without a lock; who turns an entry from MET to TOLD writes
 * its record.
 */
#include "modules.h"
#include "buffer.h"
#include "text.h"
#include <elf.h>
#include <link.h>
#include <string.h>

enum { MODULES = 4096, PATH_BYTES = 1024 };
enum { MET = 1, TOLD, GONE };

static struct known {
	u64 start, end;
	const struct link_map *map;
	u32 state;
} known[MODULES];
static u32 pending;                     /* entries in state MET */

static struct known *find_or_add(u64 start)
{
	u32 h = (u32)((start >> 12) * 0x9e3779b1u) % MODULES;

	for (u32 i = 0; i < MODULES; i++) {
		struct known *k = &known[(h + i) % MODULES];
		u64 at = __atomic_load_n(&k->start, __ATOMIC_ACQUIRE);

		if (at == start)
			return k;
		if (!at && __atomic_compare_exchange_n(&k->start, &at, start, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return k;
		if (at == start)
			return k;
	}
	return NULL;
}

void modules_meet(const struct dl_find_object *object)
{
	struct known *k = find_or_add((u64)object->dlfo_map_start);
	u32 state;

	if (!k)
		return;
	state = __atomic_load_n(&k->state, __ATOMIC_ACQUIRE);
	if (state == MET || state == TOLD)
		return;
	k->end = (u64)object->dlfo_map_end;
	k->map = object->dlfo_link_map;
	if (__atomic_compare_exchange_n(&k->state, &state, MET, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		__atomic_add_fetch(&pending, 1, __ATOMIC_RELEASE);
}

/* The build id lies in a note segment of the mapped image; `id` gets up to 24 bytes of it. */
static u32 build_id(const struct known *k, u8 *id)
{
	const Elf64_Ehdr *e = (const void *)k->start;
	u64 size = k->end - k->start;
	const Elf64_Phdr *ph;

	if (size < sizeof *e || memcmp(e->e_ident, ELFMAG, SELFMAG) || e->e_phoff + (u64)e->e_phnum * sizeof *ph > 4096)
		return 0;
	ph = (const void *)(k->start + e->e_phoff);
	for (u32 i = 0; i < e->e_phnum; i++) {
		u64 at = k->map->l_addr + ph[i].p_vaddr, end = at + ph[i].p_memsz;

		if (ph[i].p_type != PT_NOTE || at < k->start || end > k->end || end < at)
			continue;
		while (at + sizeof(Elf64_Nhdr) <= end) {
			const Elf64_Nhdr *n = (const void *)at;
			u64 desc = at + sizeof *n + ((n->n_namesz + 3) & ~3u);
			u32 length = n->n_descsz < 24 ? n->n_descsz : 24;

			if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 && desc + length <= end) {
				memcpy(id, (const void *)desc, length);
				return length;
			}
			at = desc + ((n->n_descsz + 3) & ~3u);
		}
	}
	return 0;
}

static void module_path(const struct known *k, char *to, size_t size)
{
	const char *name = k->map->l_name;
	long n;

	if (!name || !name[0]) {
		n = sys_readlink("/proc/self/exe", to, size - 1);
		to[n > 0 ? n : 0] = 0;
	} else if (name[0] == '/' || text_starts(name, "linux-vdso")) {
		text_copy(to, size, name);
	} else {
		n = sys(SYS_getcwd, to, size, 0);
		if (n <= 0)
			to[0] = 0;
		text_append(to, size, "/");
		text_append(to, size, name);
	}
}

static void announce(struct context *c, const struct known *k, u64 t)
{
	struct rec_module r = { .start = k->start, .end = k->end, .bias = k->map->l_addr };
	char path[PATH_BYTES];

	r.build_len = build_id(k, (u8 *)&r.build0);
	module_path(k, path, sizeof path);
	buffer_event(c, EVENT_module, t, &r, sizeof r, path, text_length(path));
}

void modules_announce(struct context *c, u64 t)
{
	if (likely(!__atomic_load_n(&pending, __ATOMIC_ACQUIRE)))
		return;
	for (u32 i = 0; i < MODULES; i++) {
		u32 met = MET;

		if (known[i].state != MET)
			continue;
		if (!__atomic_compare_exchange_n(&known[i].state, &met, TOLD, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		__atomic_sub_fetch(&pending, 1, __ATOMIC_RELEASE);
		announce(c, &known[i], t);
	}
}

void modules_announce_all(struct context *c, u64 t)
{
	for (u32 i = 0; i < MODULES; i++)
		if (known[i].state == TOLD)
			announce(c, &known[i], t);
}

void modules_forget_gone(struct context *c, u64 t)
{
	for (u32 i = 0; i < MODULES; i++) {
		struct dl_find_object now;

		if (known[i].state != TOLD)
			continue;
		if (_dl_find_object((void *)known[i].start, &now) == 0 && now.dlfo_link_map == known[i].map &&
		    (u64)now.dlfo_map_end == known[i].end)
			continue;
		known[i].state = GONE;
		EMIT(c, t, module_gone, FIELDS(.start = known[i].start), NULL, 0);
	}
}

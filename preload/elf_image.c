/*
 * elf_image.c - reads the dynamic section of a loaded module.
 */
#include "elf_image.h"
#include "bind.h"
#include "hook.h"
#include "text.h"

bool elf_open(struct elf_image *e, const struct link_map *map)
{
	u64 value[DT_NUM] = { 0 }, gnu_hash = 0, relatives = 0, versions = 0, needs = 0, defines = 0;

	*e = (struct elf_image){ .bias = map->l_addr, .dynamic = map->l_ld };
	if (!map->l_ld)
		return false;
	for (const Elf64_Dyn *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		if ((u64)d->d_tag < DT_NUM)
			value[d->d_tag] = d->d_un.d_val;
		else if (d->d_tag == DT_GNU_HASH)
			gnu_hash = d->d_un.d_ptr;
		else if (d->d_tag == DT_RELACOUNT)
			relatives = d->d_un.d_val;
		else if (d->d_tag == DT_VERSYM)
			versions = d->d_un.d_ptr;
		else if (d->d_tag == DT_VERNEED)
			needs = d->d_un.d_ptr;
		else if (d->d_tag == DT_VERDEF)
			defines = d->d_un.d_ptr;
	}
	/* ld.so has made these absolute, except where the section is read-only (vDSO). */
#define ADDRESS(v) ((v) && (v) < e->bias ? (v) + e->bias : (v))
	e->symbols = (const void *)ADDRESS(value[DT_SYMTAB]);
	e->strings = (const void *)ADDRESS(value[DT_STRTAB]);
	e->gnu_hash = (const void *)ADDRESS(gnu_hash);
	e->versions = (const void *)ADDRESS(versions);
	e->needs = (const void *)ADDRESS(needs);
	e->defines = (const void *)ADDRESS(defines);
	e->rela = (const void *)ADDRESS(value[DT_RELA]);
	e->relas = e->rela ? value[DT_RELASZ] / sizeof *e->rela : 0;
	e->plt = value[DT_PLTREL] == DT_RELA ? (const void *)ADDRESS(value[DT_JMPREL]) : NULL;
	e->plts = e->plt ? value[DT_PLTRELSZ] / sizeof *e->plt : 0;
	e->relatives = relatives < e->relas ? relatives : e->relas;
#undef ADDRESS
	return e->symbols && e->strings;
}

static void *address_of(const struct elf_image *e, const Elf64_Sym *s)
{
	void *at = (void *)(e->bias + s->st_value);

	return ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC ? ((void *(*)(void))at)() : at;
}

static bool defines(const struct elf_image *e, const Elf64_Sym *s, const char *name)
{
	u32 type = ELF64_ST_TYPE(s->st_info);

	return s->st_shndx != SHN_UNDEF && (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) &&
	       text_equal(e->strings + s->st_name, name);
}

/* nbuckets, first symbol, bloom words, bloom shift | bloom | buckets | chains */
static const Elf64_Sym *find(const struct elf_image *e, const char *name)
{
	const u32 *h = e->gnu_hash, *buckets, *chains;
	u32 hash = 5381, i;

	if (!h || !h[0])
		return NULL;
	for (const char *c = name; *c; c++)
		hash = hash * 33 + (u8)*c;
	buckets = h + 4 + 2 * h[2];
	chains = buckets + h[0];
	i = buckets[hash % h[0]];
	if (i < h[1])
		return NULL;
	for (;; i++) {
		if ((chains[i - h[1]] | 1) == (hash | 1) && defines(e, &e->symbols[i], name))
			return &e->symbols[i];
		if (chains[i - h[1]] & 1)
			return NULL;
	}
}

void *elf_symbol(const struct elf_image *e, const char *name)
{
	const Elf64_Sym *s = find(e, name);

	return s ? address_of(e, s) : NULL;
}

const char *elf_version(const struct elf_image *e, u32 symbol)
{
	u32 version = e->versions ? e->versions[symbol] & 0x7fff : 0;

	if (version < 2)                /* local, or without one */
		return NULL;
	for (const Elf64_Verneed *n = e->needs; n; n = n->vn_next ? (const void *)((const char *)n + n->vn_next) : NULL)
		for (const Elf64_Vernaux *a = (const void *)((const char *)n + n->vn_aux); a;
		     a = a->vna_next ? (const void *)((const char *)a + a->vna_next) : NULL)
			if ((a->vna_other & 0x7fff) == version)
				return e->strings + a->vna_name;
	for (const Elf64_Verdef *d = e->defines; d; d = d->vd_next ? (const void *)((const char *)d + d->vd_next) : NULL)
		if ((d->vd_ndx & 0x7fff) == version)
			return e->strings + ((const Elf64_Verdaux *)((const char *)d + d->vd_aux))->vda_name;
	return NULL;
}

void *elf_next_symbol(const char *name)
{
	bool behind = false;
	struct elf_image e;

	for (const struct link_map *m = _r_debug.r_map; m; m = m->l_next) {
		void *found;

		if (!elf_open(&e, m))
			continue;
		if (!behind) {
			behind = hook_same_module(m->l_ld, (const void *)elf_next_symbol);
			continue;
		}
		if ((found = elf_symbol(&e, name)))
			return found;
	}
	return NULL;
}

static const char *last_part(const char *path)
{
	const char *base = path;

	for (const char *c = path; *c; c++)
		if (*c == '/')
			base = c + 1;
	return base;
}

const char *elf_file(const struct link_map *map) { return last_part(map->l_name); }

static void *defined_in(const struct link_map *m, const char *name)
{
	struct elf_image e;

	return elf_open(&e, m) && !hook_same_module(m->l_ld, (const void *)defined_in) ? elf_symbol(&e, name) : NULL;
}

void *elf_meaning(const struct elf_image *e, const char *name)
{
	void *found;

	for (const Elf64_Dyn *d = e->dynamic; d->d_tag != DT_NULL; d++)
		for (const struct link_map *m = d->d_tag == DT_NEEDED ? _r_debug.r_map : NULL; m; m = m->l_next)
			if (text_equal(elf_file(m), last_part(e->strings + d->d_un.d_val)) && (found = defined_in(m, name)))
				return found;
	for (const struct link_map *m = _r_debug.r_map; m; m = m->l_next)
		if ((found = defined_in(m, name)))
			return found;
	return NULL;
}

struct question { const void *code; const char *name; void *answer; };

static int answer(struct dl_phdr_info *info, size_t size, void *to)
{
	struct question *q = to;
	struct dl_find_object object;
	struct elf_image e;

	(void)info, (void)size;
	if (_dl_find_object((void *)q->code, &object) == 0 && elf_open(&e, object.dlfo_link_map))
		q->answer = elf_meaning(&e, q->name);
	return 1;
}

void *elf_meaning_for(const void *code, const char *name)
{
	struct question q = { code, name, NULL };

	bind_read_list(answer, &q);
	return q.answer;
}

bool elf_is_stand_in(const void *code, const char *name)
{
	struct dl_find_object object;
	struct elf_image e;

	return _dl_find_object((void *)code, &object) == 0 && !object.dlfo_link_map->l_addr && elf_open(&e, object.dlfo_link_map) &&
	       elf_symbol(&e, name) != code;
}

bool elf_serves_all_versions(const void *code, const char *name)
{
	struct dl_find_object object;
	const Elf64_Sym *s;
	struct elf_image e;

	if (_dl_find_object((void *)code, &object) != 0 || !elf_open(&e, object.dlfo_link_map) || !(s = find(&e, name)))
		return false;
	return !e.versions || (e.versions[s - e.symbols] & 0x7fff) < 2;
}

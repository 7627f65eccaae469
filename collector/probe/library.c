/*
 * library.c - see library.h.
 */
#include "library.h"

#include "../util/array.h"
#include "glob.h"
#include "inside.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <unistd.h>

/* ---- reading ------------------------------------------------------------------------------ */

struct reading {
	struct library *to;
	u32 cap;
	Elf *elf;
};

static void add(struct reading *r, const char *name, u32 flags)
{
	struct library *l = r->to;

	if (!name || !*name)
		return;
	ARRAY_ROOM(l->symbol, r->cap, l->symbols + 1);
	l->symbol[l->symbols++] = (struct library_symbol) { text_copy(name, strlen(name)), flags };
}

static bool is_function(const GElf_Sym *s)
{
	int type = GELF_ST_TYPE(s->st_info);

	return type == STT_FUNC || type == STT_GNU_IFUNC;
}

static u32 dynamic_flags(const GElf_Sym *s)
{
	int see = GELF_ST_VISIBILITY(s->st_other);

	if (s->st_shndx == SHN_UNDEF)
		return SYMBOL_IMPORTED;
	if (GELF_ST_BIND(s->st_info) == STB_LOCAL || see == STV_HIDDEN || see == STV_INTERNAL)
		return SYMBOL_HIDDEN;
	return SYMBOL_EXPORTED;
}

static void read_dynamic(struct reading *r, Elf_Data *data, size_t strings, size_t count)
{
	GElf_Sym s;

	for (size_t i = 1; i < count && gelf_getsym(data, (int)i, &s); i++) {
		u32 flags = dynamic_flags(&s);

		if (!is_function(&s) && flags != SYMBOL_IMPORTED)
			continue;
		r->to->exported += flags == SYMBOL_EXPORTED;
		add(r, elf_strptr(r->elf, strings, s.st_name), flags);
	}
}

/* What is defined but not among the dynamic symbols. */
static void read_static(struct reading *r, Elf_Data *data, size_t strings, size_t count)
{
	GElf_Sym s;

	for (size_t i = 1; i < count && gelf_getsym(data, (int)i, &s); i++)
		if (is_function(&s) && s.st_shndx != SHN_UNDEF)
			add(r, elf_strptr(r->elf, strings, s.st_name), SYMBOL_HIDDEN);
}

static u32 relocation_flags(u32 type)
{
	return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT ? SYMBOL_CALLED : type == R_X86_64_64 ? SYMBOL_IN_DATA : 0;
}

/* A relocation that names a symbol is how the loader, and we, can lead its calls elsewhere. */
static void read_relocations(struct reading *r, Elf_Data *data, const GElf_Shdr *head)
{
	Elf_Scn *table = elf_getscn(r->elf, head->sh_link);
	Elf_Data *symbols = table ? elf_getdata(table, NULL) : NULL;
	size_t count = head->sh_entsize ? head->sh_size / head->sh_entsize : 0;
	GElf_Shdr names;
	GElf_Rela rela;
	GElf_Sym s;

	if (!symbols || !gelf_getshdr(table, &names) || names.sh_type != SHT_DYNSYM)
		return;
	for (size_t i = 0; i < count && gelf_getrela(data, (int)i, &rela); i++) {
		u32 flags = relocation_flags((u32)GELF_R_TYPE(rela.r_info));

		if (flags && gelf_getsym(symbols, (int)GELF_R_SYM(rela.r_info), &s))
			add(r, elf_strptr(r->elf, names.sh_link, s.st_name), flags);
	}
}

static bool read_sections(struct reading *r)
{
	GElf_Shdr head;
	bool dynamic = false;

	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(r->elf, scn));) {
		Elf_Data *data;
		size_t count;

		if (!gelf_getshdr(scn, &head) || (head.sh_type != SHT_DYNSYM && head.sh_type != SHT_SYMTAB && head.sh_type != SHT_RELA))
			continue;
		data = elf_getdata(scn, NULL);
		count = head.sh_entsize ? head.sh_size / head.sh_entsize : 0;
		dynamic |= head.sh_type == SHT_DYNSYM;
		if (data && head.sh_type == SHT_DYNSYM)
			read_dynamic(r, data, head.sh_link, count);
		else if (data && head.sh_type == SHT_SYMTAB)
			read_static(r, data, head.sh_link, count);
		else if (data)
			read_relocations(r, data, &head);
	}
	return dynamic;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct library_symbol *)a)->name, ((const struct library_symbol *)b)->name);
}

/* Each symbol once, with all that was found of it; what is exported stands among the static symbols as well. */
static void unite(struct library *l)
{
	u32 kept = 0;

	qsort(l->symbol, l->symbols, sizeof(*l->symbol), by_name);
	for (u32 i = 0; i < l->symbols; i++) {
		if (kept && !strcmp(l->symbol[kept - 1].name, l->symbol[i].name)) {
			l->symbol[kept - 1].flags |= l->symbol[i].flags;
			free(l->symbol[i].name);
		} else {
			l->symbol[kept++] = l->symbol[i];
		}
	}
	l->symbols = kept;
	for (u32 i = 0; i < kept; i++)
		if (l->symbol[i].flags & (SYMBOL_EXPORTED | SYMBOL_IMPORTED))
			l->symbol[i].flags &= ~(u32)SYMBOL_HIDDEN;
}

/* Why it is no file of a program that could be recorded. NULL: it is one. */
static const char *fault_of(Elf *elf)
{
	GElf_Ehdr file;

	if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &file))
		return "it is not an ELF file";
	if (gelf_getclass(elf) != ELFCLASS64 || file.e_machine != EM_X86_64)
		return "it is for another machine: calls are seen in programs for x86-64";
	return NULL;
}

bool library_read(struct library *l, const char *path, char *why, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);         /* it may be a pipe that nobody writes to */
	struct reading r = { .to = l };

	*l = (struct library) { 0 };
	if (fd < 0) {
		snprintf(why, size, "%s", strerror(errno));
		return false;
	}
	elf_version(EV_CURRENT);
	r.elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	const char *fault = fault_of(r.elf);

	if (!fault && !read_sections(&r))
		fault = "it has no dynamic symbols: a static program, or no library";
	if (fault)
		snprintf(why, size, "%s", fault);
	elf_end(r.elf);
	close(fd);
	if (fault)
		library_release(l);
	else
		unite(l);
	return !fault;
}

void library_release(struct library *l)
{
	for (u32 i = 0; i < l->symbols; i++)
		free(l->symbol[i].name);
	free(l->symbol);
	*l = (struct library) { 0 };
}

/* ---- matching ----------------------------------------------------------------------------- */

/* The first symbol that is not before these letters. */
static u32 first_from(const struct library *l, const char *prefix, size_t length)
{
	u32 low = 0, high = l->symbols;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (strncmp(l->symbol[middle].name, prefix, length) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Of others, and only by its address: who does not follow pointers in data does not see it called. */
static bool is_pointer_only(u32 flags)
{
	return (flags & (SYMBOL_IMPORTED | SYMBOL_CALLED | SYMBOL_IN_DATA)) == (SYMBOL_IMPORTED | SYMBOL_IN_DATA);
}

static void count(struct library_match *m, u32 flags, bool data)
{
	bool missed = !data && is_pointer_only(flags);

	m->exported += !!(flags & SYMBOL_EXPORTED);
	m->imported += !missed && flags & SYMBOL_IMPORTED;
	m->missed += missed;
	m->called += (flags & (SYMBOL_CALLED | SYMBOL_EXPORTED)) == (SYMBOL_CALLED | SYMBOL_EXPORTED);
	m->in_data += !!(flags & SYMBOL_IN_DATA);
	m->hidden += flags == SYMBOL_HIDDEN;
}

static void match_symbols(const struct library *l, const struct probe_rule *rule, struct library_match *m)
{
	const char *glob = rule->symbol;
	size_t prefix = strcspn(glob, "*?");

	for (u32 i = first_from(l, glob, prefix); i < l->symbols && !strncmp(l->symbol[i].name, glob, prefix); i++)
		if (glob_fits(glob, l->symbol[i].name))
			count(m, l->symbol[i].flags, rule->body->data);
}

static bool has_slot(const struct probe_rule *rule, const char *name)
{
	for (u32 i = 0; i < rule->body->slots; i++)
		if (!strcmp(rule->body->slot[i].name, name))
			return true;
	return false;
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Tables may be in tables, as OrtApi is behind OrtApiBase; a name in a circle is not found. */
static bool reached_by_table(const struct library *l, const char *path, const struct probe_set *set, const char *name, int depth)
{
	for (u32 i = 0; i < set->rules && depth < 4; i++) {
		const struct probe_rule *rule = set->rule[i];

		if (!has_slot(rule, name))
			continue;
		struct library_match m = { 0 };

		match_symbols(l, rule, &m);
		if (library_seen(&m) || reached_by_table(l, path, set, rule->symbol, depth + 1))
			return true;
	}
	return false;
}

struct library_match library_match(const struct library *l, const char *path, const struct probe_set *set, u32 row)
{
	const struct probe_rule *rule = set->rule[row];
	struct library_match m = { 0 };

	if (rule->role == ROLE_MODULE)
		return m;
	match_symbols(l, rule, &m);
	m.other = rule->body->library && m.exported && !glob_fits(rule->body->library, base_of(path));
	m.by_table = strchr(rule->symbol, '.') && reached_by_table(l, path, set, rule->symbol, 0);
	return m;
}

bool library_seen(const struct library_match *m)
{
	return !m->other && (m->exported || m->imported || m->by_table);
}

/* Something is seen of the library that this row's file is for. */
static bool sees_any(const struct library *l, const char *path, const struct probe_set *set, const struct probe_rule *of)
{
	for (u32 i = 0; i < set->rules; i++) {
		struct library_match m = { 0 };

		if (set->rule[i]->file == of->file)
			m = library_match(l, path, set, i);
		if (library_seen(&m))
			return true;
	}
	return false;
}

const char *library_unseen(const struct library *l, const char *path, const struct probe_set *set, u32 n)
{
	for (u32 i = 0; i < set->rules; i++) {
		const struct probe_rule *rule = set->rule[i];

		if (rule->role == ROLE_MODULE && glob_fits(rule->symbol, base_of(path)) && !sees_any(l, path, set, rule) && !n--)
			return rule->preset ? rule->preset : rule->domain;
	}
	return NULL;
}

/*
 * symbols_file.c - an ELF file as a sorted table of its functions, and the way to its debug information.
 *
 * A file is believed only if its build id is the one that was mapped: it may have been replaced since. What it says is
 * not believed at all: every section and string goes through libelf's bounds.
 *
 * Debug information is looked for in the file itself, then by build id and by .gnu_debuglink where distributions put
 * it, and asked of a debuginfod server only if the user wants that.
 */
#include "../util/radix.h"
#include "symbols_parts.h"

#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEBUG_ROOT "/usr/lib/debug"

enum { SYMBOLS_MAX = 1 << 24, LOOK_BACK = 16 };

struct symbol {
	u64 addr, size;
	const char *name;               /* in the file's own string table */
	u8 rank;                        /* of several at one address the lowest is shown */
	bool open;                      /* of unknown size: to the next one, at most to the end of its section */
};

struct code_file {
	Elf *elf, *debug_elf;           /* debug_elf: a file of its own, or NULL */
	struct symbol *symbol;          /* sorted by address, one for each */
	u32 symbols, room;
	struct debug_info *debug;
	const u8 *starts;               /* .eh_frame_hdr's table: where functions begin, also those without a name */
	u32 start_count;
	u64 starts_base;                /* address that its entries are relative to */
};

/* ---- opening ----------------------------------------------------------------------- */

/* The descriptor is given back at once: hundreds of modules must not use up our files. */
static Elf *elf_of_fd(int fd)
{
	struct stat st;
	Elf *elf = NULL;

	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode))
		elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);
	if (elf && (elf_kind(elf) != ELF_K_ELF || elf_cntl(elf, ELF_C_FDDONE) < 0)) {
		elf_end(elf);
		elf = NULL;
	}
	if (fd >= 0)
		close(fd);
	return elf;
}

static bool same_build(Elf *elf, const struct object *o)
{
	const void *id;
	ssize_t len = dwelf_elf_gnu_build_id(elf, &id);

	if (!o->build_len)
		return true;
	if (len != o->build_len)
		return false;
	return !memcmp(id, o->build_id, len < (ssize_t)sizeof(o->build_id) ? (size_t)len : sizeof(o->build_id));
}

static Elf *elf_if_same(int fd, const struct object *o)
{
	Elf *elf = elf_of_fd(fd);

	if (elf && !same_build(elf, o)) {
		elf_end(elf);
		elf = NULL;
	}
	return elf;
}

static Elf *elf_of_path(const char *path, const struct object *o)
{
	return elf_if_same(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), o);
}

/* ---- debug files ------------------------------------------------------------------- */

static Elf_Scn *section_named(Elf *elf, const char *wanted, GElf_Shdr *head)
{
	size_t strings;
	Elf_Scn *section = NULL;

	if (elf_getshdrstrndx(elf, &strings))
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		const char *name = gelf_getshdr(section, head) ? elf_strptr(elf, strings, head->sh_name) : NULL;

		if (name && !strcmp(name, wanted) && head->sh_type != SHT_NOBITS)
			return section;
	}
	return NULL;
}

static bool has_debug(Elf *elf)
{
	GElf_Shdr head;

	return section_named(elf, ".debug_info", &head) || section_named(elf, ".zdebug_info", &head);
}

static Elf *debug_by_build_id(const struct object *o)
{
	char path[128];
	int at = snprintf(path, sizeof(path), DEBUG_ROOT "/.build-id/%02x/", o->build_id[0]);

	if (o->build_len < 2 || o->build_len > sizeof(o->build_id))
		return NULL;
	for (u32 i = 1; i < o->build_len; i++)
		at += snprintf(path + at, sizeof(path) - at, "%02x", o->build_id[i]);
	snprintf(path + at, sizeof(path) - at, ".debug");
	return elf_of_path(path, o);
}

/* Only with a build id to compare: the link's checksum would mean to read the whole file. */
static Elf *debug_by_link(Elf *elf, const struct object *o)
{
	static const struct { const char *root, *below; } place[] = { { "", "" }, { "", ".debug/" }, { DEBUG_ROOT, "" } };
	GElf_Word crc;
	const char *link = dwelf_elf_gnu_debuglink(elf, &crc);
	Elf *debug = NULL;
	char path[8192];

	if (!link || !o->build_len || strchr(link, '/'))
		return NULL;
	for (size_t i = 0; !debug && i < sizeof(place) / sizeof(place[0]); i++) {
		snprintf(path, sizeof(path), "%s%.*s%s%s", place[i].root, (int)(o->base - o->path), o->path, place[i].below, link);
		debug = elf_of_path(path, o);
	}
	return debug;
}

/* libdebuginfod is big and rarely there, so it is opened by name. */
static Elf *debug_by_server(const struct object *o)
{
	void *library = dlopen("libdebuginfod.so.1", RTLD_LAZY | RTLD_LOCAL);
	void *(*client_new)(void) = library ? (void *(*)(void))dlsym(library, "debuginfod_begin") : NULL;
	int (*find)(void *, const u8 *, int, char **) =
		library ? (int (*)(void *, const u8 *, int, char **))dlsym(library, "debuginfod_find_debuginfo") : NULL;
	void (*client_free)(void *) = library ? (void (*)(void *))dlsym(library, "debuginfod_end") : NULL;
	void *client = client_new && find && client_free && o->build_len ? client_new() : NULL;
	int fd = client ? find(client, o->build_id, o->build_len, NULL) : -1;

	if (client)
		client_free(client);
	return fd >= 0 ? elf_if_same(fd, o) : NULL;
}

static Elf *debug_file(struct symbols *y, Elf *elf, const struct object *o)
{
	Elf *debug = debug_by_build_id(o);

	if (!debug && elf)
		debug = debug_by_link(elf, o);
	if (!debug && y->debuginfod)
		debug = debug_by_server(o);
	return debug;
}

/* ---- functions --------------------------------------------------------------------- */

static u8 leading_underscores(const char *name)
{
	u8 count = 0;

	while (name[count] == '_' && count < 8)
		count++;
	return count;
}

/* Global names before weak before local, plain ones before __internal ones. */
static u8 rank_of(const GElf_Sym *sym, const char *name)
{
	int bind = GELF_ST_BIND(sym->st_info);

	return (bind == STB_GLOBAL ? 0 : bind == STB_WEAK ? 1 : 2) << 4 | leading_underscores(name);
}

static u64 room_in_section(Elf *elf, const GElf_Sym *sym)
{
	GElf_Shdr head;
	Elf_Scn *section = sym->st_shndx < SHN_LORESERVE ? elf_getscn(elf, sym->st_shndx) : NULL;

	return section && gelf_getshdr(section, &head) && sym->st_value - head.sh_addr < head.sh_size ?
		head.sh_addr + head.sh_size - sym->st_value : 0;
}

static bool add_symbol(struct code_file *f, Elf *elf, const GElf_Sym *sym, const char *name)
{
	if (f->symbols == f->room) {
		u32 room = f->room * 2 + 1024;
		struct symbol *symbol = realloc(f->symbol, room * sizeof(*symbol));

		if (!symbol)
			return false;
		f->symbol = symbol;
		f->room = room;
	}
	f->symbol[f->symbols++] = (struct symbol){
		.addr = sym->st_value, .size = sym->st_size ? sym->st_size : room_in_section(elf, sym),
		.name = name, .rank = rank_of(sym, name), .open = !sym->st_size,
	};
	return true;
}

/* The names of a table, up to the last NUL: each offset below `size` is a string. */
static const char *strings_of(Elf *elf, const GElf_Shdr *head, size_t *size)
{
	Elf_Data *data = elf_getdata(elf_getscn(elf, head->sh_link), NULL);
	const char *at = data ? data->d_buf : NULL;

	for (*size = at ? data->d_size : 0; *size && at[*size - 1]; )
		--*size;
	return at;
}

static void read_table(struct code_file *f, Elf *elf, Elf_Scn *section, const GElf_Shdr *head)
{
	size_t name_bytes;
	const char *names = strings_of(elf, head, &name_bytes);
	Elf_Data *data = elf_getdata(section, NULL);
	size_t count = data && head->sh_entsize ? data->d_size / head->sh_entsize : 0;
	GElf_Sym sym;

	for (size_t i = 1; i < count && i < SYMBOLS_MAX && f->symbols < SYMBOLS_MAX; i++) {
		if (!gelf_getsym(data, i, &sym) || sym.st_shndx == SHN_UNDEF)
			continue;
		int type = GELF_ST_TYPE(sym.st_info);

		if (type != STT_FUNC && type != STT_GNU_IFUNC)
			continue;
		if (sym.st_name < name_bytes && names[sym.st_name] && !add_symbol(f, elf, &sym, names + sym.st_name))
			return;
	}
}

static void read_tables(struct code_file *f, Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr head;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &head) && (head.sh_type == SHT_SYMTAB || head.sh_type == SHT_DYNSYM))
			read_table(f, elf, section, &head);
}

/* Of two symbols at one address. */
static bool better(const struct symbol *x, const struct symbol *y)
{
	if (x->open != y->open)
		return !x->open;
	if (x->rank != y->rank)
		return x->rank < y->rank;
	return strcmp(x->name, y->name) < 0;
}

/* By address, the best one of each. */
static u32 sort_into(struct symbol *to, const struct symbol *symbol, const struct ranked *order, u32 count)
{
	u32 kept = 0;

	for (u32 i = 0; i < count; i++) {
		const struct symbol *s = &symbol[order[i].at];

		if (!kept || to[kept - 1].addr != s->addr)
			to[kept++] = *s;
		else if (better(s, &to[kept - 1]))
			to[kept - 1] = *s;
	}
	return kept;
}

static void sort_symbols(struct code_file *f)
{
	struct ranked *order = malloc((2 * (size_t)f->symbols + 1) * sizeof(*order));
	struct symbol *sorted = malloc(((size_t)f->symbols + 1) * sizeof(*sorted));
	u32 count = f->symbols;

	for (u32 i = 0; order && i < count; i++)
		order[i] = (struct ranked){ f->symbol[i].addr, i };
	f->symbols = order && sorted ? sort_into(sorted, f->symbol, radix_sort(order, count), count) : 0;
	free(order);
	free(f->symbol);
	f->symbol = sorted;
}

struct found code_file_find(const struct code_file *f, u64 addr)
{
	u32 low = 0, high = f->symbols;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (f->symbol[middle].addr <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return (struct found){ 0 };
	for (u32 i = low; i > 0 && low - i < LOOK_BACK; i--) {
		const struct symbol *s = &f->symbol[i - 1];

		if (addr - s->addr < s->size && (!s->open || i == low))
			return (struct found){ s->name, true, addr - s->addr };
	}
	return (struct found){ f->symbol[low - 1].name, false, addr - f->symbol[low - 1].addr };
}

/* ---- where functions begin --------------------------------------------------------- */

/*
 * .eh_frame_hdr is a sorted table that stripped files keep:
 *   version 1, three encodings, address of .eh_frame (4 bytes), number of entries (4), entries { begin, entry } (4 + 4)
 * Only the encodings that every linker writes are read.
 */
static void read_starts(struct code_file *f)
{
	static const u8 usual[] = { 1, 0x1b, 0x03, 0x3b };
	GElf_Shdr head;
	Elf_Scn *section = section_named(f->elf, ".eh_frame_hdr", &head);
	Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
	u32 count;

	if (!data || !data->d_buf || data->d_size < 12 || memcmp(data->d_buf, usual, sizeof(usual)))
		return;
	memcpy(&count, (const u8 *)data->d_buf + 8, sizeof(count));
	if (count > (data->d_size - 12) / 8)
		return;
	f->starts = (const u8 *)data->d_buf + 12;
	f->start_count = count;
	f->starts_base = head.sh_addr;
}

static u64 start_at(const struct code_file *f, u32 i)
{
	int32_t relative;

	memcpy(&relative, f->starts + (size_t)i * 8, sizeof(relative));
	return f->starts_base + (i64)relative;
}

u64 code_file_start(const struct code_file *f, u64 addr)
{
	u32 low = 0, high = f->start_count;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (start_at(f, middle) <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? start_at(f, low - 1) : addr;
}

/* ---- a file ------------------------------------------------------------------------ */

static struct debug_info *open_debug(struct symbols *y, const struct code_file *f)
{
	if (f->debug_elf && has_debug(f->debug_elf))
		return debug_open(y, f->debug_elf);
	return f->elf && has_debug(f->elf) ? debug_open(y, f->elf) : NULL;
}

/* Lines of libc and its like are nobody's, and to unpack libc's debug information alone takes twice as long as
 * `mlprof run true` may: names are enough there. */
struct code_file *code_file_open(struct symbols *y, const struct object *o)
{
	struct code_file *f = calloc(1, sizeof(*f));

	if (!f || elf_version(EV_CURRENT) == EV_NONE) {
		free(f);
		return NULL;
	}
	f->elf = elf_of_path(o->path, o);
	if (!f->elf || !has_debug(f->elf))
		f->debug_elf = debug_file(y, f->elf, o);
	if (f->elf) {
		read_tables(f, f->elf);
		read_starts(f);
	}
	if (f->debug_elf)
		read_tables(f, f->debug_elf);
	sort_symbols(f);
	if (!o->internal)
		f->debug = open_debug(y, f);
	if (f->symbols || f->debug || f->start_count)
		return f;
	code_file_free(f);
	return NULL;
}

struct debug_info *code_file_debug(const struct code_file *f)
{
	return f->debug;
}

void code_file_free(struct code_file *f)
{
	if (!f)
		return;
	debug_free(f->debug);
	elf_end(f->elf);
	elf_end(f->debug_elf);
	free(f->symbol);
	free(f);
}

/*
 * probe_sites.c - the probe table of the session, and the functions that it applies to.
 *
 *   symbol --hash of the name, hashes of its beginnings--> row --real function--> site --same number--> stub
 *
 * Exact names and the parts of globs before their first wildcard lie in one hash table. A name is hashed once, from its
 * beginning on, and looked up at its end and wherever some glob's fixed part ends.
 *
 * Sites are made by one thread at a time (bind_claim). They are read without a lock.
 */
#include "probe.h"
#include "buffer.h"
#include "device.h"
#include "elf_image.h"
#include "hook.h"
#include "slots.h"
#include "text.h"

enum { HASH = 2 * PROBE_ROWS_MAX, PREFIX_MAX = 256, SITE_HASH = 2 * PROBE_SITES_MAX, ARENA_BYTES = 1 << 20 };

static struct {
	const struct probe_head *head;
	const struct probe_row *row;
	const char *text;
	struct probe_rule *rule;
	u32 *hash, *next;               /* chains of rows, number + 1, in order; hash has HASH of them */
	u64 prefix_lengths[PREFIX_MAX / 64];    /* of globs */
	bool data;
} table;

struct probe_site probe_sites[PROBE_SITES_MAX] __attribute__((aligned(64)));
u32 probe_vector_mask, probe_vector_bytes;

/* ---- names that match ---------------------------------------------------------------------- */

static bool glob(const char *pattern, const char *text)
{
	const char *star = NULL, *retry = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			retry = text;
		} else if (*pattern == '?' || (*pattern == *text && *pattern)) {
			pattern++, text++;
		} else if (star) {
			pattern = star;
			text = ++retry;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

static const char *text_at(u32 offset) { return table.text + offset; }
static u32 hash_step(u32 h, char c) { return (h ^ (u8)c) * 16777619u; }
static u32 hash_place(u32 h, bool prefix) { return (h ^ h >> 15) * 2 % HASH + prefix; }

enum { HASH_BEGIN = 2166136261u, NO_ROW = UINT32_MAX };

/* The first row of a chain that is for this name, and for its library, from row number `from` on. */
static u32 first_in_chain(u32 chain, const char *name, u32 from, bool data)
{
	for (u32 i = chain; i; i = table.next[i - 1]) {
		const struct probe_row *r = &table.row[i - 1];
		const char *symbol = text_at(r->symbol);

		if (i - 1 >= from && (!data || r->flags & PROBE_DATA) && (r->flags & PROBE_GLOB ? glob(symbol, name) : text_equal(symbol, name)))
			return i - 1;
	}
	return NO_ROW;
}

static u32 find_row(const char *name, u32 from, bool data)
{
	u32 best = NO_ROW, found, h = HASH_BEGIN, n = 0;

	for (;; n++) {
		if (n < PREFIX_MAX && table.prefix_lengths[n / 64] >> n % 64 & 1) {
			found = first_in_chain(table.hash[hash_place(h, true)], name, from, data);
			best = found < best ? found : best;
		}
		if (!name[n])
			break;
		h = hash_step(h, name[n]);
	}
	found = first_in_chain(table.hash[hash_place(h, false)], name, from, data);
	return found < best ? found : best;
}

static void hash_row(u32 row)
{
	const struct probe_row *r = &table.row[row];
	bool is_glob = r->flags & PROBE_GLOB;
	u32 length = is_glob && r->prefix >= PREFIX_MAX ? PREFIX_MAX - 1 : r->prefix, h = HASH_BEGIN, *at;
	const char *name = text_at(r->symbol);

	for (u32 i = 0; is_glob ? i < length : name[i] != 0; i++)
		h = hash_step(h, name[i]);
	if (is_glob)
		table.prefix_lengths[length / 64] |= 1ull << length % 64;
	at = &table.hash[hash_place(h, is_glob)];
	table.next[row] = *at;
	*at = row + 1;
}

bool probe_wants(const char *name, bool data)
{
	return table.head && find_row(name, 0, data) != NO_ROW;
}

bool probes_in_data(void) { return table.data; }

/* ---- the table ----------------------------------------------------------------------------- */

static void *map_file(u64 *size)
{
	char path[sizeof guest.dir + 16];
	struct stat st;
	void *at = NULL;
	int fd;

	text_join(path, sizeof path, guest.dir, "/probes");
	fd = sys_open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0);
	if (fd < 0)
		return NULL;
	if (sys_fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= (long)sizeof *table.head)
		at = sys_mmap(*size = (u64)st.st_size, PROT_READ, MAP_PRIVATE, fd);
	sys_close(fd);
	return at;
}

/* Where the base word of a value lies in a frame; UINT32_MAX: nowhere. */
static u32 base_of(const struct probe_fetch *f)
{
	u32 n = f->index;
	bool stack = f->from == FROM_STACK || (f->from == FROM_ARG && n > 6);

	if (stack)
		n -= f->from == FROM_ARG ? 6 : 0;
	if (stack && n >= 1 && n <= PROBE_STACK_MAX)
		return (u32)offsetof(struct probe_frame, stack) + 8 * (n - 1);
	switch (stack ? PROBE_TYPES : f->from) {
	case FROM_ARG: return n >= 1 ? (u32)offsetof(struct probe_frame, reg) + 8 * (n - 1) : UINT32_MAX;
	case FROM_FARG: return n >= 1 && n <= 8 ? (u32)offsetof(struct probe_frame, xmm) + 16 * (n - 1) : UINT32_MAX;
	case FROM_RETURN: return (u32)offsetof(struct probe_frame, ret);
	case FROM_FRETURN: return (u32)offsetof(struct probe_frame, fret);
	}
	return UINT32_MAX;
}

/* The caller's stack may end before the word that is wanted: that is to be looked at. */
static u8 way_of(const struct probe_fetch *f, bool is_register, bool careful)
{
	if (!is_register || f->steps || f->type == TYPE_STRV || (careful && f->type == TYPE_STRING))
		return WAY_LONG;
	return f->type == TYPE_STRING ? WAY_TEXT : WAY_WORD;
}

/* False: no such value can be. `stack` grows to the words of it that the value needs. */
static bool make_value(struct probe_value *v, const struct probe_fetch *f, bool careful, u32 *stack, u32 *bytes)
{
	static const u8 bytes_of[PROBE_TYPES] = { 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 8, 8 };
	u32 at = base_of(f), words = (u32)offsetof(struct probe_frame, stack), bits;

	if (at == UINT32_MAX || f->type >= PROBE_TYPES || f->steps > PROBE_STEPS_MAX || f->count > PROBE_ARRAY_MAX || (!f->steps && f->count > 1))
		return false;
	bits = 8 * bytes_of[f->type];
	*v = (struct probe_value){
		.at = (u16)at, .way = way_of(f, at < words, careful), .type = f->type, .count = f->count ? f->count : 1, .steps = f->steps,
		.bytes = bytes_of[f->type], .counted = f->counted, .mask = UINT64_MAX >> (64 - bits), .sign = f->type >= TYPE_S8 && f->type <= TYPE_S64 ? 1ull << (bits - 1) : 0,
	};
	for (u32 i = 0; i < f->steps; i++)
		v->offset[i] = f->offset[i];
	if (at >= words && (at - words) / 8 + 1 > *stack)
		*stack = (at - words) / 8 + 1;
	*bytes += f->type < TYPE_STRING ? 8 * v->count : 2 + PROBE_STRING_MAX;
	return true;
}

/* Its last values are words that are fetched when the call returns. */
static bool finds_table(const struct probe_rule *rule, u32 values)
{
	for (u32 i = 1; i <= values; i++)
		if (rule->entry + values > rule->all || rule->value[rule->all - i].type != TYPE_U64 || rule->value[rule->all - i].count != 1)
			return false;
	return true;
}

/* The number before an array of so many is taken at the same time. */
static bool counts(const struct probe_fetch *fetch, u32 array, u32 entry_fetches)
{
	return array && array != entry_fetches && fetch[array - 1].type < TYPE_F32 && fetch[array - 1].count <= 1;
}

static bool make_rule(struct probe_rule *rule, const struct probe_row *r, struct probe_value *value, const struct probe_fetch *fetch)
{
	u32 stack = r->stack, bytes = 0;

	for (u32 i = 0; i < r->fetches; i++)
		if (!make_value(&value[i], &fetch[i], r->flags & PROBE_CAREFUL, &stack, &bytes) || (fetch[i].counted && !counts(fetch, i, r->entry_fetches)))
			return false;
	if (bytes > PROBE_VALUES_MAX || stack > PROBE_STACK_MAX)
		return false;
	*rule = (struct probe_rule){
		.value = value, .entry = r->entry_fetches, .all = r->fetches, .flags = r->flags, .stack = (u16)((stack + 3) & ~3u), .stack_from = (u16)r->stack_from,
		.bytes = bytes ? (bytes + 16 + 15) & ~15u : 0, .min_ns = r->min_ns,
	};
	if (r->flags & PROBE_ENTRY)
		rule->all = rule->entry;
	if (r->flags & PROBE_TABLE && !finds_table(rule, r->flags & PROBE_SIZED ? 2 : 1))
		return false;
	if (r->flags & PROBE_GETTER && (rule->entry != 1 || value->type != TYPE_STRING || !finds_table(rule, 1)))
		return false;
	table.data |= (r->flags & PROBE_DATA) != 0;
	return true;
}

static bool unless_fits(const struct probe_head *h, const struct probe_row *r)
{
	return r->flags & PROBE_UNLESS ? r->unless < h->text_bytes && !(r->flags & PROBE_BUILTIN) : r->unless == PROBE_ANY;
}

static bool row_fits(const struct probe_head *h, const struct probe_row *r)
{
	return r->symbol < h->text_bytes && (r->library == PROBE_ANY || r->library < h->text_bytes) && r->fetches <= PROBE_FETCHES_MAX &&
	       r->entry_fetches <= r->fetches && r->fetch <= h->fetches && r->fetches <= h->fetches - r->fetch &&
	       r->stack_from <= 6 && unless_fits(h, r) && r->prefix <= text_length(text_at(r->symbol));
}

/* Each table's slots lie together. */
static bool take_slots(const struct probe_head *h, const struct probe_slot *slot)
{
	for (u32 i = 0; i < h->slots; i++) {
		struct probe_rule *rule = slot[i].table < h->rows ? &table.rule[slot[i].table] : NULL;

		if (!rule || slot[i].row >= h->rows || !(rule->flags & PROBE_TABLE) || (rule->slots && rule->slot + rule->slots != &slot[i]))
			return false;
		rule->slot = rule->slots ? rule->slot : &slot[i];
		rule->slots++;
	}
	return true;
}

static bool take_table(const struct probe_head *h, u64 size)
{
	const struct probe_row *row = (const void *)(h + 1);
	const struct probe_fetch *fetch = (const void *)(row + h->rows);
	struct probe_value *value;
	u64 bytes = HASH * sizeof(u32) + h->rows * (sizeof(u32) + sizeof *table.rule) + h->fetches * sizeof *value + 64;

	if (h->magic != PROBE_MAGIC || h->version != PROBE_VERSION || !h->rows || h->rows > PROBE_ROWS_MAX ||
	    h->fetches > PROBE_ROWS_MAX * PROBE_FETCHES_MAX || !h->text_bytes ||
	    h->slots > PROBE_ROWS_MAX || (h->slots && h->text_bytes % 8) ||
	    size < sizeof *h + h->rows * sizeof *row + h->fetches * sizeof *fetch + h->text_bytes + h->slots * sizeof(struct probe_slot))
		return false;
	table.row = row;
	table.text = (const char *)(fetch + h->fetches);
	if (table.text[h->text_bytes - 1] || !(table.rule = sys_memory(bytes)))
		return false;
	value = (struct probe_value *)(table.rule + h->rows);
	table.hash = (u32 *)(value + h->fetches);
	table.next = table.hash + HASH;
	for (u32 i = h->rows; i-- > 0;) {
		if (!row_fits(h, &row[i]) || !make_rule(&table.rule[i], &row[i], value + row[i].fetch, fetch + row[i].fetch))
			return false;
		if (!(row[i].flags & PROBE_MODULE))
			hash_row(i);
	}
	return take_slots(h, (const void *)(table.text + h->text_bytes));
}

bool probes_start(void)
{
	u64 size = 0;
	const struct probe_head *h = map_file(&size);

	if (!h)
		return false;
	if (!take_table(h, size)) {
		notice_note("the probe table could not be read, so nothing is probed");
		return false;
	}
	measure_vectors(&probe_vector_mask, &probe_vector_bytes);
	table.head = h;
	return true;
}

/* ---- sites --------------------------------------------------------------------------------- */

static u32 sites, ids;                  /* in use; numbers given out */
static u16 site_hash[SITE_HASH];        /* by function: number + 1 */
static u32 left_out;

bool probe_is_stub(const void *code)
{
	return (u64)code - (u64)probe_stubs < PROBE_STUBS * PROBE_STUB_BYTES;
}

u32 probes_made(void) { return ids; }

static void *stub_of(const struct probe_site *s)
{
	return probe_stubs + (s - probe_sites) * PROBE_STUB_BYTES;
}

/* Names stay: what was once told must be told again by a forked child, when the library may be gone. */
static const char *keep(const char *name)
{
	static char *arena, *end;
	u64 n = text_length(name) + 1;
	char *at;

	if (n > (u64)(end - arena)) {
		u64 bytes = n > ARENA_BYTES ? n : ARENA_BYTES;

		arena = sys_memory(bytes);
		end = arena ? arena + bytes : NULL;
	}
	if (!arena)
		return NULL;
	at = arena;
	text_copy(at, n, name);
	arena += n;
	return at;
}

static u16 *hash_site(const void *real)
{
	return &site_hash[((u64)real >> 4) * 0x9e3779b97f4a7c15ull >> 32 & (SITE_HASH - 1)];
}

static u64 hash_library(const struct dl_find_object *in)
{
	u64 h = (u64)in->dlfo_link_map->l_ld;

	for (const char *c = in->dlfo_link_map->l_name; *c; c++)
		h = (h ^ (u8)*c) * 0x100000001b3ull;
	return h;
}

static struct probe_site *known_site(const void *real, u64 library, const char *name)
{
	for (u16 *at = hash_site(real); *at; at = at + 1 < site_hash + SITE_HASH ? at + 1 : site_hash) {
		struct probe_site *s = &probe_sites[*at - 1];

		if (s->real == real && s->library == library && text_equal(s->symbol, name))
			return s;
	}
	return NULL;
}

static void remember(const struct probe_site *s)
{
	u16 *at = hash_site(s->real);

	while (*at)
		at = at + 1 < site_hash + SITE_HASH ? at + 1 : site_hash;
	*at = (u16)(s - probe_sites + 1);
}

void probe_tell(struct context *c, struct probe_site *s, u64 t)
{
	s->told = image->born;
	EMIT(c, t, probe_site, FIELDS(.id = s->id, .row = s->row, .real = (u64)s->real), s->symbol, text_length(s->symbol));
}

static void tell_now(struct probe_site *s)
{
	struct visit v = context_enter(FRAME());

	if (!v.context)
		return;
	writing_begin(v.context);
	probe_tell(v.context, s, ticks());
	writing_end(v.context);
	context_leave(v);
}

/* Those whose library is gone can be used again. Nobody should be inside of them; numbers are never the same twice. */
static struct probe_site *gone_site(void)
{
	struct dl_find_object object;
	struct probe_site *free = NULL;

	for (u32 i = 0; i < PROBE_SITES_MAX && !free; i++)
		if (_dl_find_object(probe_sites[i].real, &object) != 0)
			free = &probe_sites[i];
	if (!free)
		return NULL;
	free->real = NULL;
	for (u32 i = 0; i < SITE_HASH; i++)
		site_hash[i] = 0;
	for (u32 i = 0; i < PROBE_SITES_MAX; i++)
		if (probe_sites[i].real)
			remember(&probe_sites[i]);
	return free;
}

/* NULL, and every call is of interest, if its library has no such function. */
static void *find_unless(void *real, u32 row)
{
	struct dl_find_object in;
	struct elf_image e;

	return _dl_find_object(real, &in) == 0 && elf_open(&e, in.dlfo_link_map) ? elf_symbol(&e, text_at(table.row[row].unless)) : NULL;
}

static struct probe_site *new_site(void *real, u64 library, const char *name, u32 row)
{
	struct probe_site *s = sites < PROBE_SITES_MAX ? &probe_sites[sites] : gone_site();
	const char *kept = s ? keep(name) : NULL;

	if (!kept) {
		if (!left_out++)
			notice_note("more functions match the probes than can be probed: the rest is left out");
		return NULL;
	}
	sites += sites < PROBE_SITES_MAX;
	*s = (struct probe_site){
		.real = real, .rule = &table.rule[row], .bytes = table.rule[row].bytes, .symbol = kept, .id = ++ids, .row = row,
		.library = library,
	};
	if (s->rule->flags & PROBE_UNLESS)
		s->unless = (int (*)(void))find_unless(real, row);
	remember(s);
	tell_now(s);
	if (s->rule->flags & PROBE_BUILTIN)
		builtin_bound(s);
	return s;
}

struct probe_site *probe_own_site(void *self, const char *name)
{
	u32 row = find_row(name, 0, false);

	return row == NO_ROW ? NULL : new_site(self, 0, name, row);
}

/* ---- functions ----------------------------------------------------------------------------- */

/* These return twice, look at who called them, or are not called as functions are: our frame would be in the way. */
static bool is_special(const char *name)
{
	static const char *const names[] = {
		"vfork", "__vfork", "setjmp", "_setjmp", "__setjmp", "sigsetjmp", "__sigsetjmp", "savectx", "getcontext", "__getcontext",
		"dlsym", "dlvsym", "dlopen", "dlmopen", "__libc_dlsym", "__libc_dlopen_mode", "__tls_get_addr", "mcount", "_mcount", "__fentry__",
		"_dl_runtime_resolve", "__morestack", "__libc_start_main",
	};

	for (u32 i = 0; i < sizeof names / sizeof *names; i++)
		if (text_equal(name, names[i]))
			return true;
	return false;
}

static bool is_executable(const struct dl_find_object *in, const void *code)
{
	const Elf64_Ehdr *e = in->dlfo_map_start;
	const Elf64_Phdr *p = (const void *)((const char *)e + e->e_phoff);

	for (u32 i = 0; i < e->e_phnum; i++)
		if (p[i].p_type == PT_LOAD && p[i].p_flags & PF_X && (u64)code - in->dlfo_link_map->l_addr - p[i].p_vaddr < p[i].p_memsz)
			return true;
	return false;
}

static bool in_library(const struct dl_find_object *in, const char *pattern)
{
	char exe[1024];
	const char *file = elf_file(in->dlfo_link_map);
	long n;

	if (!*file) {
		n = sys_readlink("/proc/self/exe", exe, sizeof exe - 1);
		exe[n > 0 ? n : 0] = 0;
		file = exe;
		for (const char *c = exe; *c; c++)
			if (*c == '/')
				file = c + 1;
	}
	return glob(pattern, file);
}

static bool fits_library(u32 row, const struct dl_find_object *in)
{
	return table.row[row].library == PROBE_ANY || in_library(in, text_at(table.row[row].library));
}

void *probe_stub(void *real, const char *name, bool data)
{
	struct probe_site *s;
	struct dl_find_object in;
	u32 row = find_row(name, 0, data);
	u64 library;

	if (row == NO_ROW || probe_is_stub(real) || _dl_find_object(real, &in) != 0)
		return NULL;
	library = hash_library(&in);
	if ((s = known_site(real, library, name)))
		return stub_of(s);
	if (!is_executable(&in, real) || elf_is_stand_in(real, name))
		return NULL;
	while (row != NO_ROW && !fits_library(row, &in))
		row = find_row(name, row + 1, data);
	if (row == NO_ROW)
		return NULL;
	if (is_special(name)) {
		if (!(table.row[row].flags & PROBE_GLOB))
			notice_note("a probe is for a function that cannot be called through (it returns twice, or looks at its caller): left alone");
		return NULL;
	}
	s = new_site(real, library, name, row);
	return s ? stub_of(s) : NULL;
}

void *probe_stub_of_row(void *real, u32 row)
{
	const char *name = text_at(table.row[row].symbol);
	struct probe_site *s;
	struct dl_find_object in;

	if (_dl_find_object(real, &in) != 0)
		return NULL;
	s = known_site(real, hash_library(&in), name);
	if (!s && is_executable(&in, real) && fits_library(row, &in))
		s = new_site(real, hash_library(&in), name, row);
	return s ? stub_of(s) : NULL;
}

/* Names with wildcards are for the linker's: a getter may take others. */
void *probe_stub_by_name(void *real, const char *name)
{
	struct dl_find_object in;
	u32 row = _dl_find_object(real, &in) == 0 ? find_row(name, 0, false) : NO_ROW;

	while (row != NO_ROW && (table.row[row].flags & PROBE_GLOB || !fits_library(row, &in)))
		row = find_row(name, row + 1, false);
	return row != NO_ROW ? probe_stub_of_row(real, row) : NULL;
}

bool probes_are_in(const void *code)
{
	struct dl_find_object in;
	u64 library = _dl_find_object((void *)code, &in) == 0 ? hash_library(&in) : 0;

	for (u32 i = 0; i < sites; i++)
		if (probe_sites[i].library == library)
			return true;
	return false;
}

/*
 * symbols_dwarf.c - lines and inlined functions, for many addresses of one file at once.
 *
 *   unit [low, high) ...      sorted; made once from the ranges of all compilation units
 *   addresses of a unit   --> its line table
 *                         `-> one walk over its functions; only those that hold an address are entered
 *
 * Looking up scopes address by address would walk the whole unit for each. What all this may cost is bounded by counting
 * what is looked at, not by a clock, so that the same recording always gives the same names: `work` is about the number
 * of entries read, four million of which take a second.
 */
#include "symbols_parts.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>

enum { NESTING_MAX = 128, LINES_PER_WORK = 8, UNPACKED_BYTES_PER_WORK = 64 };

struct unit {
	u64 low, high;
	u64 reach;                      /* largest high so far: where to stop looking back */
	Dwarf_Off offset;
};

struct debug_info {
	Dwarf *dwarf;
	struct unit *unit;
	u32 units, room;
};

static bool spend(struct symbols *y, i64 work)
{
	y->work -= work;
	return y->work > 0;
}

/* ---- units ------------------------------------------------------------------------- */

static bool add_unit(struct debug_info *d, u64 low, u64 high, Dwarf_Off offset)
{
	if (d->units == d->room) {
		u32 room = d->room * 2 + 256;
		struct unit *unit = realloc(d->unit, room * sizeof(*unit));

		if (!unit)
			return false;
		d->unit = unit;
		d->room = room;
	}
	d->unit[d->units++] = (struct unit){ .low = low, .high = high, .offset = offset };
	return true;
}

static int by_low(const void *a, const void *b)
{
	const struct unit *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

static void read_units(struct symbols *y, struct debug_info *d)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	u8 type;

	while (!dwarf_get_units(d->dwarf, cu, &cu, NULL, &type, &die, NULL) && spend(y, 1)) {
		Dwarf_Addr base, low, high;
		ptrdiff_t at = 0;

		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		while ((at = dwarf_ranges(&die, at, &base, &low, &high)) > 0 && spend(y, 1))
			if (low < high && !add_unit(d, low, high, dwarf_dieoffset(&die)))
				return;
	}
	if (d->units)
		qsort(d->unit, d->units, sizeof(*d->unit), by_low);
	for (u32 i = 0; i < d->units; i++)
		d->unit[i].reach = i && d->unit[i - 1].reach > d->unit[i].high ? d->unit[i - 1].reach : d->unit[i].high;
}

static const struct unit *unit_at(const struct debug_info *d, u64 addr)
{
	u32 low = 0, high = d->units;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (d->unit[middle].low <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low > 0 && d->unit[low - 1].reach > addr; low--)
		if (d->unit[low - 1].high > addr)
			return &d->unit[low - 1];
	return NULL;
}

/* Compressed sections are unpacked as a whole when the file is opened. */
static i64 unpacked_bytes(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr head;
	GElf_Chdr packed;
	i64 sum = 0;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &head) && head.sh_flags & SHF_COMPRESSED && gelf_getchdr(section, &packed))
			sum += packed.ch_size < INT64_MAX / 4096 ? (i64)packed.ch_size : INT64_MAX / 4096;
	return sum;
}

struct debug_info *debug_open(struct symbols *y, Elf *elf)
{
	struct debug_info *d = calloc(1, sizeof(*d));

	if (!d || !spend(y, 1 + unpacked_bytes(elf) / UNPACKED_BYTES_PER_WORK)) {
		free(d);
		return NULL;
	}
	d->dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	if (d->dwarf)
		read_units(y, d);
	if (d->units)
		return d;
	debug_free(d);
	return NULL;
}

void debug_free(struct debug_info *d)
{
	if (!d)
		return;
	dwarf_end(d->dwarf);
	free(d->unit);
	free(d);
}

/* ---- functions --------------------------------------------------------------------- */

struct wanted {
	Dwarf_Off unit;
	u64 addr;
	u32 spot;
};

struct walk {
	struct symbols *symbols;
	const struct wanted *at;        /* of one unit, sorted by address */
	u32 count;
	Dwarf_Files *files;
	bool scoped;                    /* the language has namespaces */
	bool everywhere;                /* also where functions are rare: see resolve_unit() */
	u8 *seen;                       /* by spot: a function was found */
	struct layers *layers;
};

static u32 first_not_below(const struct walk *w, u64 addr)
{
	u32 low = 0, high = w->count;

	while (low < high) {
		u32 middle = (low + high) / 2;

		if (w->at[middle].addr < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static const char *linkage_name(Dwarf_Die *die)
{
	static const unsigned which[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name };
	Dwarf_Attribute attribute;

	for (int i = 0; i < 2; i++)
		if (dwarf_attr_integrate(die, which[i], &attribute))
			return dwarf_formstring(&attribute);
	return NULL;
}

/* Where the function is declared: the entry that lies inside its namespace or class. */
static Dwarf_Off declaration(Dwarf_Die *die)
{
	static const unsigned which[] = { DW_AT_abstract_origin, DW_AT_specification };
	Dwarf_Attribute attribute;
	Dwarf_Die at = *die, next;

	for (int i = 0; i < 2; i++)
		if (dwarf_attr(&at, which[i], &attribute) && dwarf_formref_die(&attribute, &next))
			at = next;
	return dwarf_dieoffset(&at);
}

static u64 number(Dwarf_Die *die, unsigned which)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	return dwarf_attr(die, which, &attribute) && !dwarf_formudata(&attribute, &value) ? value : 0;
}

/* A function that only its unit can see has no linkage name; what it is inside of is found out later, if the
 * language has such things. */
static void name_layer(struct walk *w, Dwarf_Die *die, struct layer *layer)
{
	const char *linkage = linkage_name(die), *plain = linkage ? NULL : dwarf_diename(die);

	if (linkage && *linkage)
		layer->name = name_of(w->symbols, linkage);
	else if (plain && *plain)
		layer->name = name_of(w->symbols, plain);
	if (plain && w->scoped)
		layer->declared = declaration(die);
}

static void add_layer(struct walk *w, const struct layer *layer)
{
	struct layers *l = w->layers;

	if (l->count == l->room) {
		u32 room = l->room * 2 + 256;
		struct layer *at = realloc(l->at, room * sizeof(*at));

		if (!at)
			return;
		l->at = at;
		l->room = room;
	}
	l->at[l->count++] = *layer;
}

/* The file that an inlined call stands in. Number 0 is a file since DWARF 5 and none before, which libdw calls "???". */
static const char *call_file(struct walk *w, Dwarf_Die *die)
{
	const char *path;

	if (!w->files || !dwarf_hasattr(die, DW_AT_call_file))
		return NULL;
	path = dwarf_filesrc(w->files, number(die, DW_AT_call_file), NULL, NULL);
	return path && strcmp(path, "???") ? text_of(w->symbols, path) : NULL;
}

/* Remembers the function `die` for each wanted address in its ranges; true if there was one. */
static bool note_function(struct walk *w, Dwarf_Die *die, bool inlined)
{
	struct layer layer = { .inlined = inlined };
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;
	bool any = false;

	while ((at = dwarf_ranges(die, at, &base, &low, &high)) > 0 && spend(w->symbols, 1))
		for (u32 i = first_not_below(w, low); i < w->count && w->at[i].addr < high; i++) {
			if (!any) {
				name_layer(w, die, &layer);
				layer.call_file = inlined ? call_file(w, die) : NULL;
				layer.call_line = inlined ? number(die, DW_AT_call_line) : 0;
				any = true;
			}
			layer.spot = w->at[i].spot;
			w->seen[layer.spot] = 1;
			add_layer(w, &layer);
		}
	return any;
}

/* True if the walk should go on inside. */
static bool enter(struct walk *w, Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
		return note_function(w, die, false) || w->everywhere;
	case DW_TAG_inlined_subroutine:
		return note_function(w, die, true);
	case DW_TAG_lexical_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
		return true;
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		return w->everywhere;
	default:
		return false;
	}
}

static void walk_children(struct walk *w, Dwarf_Die *parent, int nesting)
{
	Dwarf_Die child;

	if (nesting > NESTING_MAX || dwarf_child(parent, &child))
		return;
	do {
		if (!spend(w->symbols, 1))
			return;
		if (enter(w, &child))
			walk_children(w, &child, nesting + 1);
	} while (!dwarf_siblingof(&child, &child));
}

/* ---- namespaces and classes -------------------------------------------------------- */

/* A function's declaration and what it is inside of, as "a::b::". In order of `at`. */
struct inside {
	Dwarf_Off at;
	const char *scope;
};

struct scopes {
	struct symbols *symbols;
	struct inside *at;
	u32 count, room;
};

static void add_inside(struct scopes *s, Dwarf_Off at, const char *scope)
{
	if (s->count == s->room) {
		u32 room = s->room * 2 + 256;
		struct inside *bigger = realloc(s->at, room * sizeof(*bigger));

		if (!bigger)
			return;
		s->at = bigger;
		s->room = room;
	}
	s->at[s->count++] = (struct inside){ at, scope };
}

static const char *scope_below(struct symbols *y, const char *scope, Dwarf_Die *die, bool is_namespace)
{
	const char *name = dwarf_diename(die);
	char text[4096];

	snprintf(text, sizeof(text), "%.3000s%.1000s::", scope,
		 name ? name : is_namespace ? "(anonymous namespace)" : "(anonymous class)");
	return text_of(y, text);
}

static void walk_scopes(struct scopes *s, Dwarf_Die *parent, const char *scope, int nesting)
{
	Dwarf_Die child;

	if (nesting > NESTING_MAX || dwarf_child(parent, &child))
		return;
	do {
		int tag = dwarf_tag(&child);

		if (!spend(s->symbols, 1))
			return;
		if (tag == DW_TAG_subprogram && *scope)
			add_inside(s, dwarf_dieoffset(&child), scope);
		else if (tag == DW_TAG_namespace || tag == DW_TAG_class_type || tag == DW_TAG_structure_type || tag == DW_TAG_union_type)
			walk_scopes(s, &child, scope_below(s->symbols, scope, &child, tag == DW_TAG_namespace), nesting + 1);
	} while (!dwarf_siblingof(&child, &child));
}

static const char *scope_of(const struct scopes *s, Dwarf_Off at)
{
	u32 low = 0, high = s->count;

	while (low < high) {
		u32 middle = (low + high) / 2;

		if (s->at[middle].at < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low < s->count && s->at[low].at == at ? s->at[low].scope : "";
}

static void add_scope(struct scopes *s, struct layer *layer)
{
	const char *scope = scope_of(s, layer->declared);
	char text[8192];

	if (!*scope || !layer->name)
		return;
	snprintf(text, sizeof(text), "%.4000s%.4000s", scope, layer->name->linkage);
	layer->name = name_of(s->symbols, text);
}

/* One more walk over the unit, if one of its layers from `first` on needs it. */
static void add_scopes(struct symbols *y, Dwarf_Die *unit, struct layers *layers, u32 first)
{
	struct scopes s = { .symbols = y };

	for (u32 i = first; i < layers->count; i++) {
		if (!layers->at[i].declared)
			continue;
		if (!s.at)
			walk_scopes(&s, unit, "", 0);
		add_scope(&s, &layers->at[i]);
	}
	free(s.at);
}

/* ---- one unit ---------------------------------------------------------------------- */

static bool has_scopes(Dwarf_Die *unit)
{
	int language = dwarf_srclang(unit);

	return language != DW_LANG_C && language != DW_LANG_C89 && language != DW_LANG_C99 && language != DW_LANG_C11 &&
	       language != DW_LANG_Mips_Assembler;
}

static void find_line(struct symbols *y, Dwarf_Die *unit, u64 addr, struct line *to)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, addr);
	const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
	int number = 0;

	if (!file || dwarf_lineno(line, &number))
		return;
	to->file = text_of(y, file);
	to->line = number;
}

/* A lambda may stand inside the closure's class inside the function that has it, and that function may have no code of
 * its own: if addresses are left over, one more walk looks there too. */
static void walk_unit(struct walk *w, Dwarf_Die *unit)
{
	struct wanted *left;
	u32 count = 0;

	walk_children(w, unit, 0);
	left = malloc((w->count + 1) * sizeof(*left));
	for (u32 i = 0; left && i < w->count; i++)
		if (!w->seen[w->at[i].spot])
			left[count++] = w->at[i];
	if (count) {
		w->at = left;
		w->count = count;
		w->everywhere = true;
		walk_children(w, unit, 0);
	}
	free(left);
}

static void resolve_unit(struct symbols *y, struct debug_info *d, const struct wanted *at, u32 count,
			 struct line *line, u8 *seen, struct layers *layers)
{
	struct walk w = { .symbols = y, .at = at, .count = count, .seen = seen, .layers = layers };
	Dwarf_Lines *lines;
	Dwarf_Die unit;
	size_t rows = 0;
	u32 before = layers->count;

	if (!dwarf_offdie(d->dwarf, at[0].unit, &unit))
		return;
	if (!dwarf_getsrclines(&unit, &lines, &rows))
		for (u32 i = 0; i < count; i++)
			find_line(y, &unit, at[i].addr, &line[at[i].spot]);
	if (!spend(y, rows / LINES_PER_WORK))
		return;
	if (dwarf_getsrcfiles(&unit, &w.files, NULL))
		w.files = NULL;
	w.scoped = has_scopes(&unit);
	walk_unit(&w, &unit);
	add_scopes(y, &unit, layers, before);
}

/* ---- all addresses ----------------------------------------------------------------- */

static int by_unit(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	return (x->addr > y->addr) - (x->addr < y->addr);
}

/* qsort is not stable; layers were added from the outside inwards and must stay so. */
static void sort_layers(struct layers *layers, u32 spots)
{
	struct layer *sorted = malloc((layers->count + 1) * sizeof(*sorted));
	u32 *first = calloc(spots + 2, sizeof(*first));

	if (!sorted || !first) {
		layers->count = 0;
		free(sorted);
		free(first);
		return;
	}
	for (u32 i = 0; i < layers->count; i++)
		first[layers->at[i].spot + 1]++;
	for (u32 i = 1; i <= spots; i++)
		first[i] += first[i - 1];
	for (u32 i = 0; i < layers->count; i++)
		sorted[first[layers->at[i].spot]++] = layers->at[i];
	free(first);
	free(layers->at);
	layers->at = sorted;
	layers->room = layers->count + 1;
}

bool debug_resolve(struct symbols *y, struct debug_info *d, struct spot *const *spot, u32 count,
		   struct line *line, struct layers *layers)
{
	struct wanted *wanted = malloc((count + 1) * sizeof(*wanted));
	u8 *seen = calloc(count + 1, 1);
	u32 wanteds = 0, end;

	for (u32 i = 0; wanted && seen && i < count; i++) {
		const struct unit *u = unit_at(d, spot[i]->key.addr);

		if (u)
			wanted[wanteds++] = (struct wanted){ u->offset, spot[i]->key.addr, i };
	}
	if (wanteds)
		qsort(wanted, wanteds, sizeof(*wanted), by_unit);
	for (u32 at = 0; at < wanteds && y->work > 0; at = end) {
		for (end = at; end < wanteds && wanted[end].unit == wanted[at].unit;)
			end++;
		resolve_unit(y, d, wanted + at, end - at, line, seen, layers);
	}
	free(wanted);
	free(seen);
	sort_layers(layers, count);
	return y->work > 0;
}

/*
 * symbols.c - which addresses are wanted, and what becomes of them.
 *
 * A node's return address minus one lies in the call; with the module that was there then it makes a spot, which is
 * shared by all nodes and processes that meet it. Spots are resolved file by file, all that a file is asked for at once.
 */
#include "symbols_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	WORK = 12 << 20,                /* about three seconds of reading debug information */
	NEAR_BYTES = 2048,
};

struct symbols *symbols_new(bool debuginfod)
{
	struct symbols *y = calloc(1, sizeof(*y));

	if (y) {
		y->debuginfod = debuginfod;
		y->work = WORK;
	}
	return y;
}

u64 symbols_unnamed(const struct symbols *y)
{
	return y->unnamed;
}

u64 symbols_unlined(const struct symbols *y)
{
	return y->unlined;
}

/* ---- objects ----------------------------------------------------------------------- */

static struct object *object_new(struct symbols *y, const char *key, const struct module *m)
{
	size_t len = strlen(key);
	struct object *o = calloc(1, sizeof(*o) + len + 1);

	if (!o)
		return NULL;
	memcpy(o->key, key, len);
	if (m) {
		const char *path = m->path ? m->path : "";
		const char *slash = strrchr(path, '/');

		o->path = strdup(path);
		o->base = o->path ? o->path + (slash ? slash + 1 - path : 0) : "";
		o->internal = module_is_internal(o->base);
		o->build_len = m->build_len;
		memcpy(o->build_id, m->build_id, sizeof(o->build_id));
	}
	HASH_ADD_KEYPTR(hh, y->objects, o->key, len, o);
	return o;
}

/* Files are told apart by path and build id: a file that was replaced during the run is two. */
static struct object *object_of_module(struct symbols *y, const struct module *m)
{
	const char *path = m->path ? m->path : "";
	char *key = malloc(2 * sizeof(m->build_id) + strlen(path) + 2), *to = key;
	struct object *o;

	if (!key)
		return NULL;
	for (u32 i = 0; i < m->build_len && i < sizeof(m->build_id); i++)
		to += sprintf(to, "%02x", m->build_id[i]);
	sprintf(to, " %s", path);
	HASH_FIND_STR(y->objects, key, o);
	if (!o)
		o = object_new(y, key, m);
	free(key);
	return o;
}

static struct object *object_of_nowhere(struct symbols *y, const struct process *p)
{
	char key[32];

	snprintf(key, sizeof(key), "process %u", p->index);
	return object_new(y, key, NULL);
}

/* ---- spots ------------------------------------------------------------------------- */

static bool add_pending(struct object *o, struct spot *spot)
{
	if (o->pendings == o->room) {
		u32 room = o->room * 2 + 64;
		struct spot **pending = realloc(o->pending, room * sizeof(*pending));

		if (!pending)
			return false;
		o->pending = pending;
		o->room = room;
	}
	o->pending[o->pendings++] = spot;
	return true;
}

static struct spot *spot_at(struct symbols *y, struct object *o, const struct module *m, u64 addr)
{
	struct spot probe, *spot;

	if (!o)
		return NULL;
	memset(&probe, 0, sizeof(probe));
	probe.key.object = o;
	probe.key.addr = addr;
	HASH_FIND(hh, y->spots, &probe.key, sizeof(probe.key), spot);
	if (spot)
		return spot;
	spot = calloc(1, sizeof(*spot));
	if (!spot || !add_pending(o, spot)) {
		free(spot);
		return NULL;
	}
	spot->key = probe.key;
	spot->module = m;
	spot->number = HASH_COUNT(y->spots) + 1;
	HASH_ADD(hh, y->spots, key, sizeof(spot->key), spot);
	return spot;
}

/* The list with room for `wanted`, new places zero; without memory as it was. */
static void *grown(void *list, u32 *count, u32 wanted, size_t each)
{
	char *bigger = *count >= wanted ? NULL : *count ? realloc(list, wanted * each) : calloc(wanted, each);

	if (!bigger)
		return list;
	if (*count)             /* else it is zero already, and most of it is never touched */
		memset(bigger + *count * each, 0, (wanted - *count) * each);
	*count = wanted;
	return bigger;
}

/* Room for all nodes and modules that the process has now. */
static struct process_memo *memo_of(struct symbols *y, const struct process *p)
{
	y->memo = grown(y->memo, &y->memos, p->index + 1, sizeof(*y->memo));
	if (y->memos <= p->index)
		return NULL;

	struct process_memo *memo = &y->memo[p->index];

	memo->spot_of = grown(memo->spot_of, &memo->nodes, p->nodes + 1, sizeof(*memo->spot_of));
	memo->object_of = grown(memo->object_of, &memo->modules, p->modules + 1, sizeof(*memo->object_of));
	return memo->nodes > p->nodes && memo->modules > p->modules ? memo : NULL;
}

static struct spot *find_spot(struct symbols *y, const struct process *p, struct process_memo *memo, const struct node *n)
{
	u64 call = n->pc - 1;
	const struct module *m = process_module(p, n->pc, n->epoch);

	if (!m) {
		if (!memo->nowhere)
			memo->nowhere = object_of_nowhere(y, p);
		return spot_at(y, memo->nowhere, NULL, call);
	}
	struct object **o = &memo->object_of[m - p->module];

	if (!*o)
		*o = object_of_module(y, m);
	return spot_at(y, *o, m, call - m->bias);
}

static struct place *place_of(struct place *place, u32 room, u64 pc, u32 epoch)
{
	u32 i = (u32)(((pc ^ (u64)epoch << 32) * 0x9e3779b97f4a7c15ull) >> 32) & (room - 1);

	while (place[i].spot && (place[i].pc != pc || place[i].epoch != epoch))
		i = (i + 1) & (room - 1);
	return &place[i];
}

static bool grow_places(struct process_memo *memo)
{
	u32 room = memo->place_room ? memo->place_room * 2 : 1024;
	struct place *place = calloc(room, sizeof(*place));

	if (!place)
		return false;
	for (u32 i = 0; i < memo->place_room; i++)
		if (memo->place[i].spot)
			*place_of(place, room, memo->place[i].pc, memo->place[i].epoch) = memo->place[i];
	free(memo->place);
	memo->place = place;
	memo->place_room = room;
	return true;
}

static struct spot *spot_of_node(struct symbols *y, const struct process *p, struct process_memo *memo, const struct node *n)
{
	if (memo->places * 2 >= memo->place_room && !grow_places(memo))
		return NULL;
	struct place *place = place_of(memo->place, memo->place_room, n->pc, n->epoch);

	if (!place->spot) {
		*place = (struct place){ n->pc, n->epoch, find_spot(y, p, memo, n) };
		memo->places += place->spot != NULL;
	}
	return place->spot;
}

/* ---- frames ------------------------------------------------------------------------ */

static void set_frame(struct frame *f, const struct name *name, const struct line *line, const struct object *o)
{
	f->function = name->function;
	f->linkage = name->linkage;
	f->file = line->file;
	f->line = line->line;
	f->named = true;
	f->internal = name->internal || o->internal;
}

/* Nobody knows the function: where it begins, and what stands before it. */
static struct unnamed unnamed_at(struct symbols *y, const struct object *o, u64 start, u64 addr, const struct found *near)
{
	const char *where = o->path ? *o->base ? o->base : "[unknown]" : "[no file]";
	const struct name *n = near->name ? name_of(y, near->name) : NULL;
	u64 into = addr - start;
	char text[4096];

	if (n && near->offset > into)
		snprintf(text, sizeof(text), "%.1000s+0x%llx (%.2000s+0x%llx)", where, (unsigned long long)start,
			 n->function, (unsigned long long)(near->offset - into));
	else
		snprintf(text, sizeof(text), "%.1000s+0x%llx", where, (unsigned long long)start);
	return (struct unnamed){ o, start, near->name, n && n->internal, text_of(y, text) };
}

/* What has no name and follows an allocator's function closely is most likely a part of it. */
static void set_unnamed(struct symbols *y, struct frame *f, const struct spot *spot, const struct found *near)
{
	const struct object *o = spot->key.object;
	u64 start = o->file ? code_file_start(o->file, spot->key.addr) : spot->key.addr;
	struct unnamed *last = &y->last_unnamed;

	if (last->object != o || last->start != start || last->near != near->name)
		*last = unnamed_at(y, o, start, spot->key.addr, near);
	f->function = f->linkage = last->text;
	f->internal = o->internal || (last->near_internal && near->offset < NEAR_BYTES);
	y->unnamed++;
}

/* `layer`: the real function, then the inlined ones inwards. A frame's line is where it calls the next one inwards.
 * Debug information knows a function better than the symbol table (there may be foo.cold and foo.part.0), except one
 * that has no linkage name there. */
static void make_frames(struct symbols *y, struct spot *spot, const struct found *found, const struct line *line,
			const struct layer *layer, u32 layers)
{
	const struct name *symbol = found->name && found->inside ? name_of(y, found->name) : NULL;
	u32 skip = layers && !layer[0].inlined, inlined = layers - skip;
	struct line at = *line;

	if (skip && layer[0].name && !(symbol && layer[0].declared && symbol->function != symbol->linkage))
		symbol = layer[0].name;
	spot->at = calloc(inlined + 1, sizeof(*spot->at));
	if (!spot->at)
		return;
	for (u32 i = layers; i-- > skip; at = (struct line){ layer[i].call_file, layer[i].call_line })
		if (layer[i].name)
			set_frame(&spot->at[spot->count++], layer[i].name, &at, spot->key.object);
	if (symbol) {
		set_frame(&spot->at[spot->count++], symbol, &at, spot->key.object);
		return;
	}
	set_unnamed(y, &spot->at[spot->count], spot, found);
	spot->at[spot->count].file = at.file;
	spot->at[spot->count++].line = at.line;
}

static const struct jit_name *jit_at(const struct process *p, u64 addr)
{
	u32 low = 0, high = p->jits;

	while (low < high) {
		u32 middle = (low + high) / 2;

		if (p->jit[middle].start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low && addr - p->jit[low - 1].start < p->jit[low - 1].size ? &p->jit[low - 1] : NULL;
}

static void resolve_nowhere(struct symbols *y, const struct process *p, struct object *o)
{
	for (u32 i = 0; i < o->pendings; i++) {
		const struct jit_name *jit = jit_at(p, o->pending[i]->key.addr);
		struct found found = { .name = jit ? jit->name : NULL, .inside = true };

		make_frames(y, o->pending[i], &found, &(struct line){ 0 }, NULL, 0);
	}
	o->pendings = 0;
}

/* ---- resolving --------------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
	const struct spot *x = *(struct spot *const *)a, *y = *(struct spot *const *)b;

	return (x->key.addr > y->key.addr) - (x->key.addr < y->key.addr);
}

static bool open_object(struct symbols *y, struct object *o)
{
	if (!o->tried && o->path)
		o->file = code_file_open(y, o);
	o->tried = true;
	return o->file;
}

static void resolve_object(struct symbols *y, struct object *o)
{
	struct line *line = calloc(o->pendings, sizeof(*line));
	struct layers layers = { 0 };
	u32 at = 0, end;

	open_object(y, o);
	qsort(o->pending, o->pendings, sizeof(*o->pending), by_address);
	if (line && o->file && code_file_debug(o->file) &&
	    !debug_resolve(y, code_file_debug(o->file), o->pending, o->pendings, line, &layers))
		y->unlined += o->pendings;
	for (u32 i = 0; line && i < o->pendings; i++, at = end) {
		struct found found = { 0 };

		if (o->file)
			found = code_file_find(o->file, o->pending[i]->key.addr);
		for (end = at; end < layers.count && layers.at[end].spot == i;)
			end++;
		make_frames(y, o->pending[i], &found, &line[i], layers.at ? layers.at + at : NULL, end - at);
	}
	o->pendings = 0;
	free(line);
	free(layers.at);
}

const char *symbols_function(struct symbols *y, const struct module *m, u64 address)
{
	struct object *o = object_of_module(y, m);
	struct found found = { 0 };
	const struct name *name;

	if (o && open_object(y, o))
		found = code_file_find(o->file, address - m->bias);
	name = found.name && found.inside ? name_of(y, found.name) : NULL;
	return name ? name->function : NULL;
}

void symbols_prepare(struct symbols *y, const struct process *p, const u32 *nodes, u32 count)
{
	struct process_memo *memo = memo_of(y, p);
	struct object *o, *next;

	if (!memo)
		return;
	for (u32 i = 0; i < count; i++)
		for (u32 n = nodes[i]; n && n < p->nodes && !memo->spot_of[n]; n = p->node[n].parent)
			memo->spot_of[n] = spot_of_node(y, p, memo, &p->node[n]);
	if (memo->nowhere)
		resolve_nowhere(y, p, memo->nowhere);
	HASH_ITER(hh, y->objects, o, next)
		if (o->pendings)
			resolve_object(y, o);
}

static const struct spot *known_spot(const struct symbols *y, const struct process *p, u32 node)
{
	return p->index < y->memos && node < y->memo[p->index].nodes ? y->memo[p->index].spot_of[node] : NULL;
}

struct frames symbols_frames(struct symbols *y, const struct process *p, u32 node)
{
	static const struct frame none = { .function = "[no stack]", .linkage = "[no stack]" };
	const struct spot *spot = NULL;

	if (node && node < p->nodes && !(spot = known_spot(y, p, node))) {
		symbols_prepare(y, p, &node, 1);
		spot = known_spot(y, p, node);
	}
	if (!spot || !spot->count)
		return (struct frames){ .at = &none, .count = 1 };
	return (struct frames){
		.at = spot->at, .count = spot->count, .module = spot->module, .rel_pc = spot->key.addr, .number = spot->number,
	};
}

const struct frame *symbols_owner(struct symbols *y, const struct process *p, u32 node, const struct module **module)
{
	struct frames first = symbols_frames(y, p, node), f = first;
	const struct frame *owner = &first.at[0];
	const struct module *of = first.module;

	for (u32 n = node; n && n < p->nodes; n = p->node[n].parent) {
		u32 i = 0;

		f = symbols_frames(y, p, n);
		while (i < f.count && f.at[i].internal)
			i++;
		if (i < f.count) {
			owner = &f.at[i];
			of = f.module;
			break;
		}
	}
	if (module)
		*module = of;
	return owner;
}

void symbols_free(struct symbols *y)
{
	struct spot *spot, *next_spot;
	struct object *o, *next;

	if (!y)
		return;
	HASH_ITER(hh, y->spots, spot, next_spot) {
		HASH_DEL(y->spots, spot);
		free(spot->at);
		free(spot);
	}
	HASH_ITER(hh, y->objects, o, next) {
		HASH_DEL(y->objects, o);
		code_file_free(o->file);
		free(o->pending);
		free(o->path);
		free(o);
	}
	for (u32 i = 0; i < y->memos; i++) {
		free(y->memo[i].spot_of);
		free(y->memo[i].place);
		free(y->memo[i].object_of);
	}
	free(y->memo);
	names_free(y);
	free(y);
}

/*
 * perfetto_stacks.c - interned data of one sequence: what a packet names by a number is written once.
 *
 *   callstack 7 = frames 3 4 5 9        outermost first, as the format wants it
 *   frame 9     = function 2, mapping 1, address, source file 4, line
 *   mapping 1   = path, build id, range
 *
 * A node (one return address) is one frame or more: the inlined ones follow their caller, so that a node's frames
 * have consecutive numbers and the first one is enough to know them. Numbers go by first use; outer frames are met
 * first and by most stacks, which keeps the numbers that are written most often short.
 *
 * Most of a stack is the beginning of another one. The bytes of a way from the outermost frame are kept, and every
 * node remembers where its own end: a new stack is a copy of them and the few frames that are its own.
 *
 * While the program runs its symbols are not looked up yet. What is written then (stacks_new() without symbols) has
 * frames of an address only, in mappings without a build id, and module symbols at the end of the file give them names.
 */
#include "perfetto.h"

#include <stdio.h>
#include <uthash.h>

/* InternedData and its entries */
enum {
	DATA_CATEGORIES = 1, DATA_EVENT_NAMES = 2, DATA_ARG_NAMES = 3, DATA_FUNCTIONS = 5, DATA_FRAMES = 6, DATA_CALLSTACKS = 7,
	DATA_BUILD_IDS = 16, DATA_MAPPING_PATHS = 17, DATA_SOURCES = 18, DATA_MAPPINGS = 19, DATA_ARG_TEXTS = 29,
	DATA_FIELDS,
	IID = 1, TEXT = 2,
	FRAME_FUNCTION = 2, FRAME_MAPPING = 3, FRAME_REL_PC = 4, FRAME_SOURCE = 5, FRAME_LINE = 6,
	CALLSTACK_FRAME = 2,
	MAPPING_BUILD_ID = 2, MAPPING_START = 4, MAPPING_END = 5, MAPPING_BIAS = 6, MAPPING_PATH = 7,
};

/* ModuleSymbols */
enum {
	SYMBOLS_PATH = 1, SYMBOLS_BUILD_ID = 2, SYMBOLS_ADDRESS = 3, ADDRESS_ADDRESS = 1, ADDRESS_LINE = 2,
	LINE_FUNCTION = 1, LINE_FILE = 2, LINE_NUMBER = 3,
};

enum {
	NAMES_PER_PACKET = 2000,
	DEPTH_MAX = 4096,               /* more than any program's; what is outside of it is cut */
	WAY_MAX = 32 << 10,             /* bytes of one, likewise */
	WAYS_BYTES = 4 << 20,           /* then they are forgotten */
};

/* A thing that has its number. Its address stands for it. */
struct known {
	struct { const void *what; u64 field; } key;
	u32 iid;
	UT_hash_handle hh;
};

/* Bytes of all frames from the outermost to a node, as a callstack has them. */
struct way {
	u64 at : 40;                    /* in all that was ever kept */
	u64 len : 24;                   /* 0: none yet */
};

/* A frame that waits for its name. */
struct nameless {
	u32 node, module;               /* module: 1 + index, or 0 */
	u64 rel_pc;
};

struct stacks {
	struct symbols *symbols;
	const struct process *process;
	struct known *known;
	u32 count[DATA_FIELDS];         /* numbers given so far, by field */
	u32 *frames_of;                 /* by number of the address: its outermost frame, or 0; the others follow inwards */
	u32 frames_room;
	struct way *way;                /* by node */
	struct enc ways;
	u64 ways_gone;                  /* bytes forgotten */
	u32 *callstack_of;              /* by node: its number + callstacks_gone */
	u32 callstacks_gone;            /* of other sequences */
	u32 nodes;                      /* there is room for in way and callstack_of */
	struct nameless *nameless;
	u32 namelesses, nameless_room;
	char nowhere[64];               /* path of code that no file holds, in nameless frames */
	struct enc data;                /* InternedData not yet written */
	u32 path[DEPTH_MAX];
};

/* At first zeroed by the kernel, and then only where it is touched. */
static void *more_zeroed(void *list, size_t count, size_t wanted, size_t each)
{
	char *bigger = count ? realloc(list, wanted * each) : calloc(wanted, each);

	if (bigger && count)
		memset(bigger + count * each, 0, (wanted - count) * each);
	return bigger;
}

static bool room_for(struct stacks *k, u32 node)
{
	size_t nodes = (size_t)node + node / 2 + 1;

	if (node < k->nodes)
		return true;
	struct way *way = more_zeroed(k->way, k->nodes, nodes, sizeof(*way));

	k->way = way ? way : k->way;
	u32 *callstack_of = more_zeroed(k->callstack_of, k->nodes, nodes, sizeof(*callstack_of));

	k->callstack_of = callstack_of ? callstack_of : k->callstack_of;
	if (!way || !callstack_of)
		return false;
	k->nodes = nodes;
	return true;
}

struct stacks *stacks_new(struct symbols *y, const struct process *p)
{
	struct stacks *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->symbols = y;
	k->process = p;
	snprintf(k->nowhere, sizeof(k->nowhere), "[no file, process %u]", p->index + 1);
	if (room_for(k, p->nodes))
		return k;
	stacks_free(k);
	return NULL;
}

static void forget_ways(struct stacks *k)
{
	k->ways_gone += k->ways.len;
	k->ways.len = 0;
}

static void forget_known(struct stacks *k)
{
	struct known *n, *next;

	HASH_ITER(hh, k->known, n, next) {
		HASH_DEL(k->known, n);
		free(n);
	}
}

/* The large tables stay, and what is in them is of the past. */
void stacks_next_sequence(struct stacks *k)
{
	forget_known(k);
	forget_ways(k);
	k->callstacks_gone += k->count[DATA_CALLSTACKS];
	if (k->frames_room)
		memset(k->frames_of, 0, k->frames_room * sizeof(*k->frames_of));
	memset(k->count, 0, sizeof(k->count));
	k->data.len = 0;
}

void stacks_free(struct stacks *k)
{
	if (!k)
		return;
	forget_known(k);
	free(k->frames_of);
	free(k->way);
	free(k->callstack_of);
	free(k->nameless);
	enc_free(&k->ways);
	enc_free(&k->data);
	free(k);
}

size_t stacks_pending(const struct stacks *k)
{
	return k->data.len;
}

void stacks_write(struct stacks *k, struct enc *e)
{
	if (k->data.failed || k->ways.failed)
		e->failed = true;
	if (k->data.len)
		enc_bytes(e, PACKET_INTERNED, k->data.at, k->data.len);
	k->data.len = 0;
}

/* ---- names ------------------------------------------------------------------------- */

/* The place of `what` among the known; its iid is 0 if it is new. */
static struct known *lookup(struct stacks *k, u64 field, const void *what)
{
	struct known probe = { .key = { what, field } }, *n;

	HASH_FIND(hh, k->known, &probe.key, sizeof(probe.key), n);
	if (n)
		return n;
	n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	n->key.what = what;
	n->key.field = field;
	HASH_ADD(hh, k->known, key, sizeof(n->key), n);
	return n;
}

static u32 text(struct stacks *k, u32 field, const char *what)
{
	struct known *n = lookup(k, field, what);

	if (!n || n->iid)
		return n ? n->iid : 0;
	n->iid = ++k->count[field];

	size_t mark = enc_open(&k->data, field);

	enc_uint(&k->data, IID, n->iid);
	enc_utf8(&k->data, TEXT, what);
	enc_close(&k->data, mark);
	return n->iid;
}

u32 stacks_event_name(struct stacks *k, const char *name)
{
	return text(k, DATA_EVENT_NAMES, name);
}

u32 stacks_category(struct stacks *k, const char *name)
{
	return text(k, DATA_CATEGORIES, name);
}

u32 stacks_arg_name(struct stacks *k, const char *name)
{
	return text(k, DATA_ARG_NAMES, name);
}

u32 stacks_arg_text(struct stacks *k, const char *what)
{
	return text(k, DATA_ARG_TEXTS, what);
}

/* ---- mappings ---------------------------------------------------------------------- */

static u32 build_id(struct stacks *k, const struct module *m)
{
	u32 iid = ++k->count[DATA_BUILD_IDS];
	size_t mark = enc_open(&k->data, DATA_BUILD_IDS), len = m ? m->build_len : 0;

	enc_uint(&k->data, IID, iid);
	enc_bytes(&k->data, TEXT, m ? m->build_id : NULL, len < sizeof(m->build_id) ? len : sizeof(m->build_id));
	enc_close(&k->data, mark);
	return iid;
}

/* A frame without a mapping is refused in a heap dump, so code of no module has one too. */
static u32 mapping(struct stacks *k, const struct module *m)
{
	static const char nowhere[] = "[no file]";
	struct known *n = lookup(k, DATA_MAPPINGS, m ? (const void *)m : nowhere);

	if (!n || n->iid)
		return n ? n->iid : 0;
	n->iid = ++k->count[DATA_MAPPINGS];

	/* the trace processor puts a slash before each part of a path */
	const char *name = m && m->path ? m->path : nowhere;
	u32 path = text(k, DATA_MAPPING_PATHS, name[0] == '/' ? name + 1 : name);
	u32 build = build_id(k, m);
	size_t mark = enc_open(&k->data, DATA_MAPPINGS);

	enc_uint(&k->data, IID, n->iid);
	enc_uint(&k->data, MAPPING_BUILD_ID, build);
	if (m) {
		enc_uint(&k->data, MAPPING_START, m->start);
		enc_uint(&k->data, MAPPING_END, m->end);
		enc_uint(&k->data, MAPPING_BIAS, m->bias);
	}
	enc_uint(&k->data, MAPPING_PATH, path);
	enc_close(&k->data, mark);
	return n->iid;
}

/* ---- frames ------------------------------------------------------------------------ */

static void frame(struct stacks *k, u32 iid, const struct frame *f, const struct frames *of)
{
	u32 function = text(k, DATA_FUNCTIONS, f->function), map = mapping(k, of->module);
	u32 source = f->file ? text(k, DATA_SOURCES, f->file) : 0;
	size_t mark = enc_open(&k->data, DATA_FRAMES);

	enc_uint(&k->data, IID, iid);
	enc_uint(&k->data, FRAME_FUNCTION, function);
	enc_uint(&k->data, FRAME_MAPPING, map);
	enc_uint(&k->data, FRAME_REL_PC, of->rel_pc);
	if (source) {
		enc_uint(&k->data, FRAME_SOURCE, source);
		enc_uint(&k->data, FRAME_LINE, f->line);
	}
	enc_close(&k->data, mark);
}

static bool room_for_frames(struct stacks *k, u32 number)
{
	u32 room = number * 2 + 1024;
	u32 *bigger = number < k->frames_room ? k->frames_of : realloc(k->frames_of, room * sizeof(*bigger));

	if (number < k->frames_room || !bigger)
		return bigger;
	memset(bigger + k->frames_room, 0, (room - k->frames_room) * sizeof(*bigger));
	k->frames_of = bigger;
	k->frames_room = room;
	return true;
}

/* Returns the number of the outermost of an address's frames; the others follow inwards. */
static u32 frames(struct stacks *k, const struct frames *of)
{
	if (!room_for_frames(k, of->number))
		return 0;
	if (!k->frames_of[of->number]) {
		k->frames_of[of->number] = k->count[DATA_FRAMES] + 1;
		for (u32 i = of->count; i-- > 0;)
			frame(k, ++k->count[DATA_FRAMES], &of->at[i], of);
	}
	return k->frames_of[of->number];
}

static u32 lone_frame(struct stacks *k, const char *name)
{
	struct frame f = { .function = name };
	struct frames of = { .at = &f, .count = 1 };
	struct known *n = lookup(k, DATA_FRAMES, name);

	if (n && !n->iid) {
		n->iid = ++k->count[DATA_FRAMES];
		frame(k, n->iid, &f, &of);
	}
	return n ? n->iid : 0;
}

/* ---- frames without a name --------------------------------------------------------- */

static const char *path_in_mapping(const struct stacks *k, const struct module *m)
{
	const char *path = m && m->path ? m->path : k->nowhere;

	return path[0] == '/' ? path + 1 : path;
}

/* Modules may still move in memory: their number stands for them. */
static u32 nameless_mapping(struct stacks *k, u32 module)
{
	const struct module *m = module ? &k->process->module[module - 1] : NULL;
	struct known *n = lookup(k, DATA_MAPPINGS, (const void *)(uintptr_t)(module + 1));

	if (!n || n->iid)
		return n ? n->iid : 0;
	n->iid = ++k->count[DATA_MAPPINGS];

	u32 path = ++k->count[DATA_MAPPING_PATHS], build = build_id(k, NULL);
	size_t mark = enc_open(&k->data, DATA_MAPPING_PATHS);

	enc_uint(&k->data, IID, path);
	enc_utf8(&k->data, TEXT, path_in_mapping(k, m));
	enc_close(&k->data, mark);
	mark = enc_open(&k->data, DATA_MAPPINGS);
	enc_uint(&k->data, IID, n->iid);
	enc_uint(&k->data, MAPPING_BUILD_ID, build);
	enc_uint(&k->data, MAPPING_PATH, path);
	enc_close(&k->data, mark);
	return n->iid;
}

static bool add_nameless(struct stacks *k, struct nameless new)
{
	if (k->namelesses == k->nameless_room) {
		u32 room = k->nameless_room * 2 + 64;
		struct nameless *list = realloc(k->nameless, room * sizeof(*list));

		if (!list)
			return false;
		k->nameless = list;
		k->nameless_room = room;
	}
	k->nameless[k->namelesses++] = new;
	return true;
}

static u32 nameless_frame(struct stacks *k, u32 node)
{
	const struct process *p = k->process;
	u64 pc = p->node[node].pc;
	const struct module *m = process_module(p, pc, p->node[node].epoch);
	u32 module = m ? (u32)(m - p->module) + 1 : 0;
	struct known *n = lookup(k, DATA_FRAMES | (u64)module << 32, (const void *)(uintptr_t)pc);

	if (!n || n->iid)
		return n ? n->iid : 0;

	struct nameless new = { node, module, pc - 1 - (m ? m->bias : 0) };
	u32 map = nameless_mapping(k, module);
	size_t mark;

	if (!add_nameless(k, new))
		return 0;
	n->iid = ++k->count[DATA_FRAMES];
	mark = enc_open(&k->data, DATA_FRAMES);
	enc_uint(&k->data, IID, n->iid);
	enc_uint(&k->data, FRAME_MAPPING, map);
	enc_uint(&k->data, FRAME_REL_PC, new.rel_pc);
	enc_close(&k->data, mark);
	return n->iid;
}

static int by_module(const void *a, const void *b)
{
	const struct nameless *x = a, *y = b;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return x->rel_pc < y->rel_pc ? -1 : x->rel_pc > y->rel_pc;
}

static void symbols_of(struct enc *e, struct symbols *y, const struct process *p, const struct nameless *n)
{
	struct frames of = symbols_frames(y, p, n->node);
	size_t address = enc_open(e, SYMBOLS_ADDRESS), line;

	enc_uint(e, ADDRESS_ADDRESS, n->rel_pc);
	for (u32 i = 0; i < of.count; i++) {
		line = enc_open(e, ADDRESS_LINE);
		enc_utf8(e, LINE_FUNCTION, of.at[i].function);
		if (of.at[i].file) {
			enc_utf8(e, LINE_FILE, of.at[i].file);
			enc_uint(e, LINE_NUMBER, of.at[i].line);
		}
		enc_close(e, line);
	}
	enc_close(e, address);
}

static void module_symbols(struct perfetto *w, struct stacks *k, struct symbols *y, const struct nameless *n, u32 count)
{
	const struct module *m = n->module ? &k->process->module[n->module - 1] : NULL;
	struct enc *e = packet_open(w, SEQ_HEAD, 0, 0);
	size_t mark = enc_open(e, PACKET_MODULE_SYMBOLS);
	char path[8192];

	snprintf(path, sizeof(path), "/%s", path_in_mapping(k, m));
	enc_utf8(e, SYMBOLS_PATH, path);
	enc_bytes(e, SYMBOLS_BUILD_ID, NULL, 0);
	for (u32 i = 0; i < count; i++)
		symbols_of(e, y, k->process, &n[i]);
	enc_close(e, mark);
	packet_close(w);
}

void stacks_name(struct stacks *k, struct perfetto *w, struct symbols *y)
{
	u32 *node = malloc((k->namelesses + 1) * sizeof(*node)), i, end;

	for (i = 0; node && i < k->namelesses; i++)
		node[i] = k->nameless[i].node;
	if (node)
		symbols_prepare(y, k->process, node, k->namelesses);
	free(node);
	if (k->namelesses)
		qsort(k->nameless, k->namelesses, sizeof(*k->nameless), by_module);
	for (i = 0; i < k->namelesses; i = end) {
		for (end = i; end < k->namelesses && end < i + NAMES_PER_PACKET && k->nameless[end].module == k->nameless[i].module;)
			end++;
		module_symbols(w, k, y, &k->nameless[i], end - i);
	}
}

/* ---- callstacks -------------------------------------------------------------------- */

static bool way_known(const struct stacks *k, u32 node)
{
	return k->way[node].len && k->way[node].at >= k->ways_gone;
}

static const u8 *way_bytes(const struct stacks *k, struct way way)
{
	return way.len ? k->ways.at + (way.at - k->ways_gone) : NULL;
}

/* Nodes from `node` outwards whose way is not known, into k->path; *known: the first one whose way is, or 0. */
static u32 unknown_part(struct stacks *k, u32 node, u32 *known)
{
	u32 depth = 0;

	for (; node && node < k->process->nodes && !way_known(k, node); node = k->process->node[node].parent) {
		if (depth == DEPTH_MAX) {
			node = 0;
			break;
		}
		k->path[depth++] = node;
	}
	*known = node < k->process->nodes && k->way[node].len < WAY_MAX ? node : 0;
	return depth;
}

static void add_node(struct stacks *k, u32 node)
{
	if (!k->symbols) {
		enc_uint(&k->ways, CALLSTACK_FRAME, nameless_frame(k, node));
		return;
	}
	struct frames of = symbols_frames(k->symbols, k->process, node);
	u32 first = frames(k, &of);

	for (u32 i = 0; i < of.count; i++)
		enc_uint(&k->ways, CALLSTACK_FRAME, first + i);
}

/* The frames that are new come before the callstack that is made of them. */
static struct way way_to(struct stacks *k, u32 node)
{
	u32 known, depth = unknown_part(k, node, &known);
	u64 begin = k->ways_gone + k->ways.len;

	if (!depth)
		return k->way[node < k->process->nodes ? node : 0];
	if (known && enc_room(&k->ways, k->way[known].len))
		enc_raw(&k->ways, way_bytes(k, k->way[known]), k->way[known].len);
	while (depth-- > 0) {
		add_node(k, k->path[depth]);
		k->way[k->path[depth]] = (struct way){ begin, k->ways_gone + k->ways.len - begin };
	}
	return k->way[node];
}

u32 stacks_callstack(struct stacks *k, u32 node, const char *below)
{
	if (!room_for(k, k->process->nodes))
		return 0;
	u32 *memo = below ? NULL : &k->callstack_of[node < k->process->nodes ? node : 0];

	if (memo && *memo > k->callstacks_gone)
		return *memo - k->callstacks_gone;
	if (k->ways.len > WAYS_BYTES)
		forget_ways(k);

	struct way way = way_to(k, node);
	u32 iid = ++k->count[DATA_CALLSTACKS];
	u32 lone = below || !way.len ? lone_frame(k, below ? below : "[no stack]") : 0;
	size_t mark = enc_open(&k->data, DATA_CALLSTACKS);

	enc_uint(&k->data, IID, iid);
	if (way.len)
		enc_raw(&k->data, way_bytes(k, way), way.len);
	if (lone)
		enc_uint(&k->data, CALLSTACK_FRAME, lone);
	enc_close(&k->data, mark);
	if (memo)
		*memo = k->callstacks_gone + iid;
	return iid;
}

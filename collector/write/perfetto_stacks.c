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
 */
#include "perfetto.h"

#include <uthash.h>

/* InternedData and its entries */
enum {
	DATA_EVENT_NAMES = 2, DATA_ARG_NAMES = 3, DATA_FUNCTIONS = 5, DATA_FRAMES = 6, DATA_CALLSTACKS = 7,
	DATA_BUILD_IDS = 16, DATA_MAPPING_PATHS = 17, DATA_SOURCES = 18, DATA_MAPPINGS = 19, DATA_ARG_TEXTS = 29,
	DATA_FIELDS,
	IID = 1, TEXT = 2,
	FRAME_FUNCTION = 2, FRAME_MAPPING = 3, FRAME_REL_PC = 4, FRAME_SOURCE = 5, FRAME_LINE = 6,
	CALLSTACK_FRAME = 2,
	MAPPING_BUILD_ID = 2, MAPPING_START = 4, MAPPING_END = 5, MAPPING_BIAS = 6, MAPPING_PATH = 7,
};

enum { DEPTH_MAX = 4096 };

/* A thing that has its number. The address of a string or of a node's frames stands for it. */
struct known {
	struct { const void *what; u64 field; } key;
	u32 iid;
	UT_hash_handle hh;
};

/* The frames of a node have numbers in a row, the outermost first. first 0: they have none yet. */
struct run { u32 first, count; };

struct stacks {
	struct symbols *symbols;
	const struct process *process;
	struct known *known;
	u32 count[DATA_FIELDS];         /* numbers given so far, by field */
	struct run *frames_of;          /* by node */
	u32 *callstack_of;              /* by node */
	struct enc data;                /* InternedData not yet written */
	u32 path[DEPTH_MAX];
};

struct stacks *stacks_new(struct symbols *y, const struct process *p)
{
	struct stacks *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->symbols = y;
	k->process = p;
	k->frames_of = calloc((size_t)p->nodes + 1, sizeof(*k->frames_of));
	k->callstack_of = calloc((size_t)p->nodes + 1, sizeof(u32));
	if (k->frames_of && k->callstack_of)
		return k;
	stacks_free(k);
	return NULL;
}

void stacks_free(struct stacks *k)
{
	struct known *n, *next;

	if (!k)
		return;
	HASH_ITER(hh, k->known, n, next) {
		HASH_DEL(k->known, n);
		free(n);
	}
	free(k->frames_of);
	free(k->callstack_of);
	enc_free(&k->data);
	free(k);
}

size_t stacks_pending(const struct stacks *k)
{
	return k->data.len;
}

void stacks_write(struct stacks *k, struct enc *e)
{
	if (k->data.failed)
		e->failed = true;
	if (k->data.len)
		enc_bytes(e, PACKET_INTERNED, k->data.at, k->data.len);
	k->data.len = 0;
}

/* ---- names ------------------------------------------------------------------------- */

/* The place of `what` among the known; its iid is 0 if it is new. */
static struct known *lookup(struct stacks *k, u32 field, const void *what)
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

/* Returns the number of the outermost of a node's frames; the others follow inwards. */
static u32 frames(struct stacks *k, const struct frames *of)
{
	struct known *n = lookup(k, DATA_FRAMES, of->at);

	if (!n || n->iid)
		return n ? n->iid : 0;
	n->iid = k->count[DATA_FRAMES] + 1;
	for (u32 i = of->count; i-- > 0;)
		frame(k, ++k->count[DATA_FRAMES], &of->at[i], of);
	return n->iid;
}

static const struct run *node_frames(struct stacks *k, u32 node)
{
	struct run *run = &k->frames_of[node];

	if (!run->first) {
		struct frames of = symbols_frames(k->symbols, k->process, node);

		*run = (struct run){ frames(k, &of), of.count };
	}
	return run;
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

/* ---- callstacks -------------------------------------------------------------------- */

static u32 path_to_root(struct stacks *k, u32 node)
{
	u32 depth = 0;

	for (; node && node < k->process->nodes && depth < DEPTH_MAX; node = k->process->node[node].parent)
		k->path[depth++] = node;
	return depth;
}

u32 stacks_callstack(struct stacks *k, u32 node, const char *below)
{
	u32 *memo = below ? NULL : &k->callstack_of[node < k->process->nodes ? node : 0];

	if (memo && *memo)
		return *memo;

	u32 depth = path_to_root(k, node), iid = ++k->count[DATA_CALLSTACKS];
	u32 lone = below || !depth ? lone_frame(k, below ? below : "[no stack]") : 0;

	for (u32 i = depth; i-- > 0;)   /* frames come before the callstack that is made of them */
		node_frames(k, k->path[i]);

	size_t mark = enc_open(&k->data, DATA_CALLSTACKS);

	enc_uint(&k->data, IID, iid);
	for (u32 i = depth; i-- > 0;) {
		const struct run *run = node_frames(k, k->path[i]);

		for (u32 j = 0; j < run->count; j++)
			enc_uint(&k->data, CALLSTACK_FRAME, run->first + j);
	}
	if (lone)
		enc_uint(&k->data, CALLSTACK_FRAME, lone);
	enc_close(&k->data, mark);
	if (memo)
		*memo = iid;
	return iid;
}

/*
 * vk_spirv.c - reads the head of a SPIR-V module, up to its first function: entry points and work-group sizes.
 *
 * A size is said by LocalSize (numbers), by LocalSizeId (constants), or, before both, by a constant that is decorated as
 * WorkgroupSize. Constants may be replaced when a pipeline is made. The module comes from the program: every length is
 * checked.
 */
#include "vk_spirv.h"

enum {
	MAGIC = 0x07230203, HEAD = 5, COMPUTE = 5,
	OP_SOURCE = 3, OP_STRING = 7, OP_ENTRY_POINT = 15, OP_EXECUTION_MODE = 16, OP_CONSTANT = 43, OP_CONSTANT_COMPOSITE = 44,
	OP_SPEC_CONSTANT = 50, OP_SPEC_CONSTANT_COMPOSITE = 51, OP_FUNCTION = 54, OP_DECORATE = 71, OP_EXECUTION_MODE_ID = 331,
	MODE_LOCAL_SIZE = 17, MODE_LOCAL_SIZE_ID = 38, DECORATION_SPEC_ID = 1, DECORATION_BUILTIN = 11, BUILTIN_WORKGROUP_SIZE = 25,
};

static struct pool entry_pool = POOL(struct spirv_entry);

struct code { const u32 *word; u32 words; };            /* without the module's head */
struct op { u32 code, words; const u32 *word; };        /* word[0] is the op itself */

static bool next_op(const struct code *c, u32 *at, struct op *op)
{
	if (*at >= c->words)
		return false;
	*op = (struct op){ c->word[*at] & 0xffff, c->word[*at] >> 16, c->word + *at };
	*at += op->words;
	return op->words && *at <= c->words && op->code != OP_FUNCTION;
}

#define EACH_OP(op, c) for (u32 at_ = 0; next_op(c, &at_, &op);)

/* A text that fills the rest of an op. */
static const char *text_in(const struct op *op, u32 from)
{
	const char *text = (const char *)(op->word + from);

	for (u32 i = 0; from < op->words && i < (op->words - from) * 4; i++)
		if (!text[i])
			return text;
	return NULL;
}

/* ---- constants --------------------------------------------------------------------------------------- */

static void look_up(const struct code *c, u32 id, struct spirv_size *size)
{
	struct op op;

	*size = (struct spirv_size){ 0 };
	EACH_OP(op, c) {
		if (op.code == OP_DECORATE && op.words >= 4 && op.word[1] == id && op.word[2] == DECORATION_SPEC_ID) {
			size->constant = op.word[3];
			size->special = true;
		}
		if ((op.code == OP_CONSTANT || op.code == OP_SPEC_CONSTANT) && op.words >= 4 && op.word[2] == id)
			size->value = op.word[3];
	}
}

static void look_up_three(const struct code *c, const u32 *id, struct spirv_size *size)
{
	for (u32 i = 0; i < 3; i++)
		look_up(c, id[i], &size[i]);
}

/* The constant decorated as WorkgroupSize, if there is one. */
static bool group_size(const struct code *c, struct spirv_size *size)
{
	struct op op;
	u32 id = 0;

	EACH_OP(op, c) {
		if (op.code == OP_DECORATE && op.words >= 4 && op.word[2] == DECORATION_BUILTIN && op.word[3] == BUILTIN_WORKGROUP_SIZE)
			id = op.word[1];
		if (id && (op.code == OP_CONSTANT_COMPOSITE || op.code == OP_SPEC_CONSTANT_COMPOSITE) && op.words >= 6 && op.word[2] == id) {
			look_up_three(c, op.word + 3, size);
			return true;
		}
	}
	return false;
}

/* ---- entry points -------------------------------------------------------------------------------------- */

static void add_entry(struct spirv_module *m, const struct op *op)
{
	const char *name = op->words >= 4 ? text_in(op, 3) : NULL;
	struct spirv_entry *e = name ? pool_get(&entry_pool) : NULL;

	if (!e)
		return;
	e->model = op->word[1];
	e->name = text_hash(name, text_length(name));
	e->size[0].value = op->word[2];                 /* its id, until the sizes are known */
	e->next = m->entries;
	m->entries = e;
}

static void size_from_mode(const struct code *c, u32 id, struct spirv_size *size)
{
	struct op op;

	for (u32 i = 0; i < 3; i++)
		size[i] = (struct spirv_size){ 0 };
	EACH_OP(op, c) {
		if (op.words < 6 || op.word[1] != id)
			continue;
		if (op.code == OP_EXECUTION_MODE && op.word[2] == MODE_LOCAL_SIZE)
			for (u32 i = 0; i < 3; i++)
				size[i].value = op.word[3 + i];
		if (op.code == OP_EXECUTION_MODE_ID && op.word[2] == MODE_LOCAL_SIZE_ID)
			look_up_three(c, op.word + 3, size);
	}
}

static void find_sizes(struct spirv_module *m, const struct code *c)
{
	struct spirv_size all[3];
	bool builtin = group_size(c, all);

	for (struct spirv_entry *e = m->entries; e; e = e->next) {
		u32 id = e->size[0].value;

		if (e->model != COMPUTE || builtin)
			for (u32 i = 0; i < 3; i++)
				e->size[i] = e->model == COMPUTE ? all[i] : (struct spirv_size){ 0 };
		else
			size_from_mode(c, id, e->size);
	}
}

static const char *string_of(const struct code *c, u32 id)
{
	struct op op;

	EACH_OP(op, c)
		if (op.code == OP_STRING && op.words >= 3 && op.word[1] == id)
			return text_in(&op, 2);
	return NULL;
}

static const char *base_name(const char *path)
{
	const char *base = path;

	for (; *path; path++)
		if (*path == '/' && path[1])
			base = path + 1;
	return base;
}

void spirv_read(struct spirv_module *m, const u32 *code, size_t bytes)
{
	struct code c = { code + HEAD, (u32)(bytes / 4) - HEAD };
	const char *file = NULL;
	struct op op;

	*m = (struct spirv_module){ .hash = 2166136261u };
	if (!code || bytes < HEAD * 4 || code[0] != MAGIC)
		return;
	for (size_t i = 0; i < bytes / 4; i++)
		m->hash = (m->hash ^ code[i]) * 16777619u;
	EACH_OP(op, &c) {
		if (op.code == OP_ENTRY_POINT)
			add_entry(m, &op);
		else if (op.code == OP_SOURCE && op.words >= 4 && !file)
			file = string_of(&c, op.word[3]);
	}
	find_sizes(m, &c);
	m->file = file && *file ? vk_text(base_name(file)) : NULL;
}

void spirv_release(struct spirv_module *m)
{
	for (struct spirv_entry *e = m->entries, *next; e; e = next) {
		next = e->next;
		pool_put(&entry_pool, e);
	}
	m->entries = NULL;
}

const struct spirv_entry *spirv_find(const struct spirv_module *m, const char *name, bool compute)
{
	u64 hash = text_hash(name, text_length(name));

	for (const struct spirv_entry *e = m->entries; e; e = e->next)
		if ((e->model == COMPUTE) == compute && e->name == hash)
			return e;
	return NULL;
}

static u32 chosen(const struct spirv_size *s, const VkSpecializationInfo *special)
{
	u32 value = s->value;

	for (u32 i = 0; s->special && special && i < special->mapEntryCount; i++) {
		const VkSpecializationMapEntry *m = &special->pMapEntries[i];

		if (m->constantID == s->constant && m->size == 4 && m->offset + 4ull <= special->dataSize)
			__builtin_memcpy(&value, (const char *)special->pData + m->offset, 4);
	}
	return value;
}

u64 spirv_local(const struct spirv_entry *e, const VkSpecializationInfo *special)
{
	u32 n[3];

	for (u32 i = 0; i < 3; i++) {
		n[i] = chosen(&e->size[i], special);
		if (!n[i] || n[i] >= 1u << 21)
			return 0;
	}
	return PACK3(n[0], n[1], n[2]);
}

/*
 * pools.c - kinds of memory with books of their own, in a process and over the whole tree.
 */
#include "inside.h"
#include <stdio.h>

static const char *const kind_name[] = {
	[MAP_KIND_ANON] = "mmap", [MAP_KIND_FILE] = "file", [MAP_KIND_SHARED] = "shared",
};

static u32 add_pool(struct pool_list *l, u32 *room, const char *name, int kind)
{
	l->at = array_room(l->at, room, l->count + 1, sizeof(*l->at));
	l->at[l->count] = (struct pool) { .name = text_copy(name, strlen(name)), .kind = kind };
	return l->count++;
}

static u32 tree_pool(struct model *m, const char *name, int kind)
{
	struct pool_index *i;
	size_t len = strlen(name);

	HASH_FIND(hh, m->by_pool, name, len, i);
	if (!i) {
		i = new_zeroed(1, sizeof(*i) + len + 1);
		memcpy(i->name, name, len);
		i->at = add_pool(&m->s.pools, &m->pool_room, name, kind);
		HASH_ADD_KEYPTR(hh, m->by_pool, i->name, len, i);
	}
	return i->at;
}

static u32 process_pool(struct model *m, struct proc *p, const char *name, int kind)
{
	u32 i;

	for (i = 0; i < p->p.pools.count; i++)
		if (!strcmp(p->p.pools.at[i].name, name))
			return i;
	i = add_pool(&p->p.pools, &p->pool_room, name, kind);
	ARRAY_ROOM(p->tree_pool, p->tree_pool_room, i + 1);
	p->tree_pool[i] = tree_pool(m, name, kind);
	return i;
}

void pools_init(struct model *m, struct proc *p)
{
	process_pool(m, p, "malloc", MAP_KIND_ANON);
	process_pool(m, p, "mmap", MAP_KIND_ANON);
}

u32 pool_named(struct model *m, struct proc *p, int kind, const char *path, u32 len)
{
	char name[TEXT_MAX + 16];

	if (kind == MAP_KIND_ANON)
		return POOL_MMAP;
	snprintf(name, sizeof(name), "%s:%.*s", kind_name[kind], (int)len, path);
	return process_pool(m, p, name, kind);
}

u32 pool_of_device(struct model *m, struct proc *p, const struct device *d)
{
	int kind = device_counts(d) ? POOL_DEVICE : device_is_library(d) ? POOL_LIBRARY : POOL_DEVICE_VIEW;

	return process_pool(m, p, d->title, kind);
}

static void move(struct pool *p, i64 bytes, u64 ticks)
{
	p->now += bytes;
	if (p->now > p->peak) {
		p->peak = p->now;
		p->peak_ticks = ticks;
	}
}

void pool_move(struct model *m, struct proc *p, u32 pool, i64 bytes, u64 ticks)
{
	move(&p->p.pools.at[pool], bytes, ticks);
	move(&m->s.pools.at[p->tree_pool[pool]], bytes, ticks);
}

static void add_up(struct pool *sum, const struct pool *p)
{
	sum->now += p->now;
	sum->blocks += p->blocks;
	sum->allocs += p->allocs;
	sum->frees += p->frees;
	sum->allocated_bytes += p->allocated_bytes;
}

/* During the run a pool of the tree says what is there now; at the end, what was left when each process ended. */
void pools_finish(struct model *m)
{
	u32 i, j;

	for (i = 0; i < m->s.pools.count; i++)
		m->s.pools.at[i].now = 0;
	for (i = 0; i < m->s.processes; i++) {
		struct proc *p = proc_at(m, i);

		for (j = 0; j < p->p.pools.count; j++)
			add_up(&m->s.pools.at[p->tree_pool[j]], &p->p.pools.at[j]);
	}
}

static void release_list(struct pool_list *l)
{
	u32 i;

	for (i = 0; i < l->count; i++)
		free(l->at[i].name);
	free(l->at);
}

void pools_release(struct model *m)
{
	struct pool_index *i, *next;
	u32 j;

	HASH_ITER(hh, m->by_pool, i, next) {
		HASH_DEL(m->by_pool, i);
		free(i);
	}
	for (j = 0; j < m->s.processes; j++) {
		release_list(&m->s.process[j]->pools);
		free(proc_at(m, j)->tree_pool);
	}
	release_list(&m->s.pools);
}

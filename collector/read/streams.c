/*
 * streams.c - chunks to read into, images, streams and their nodes.
 */
#include "merge_inside.h"

enum { IMAGES_MAX = 1 << (64 - REC_IMAGE_SHIFT), SLAB_CHUNKS = 16 };

/* ---- chunks ------------------------------------------------------------------------- */

static void more_chunks(struct merge *m)
{
	union chunk *slab = must(aligned_alloc(CHUNK_BYTES, SLAB_CHUNKS * sizeof(*slab)));
	u32 i;

	ARRAY_ROOM(m->slab, m->slab_room, m->slabs + 1);
	m->slab[m->slabs++] = slab;
	ARRAY_ROOM(m->free_chunk, m->free_room, m->slabs * SLAB_CHUNKS);
	for (i = 0; i < SLAB_CHUNKS; i++)
		m->free_chunk[m->free_chunks++] = &slab[i];
}

union chunk *merge_chunk(struct merge *m)
{
	if (!m->free_chunks)
		more_chunks(m);
	m->held++;
	return m->free_chunk[--m->free_chunks];
}

void merge_unread(struct merge *m, union chunk *c)
{
	m->held--;
	m->free_chunk[m->free_chunks++] = c;
}

u64 merge_pending_bytes(const struct merge *m)
{
	return m->held * CHUNK_BYTES;
}

/* ---- images and streams -------------------------------------------------------------- */

struct image *image_find(struct merge *m, u32 pid, u64 born)
{
	u32 i;

	for (i = 0; i < m->images; i++)
		if (m->image[i] && m->image[i]->pid == pid && m->image[i]->born == born)
			return m->image[i];
	return NULL;
}

static struct image *new_image(struct merge *m, u32 pid, u64 born)
{
	struct image *image;
	u32 id = 0;

	while (id < m->images && m->image[id])
		id++;
	if (id == IMAGES_MAX)
		return NULL;
	if (id == m->images) {
		ARRAY_ROOM(m->image, m->image_room, id + 1);
		m->images++;
	}
	image = new_zeroed(1, sizeof(*image));
	*image = (struct image) { .pid = pid, .born = born, .id = id };
	m->image[id] = image;
	return image;
}

struct stream *merge_find(struct merge *m, u32 pid, u64 born, u32 slot)
{
	struct stream_key key = { born, pid, slot };
	struct stream *s;

	HASH_FIND(hh, m->streams, &key, sizeof(key), s);
	return s;
}

struct stream *merge_streams(struct merge *m)
{
	return m->streams;
}

/* Index 0 of the node arrays is "no stack". */
static void init_nodes(struct stream *s)
{
	s->node_room = 16;
	s->pc = new_zeroed(s->node_room, sizeof(*s->pc));
	s->parent = new_zeroed(s->node_room, sizeof(*s->parent));
	s->number = new_zeroed(s->node_room, sizeof(*s->number));
	s->label = new_zeroed(s->node_room, sizeof(*s->label));
	s->label[0] = s->label[1] = LABEL_NONE;
	s->nodes = 1;
	ARRAY_ROOM(s->run, s->run_room, 1);
	s->run[s->runs++] = (struct node_run) { 0, 0 };
}

struct stream *merge_stream(struct merge *m, u32 pid, u64 born, u32 slot)
{
	struct stream *s = merge_find(m, pid, born, slot);
	struct image *image;

	if (s)
		return s;
	image = image_find(m, pid, born);
	if (!image)
		image = new_image(m, pid, born);
	if (!image)
		return NULL;
	image->streams++;
	s = new_zeroed(1, sizeof(*s));
	s->key = (struct stream_key) { born, pid, slot };
	s->image = image;
	s->node_next = 1;
	init_nodes(s);
	HASH_ADD(hh, m->streams, key, sizeof(s->key), s);
	return s;
}

static void free_stream(struct merge *m, struct stream *s)
{
	struct image *image = s->image;

	HASH_DEL(m->streams, s);
	free(s->queue);
	free(s->pc);
	free(s->parent);
	free(s->number);
	free(s->label);
	free(s->run);
	free(s);
	if (--image->streams == 0) {
		m->image[image->id] = NULL;
		free(image);
	}
}

void streams_free_over(struct merge *m)
{
	struct stream *s, *next;

	if (!m->some_over)
		return;
	m->some_over = false;
	HASH_ITER(hh, m->streams, s, next) {
		if (!s->image->over)
			continue;
		if (s->active)
			m->some_over = true;
		else
			free_stream(m, s);
	}
}

void stream_name_node(struct stream *s, u64 pc, u32 parent)
{
	if (s->nodes + 1 == s->node_room) {
		u32 room = s->node_room * 2;

		s->pc = must(realloc(s->pc, room * sizeof(*s->pc)));
		s->parent = must(realloc(s->parent, room * sizeof(*s->parent)));
		s->number = must(realloc(s->number, room * sizeof(*s->number)));
		s->label = must(realloc(s->label, room * sizeof(*s->label)));
		s->node_room = room;
	}
	s->pc[s->nodes] = pc;
	s->parent[s->nodes] = parent;
	s->number[s->nodes] = 0;
	s->nodes++;
	s->label[s->nodes - 1] = s->label[s->nodes] = LABEL_NONE;
}

void stream_name_afresh(struct stream *s)
{
	const struct node_run *run = &s->run[s->runs - 1];

	s->afresh = (struct node_run) { run->first + (s->nodes - run->at), s->nodes };
	s->afresh_run = s->runs - 1;
}

#define MOVE_DOWN(list, from, count) memmove(&(list)[1], &(list)[from], (count) * sizeof(*(list)))

void stream_forget_nodes(struct stream *s)
{
	u32 from = s->afresh.at, kept = s->nodes - from, next = s->afresh_run + 1, i;
	bool none = next < s->runs && s->run[next].at == from;          /* they went on with other numbers at once */

	MOVE_DOWN(s->pc, from, kept);
	MOVE_DOWN(s->parent, from, kept);
	MOVE_DOWN(s->number, from, kept);
	MOVE_DOWN(s->label, from, kept + 1);
	s->nodes = 1 + kept;
	ARRAY_ROOM(s->run, s->run_room, s->runs + 1);
	memmove(&s->run[2 - none], &s->run[next], (s->runs - next) * sizeof(*s->run));
	s->runs = 2 - none + s->runs - next;
	for (i = 2 - none; i < s->runs; i++)
		s->run[i].at -= from - 1;
	s->run[0] = (struct node_run) { 0, 0 };
	if (!none)
		s->run[1] = (struct node_run) { s->afresh.first, 1 };
	s->restart = 0;
	s->afresh = (struct node_run) { 0 };
}

void streams_release(struct merge *m)
{
	struct stream *s, *next;

	HASH_ITER(hh, m->streams, s, next)
		free_stream(m, s);
	while (m->slabs)
		free(m->slab[--m->slabs]);
	free(m->slab);
	free(m->free_chunk);
	free(m->image);
}

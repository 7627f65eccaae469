/*
 * perfetto_memory.c - device memory: each allocation a slice from its birth to its death, and so each object that lies
 * in one.
 *
 * A slice is begun when its memory is, so that lanes are given back when they are free. What is only known later - the
 * name, what lay inside - is said at its end; the viewer shows it with the rest. No more than LIVE_MAX that live at the
 * same time are drawn; and of a library's heap, which may be as busy as malloc, no more than LIVE_SMALL below --large.
 */
#include "perfetto_devices.h"

#include <stdio.h>

enum { MEMORIES_MAX = 1000000, LIVE_MAX = 4000, LIVE_SMALL = 64, RANK_ALLOCATIONS = 50, RANK_OBJECTS = 51, LIST_TEXT = 4096, LIST_RANGES = 64 };

static const struct { u32 bit; const char *name; } flag_names[] = {
	{ MEMORY_HOST_VISIBLE, "host_visible" }, { MEMORY_DEVICE_LOCAL, "device_local" }, { MEMORY_IMPORTED, "imported" },
	{ MEMORY_HOST_POINTER, "host_pointer" }, { MEMORY_SHARED, "shared" },
};

static void flags(struct slice *s, const struct device_memory *m)
{
	char text[128] = "";

	for (u32 i = 0; i < sizeof(flag_names) / sizeof(flag_names[0]); i++)
		if (m->flags & flag_names[i].bit) {
			if (text[0])
				strcat(text, "|");
			strcat(text, flag_names[i].name);
		}
	if (text[0])
		arg_string(s->of->stacks, s->e, "memory", text);
}

static bool is_object(const struct device_memory *m)
{
	return m->parent != 0;
}

/* ---- lanes ------------------------------------------------------------------------- */

static struct free_lanes *lanes_of(struct device_tracks *k, const struct device_memory *m)
{
	return is_object(m) ? &k->objects : &k->allocations;
}

static u64 lane_take(struct perfetto *w, struct device_tracks *k, const struct device_memory *m)
{
	struct free_lanes *l = lanes_of(k, m);

	if (l->count)
		return l->track[--l->count];
	if (l->made++ >= LIVE_MAX)
		return 0;
	return is_object(m) ? track_new(w, "Objects", k->track, RANK_OBJECTS, 0) : track_new(w, "Allocations", k->track, RANK_ALLOCATIONS, 0);
}

static void lane_give(struct free_lanes *l, u64 track)
{
	if (l->count == l->room) {
		u32 room = l->room * 2 + 8;
		u64 *list = realloc(l->track, room * sizeof(*list));

		if (!list)
			return;
		l->track = list;
		l->room = room;
	}
	l->track[l->count++] = track;
}

void memory_release(struct device_tracks *k)
{
	free(k->allocations.track);
	free(k->objects.track);
}

static bool is_too_small(const struct perfetto *w, const struct device_tracks *k, const struct device_memory *m)
{
	const struct free_lanes *l = &k->allocations;

	return device_is_library(m->device) && m->bytes < w->session->large && !l->count && l->made >= LIVE_SMALL;
}

/* ---- slices ------------------------------------------------------------------------ */

void memory_born(struct perfetto *w, struct process *p, struct device_memory *m)
{
	struct process_devices *of = devices_of(w, p);
	struct device_tracks *k = of ? device_tracks(w, of, m->device) : NULL;
	struct slice s;

	if (!k || is_too_small(w, k, m))
		return;
	m->track = ++of->memories <= MEMORIES_MAX ? lane_take(w, k, m) : 0;
	if (!m->track) {
		w->session->losses.spans++;
		return;
	}
	s = slice_begin(w, of, ns_of(w, m->born), m->track, is_object(m) ? "object" : "allocation",
			arg_text_once(&of->keys, m->what, strlen(m->what)));
	arg_number(of->stacks, s.e, "size", ARG_UINT, m->bytes ? m->bytes : m->length);
	arg_number(of->stacks, s.e, "id", ARG_UINT, m->id);
	if (!m->bytes)
		arg_number(of->stacks, s.e, "counted", ARG_BOOL, 0);
	if (m->parent) {
		arg_number(of->stacks, s.e, "inside", ARG_UINT, m->parent);
		arg_number(of->stacks, s.e, "offset", ARG_UINT, m->offset);
	}
	if (m->device->heaps > 1)
		arg_number(of->stacks, s.e, "heap", ARG_UINT, m->heap);
	flags(&s, m);
	args_of_text(&of->keys, of->stacks, s.e, &m->args);
	if (m->node)
		enc_uint(s.e, EVENT_CALLSTACK_IID, stacks_callstack(of->stacks, m->node, NULL));
	slice_open(&s);
}

/* "weights at 0 (4096 bytes), buffer at 4096 (...)" */
static void bound(struct slice *s, const struct device_memory *m)
{
	char text[LIST_TEXT];
	size_t used = 0;

	arg_number(s->of->stacks, s->e, "objects", ARG_UINT, m->bound_count);
	for (u32 i = 0; i < m->bounds && used < sizeof(text) - 1; i++) {
		const struct bound *b = &m->bound[i];

		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%.100s at %llu (%llu bytes)", i ? ", " : "",
					 b->label ? b->label : b->what, (unsigned long long)b->offset, (unsigned long long)b->length);
	}
	if (m->bounds)
		arg_string(s->of->stacks, s->e, "bound", text);
}

/* "matmul at 0 (4096 bytes), vkCmdCopyBuffer at 8192 (...)", the largest first; the arguments beside it tell of all. */
static void used(struct slice *s, const struct used_ranges *u)
{
	char text[LIST_TEXT];
	size_t used = 0;
	u32 i;

	arg_number(s->of->stacks, s->e, "used_bytes", ARG_UINT, u->bytes);
	arg_number(s->of->stacks, s->e, "used_ranges", ARG_UINT, u->count);
	if (u->more)
		arg_number(s->of->stacks, s->e, "used_left_out", ARG_UINT, u->more);
	for (i = 0; i < u->count && i < LIST_RANGES && used < sizeof(text) - 1; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%.100s at %llu (%llu bytes)", i ? ", " : "",
					 u->at[i].name ? u->at[i].name : "unknown", (unsigned long long)u->at[i].offset,
					 (unsigned long long)u->at[i].length);
	if (i < u->count && used < sizeof(text) - 1)
		snprintf(text + used, sizeof(text) - used, ", and %u more", u->count - i);
	if (u->count)
		arg_string(s->of->stacks, s->e, "used", text);
}

void memory_died(struct perfetto *w, struct process *p, struct device_memory *m)
{
	struct process_devices *of = m->track ? devices_of(w, p) : NULL;
	struct device_tracks *k = of ? device_tracks(w, of, m->device) : NULL;
	struct slice s;

	if (!k)
		return;
	s = slice_end(w, of, ns_of(w, m->died ? m->died : process_end(w->session, p)), m->track);
	if (m->label)
		arg_string(of->stacks, s.e, "name", m->label);
	if (m->bound_count)
		bound(&s, m);
	if (m->used.known)
		used(&s, &m->used);
	if (!m->died)
		arg_number(of->stacks, s.e, "never_freed", ARG_BOOL, 1);
	slice_open(&s);
	lane_give(lanes_of(k, m), m->track);
	m->track = 0;
}

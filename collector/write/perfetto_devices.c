/*
 * perfetto_devices.c - the tracks of devices and their counters; how a slice on them is begun and ended.
 */
#include "perfetto_devices.h"

#include <stdio.h>
#include <uthash.h>

enum { ORDER_EXPLICIT = 3, RANK_MEMORY = 0, RANK_HEAP = 1, COUNTERS_MAX = 1024 };

static const char *const group_name[] = { "Devices", "Libraries" };

struct counter_track {
	const char *name;               /* its place is the key: equal names are one text */
	u64 track;
	UT_hash_handle hh;
};

/* ---- tracks ------------------------------------------------------------------------ */

static bool room_for_process(struct perfetto *w, u32 index)
{
	u32 room = (index + 8) * 2;

	if (index < w->devices_room)
		return true;
	struct process_devices **list = realloc(w->devices, room * sizeof(*list));

	if (!list)
		return false;
	memset(list + w->devices_room, 0, (room - w->devices_room) * sizeof(*list));
	w->devices = list;
	w->devices_room = room;
	return true;
}

struct process_devices *devices_of(struct perfetto *w, const struct process *p)
{
	struct process_devices *of;

	if (!room_for_process(w, p->index))
		return NULL;
	if (w->devices[p->index])
		return w->devices[p->index];
	of = calloc(1, sizeof(*of));
	if (!of)
		return NULL;
	of->process = p;
	of->stacks = stacks_new(NULL, p);
	if (!of->stacks) {
		free(of);
		return NULL;
	}
	of->sequence = w->next_sequence++;
	return w->devices[p->index] = of;
}

static bool room_for_device(struct process_devices *of, u32 index)
{
	u32 devices = (index + 1) * 2;

	if (index < of->devices)
		return true;
	struct device_tracks *list = realloc(of->device, devices * sizeof(*list));

	if (!list)
		return false;
	memset(list + of->devices, 0, (devices - of->devices) * sizeof(*list));
	of->device = list;
	of->devices = devices;
	return true;
}

struct device_tracks *device_tracks(struct perfetto *w, struct process_devices *of, const struct device *d)
{
	struct process_tracks *process = tracks_of(w, of->process);
	struct device_tracks *k;

	if (!process || !process->process || !room_for_device(of, d->index))
		return NULL;
	k = &of->device[d->index];
	if (k->track)
		return k;
	u64 *group = &of->group[device_is_library(d)];

	if (!*group)
		*group = track_new(w, group_name[device_is_library(d)], process->process, -1, ORDER_EXPLICIT);
	k->track = track_new(w, d->title, *group, (int)d->index, ORDER_EXPLICIT);
	return k;
}

/* ---- counters ---------------------------------------------------------------------- */

static u64 memory_track(struct perfetto *w, struct device_tracks *k, int heap)
{
	u64 *track = heap < 0 ? &k->memory : &k->heap[heap];
	char name[64] = "Memory";

	if (*track)
		return *track;
	if (heap >= 0)
		snprintf(name, sizeof(name), "Memory, heap %d", heap);
	*track = counter_bytes(w, name, "device memory", "live bytes of allocations", k->track, heap < 0 ? RANK_MEMORY : RANK_HEAP + heap);
	return *track;
}

void devices_point(struct perfetto *w, struct process *p, struct device *d, int heap, u64 ticks, i64 bytes)
{
	struct process_devices *of = devices_of(w, p);
	struct device_tracks *k = of ? device_tracks(w, of, d) : NULL;

	if (k && heap < HEAPS_MAX)
		counter_point(w, memory_track(w, k, heap), ns_of(w, ticks), bytes);
}

/* 0: there are too many. */
static u64 counter_track(struct perfetto *w, struct process_devices *of, const struct counter_point *c)
{
	struct process_tracks *process = tracks_of(w, of->process);
	struct counter_track *k;

	HASH_FIND_PTR(of->counter, &c->name, k);
	if (k)
		return k->track;
	if (!process || !process->process || HASH_COUNT(of->counter) >= COUNTERS_MAX)
		return 0;
	k = calloc(1, sizeof(*k));
	if (!k)
		return 0;
	if (!of->counters)
		of->counters = track_new(w, "Counters", process->process, -1, 0);
	k->name = c->name;
	k->track = counter_unit(w, c->name, c->unit, of->counters, -1);
	HASH_ADD_PTR(of->counter, name, k);
	return k->track;
}

void devices_counter(struct perfetto *w, struct process *p, const struct counter_point *c)
{
	struct process_devices *of = devices_of(w, p);
	u64 track;

	if (!of || !slice_counts(w, of))
		return;
	track = counter_track(w, of, c);
	if (track)
		counter_double(w, track, ns_of(w, c->ticks), c->value);
	else
		w->session->losses.works++;
}

/* ---- slices ------------------------------------------------------------------------ */

static struct slice packet(struct perfetto *w, struct process_devices *of, u64 ns, u64 track, u32 kind)
{
	struct slice s = { .w = w, .of = of, .e = packet_open(w, of->sequence, of->begun ? 2 : 1, ns ? ns : 1) };

	of->begun = true;
	s.mark = enc_open(s.e, PACKET_TRACK_EVENT);
	enc_uint(s.e, EVENT_KIND, kind);
	enc_uint(s.e, EVENT_TRACK, track);
	return s;
}

static void name_slice(struct slice *s, const char *category, const char *name)
{
	enc_uint(s->e, EVENT_CATEGORY_IID, stacks_category(s->of->stacks, category));
	enc_uint(s->e, EVENT_NAME_IID, stacks_event_name(s->of->stacks, name));
}

bool slice_counts(struct perfetto *w, struct process_devices *of)
{
	if (++of->slices <= SLICES_MAX)
		return true;
	w->session->losses.works++;
	return false;
}

struct slice slice_begin(struct perfetto *w, struct process_devices *of, u64 ns, u64 track, const char *category, const char *name)
{
	struct slice s = packet(w, of, ns, track, KIND_BEGIN);

	name_slice(&s, category, name);
	return s;
}

void slice_open(struct slice *s)
{
	enc_close(s->e, s->mark);
	stacks_write(s->of->stacks, s->e);
	packet_close(s->w);
}

struct slice slice_moment(struct perfetto *w, struct process_devices *of, u64 ns, u64 track, const char *category, const char *name)
{
	struct slice s = packet(w, of, ns, track, KIND_INSTANT);

	name_slice(&s, category, name);
	return s;
}

struct slice slice_end(struct perfetto *w, struct process_devices *of, u64 ns, u64 track)
{
	return packet(w, of, ns, track, KIND_END);
}

/* ---- the end ----------------------------------------------------------------------- */

void devices_finish(struct perfetto *w, struct symbols *y)
{
	for (u32 i = 0; i < w->devices_room; i++) {
		if (!w->devices[i])
			continue;
		works_finish(w, w->devices[i]);
		stacks_name(w->devices[i]->stacks, w, y);
	}
}

static void release(struct process_devices *of)
{
	struct counter_track *c, *next_counter;
	struct queue_tracks *q, *next;

	for (q = of->queues; q; q = next) {
		next = q->next;
		free(q->name);
		free(q);
	}
	for (u32 i = 0; i < of->devices; i++)
		memory_release(&of->device[i]);
	HASH_ITER(hh, of->counter, c, next_counter) {
		HASH_DEL(of->counter, c);
		free(c);
	}
	arg_keys_free(&of->keys);
	stacks_free(of->stacks);
	free(of->device);
	free(of);
}

void devices_free(struct perfetto *w)
{
	for (u32 i = 0; i < w->devices_room; i++)
		if (w->devices[i])
			release(w->devices[i]);
	free(w->devices);
}

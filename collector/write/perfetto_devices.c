/*
 * perfetto_devices.c - the tracks of devices and their counters; how a slice on them is begun and ended.
 */
#include "perfetto_devices.h"

#include <stdio.h>

enum { ORDER_EXPLICIT = 3, RANK_MEMORY = 0, RANK_HEAP = 1 };

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
	if (!of->group)
		of->group = track_new(w, "Devices", process->process, -1, ORDER_EXPLICIT);
	k->track = track_new(w, d->title, of->group, (int)d->index, ORDER_EXPLICIT);
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

struct slice slice_begin(struct perfetto *w, struct process_devices *of, u64 ns, u64 track, const char *category, const char *name)
{
	struct slice s = packet(w, of, ns, track, KIND_BEGIN);

	enc_uint(s.e, EVENT_CATEGORY_IID, stacks_category(of->stacks, category));
	enc_uint(s.e, EVENT_NAME_IID, stacks_event_name(of->stacks, name));
	return s;
}

void slice_open(struct slice *s)
{
	enc_close(s->e, s->mark);
	stacks_write(s->of->stacks, s->e);
	packet_close(s->w);
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
	struct queue_tracks *q, *next;

	for (q = of->queues; q; q = next) {
		next = q->next;
		free(q->name);
		free(q);
	}
	for (u32 i = 0; i < of->devices; i++)
		memory_release(&of->device[i]);
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

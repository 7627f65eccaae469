/*
 * perfetto_tracks.c - processes, threads and their counters.
 *
 *   process
 *     memory     (group)   total, malloc, mmap, file mappings, shared mappings
 *     activity   (group)   CPU, page faults
 *     thread ...
 *   total (all processes)
 *
 * The groups are there because the trace processor keeps an order of tracks only below a track of one's own.
 * An exec does not make another process: the new image goes on on the same tracks, from zero, and the process gets its
 * name. RSS goes through ProcessStats, which every Perfetto view knows as mem.rss.
 */
#include "perfetto.h"

#include <signal.h>
#include <stdio.h>

enum { ORDER_EXPLICIT = 3, UNIT_BYTES = 3 };
enum { STATS_PROCESS = 1, STATS_PID = 1, STATS_RSS = 3, STATS_ANON = 4, STATS_FILE = 5, STATS_SHMEM = 6 };
enum { SAMPLES_PER_GAP = 4096 };

static const struct {
	const char *name, *share, *meaning;
} curve_track[CURVES] = {
	[CURVE_TOTAL]  = { "total", "heap", "malloc and accessible anonymous mappings" },
	[CURVE_MALLOC] = { "malloc", "heap", "requested bytes of live blocks" },
	[CURVE_MMAP]   = { "mmap", "heap", "accessible anonymous mappings made by the program" },
	[CURVE_FILES]  = { "file mappings", NULL, "mapped files, for instance model weights" },
	[CURVE_SHARED] = { "shared mappings", NULL, "shared memory: memfd, shm, anonymous shared" },
};

static const int curve_rank[CURVES] = {
	[CURVE_TOTAL] = 0, [CURVE_MALLOC] = 1, [CURVE_MMAP] = 2, [CURVE_FILES] = 3, [CURVE_SHARED] = 4,
};

/* An image that took another one's place by exec goes on on its tracks. */
struct process_tracks *tracks_of(struct perfetto *w, const struct process *p)
{
	if (p->index >= w->tracks_room) {
		u32 room = (p->index + 8) * 2;
		struct process_tracks *tracks = realloc(w->tracks, room * sizeof(*tracks));

		if (!tracks)
			return NULL;
		memset(tracks + w->tracks_room, 0, (room - w->tracks_room) * sizeof(*tracks));
		w->tracks = tracks;
		w->tracks_room = room;
	}
	struct process_tracks *k = &w->tracks[p->index];

	return k->goes_on ? &w->tracks[k->goes_on - 1] : k;
}

/* ---- descriptors ------------------------------------------------------------------- */

/* A number may be used again for another process; the time of the packet says which. */
static void describe(struct perfetto *w, PerfettoMin__TrackDescriptor *track, u64 ns)
{
	PerfettoMin__TracePacket packet = PERFETTO_MIN__TRACE_PACKET__INIT;

	packet.has_timestamp = ns != 0;
	packet.timestamp = ns;
	packet.track_descriptor = track;
	packet_rare(w, &packet);
}

static u64 describe_named(struct perfetto *w, PerfettoMin__TrackDescriptor *track, const char *name, u64 parent, int rank)
{
	char *copy = utf8_copy(name);           /* a lane may be named after a file */

	track->has_uuid = 1;
	track->uuid = w->next_uuid++;
	track->name = copy;
	track->has_parent_uuid = parent != 0;
	track->parent_uuid = parent;
	track->has_sibling_order_rank = rank >= 0;
	track->sibling_order_rank = rank;
	describe(w, track, 0);
	free(copy);
	return track->uuid;
}

u64 track_new(struct perfetto *w, const char *name, u64 parent, int rank, int child_ordering)
{
	PerfettoMin__TrackDescriptor track = PERFETTO_MIN__TRACK_DESCRIPTOR__INIT;

	track.has_child_ordering = child_ordering != 0;
	track.child_ordering = child_ordering;
	return describe_named(w, &track, name, parent, rank);
}

u64 counter_bytes(struct perfetto *w, const char *name, const char *share, const char *meaning, u64 parent, int rank)
{
	PerfettoMin__TrackDescriptor track = PERFETTO_MIN__TRACK_DESCRIPTOR__INIT;
	PerfettoMin__TrackDescriptor__Counter counter = PERFETTO_MIN__TRACK_DESCRIPTOR__COUNTER__INIT;

	counter.has_unit = 1;
	counter.unit = UNIT_BYTES;
	counter.y_axis_share_key = (char *)share;
	track.counter = &counter;
	track.description = (char *)meaning;
	return describe_named(w, &track, name, parent, rank);
}

u64 counter_unit(struct perfetto *w, const char *name, const char *unit, u64 parent, int rank)
{
	PerfettoMin__TrackDescriptor track = PERFETTO_MIN__TRACK_DESCRIPTOR__INIT;
	PerfettoMin__TrackDescriptor__Counter counter = PERFETTO_MIN__TRACK_DESCRIPTOR__COUNTER__INIT;

	counter.unit_name = (char *)unit;
	track.counter = &counter;
	return describe_named(w, &track, name, parent, rank);
}

static void describe_process(struct perfetto *w, const struct process_tracks *k, const struct process *p, u64 ns,
			     const char *label)
{
	PerfettoMin__TrackDescriptor track = PERFETTO_MIN__TRACK_DESCRIPTOR__INIT;
	PerfettoMin__TrackDescriptor__Process process = PERFETTO_MIN__TRACK_DESCRIPTOR__PROCESS__INIT;
	char *name = utf8_copy(p->name ? p->name : ""), *label_copy = label ? utf8_copy(label) : NULL;

	process.has_pid = process.has_start_timestamp_ns = 1;
	process.pid = p->pid;
	process.process_name = name;
	process.start_timestamp_ns = ns_of(w, k->born);
	process.n_process_labels = label_copy != NULL;
	process.process_labels = &label_copy;
	track.has_uuid = 1;
	track.uuid = k->process;
	track.process = &process;
	describe(w, &track, ns);
	free(name);
	free(label_copy);
}

/* ---- counters ---------------------------------------------------------------------- */

static struct enc *counter_open(struct perfetto *w, u64 track, u64 ns, size_t *mark)
{
	struct enc *e = packet_open(w, SEQ_COUNTERS, 0, ns);

	*mark = enc_open(e, PACKET_TRACK_EVENT);
	enc_uint(e, EVENT_KIND, KIND_COUNTER);
	enc_uint(e, EVENT_TRACK, track);
	return e;
}

static void counter_close(struct perfetto *w, struct enc *e, size_t mark)
{
	enc_close(e, mark);
	packet_close(w);
}

void counter_point(struct perfetto *w, u64 track, u64 ns, i64 value)
{
	size_t mark;
	struct enc *e = counter_open(w, track, ns, &mark);

	enc_uint(e, EVENT_COUNTER, (u64)value);
	counter_close(w, e, mark);
}

void counter_double(struct perfetto *w, u64 track, u64 ns, double value)
{
	size_t mark;
	struct enc *e = counter_open(w, track, ns, &mark);

	enc_double(e, EVENT_COUNTER_DOUBLE, value);
	counter_close(w, e, mark);
}

/* ---- processes and threads --------------------------------------------------------- */

/* The arguments as protobuf-c wants them; list and text in one block. */
static char **argument_list(const char *command, u32 bytes, size_t *count)
{
	char **list = malloc((bytes + 1) * sizeof(char *) + bytes + 1), *text = (char *)(list + bytes + 1);

	*count = 0;
	if (!list || !bytes)
		return list;
	memcpy(text, command, bytes);
	text[bytes] = 0;
	for (u32 at = 0; at < bytes; at += strlen(text + at) + 1) {
		utf8_fix(text + at);
		list[(*count)++] = text + at;
	}
	return list;
}

/* A parent that is not recorded would become a process without a name. */
static bool in_session(const struct session *s, u32 pid)
{
	for (u32 i = 0; i < s->processes; i++)
		if (s->process[i]->pid == pid)
			return true;
	return false;
}

static void process_tree(struct perfetto *w, struct process_tracks *k, const struct process *p)
{
	PerfettoMin__ProcessTree__Process process = PERFETTO_MIN__PROCESS_TREE__PROCESS__INIT, *list[] = { &process };
	PerfettoMin__ProcessTree tree = PERFETTO_MIN__PROCESS_TREE__INIT;
	PerfettoMin__TracePacket packet = PERFETTO_MIN__TRACE_PACKET__INIT;

	process.has_pid = process.has_uid = 1;
	process.has_ppid = in_session(w->session, p->ppid);
	process.pid = p->pid;
	process.ppid = p->ppid;
	process.uid = p->uid;
	process.cmdline = argument_list(p->command, p->command ? p->command_bytes : 0, &process.n_cmdline);
	tree.processes = list;
	tree.n_processes = 1;
	packet.process_tree = &tree;
	packet.has_timestamp = 1;
	packet.timestamp = ns_of(w, p->born);
	packet_rare(w, &packet);
	free(process.cmdline);
	k->command_bytes = p->command_bytes;
}

static u64 curve_of(struct perfetto *w, struct process_tracks *k, enum curve_kind c)
{
	if (!k->curve[c])
		k->curve[c] = counter_bytes(w, curve_track[c].name, curve_track[c].share, curve_track[c].meaning,
					    k->memory, curve_rank[c]);
	return k->curve[c];
}

/* The image of the same process before this one, or NULL. A number may also be used again for a new process: that one
 * begins by fork, or its predecessor is known to have ended. */
static struct process *image_before(const struct session *s, const struct process *p)
{
	for (u32 i = p->index; i-- > 0 && !p->forked;) {
		struct process *before = s->process[i];

		if (before->pid == p->pid)
			return !before->ended || before->died == DIED_EXEC ? before : NULL;
	}
	return NULL;
}

static void new_process(struct perfetto *w, struct process_tracks *k, const struct process *p)
{
	k->process = w->next_uuid++;
	k->born = p->born;
	describe_process(w, k, p, ns_of(w, p->born), NULL);
	k->memory = track_new(w, "memory", k->process, -1, ORDER_EXPLICIT);
	curve_of(w, k, CURVE_TOTAL);
	curve_of(w, k, CURVE_MALLOC);
}

static void new_image(struct perfetto *w, const struct process *p)
{
	const struct process *before = image_before(w->session, p);
	struct process_tracks *k = before ? tracks_of(w, before) : NULL;

	if (!k || !k->process) {
		new_process(w, &w->tracks[p->index], p);
		return;
	}
	w->tracks[p->index].goes_on = k - w->tracks + 1;
	for (u32 c = 0; c < CURVES; c++)        /* exec lets go of everything */
		if (k->curve[c])
			counter_point(w, k->curve[c], ns_of(w, p->born), 0);
}

/* May be called again when more is known. */
void tracks_process(struct perfetto *w, struct process *p)
{
	if (!tracks_of(w, p))
		return;
	struct process_tracks *own = &w->tracks[p->index];
	bool first = !own->process && !own->goes_on;

	if (first)
		new_image(w, p);
	if (first || own->command_bytes != p->command_bytes)
		process_tree(w, own, p);
	p->track = tracks_of(w, p)->process;
}

/* The thread that an exec leaves over keeps its track as well. */
static u64 thread_before(struct perfetto *w, const struct process *p, const struct thread *t)
{
	const struct process *before = w->tracks[p->index].goes_on ? image_before(w->session, p) : NULL;

	for (u32 i = 0; before && i < before->threads; i++)
		if (before->thread[i].tid == t->tid)
			return before->thread[i].track;
	return 0;
}

void tracks_thread(struct perfetto *w, struct process *p, struct thread *t)
{
	PerfettoMin__TrackDescriptor track = PERFETTO_MIN__TRACK_DESCRIPTOR__INIT;
	PerfettoMin__TrackDescriptor__Thread thread = PERFETTO_MIN__TRACK_DESCRIPTOR__THREAD__INIT;
	char *name = utf8_copy(t->name ? t->name : "");

	if (!t->track && p->index < w->tracks_room)
		t->track = thread_before(w, p, t);
	if (!t->track)
		t->track = w->next_uuid++;
	thread.has_pid = thread.has_tid = 1;
	thread.pid = p->pid;
	thread.tid = t->tid;
	thread.thread_name = name && *name ? name : NULL;
	track.has_uuid = 1;
	track.uuid = t->track;
	track.thread = &thread;
	describe(w, &track, ns_of(w, t->start > p->born ? t->start : p->born));
	free(name);
}

/* ---- how it ended ------------------------------------------------------------------ */

static const struct process *image_after(const struct session *s, const struct process *p)
{
	for (u32 i = p->index + 1; i < s->processes; i++)
		if (s->process[i]->pid == p->pid)
			return s->process[i];
	return NULL;
}

/* An exec is noticed a little after the next image has begun; on the trace they must not overlap. */
u64 process_end(const struct session *s, const struct process *p)
{
	const struct process *after = image_after(s, p);
	u64 end = p->ended ? p->ended : s->end;

	return after && after->born < end ? after->born : end;
}

static void ending(const struct process *p, char *text, size_t size)
{
	const char *signal = p->died == DIED_SIGNAL ? sigabbrev_np(p->code) : NULL;

	if (p->died == DIED_EXITED)
		snprintf(text, size, "exit status %d", p->code);
	else if (p->died == DIED_SIGNAL)
		snprintf(text, size, "killed by signal %d%s%s", p->code, signal ? " SIG" : "", signal ? signal : "");
	else if (p->died == DIED_EXEC)
		snprintf(text, size, "exec of another program");
	else if (p->died == DIED_RUNNING)
		snprintf(text, size, "still running at the end of the recording");
	else
		snprintf(text, size, "ended, nobody knows how");
}

const char *process_ending(const struct process *p, char *text, size_t size)
{
	ending(p, text, size);

	size_t len = strlen(text);

	if (p->not_followed)
		snprintf(text + len, size - len, ", became %s, which was not followed", p->not_followed);
	else if (p->silent)
		snprintf(text + len, size - len, ", nothing was recorded");
	return text;
}

/* The label stands beside the name in the user interface. */
void tracks_end(struct perfetto *w, struct process *p)
{
	const struct process *after = image_after(w->session, p);
	char text[4096];

	tracks_process(w, p);
	if (p->track && !(after && image_before(w->session, after) == p))
		describe_process(w, tracks_of(w, p), p, ns_of(w, process_end(w->session, p)) - 1,
				 process_ending(p, text, sizeof(text)));
}

/* ---- points ------------------------------------------------------------------------ */

void tracks_point(struct perfetto *w, struct process *p, enum curve_kind c, u64 ticks, i64 bytes)
{
	if (!p && c == CURVE_WITH_DEVICES) {
		if (!w->all_total)
			w->all_total = counter_bytes(w, "total with devices (all processes)", NULL,
						     "malloc, anonymous mappings and the memory of devices that have their own", 0, -1);
		counter_point(w, w->all_total, ns_of(w, ticks), bytes);
		return;
	}
	if (!p) {
		if (!w->tree_total)
			w->tree_total = counter_bytes(w, "total (all processes)", NULL, curve_track[CURVE_TOTAL].meaning, 0, -1);
		counter_point(w, w->tree_total, ns_of(w, ticks), bytes);
		return;
	}

	struct process_tracks *k = tracks_of(w, p);

	if (k && k->process && (bytes || k->curve[c]))
		counter_point(w, curve_of(w, k, c), ns_of(w, ticks), bytes);
}

/* ---- samples ----------------------------------------------------------------------- */

static void process_stats(struct perfetto *w, u64 ns, const struct rec_sample *s)
{
	struct enc *e = packet_open(w, SEQ_HEAD, 0, ns);
	size_t stats = enc_open(e, PACKET_PROCESS_STATS), process = enc_open(e, STATS_PROCESS);

	enc_uint(e, STATS_PID, s->pid);
	enc_uint(e, STATS_RSS, sample_rss(s) >> 10);
	enc_uint(e, STATS_ANON, s->rss_anon >> 10);
	enc_uint(e, STATS_FILE, s->rss_file >> 10);
	enc_uint(e, STATS_SHMEM, s->rss_shmem >> 10);
	enc_close(e, process);
	enc_close(e, stats);
	packet_close(w);
}

/* Faults per second; a track appears with the first fault. */
static void fault_rate(struct perfetto *w, struct process_tracks *k, u64 *track, const char *name, int rank,
		       u64 count, u64 ns, u64 since_ns)
{
	if (!count && !*track)
		return;
	if (!*track)
		*track = counter_unit(w, name, "faults/s", k->activity, rank);
	counter_point(w, *track, ns, (i64)((double)count * 1e9 / since_ns + 0.5));
}

/* The kernel's counters begin anew where a pid does; what looks like a step back is no rate. */
static u64 grown(u64 now, u64 before)
{
	return now > before ? now - before : 0;
}

static void rates(struct perfetto *w, struct process_tracks *k, u64 ns, u64 since_ns, const struct rec_sample *now)
{
	const struct rec_sample *before = &k->sampled;

	if (!k->activity) {
		k->activity = track_new(w, "activity", k->process, -1, ORDER_EXPLICIT);
		k->cpu = counter_unit(w, "CPU", "%", k->activity, 0);
	}
	counter_double(w, k->cpu, ns, (double)grown(now->cpu, before->cpu) * 100 / since_ns);
	fault_rate(w, k, &k->minor, "minor page faults", 1, grown(now->minor, before->minor), ns, since_ns);
	fault_rate(w, k, &k->major, "major page faults", 2, grown(now->major, before->major), ns, since_ns);
}

/* Hours of samples every 20 ms would outgrow all else: the distance doubles after every SAMPLES_PER_GAP of them,
 * and the highest RSS in between is kept. */
void tracks_sample(struct perfetto *w, struct process *p, u64 ticks, const struct rec_sample *now)
{
	struct process_tracks *k = tracks_of(w, p);

	if (!k || !k->process)
		return;
	u64 ns = ns_of(w, ticks), before = k->samples ? ns_of(w, k->sampled_ticks) : ns;

	if (k->samples && ns < before + k->sample_gap) {
		if (!k->high_ticks || sample_rss(now) > sample_rss(&k->high)) {
			k->high = *now;
			k->high_ticks = ticks;
		}
		return;
	}
	if (k->high_ticks && sample_rss(&k->high) > sample_rss(now))
		process_stats(w, ns_of(w, k->high_ticks), &k->high);
	process_stats(w, ns, now);
	if (ns > before)        /* the first sample may hold what the process did before an exec */
		rates(w, k, ns, ns - before, now);
	k->sampled = *now;
	k->sampled_ticks = ticks;
	k->high_ticks = 0;
	if (++k->samples % SAMPLES_PER_GAP == 0)
		k->sample_gap = (ns - before) * 2;
}

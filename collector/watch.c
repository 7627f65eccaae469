/*
 * watch.c - process images: what they have not sent, how far each of their threads has come, how they end.
 *
 * How far has a thread come? If it sent something lately, that far. If not, its slot says whether it is in
 * the middle of a record; if it is not and all that is in its ring has been taken, then whatever it records next
 * is younger than the moment before we looked. So a thread that sleeps for an hour holds nothing back. A thread that
 * we do not know yet has recorded nothing: its first chunk is sent before it does.
 */
#include "recording.h"
#include "read/tick.h"
#include "util/array.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	PATIENCE_MS = 1000,
	PATIENCE_LOOKS = 20,
	LAG_MS = 15,                    /* a thread that was silent for so long and holds the others back is looked at */
	STORE_US = 200,                 /* a stamp may be taken that long before `busy` is seen */
	LOOK_AHEAD = 3,                 /* slots that may lie unused between used ones, while all goes well */
	WRITES_MS = 10,                 /* a thread that began a chunk so lately is writing */
};

/* ---- rings -------------------------------------------------------------------------------- */

/* There is nothing new in it: a thread that sleeps would fill the raw file with the chunk it was writing. */
static bool is_taken(const struct stream *s, const struct chunk_head *h)
{
	return s && s->any && h->seq == s->seen && USED_UP(h->used) == s->taken.up;    /* fewer: it is being emptied for another */
}

static bool sent_unread(const struct stream *s, const struct slot_head *h)
{
	return h->sent && (!s || !s->any || h->sent > s->seen + !s->peeked);
}

/*
 * What the stream's thread sent waits among what was put aside. That is not read for its sake: it may be many MiB, and they come turn by
 * turn. What has not come when all that was sent by then has been read was dropped.
 */
static bool is_aside(struct recording *r, struct watch *w, struct stream *s)
{
	struct slot_head h;

	if (!r->aside.used || !ring_slot(&w->ring, s->key.slot, &h) || !sent_unread(s, &h))
		return false;
	if (s->sent != h.sent)
		s->sent_at = recording_ticks(r);
	s->sent = h.sent;
	return aside_after(r) <= s->sent_at;
}

/* Takes a chunk out of a ring. False: it is not there any more. */
static bool take_chunk(struct recording *r, struct watch *w, const struct chunk_head *head)
{
	union chunk *c = merge_chunk(r->feed.merge);

	if (!ring_chunk(&w->ring, head, c)) {
		merge_unread(r->feed.merge, c);
		return false;
	}
	intake_chunk(r, c);
	return true;
}

/* Takes what a slot has not sent. True: nothing is missing and its thread is not in the middle of a record. */
static bool peek(struct recording *r, struct watch *w, u32 slot)
{
	struct stream *s = merge_find(r->feed.merge, w->pid, w->born, slot);
	struct slot_head before, after;
	struct chunk_head head;
	bool news = false;
	u64 seq;

	if (!ring_slot(&w->ring, slot, &before) || !before.tid)
		return true;            /* nothing is there, or nothing can be known: what comes late will be counted */
	if (sent_unread(s, &before) && !r->aside.used) {
		intake_drain_all(r);
		s = merge_find(r->feed.merge, w->pid, w->born, slot);
	}
	seq = s && s->any && s->seen > before.sent ? s->seen : before.sent;
	if (before.seq - seq >= RING_CHUNKS)
		return false;
	for (; seq <= before.seq; seq++) {
		if (!ring_head(&w->ring, slot, seq, &head))
			return false;
		if (is_taken(s, &head))
			continue;
		if (!take_chunk(r, w, &head))
			return false;
		s = merge_find(r->feed.merge, w->pid, w->born, slot);
		if (s)
			s->peeked = true;
		news = true;
	}
	if (!news)
		return !before.busy;
	return ring_slot(&w->ring, slot, &after) && !before.busy && after.seq == before.seq && after.sent == before.sent;
}

static u64 stream_bound(const struct stream *s)
{
	return s->bound > s->last ? s->bound : s->last;
}

static struct watch gone = { .over = true };    /* the watch of every image that is over */

static struct watch *watch_of(const struct stream *s)
{
	struct watch *w = s->image->feeder;

	return w && !w->over ? w : NULL;
}

/*
 * A thread that was stopped or ended inside a record does not hold the others back for ever. What counts is how often we
 * have found it so, besides the time: if we were stopped ourselves, time has passed in which nobody could be heard.
 */
static void look_at(struct recording *r, struct watch *w, struct stream *s, u64 now)
{
	u64 at_rest = now - STORE_US * r->ticks_per_ms / 1000;

	if (is_aside(r, w, s))
		return;
	if (peek(r, w, s->key.slot)) {
		s->stuck_looks = 0;
	} else {
		if (!s->stuck_looks++ || s->stuck_last != s->last) {
			s->stuck_looks = 1;
			s->stuck_since = now;
			s->stuck_last = s->last;
		}
		if (s->stuck_looks < PATIENCE_LOOKS || now - s->stuck_since < PATIENCE_MS * r->ticks_per_ms)
			return;
		at_rest = s->stuck_since;
	}
	if (s->bound < at_rest)
		s->bound = at_rest;
}

u32 watch_writers(struct recording *r, u64 now)
{
	struct slot_head h;
	struct stream *s;
	struct watch *w;
	u32 n = 0;

	for (s = merge_streams(r->feed.merge); s && n < r->cpus; s = s->hh.next) {
		w = watch_of(s);
		if (!w || !ring_slot(&w->ring, s->key.slot, &h))
			continue;
		if (h.seq != s->begun)
			s->begun_at = now;
		s->begun = h.seq;
		n += now - s->begun_at < WRITES_MS * r->ticks_per_ms;
	}
	return n;
}

/* No record to come is older; `now` is a moment before the pipe was last drained. */
u64 watch_bound(struct recording *r, u64 now)
{
	u64 lag = LAG_MS * r->ticks_per_ms, bound = UINT64_MAX;
	struct stream *s;
	struct watch *w;

	for (s = merge_streams(r->feed.merge); s; s = s->hh.next) {
		w = watch_of(s);
		if (!w)
			continue;
		if (stream_bound(s) + lag < now)
			look_at(r, w, s, now);
		if (stream_bound(s) < bound)
			bound = stream_bound(s);
	}
	return bound;
}

/*
 * Slots that were ever taken. They are taken in order, but some may be passed over: as many as a segment has, if threads
 * were killed while they began or found no room.
 */
static u32 slots_of(struct watch *w, u32 look_ahead)
{
	struct slot_head head;
	u32 slots = 0, gap = 0;

	while (gap <= look_ahead) {
		if (ring_slot(&w->ring, slots + gap, &head) && head.tid) {
			slots += gap + 1;
			gap = 0;
		} else {
			gap++;
		}
	}
	return slots;
}

static u32 peek_all(struct recording *r, struct watch *w, u32 look_ahead)
{
	u32 i, slots = slots_of(w, look_ahead);

	for (i = 0; i < slots; i++)
		peek(r, w, i);
	return slots;
}

void watch_peek_all(struct recording *r, struct watch *w)
{
	peek_all(r, w, LOOK_AHEAD);
}

/* ---- births ------------------------------------------------------------------------------- */

struct watch *watch_of_pid(struct recording *r, u32 pid)
{
	struct watch *w;

	for (w = r->watch; w; w = w->next)
		if (w->pid == pid && !w->over)
			return w;
	return NULL;
}

static bool is_dead(const struct watch *w)
{
	siginfo_t info;

	if (w->pidfd < 0)
		return kill((pid_t)w->pid, 0) && errno == ESRCH;
	return w->dead || (syscall(SYS_pidfd_send_signal, w->pidfd, 0, NULL, 0) && errno == ESRCH) ||
	       (!waitid(P_PIDFD, (id_t)w->pidfd, &info, WEXITED | WNOWAIT | WNOHANG) && info.si_pid);
}

void watch_dead(struct recording *r, struct watch *w)
{
	if (!w->dead)
		w->dead_at = recording_ticks(r);
	w->dead = true;
}

static void watch_pid(struct recording *r, struct watch *w)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = w };

	w->pidfd = (int)syscall(SYS_pidfd_open, w->pid, 0);
	if (w->pidfd >= 0)
		epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, w->pidfd, &e);
	else if (errno == ESRCH)
		watch_dead(r, w);
}

static void recall_told(struct recording *r, struct watch *w)
{
	u32 i;

	for (i = 0; i < r->tolds; i++) {
		if (r->told[i].pid != w->pid || r->told[i].ticks < w->born)
			continue;
		w->told = true;
		w->how = r->told[i].how;
		w->code = r->told[i].code;
	}
}

/* It may be a short life: no rest for those who sample. */
static void first_sample(struct recording *r, struct watch *w)
{
	u64 soon = tick_monotonic_ns() + r->sample_ms * 1000000ull;
	struct rec_sample now;

	r->still_samples = 0;
	if (r->sample_due_ns > soon)
		r->sample_due_ns = soon;
	if (r->sample_ms && proc_sample(w->pid, &w->proc, &now))
		own_event(&r->own, recording_ticks(r), EVENT_sample, &now, sizeof(now), NULL, 0);
}

/*
 * An image with a known pid is that process after an exec, or a new process with an old number. The old one's end may drain
 * the pipe, where more of the new one is: so that is watched by then.
 */
void watch_image(struct recording *r, struct image *image)
{
	struct watch *old = watch_of_pid(r, image->pid), *w = new_zeroed(1, sizeof(*w));
	struct segment_head first;

	w->image = image;
	w->pid = image->pid;
	w->born = image->born;
	w->uid = geteuid();
	w->proc = NO_PROC_FILES;
	ring_init(&w->ring, r->dir, w->pid, w->born);
	ring_segment(&w->ring, 0, &first);      /* open from now on, even if somebody removes it */
	w->next = r->watch;
	r->watch = w;
	r->alive++;
	image->feeder = w;
	if (!r->main_pid)
		r->main_pid = w->pid;
	heard_forget(r, w->pid);
	watch_pid(r, w);
	if (old) {
		old->followed_at = w->born;
		watch_end(r, old, is_dead(old) ? DIED_UNKNOWN : DIED_EXEC, 0);
	}
	recall_told(r, w);
	first_sample(r, w);
}

/* ---- ends --------------------------------------------------------------------------------- */

static void say_loss(struct recording *r, const struct watch *w, const char *what, u64 count)
{
	if (count)
		OWN(&r->own, recording_ticks(r), loss, what, strlen(what), .pid = w->pid, .count = count);
}

static void take_slot_counts(struct recording *r, struct watch *w, u32 slots)
{
	struct slot_head sum = { 0 }, h;
	u32 i;

	for (i = 0; i < slots; i++) {
		struct stream *s = merge_find(r->feed.merge, w->pid, w->born, i);
		u64 said = s ? s->lost : 0;

		if (!ring_slot(&w->ring, i, &h))
			continue;
		sum.lost += h.lost > said ? h.lost - said : 0;
		sum.lost_stacks += h.lost_stacks;
		sum.hard_stacks += h.hard_stacks;
		sum.stack_misses += h.stack_misses;
		sum.waited_ticks += h.waited_ticks;
		sum.probe_enters += h.probe_enters;
		sum.probe_exits += h.probe_exits;
		sum.probe_short += h.probe_short;
	}
	say_loss(r, w, "records", sum.lost);
	say_loss(r, w, "stacks", sum.lost_stacks);
	say_loss(r, w, "hard_stacks", sum.hard_stacks);
	say_loss(r, w, "stack_misses", sum.stack_misses);
	say_loss(r, w, "waited_ticks", sum.waited_ticks);
	say_loss(r, w, "probe_enters", sum.probe_enters);
	say_loss(r, w, "probe_exits", sum.probe_exits);
	say_loss(r, w, "probe_short", sum.probe_short);
}

static void say_early_end(struct recording *r, const struct watch *w, const char *why)
{
	char line[256];
	int n = snprintf(line, sizeof(line), "process %u: recording ended early: %s", w->pid, why);

	own_event(&r->own, recording_ticks(r), EVENT_notice, NULL, 0, line, (size_t)n);
}

static void take_segment_counts(struct recording *r, struct watch *w)
{
	struct segment_head h;

	if (!ring_segment(&w->ring, 0, &h)) {
		if (!w->ring.no_files)
			return;
		say_loss(r, w, "records", 1);           /* at least */
		say_early_end(r, w, "mlprof may not open more files, so what it had not sent is lost");
		return;
	}
	say_loss(r, w, "records", h.lost);
	say_loss(r, w, "bind_ns", h.bind_ns);
	say_loss(r, w, "probe_sites", h.probe_sites);
	h.quiet[sizeof(h.quiet) - 1] = 0;
	if (h.quiet[0])
		say_early_end(r, w, h.quiet);
}

/* Where an end is told, and when it was. */
struct end {
	struct own *own;
	u64 ticks;
};

static void add_jit_name(void *to, const struct rec_jit_name *n, const char *text, size_t len)
{
	struct end *e = to;

	own_event(e->own, e->ticks, EVENT_jit_name, n, sizeof(*n), text, len);
}

/* Without taking it from whoever waits for it. */
static void look_how(struct watch *w)
{
	int status;

	if (w->told || w->pidfd < 0 || !proc_end(w->pid, w->pidfd, &status))
		return;
	w->told = true;
	w->how = WIFEXITED(status) ? DIED_EXITED : DIED_SIGNAL;
	w->code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
}

/* By _exit(), if that is the last that one of its threads wrote: a child of vfork writes into its parent's stream, which goes on. */
static bool left_at_once(struct recording *r, struct watch *w, u32 slots, int *code)
{
	const struct stream *s;
	u32 i;

	for (i = 0; i < slots; i++) {
		s = merge_find(r->feed.merge, w->pid, w->born, i);
		if (!s || !s->taken.exit_ticks || s->taken.exit_ticks != s->taken.ticks)
			continue;
		*code = (int)s->taken.exit_status;
		return true;
	}
	return false;
}

static u64 last_record(const struct recording *r, const struct watch *w)
{
	const struct stream *s;
	u64 last = 0;

	for (s = merge_streams(r->feed.merge); s; s = s->hh.next)
		if (s->image == w->image && s->last > last)
			last = s->last;
	return last;
}

/*
 * Who exits says so at last: that is when its memory is gone, however late we see it. So it is with an image that another one has
 * followed. Otherwise, while we wait for a CPU, what came next would seem to have lived beside it. Of one that was killed nothing is
 * known but when we see it. What a program says may be wrong, but nothing is over later than now, nor in what has been handed on.
 */
static struct end end_of(struct recording *r, const struct watch *w, int how)
{
	u64 now = recording_ticks(r), reached = merge_reached(r->feed.merge), at = now;

	if (w->followed_at)
		at = w->followed_at;
	else if (w->image->exiting && (how == DIED_EXITED || how == DIED_UNKNOWN))
		at = last_record(r, w) + 1;
	at = at > reached ? at : reached;
	return at < now ? (struct end) { &r->ends, at } : (struct end) { &r->own, now };
}

/* All that the image sent through the pipe has been read: now its rings, then it is over. */
void watch_end(struct recording *r, struct watch *w, int how, int code)
{
	struct end end;
	u32 slots;

	if (w->over)
		return;
	if (how == DIED_UNKNOWN) {
		look_how(w);
		how = w->told ? w->how : how;
		code = w->told ? w->code : code;
	}
	slots = peek_all(r, w, SEGMENT_SLOTS);
	if (how == DIED_UNKNOWN && left_at_once(r, w, slots, &code))
		how = DIED_EXITED;
	take_slot_counts(r, w, slots);
	take_segment_counts(r, w);
	end = end_of(r, w, how);
	if (how != DIED_EXEC)
		proc_jit_names(w->pid, w->uid, add_jit_name, &end);
	OWN(end.own, end.ticks, died, NULL, 0, .pid = w->pid, .born = w->born, .how = (u64)how, .code = (u64)code);
	intake_own(r);
	w->over = true;
	r->alive--;
	w->image->feeder = &gone;
	ring_close(&w->ring, how != DIED_RUNNING);
	proc_files_close(&w->proc);
	if (w->pidfd >= 0)
		close(w->pidfd);
	w->pidfd = -1;
}

static void drop_those_over(struct recording *r)
{
	struct watch **at = &r->watch, *w;

	while ((w = *at)) {
		if (!w->over) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		free(w);
	}
}

bool watch_events(struct recording *r)
{
	struct epoll_event e[64];
	struct watch *w;
	int i, n = epoll_wait(r->epoll_fd, e, 64, 0);
	bool any = n > 0;

	for (i = 0; i < n; i++)
		if (e[i].data.ptr)      /* the pipe has none */
			watch_dead(r, e[i].data.ptr);
	for (w = r->watch; w; w = w->next) {
		if (w->pidfd < 0 && is_dead(w))
			watch_dead(r, w);
		any |= w->dead;
	}
	return any;
}

/* Of one that died. What was dropped instead of being sent does not come any more, so time decides too. */
static bool all_is_read(struct recording *r, struct watch *w)
{
	u32 i, slots = slots_of(w, LOOK_AHEAD);
	struct slot_head h;

	for (i = 0; w->dead_at >= aside_after(r) && i < slots; i++)
		if (ring_slot(&w->ring, i, &h) && sent_unread(merge_find(r->feed.merge, w->pid, w->born, i), &h))
			return false;
	return true;
}

/* What was put aside is not read for that: it comes turn by turn. */
static void read_all(struct recording *r)
{
	bool drained = r->aside.used;
	struct watch *w;

	for (w = r->watch; w; w = w->next) {
		if (!w->dead || w->over || (r->aside.used && !all_is_read(r, w)))
			continue;
		if (!drained)
			while (intake_drain_all(r) >= PIPE_CHUNKS)
				;
		drained = true;
		if (w->over)            /* the image that followed it was read just now */
			continue;
		peek_all(r, w, SEGMENT_SLOTS);
		w->last = last_record(r, w);
		w->read = true;
	}
}

/* As long as some is aside, an older end may be among it. */
static struct watch *first_to_end(struct recording *r)
{
	u64 before = r->aside.used ? aside_after(r) : UINT64_MAX;
	struct watch *w, *first = NULL;

	for (w = r->watch; w; w = w->next)
		if (w->read && !w->over && w->last < before && (!first || w->last < first->last))
			first = w;
	return first;
}

/* One that died is over when all that it sent has been read; several in the order of their last records. */
void watch_ends(struct recording *r)
{
	struct watch *w;

	if (!r->aside.used)
		heard_ends(r);
	read_all(r);
	while ((w = first_to_end(r)))
		watch_end(r, w, DIED_UNKNOWN, 0);
	drop_those_over(r);
}

void watch_release(struct recording *r)
{
	struct watch *w;

	for (w = r->watch; w; w = w->next)
		if (!w->over) {
			ring_close(&w->ring, true);
			proc_files_close(&w->proc);
			if (w->pidfd >= 0)
				close(w->pidfd);
			w->over = true;
		}
	drop_those_over(r);
}

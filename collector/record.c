/*
 * record.c - a live recording: its directory, its turns, its end.
 */
#include "place.h"
#include "recording.h"
#include "util/array.h"
#include "util/heap.h"
#include "read/tick.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum {
	TURN_CHUNKS = 256,              /* taken in one turn: as much as the pipe holds, at least */
	PIPE_BYTES = 1 << 20,
	HELD_MAX = 64 << 20,            /* bytes of chunks that wait for their time, besides what was put aside */
	AHEAD_MAX = 16 << 20,           /* ... or for the model */
	BURST_CHUNKS = 64,              /* taken in one turn: they may be of a burst */
	BURST_MS = 2000,                /* then it is none */
	MANY_SLICES = 100000,
	REST_US = 500,                  /* between turns while data flows: nobody has to wake us then */
	FLOW_CHUNKS = 24,               /* taken in one turn: more than one thread's ring */
	QUIET_TURNS = 20,               /* turns with less before the caller may wait in poll() */
	LOOK_MS = 100,                  /* then rings are looked into so often, if nothing comes: nothing of ours is in the CPU's cache then, so a look is dear */
	UNHEARD_MS = 20,                /* so often, if an end is to be found that nobody tells us of */
	NEWCOMER_MS = 3,                /* what is younger waits: a new process may have begun before it could say so */
	CLOCK_MS = 10, CLOCK_MAX_MS = 50,
	EXIT_LOOK_MS = 2,
	SAMPLE_SHARE = 20,              /* sampling takes at most 1/20 of the time */
	STILL_SAMPLES = 10,             /* in a row that show no change ... */
	STILL_SHARE = 256,              /* ... of more than so much of RSS: from then on ... */
	STILL_REST = 5,                 /* ... one in so many is enough */
};

u64 recording_ticks(const struct recording *r)
{
	return tick_now(r->tick_kind);
}

/* ---- opening -------------------------------------------------------------------------------- */

static int fail(int error, char *why, size_t size, const char *what, const char *name)
{
	snprintf(why, size, "%s%s%s", what, name ? " " : "", name ? name : "");
	return error ? -error : -EIO;
}

static int make_control(struct recording *r, const struct recording_setup *s)
{
	int fd = openat(r->dir_fd, "control", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	void *at;

	if (fd < 0 || ftruncate(fd, sizeof(*r->control)))
		return errno;
	at = mmap(NULL, sizeof(*r->control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return errno;
	r->control = at;
	*r->control = (struct control) {
		.version = WIRE_VERSION, .state = SESSION_OPEN, .collector_pid = (u32)getpid(), .tick_kind = r->tick_kind,
		.stacks = s->stacks, .on_full = s->on_full, .follow = s->follow, .check_stacks = s->check_stacks,
		.device_time = s->device_time, .apis = s->apis, .bare_pid = s->bare_pid,
	};
	snprintf(r->control->library, sizeof(r->control->library), "%s", s->library ? s->library : "");
	snprintf(r->control->trace, sizeof(r->control->trace), "%s", s->trace ? s->trace : "");
	__atomic_store_n(&r->control->magic, CONTROL_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

static int make_probes(struct recording *r, const struct recording_setup *s)
{
	return s->probes ? place_file(r->dir_fd, "probes", s->probes, s->probes_bytes) : 0;
}

/* A write end of our own keeps the pipe from hanging up between two programs. */
static int make_pipe(struct recording *r)
{
	struct epoll_event e = { .events = EPOLLIN };

	if (mkfifoat(r->dir_fd, "pipe", 0600))
		return errno;
	r->pipe_fd = openat(r->dir_fd, "pipe", O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	r->pipe_hold = openat(r->dir_fd, "pipe", O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (r->pipe_fd < 0 || r->pipe_hold < 0 || r->epoll_fd < 0)
		return errno;
	fcntl(r->pipe_fd, F_SETPIPE_SZ, PIPE_BYTES);            /* refused: then it is smaller */
	return epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, r->pipe_fd, &e) ? errno : 0;
}

static void put_words(char *to, size_t room, size_t *used, const char *word)
{
	size_t n = strlen(word) + 1;

	if (*used + n > room)
		return;
	memcpy(to + *used, word, n);
	*used += n;
}

static void say_session(struct recording *r, const struct recording_setup *s)
{
	struct rec_session head = {
		.large = s->large, .tick_kind = r->tick_kind, .bare = s->bare_pid != 0, .page_size = (u64)sysconf(_SC_PAGESIZE),
		.cpus = r->cpus, .ram = (u64)sysconf(_SC_PHYS_PAGES) * (u64)sysconf(_SC_PAGESIZE),
	};
	char text[TEXT_MAX];
	size_t used = 0, i;
	u64 id[2] = { 0 };

	if (getrandom(id, sizeof(id), GRND_NONBLOCK) != sizeof(id))
		id[0] = tick_monotonic_ns();
	head.id0 = id[0];
	head.id1 = id[1];
	for (i = 0; s->command && s->command[i]; i++)
		put_words(text, sizeof(text), &used, s->command[i]);
	own_event(&r->own, r->start_ticks, EVENT_session, &head, sizeof(head), text, used);
}

static void say_machine(struct recording *r, const struct recording_setup *s)
{
	struct utsname u;
	char text[sizeof(u) + 8];
	size_t used = 0, i;

	if (!uname(&u)) {
		put_words(text, sizeof(text), &used, u.sysname);
		put_words(text, sizeof(text), &used, u.release);
		put_words(text, sizeof(text), &used, u.version);
		put_words(text, sizeof(text), &used, u.machine);
		own_event(&r->own, r->start_ticks, EVENT_uts, NULL, 0, text, used);
	}
	for (i = 0; s->options && s->options[i]; i++)
		own_event(&r->own, r->start_ticks, EVENT_option, NULL, 0, s->options[i], strlen(s->options[i]));
}

/* What the rows of the table mean, for the model and for a replay. */
static void say_probes(struct recording *r, const struct recording_setup *s)
{
	size_t at, left;

	for (at = 0; at < s->probe_rows_bytes; at += TEXT_MAX) {
		left = s->probe_rows_bytes - at;
		own_event(&r->own, r->start_ticks, EVENT_probe_rows, NULL, 0, s->probe_rows + at, left < TEXT_MAX ? left : TEXT_MAX);
	}
}

static void say_clock(struct recording *r)
{
	struct rec_clock c = tick_clocks(r->tick_kind);

	own_event(&r->own, c.ticks, EVENT_clock, &c, sizeof(c), NULL, 0);
	r->clock_ticks = c.ticks;
	r->clock_ns = c.monotonic;
	r->clocks++;
}

static void begin_own_streams(struct recording *r, const struct recording_setup *s)
{
	struct rec_clock c = tick_clocks(r->tick_kind);

	r->start_ticks = c.ticks;
	r->start_ns = c.monotonic;
	own_init(&r->own, 0, c.ticks, intake_own_full, r);
	own_init(&r->ends, 1, c.ticks, intake_own_full, r);
	say_session(r, s);
	say_machine(r, s);
	say_probes(r, s);
	say_clock(r);
}

int recording_open(struct recording **to, const struct recording_setup *s, char *why, size_t why_size)
{
	struct recording *r = new_zeroed(1, sizeof(*r));
	int error;

	r->dir_fd = r->pipe_fd = r->pipe_hold = r->epoll_fd = r->raw.fd = -1;
	r->cpus = (u32)sysconf(_SC_NPROCESSORS_ONLN);
	aside_open(r);
	r->tick_kind = tick_kind_here();
	r->sample_ms = s->sample_ms;
	if ((error = place_make(r->dir, sizeof(r->dir), &r->dir_fd)))
		error = fail(error, why, why_size, "cannot make a session directory", NULL);
	else if ((error = make_probes(r, s)) || (error = make_control(r, s)) || (error = make_pipe(r)))
		error = fail(error, why, why_size, "cannot set up", r->dir);
	else if ((error = -raw_open(&r->raw, s->raw)))
		error = fail(error, why, why_size, "cannot write", s->raw_name);
	r->feed = feed_new(s->listener);
	if (error) {
		recording_close(r);
		return error;
	}
	begin_own_streams(r, s);
	*to = r;
	return 0;
}

const char *recording_dir(const struct recording *r)
{
	return r->dir;
}

int recording_fd(const struct recording *r)
{
	return r->epoll_fd;
}

/* ---- turns ---------------------------------------------------------------------------------- */

static u64 elapsed_ms(const struct recording *r)
{
	return (tick_monotonic_ns() - r->start_ns) / 1000000;
}

static void clock_turn(struct recording *r)
{
	u64 every = elapsed_ms(r) / 1000;

	every = every < CLOCK_MS ? CLOCK_MS : every > CLOCK_MAX_MS ? CLOCK_MAX_MS : every;
	if (tick_monotonic_ns() - r->clock_ns >= every * 1000000)
		say_clock(r);
}

static u64 more_of(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* True: this process is as large as it was. */
static bool sample_one(struct recording *r, struct watch *w)
{
	u64 before = w->rss;
	struct rec_sample s;

	if (w->over || !proc_sample(w->pid, &w->proc, &s))
		return true;
	own_event(&r->own, recording_ticks(r), EVENT_sample, &s, sizeof(s), NULL, 0);
	w->rss = sample_rss(&s);
	return (w->rss > before ? w->rss - before : before - w->rss) <= before / STILL_SHARE;
}

/* Each look costs a program that keeps all CPUs busy a fraction of a millisecond, so there are fewer while nothing changes. */
static void sample_turn(struct recording *r)
{
	u64 now = tick_monotonic_ns(), every = r->sample_ms;
	bool still = true;
	struct watch *w;

	if (!r->sample_ms || now < r->sample_due_ns)
		return;
	for (w = r->watch; w; w = w->next)
		still &= sample_one(r, w);
	r->still_samples = still ? r->still_samples + 1 : 0;
	if (r->still_samples >= STILL_SAMPLES)
		every *= STILL_REST;
	every = more_of(every, elapsed_ms(r) / 10000) * 1000000;
	r->sample_due_ns = now + more_of(every, (tick_monotonic_ns() - now) * SAMPLE_SHARE);
}

/* What was put aside is taken turn by turn, and what comes meanwhile goes behind it. */
static void look_after_pipe(struct recording *r)
{
	if (r->aside.used && !r->ended)
		aside_put(r);
	else if (!r->aside.used && merge_pending_bytes(r->feed.merge) < AHEAD_MAX)
		intake_drain(r, TURN_CHUNKS);
}

/*
 * In slices of half a millisecond, and the pipe is looked after between them: the model is a little slower at times
 * (tables grow, journals are settled), and a full pipe would make the program wait for it.
 */
static void advance_to(struct recording *r, u64 to)
{
	u64 slice = r->ticks_per_ms / 2, at = merge_reached(r->feed.merge), looked = recording_ticks(r), now;

	if (at < r->start_ticks)
		at = r->start_ticks;
	for (at += slice; at < to && to - at < MANY_SLICES * slice; at += slice) {
		merge_advance(r->feed.merge, at);
		now = recording_ticks(r);
		if (now - looked < slice / 2)
			continue;
		look_after_pipe(r);
		looked = now;
	}
	merge_advance(r->feed.merge, to);
}

/* A thread that writes seldom may have sent its first records of a burst last: then all that was put aside waits for them. */
static bool holds_too_much(struct recording *r)
{
	return merge_pending_bytes(r->feed.merge) >= HELD_MAX + aside_room(r);
}

/*
 * Hands on all that is certain to be in order. What was in the pipe at `drained` has been read. A thread sends its
 * first chunk before it records anything else, so whoever has records older than that is known by now.
 */
static void advance(struct recording *r, u64 drained)
{
	u64 before = drained - NEWCOMER_MS * r->ticks_per_ms, bound = watch_bound(r, drained);

	if (r->clocks < 2)
		return;
	intake_own(r);
	if (before > r->clock_ticks)
		before = r->clock_ticks;
	advance_to(r, bound < before ? bound : before);
	if (!holds_too_much(r))
		return;
	/* Somebody holds back more than we are willing to keep: go on without, and count what comes late. */
	merge_advance(r->feed.merge, before);
	if (holds_too_much(r))
		merge_advance(r->feed.merge, TICKS_MAX);
}

/* Children that have said nothing yet; a program that sends no last words for fear of waiting, and waits for ours. */
static bool may_end_unheard(const struct recording *r)
{
	return r->heards || (r->control->bare_pid && r->control->on_full == ON_FULL_DROP);
}

static int rest(struct recording *r)
{
	struct timespec pause = { 0, REST_US * 1000 };
	u64 now = tick_monotonic_ns(), most, due;
	bool flows = r->taken >= FLOW_CHUNKS || r->aside.used;

	if (r->taken >= TURN_CHUNKS)
		return 0;
	r->quiet_turns = flows ? 0 : r->quiet_turns + 1;
	if (r->quiet_turns < QUIET_TURNS) {
		flows = flows || merge_pending_bytes(r->feed.merge);
		if (flows)
			nanosleep(&pause, NULL);
		return flows ? 0 : 1;
	}
	due = r->sample_due_ns > now ? (r->sample_due_ns - now) / 1000000 + 1 : 1;
	most = may_end_unheard(r) ? UNHEARD_MS : LOOK_MS;
	return !r->sample_ms || due > most ? (int)most : (int)due;
}

/* A first guess, for lags and such, from how long it took to start the program; the model goes by the clock records. */
static u64 guess_ticks_per_ms(const struct recording *r)
{
	u64 ticks = recording_ticks(r) - r->start_ticks, ns = tick_monotonic_ns() - r->start_ns;

	return r->tick_kind == TICK_MONOTONIC || !ns ? 1000000 : ticks * 1000000 / ns;
}

/*
 * A burst: as many threads as there are CPUs are writing. Then each turn of ours is taken away from one of them, and what they write
 * is better looked at after it. True: it is put aside, and that is all for now.
 */
static bool burst_waits(struct recording *r, u64 now)
{
	bool lately = r->taken >= BURST_CHUNKS || r->aside.used;

	r->taken = 0;
	if (!lately || watch_writers(r, now) < r->cpus) {
		r->burst_since = 0;
		return false;
	}
	if (!r->burst_since)
		r->burst_since = now;
	if (now - r->burst_since < BURST_MS * r->ticks_per_ms && aside_put(r))
		return true;
	r->burst_since = 1;             /* long ago: it is taken for none until all that was put aside is through */
	return false;
}

/* Only the time has come to sample, or not even that. */
static bool nothing_to_take(const struct recording *r, u64 now)
{
	return r->quiet_turns >= QUIET_TURNS && !r->heards && now - r->turned < LOOK_MS * r->ticks_per_ms;
}

/* What was put aside is read turn by turn. */
static void take_turn(struct recording *r, u64 now)
{
	r->turned = now;
	if (r->aside.used)
		aside_put(r);
	r->taken = intake_drain(r, TURN_CHUNKS);
	watch_ends(r);
	advance(r, aside_after(r));
}

int recording_step(struct recording *r)
{
	u64 now = recording_ticks(r);
	u32 alive = recording_alive(r);
	int ms;

	if (!r->ticks_per_ms)
		r->control->ticks_per_ms = (u32)(r->ticks_per_ms = guess_ticks_per_ms(r));
	r->control->heartbeat++;
	sample_turn(r);
	clock_turn(r);
	if (!watch_events(r) && nothing_to_take(r, now))
		r->taken = 0;
	else if (!burst_waits(r, now))
		take_turn(r, now);
	ms = rest(r);
	return recording_alive(r) < alive ? 0 : ms;     /* the caller may have waited for that */
}

/* ---- questions ------------------------------------------------------------------------------- */

void recording_died(struct recording *r, u32 pid, int how, int code)
{
	struct watch *w = watch_of_pid(r, pid);
	struct told *t = &r->told[r->tolds % (sizeof(r->told) / sizeof(*r->told))];

	if (w) {
		w->told = true;
		watch_dead(r, w);
		w->how = how;
		w->code = code;
		return;
	}
	*t = (struct told) { pid, how, code, recording_ticks(r) };
	if (r->tolds < sizeof(r->told) / sizeof(*r->told))
		r->tolds++;
}

u32 recording_alive(const struct recording *r)
{
	return r->alive + r->heards;
}

/* A process in its last exit handler sends nothing more by itself: look into its rings, but not all the time. */
bool recording_main_exiting(const struct recording *asked)
{
	struct recording *r = (struct recording *)asked;
	struct watch *w = r->main_pid ? watch_of_pid(r, r->main_pid) : NULL;
	u64 now = recording_ticks(r);

	if (!w)
		return false;
	if (!w->image->exiting && !r->aside.used && now - r->looked_for_exit > EXIT_LOOK_MS * r->ticks_per_ms) {
		r->looked_for_exit = now;
		watch_peek_all(r, w);
	}
	return w->image->exiting;
}

struct recording_now recording_now(const struct recording *r)
{
	const struct session *s = r->feed.session;

	return (struct recording_now) {
		.elapsed_ns = tick_monotonic_ns() - r->start_ns,
		.live = s->total.now, .peak = s->total.peak, .events = merge_counts(r->feed.merge).records,
	};
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Turn by turn: it is more than should be in memory at once. What comes meanwhile waits in the FIFO. */
static void take_aside(struct recording *r)
{
	while (r->aside.used) {
		say_clock(r);
		intake_drain(r, TURN_CHUNKS);
		advance(r, aside_after(r));
	}
}

struct session *recording_end(struct recording *r)
{
	struct watch *w;

	if (r->ended)
		return r->feed.session;
	r->ended = true;
	heap_hurry();
	take_aside(r);
	__atomic_store_n(&r->control->state, SESSION_CLOSED, __ATOMIC_RELEASE);
	while (intake_drain_all(r) >= PIPE_CHUNKS)
		;
	watch_events(r);
	watch_ends(r);
	for (w = r->watch; w; w = w->next)
		watch_end(r, w, w->dead ? DIED_UNKNOWN : DIED_RUNNING, 0);
	say_clock(r);
	intake_own_kept(r);
	raw_close(&r->raw);
	feed_end(&r->feed);
	return r->feed.session;
}

int recording_raw_error(const struct recording *r)
{
	return r->raw.error;
}

void recording_done(struct recording *r)
{
	__atomic_store_n(&r->control->state, SESSION_DONE, __ATOMIC_RELEASE);
}

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

void recording_close(struct recording *r)
{
	if (!r)
		return;
	watch_release(r);
	heard_release(r);
	raw_close(&r->raw);
	place_remove(r->dir, r->dir_fd);
	aside_close(r);
	close_if_open(r->pipe_fd);
	close_if_open(r->pipe_hold);
	close_if_open(r->epoll_fd);
	close_if_open(r->dir_fd);
	if (r->control)
		munmap(r->control, sizeof(*r->control));
}

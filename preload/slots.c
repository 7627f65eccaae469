/*
 * slots.c - hands out slots: a free one, one whose thread is gone, or a new one in a new segment.
 */
#include "slots.h"
#include "hook.h"
#include "text.h"
#include <errno.h>
#include <linux/futex.h>

enum { PATIENCE = 10 };                 /* times 0.1 s, with a thread that makes a segment */

struct image *image;

static pthread_key_t end_key;
static bool have_key;

/* Mappings that a fork leaves us with; they are the parent's. */
static struct segment *mapped[SEGMENTS];
static u32 mapped_count;

void *slots_memory(size_t n)
{
	void *p = sys_memory(n);

	if (p && sys(SYS_madvise, p, n, MADV_WIPEONFORK) < 0) {
		sys_munmap(p, n);
		return NULL;
	}
	return p;
}

/* ---- segments ------------------------------------------------------------------------ */

static bool size_allowed(void)
{
	struct rlimit limit;

	return sys_getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur > sizeof(struct segment);  /* else SIGXFSZ */
}

/* Pages that the file system has no room for would be a SIGBUS later: ask for them now. */
static bool backed(void *at, size_t n)
{
	long r = sys(SYS_madvise, at, n, 23);                   /* MADV_POPULATE_WRITE, Linux 5.14 */

	return r == 0 || r == -EINVAL;
}

static struct segment *make_segment(u32 index)
{
	char path[sizeof guest.dir + 64];
	struct segment *s = NULL;
	int fd;

	text_join(path, sizeof path, guest.dir, "/");
	text_number(path, sizeof path, image->pid, 10);
	text_append(path, sizeof path, ".");
	text_number(path, sizeof path, image->born, 16);
	text_append(path, sizeof path, ".");
	text_number(path, sizeof path, index, 10);
	if (!size_allowed())
		return NULL;
	fd = sys_open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return NULL;
	if (sys(SYS_ftruncate, fd, sizeof *s, 0) == 0)
		s = sys_mmap(sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	sys_close(fd);
	if (!s)
		return NULL;
	if (!backed(s, CHUNK_BYTES)) {
		sys_munmap(s, sizeof *s);
		return NULL;
	}
	s->head = (struct segment_head){
		.magic = SEGMENT_MAGIC, .version = WIRE_VERSION, .pid = image->pid, .index = index, .born = image->born,
	};
	mapped[mapped_count++] = s;
	return s;
}

static struct segment *segment_if_there(u32 index)
{
	return __atomic_load_n(&image->segment[index], __ATOMIC_ACQUIRE);
}

/*
 * Only one thread makes a segment; others that come meanwhile wait for it. It cannot be waiting for itself: a signal
 * handler that interrupts it passes through, as it is inside a hook.
 */
static struct segment *segment(u32 index)
{
	struct timespec limit = { 0, 100000000 };
	struct segment *s = segment_if_there(index);

	for (u32 waits = 0; !s && __atomic_exchange_n(&image->segment_lock, 1, __ATOMIC_ACQUIRE); waits++) {
		if (waits == PATIENCE) {        /* it has left by longjmp out of a signal handler: the next one may try */
			__atomic_store_n(&image->segment_lock, 0, __ATOMIC_RELEASE);
			return NULL;
		}
		sys4(SYS_futex, &image->segment_lock, FUTEX_WAIT_PRIVATE, 1, &limit);
		s = segment_if_there(index);
	}
	if (s)
		return s;
	s = segment_if_there(index);
	if (!s) {
		s = make_segment(index);
		__atomic_store_n(&image->segment[index], s, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&image->segment_lock, 0, __ATOMIC_RELEASE);
	sys4(SYS_futex, &image->segment_lock, FUTEX_WAKE_PRIVATE, INT32_MAX, 0);
	return s;
}

bool slots_start(void)
{
	while (mapped_count) {
		struct segment *s = mapped[--mapped_count];

		if (s)
			sys_munmap(s, sizeof *s);
	}
	if (!have_key)
		have_key = pthread_key_create(&end_key, (void (*)(void *))context_thread_ended) == 0;
	return segment(0);
}

/* ---- slots --------------------------------------------------------------------------- */

static struct slot *slot_at(u32 index)
{
	struct segment *s = image->segment[index / SEGMENT_SLOTS];

	return s ? &s->slot[index % SEGMENT_SLOTS] : NULL;
}

static bool thread_is_gone(u32 tid)
{
	return sys(SYS_tgkill, image->pid, tid, 0) == -ESRCH;
}

/* A slot whose thread has gone. Who has our own tid is gone for certain. `hard`: also one that ended without a word. */
static struct context *take_over(u32 tid, u32 used, bool hard)
{
	for (u32 i = 0; i < used && i < SLOTS; i++) {
		struct slot *s = slot_at(i);
		u32 owner = s ? __atomic_load_n(&s->head.tid, __ATOMIC_ACQUIRE) : 0;

		if (!owner || !image->context[i] || !image->context[i]->chunk)
			continue;
		if (owner == tid && tls.nested)         /* that is us, interrupted */
			continue;
		if (owner != tid && (!(s->head.ended || hard) || !thread_is_gone(owner)))
			continue;
		if (__atomic_compare_exchange_n(&s->head.tid, &owner, tid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return image->context[i];
	}
	return NULL;
}

static struct context *new_context(void)
{
	struct context *mine = tls.context;

	if (mine && !mine->chunk && !tls.nested)        /* wiped by a fork, but still ours */
		return mine;
	return slots_memory(sizeof *mine);
}

static struct context *take_new(u32 tid)
{
	u32 index = __atomic_fetch_add(&image->slots, 1, __ATOMIC_ACQ_REL);
	struct segment *s = index < SLOTS ? segment(index / SEGMENT_SLOTS) : NULL;
	struct context *c;

	if (!s || !backed(&s->slot[index % SEGMENT_SLOTS], sizeof(struct slot)))
		return NULL;
	c = new_context();
	if (!c)
		return NULL;
	c->slot = &s->slot[index % SEGMENT_SLOTS];
	c->index = index;
	c->slot->head.tid = tid;
	image->context[index] = c;
	return c;
}

struct context *slots_take(u32 tid, bool *fresh)
{
	u32 used = __atomic_load_n(&image->slots, __ATOMIC_ACQUIRE);
	struct context *c = take_over(tid, used, false);

	if (!c && used && used % SEGMENT_SLOTS == 0)    /* before a new segment is made */
		c = take_over(tid, used, true);
	*fresh = !c;
	if (!c)
		c = take_new(tid);
	if (!c)
		__atomic_add_fetch(&image->segment[0]->head.lost, 1, __ATOMIC_RELAXED);
	return c;
}

void slots_watch_thread_end(struct context *c)
{
	if (have_key && !tls.nested)
		pthread_setspecific(end_key, c);
}

/*
 * process.c - a process image begins, is forked, goes quiet and ends.
 *
 * It begins with the first hook that is called, which is long before our constructor: ld.so's own
 * allocations and other libraries' constructors are recorded too.
 */
#include "process.h"
#include "bind.h"
#include "buffer.h"
#include "cfi.h"
#include "hook.h"
#include "modules.h"
#include "slots.h"
#include "stack_hash.h"
#include "stack.h"
#include "text.h"
#include "unwind.h"
#include "vk_bell.h"
#include <link.h>
#include <string.h>

struct guest guest;
struct guest_checks guest_checks;

static u64 parent_born;                 /* survives a fork: the image we were forked from */
static int main_pid;                    /* of the process that the collector started, or that started it */

u32 process_pid(void) { return image->pid; }
u64 process_born(void) { return image->born; }
bool process_main(void) { return main_pid == sys_getpid(); }
bool image_is_main(void) { return main_pid && (u32)main_pid == image->pid; }

/* ---- begin --------------------------------------------------------------------------- */

static bool begin(void)
{
	bool forked = parent_born != 0;

	hooks_resolve();
	if (!forked && !session_attach())
		return false;
	if (forked)
		vk_bell_forked();
	if (forked && !guest.control->follow)
		return false;
	if (!image)
		image = slots_memory(sizeof *image);
	if (!image || !cfi_start())
		return false;
	if (!forked && (session_bare() || (u32)sys(SYS_getppid, 0, 0, 0) == guest.control->collector_pid))
		main_pid = sys_getpid();
	stack_hash_start();
	session_look_for_collector();
	image->pid = (u32)sys_getpid();
	image->born = ticks();
	if (!pipe_open() || !slots_start()) {
		image->pid = 0;
		return false;
	}
	return true;
}

/* Only the thread that makes the state STARTING begins; whoever comes meanwhile passes through. */
bool process_ready(void)
{
	u32 state = __atomic_load_n(&guest.state, __ATOMIC_ACQUIRE);

	if (state == GUEST_ON && image->pid)
		return true;
	if (state == GUEST_OFF || state == GUEST_STARTING)
		return false;
	if (!__atomic_compare_exchange_n(&guest.state, &state, GUEST_STARTING, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	state = begin() ? GUEST_ON : GUEST_OFF;
	__atomic_store_n(&guest.state, state, __ATOMIC_RELEASE);
	return state == GUEST_ON;
}

/* /proc/self/cmdline, as much of it as a record holds. */
static void emit_command(struct context *c, u64 t)
{
	char *text = sys_memory(1 << 16);
	long n, have = 0;
	u64 whole = 0;
	int fd;

	if (!text)
		return;
	fd = sys_open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC, 0);
	while (fd >= 0 && (n = sys_read(fd, text + have, (1 << 16) - have)) > 0) {
		whole += n;
		have = have + n < TEXT_MAX ? have + n : TEXT_MAX;
	}
	if (fd >= 0)
		sys_close(fd);
	EMIT(c, t, command, FIELDS(.whole = whole), text, have);
	sys_munmap(text, 1 << 16);
}

void process_hello_records(struct context *c, u64 t)
{
	char exe[1024];
	long n = sys_readlink("/proc/self/exe", exe, sizeof exe - 1);
	bool forked = parent_born != 0;

	exe[n > 0 ? n : 0] = 0;
	EMIT(c, t, hello,
	     FIELDS(.pid = image->pid, .ppid = sys(SYS_getppid, 0, 0, 0), .tid = sys_gettid(), .uid = sys(SYS_geteuid, 0, 0, 0),
		    .flags = (forked ? HELLO_FORKED : 0) | (session_bare() ? HELLO_BARE : 0), .parent = parent_born),
	     exe, text_length(exe));
	buffer_send(c);                 /* the collector knows of us: from now on nobody goes on without us, however long we take */
	t = ticks();
	emit_command(c, t);
	if (forked)
		modules_announce_all(c, t);
	parent_born = image->born;
}

/* ---- quiet --------------------------------------------------------------------------- */

void quiet(const char *why)
{
	guest.state = GUEST_OFF;
	if (image && image->pid && image->segment[0])
		text_copy(image->segment[0]->head.quiet, sizeof image->segment[0]->head.quiet, why);
}

void quiet_aloud(const char *why)
{
	char line[1400];

	if (__atomic_exchange_n(&guest.state, GUEST_OFF, __ATOMIC_SEQ_CST) == GUEST_OFF)        /* threads find it out together: one says it */
		return;
	quiet(why);
	if (!process_main())
		return;
	text_join(line, sizeof line, "mlprof: ", why);
	text_append(line, sizeof line, ", so recording has ended; the program goes on. What was recorded is in ");
	text_append(line, sizeof line, guest.control->trace);
	text_append(line, sizeof line, "\n");
	sys_write(2, line, text_length(line));
}

/* ---- end ----------------------------------------------------------------------------- */

static void say_checks(void)
{
	char line[128];

	text_copy(line, sizeof line, "mlprof: stacks checked against libunwind: ");
	text_number(line, sizeof line, guest_checks.stacks, 10);
	text_append(line, sizeof line, ", wrong: ");
	text_number(line, sizeof line, guest_checks.wrong, 10);
	text_append(line, sizeof line, "\n");
	sys_write(2, line, text_length(line));
}

/* A program started bare stays until its summary is out, so that the files are there when it has ended. */
static void wait_for_summary(void)
{
	struct timespec nap = { 0, 2000000 };

	for (int i = 0; i < 10000 && guest.control->state != SESSION_DONE; i++) {
		if (i % 100 == 99 && session_collector_gone())
			return;
		sys4(SYS_nanosleep, &nap, 0, 0, 0);
	}
}

/* Where we wait for the summary, the collector must hear of the end, even if it cannot see our memory (the session's files were removed). */
static bool must_be_heard(void)
{
	return session_bare() && process_main() && guest.on_full == ON_FULL_BLOCK;
}

/*
 * Registered before the C library registers its own last handler, and with no object it belongs to, so it runs
 * when all other exit handlers and all destructors have.
 */
static void last_exit(int status, void *unused)
{
	struct visit v = context_enter(FRAME());
	bool said = v.context;          /* else the collector waits for our end, not we for its */

	(void)unused;
	if (said) {
		writing_begin(v.context);
		EMIT(v.context, ticks(), exit, FIELDS(.status = (u64)status), NULL, 0);
		if (must_be_heard())
			buffer_send(v.context);
		writing_end(v.context);
		context_leave(v);
	}
	if (guest.stacks == STACKS_CHECKED && guest.state != GUEST_NEW)
		say_checks();
	if (guest.state != GUEST_ON)
		return;
	if (session_collector_gone()) {
		if (guest.control->state == SESSION_OPEN)       /* else it has done all it had to */
			quiet_aloud("the collector is gone");
	} else if (said && session_bare() && process_main()) {
		wait_for_summary();
	}
}

/* ---- start --------------------------------------------------------------------------- */

/* In an executable that is not position independent and takes malloc's address, the address is a jump slot of its own. */
static bool is_jump_slot(const void *function)
{
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;

	return dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol && symbol->st_shndx == SHN_UNDEF;
}

/* A program may define malloc itself, in the executable: then nobody calls ours. */
static void notice_own_malloc(void)
{
	void *used = dlsym(RTLD_DEFAULT, "malloc");
	struct visit v;

	if (!used || hook_same_module(used, (const void *)process_ready) || is_jump_slot(used))
		return;
	v = context_enter(FRAME());
	if (!v.context)
		return;
	writing_begin(v.context);
	static const char text[] = "the executable defines malloc itself, so its heap could not be recorded";
	EMIT_TEXT(v.context, ticks(), notice, text, sizeof text - 1);
	writing_end(v.context);
	context_leave(v);
}

__attribute__((constructor)) static void start(void)
{
	struct visit v = context_enter(FRAME());        /* begins the image if no hook has yet */

	on_exit(last_exit, NULL);
	if (!v.context)
		return;
	session_set_environment();
	if (guest.stacks == STACKS_CHECKED)
		unwind_start();
	context_leave(v);
	notice_own_malloc();
	bind_start();
}

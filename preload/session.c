/*
 * session.c - finds the session that this process belongs to, or has one made.
 *
 * The environment is read from the initial stack: at the time of the first allocation libc's own `environ`
 * may not be there yet.
 */
#include "hook.h"
#include "process.h"
#include "text.h"
#include "ticks.h"
#include <elf.h>
#include <errno.h>

extern void *__libc_stack_end;

static bool bare;
static bool by_number;                  /* kill() can tell whether the collector is there */
static u64 last_beat, last_beat_ticks;  /* its heartbeat as last seen, and when */

bool session_bare(void) { return bare; }

char **session_initial_environment(void)
{
	char **p = __libc_stack_end;            /* argc, argv, NULL, envp, NULL, auxv */

	return p + 1 + *(long *)p + 1;
}

static const char *initial_variable(const char *name)
{
	size_t n = text_length(name);

	for (char **e = session_initial_environment(); *e; e++)
		if (text_starts(*e, name) && (*e)[n] == '=')
			return *e + n + 1;
	return NULL;
}

/* Programs that run with more rights than their user are left alone. */
static bool is_secure(void)
{
	char **e = session_initial_environment();

	while (*e)
		e++;
	for (const Elf64_auxv_t *a = (const void *)(e + 1); a->a_type != AT_NULL; a++)
		if (a->a_type == AT_SECURE)
			return a->a_un.a_val;
	return false;
}

/* The directory must be ours alone: not a link, not another user's, not open to others. */
static bool is_private(const char *dir)
{
	struct stat st;
	int fd = sys_open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	bool ok = fd >= 0 && sys_fstat(fd, &st) == 0 && st.st_uid == (uid_t)sys(SYS_geteuid, 0, 0, 0) && !(st.st_mode & 077);

	if (fd >= 0)
		sys_close(fd);
	return ok;
}

static const struct control *map_control(void)
{
	char path[sizeof guest.dir + 16];
	struct control *c = NULL;
	struct stat st;
	int fd;

	text_join(path, sizeof path, guest.dir, "/control");
	fd = sys_open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0);
	if (fd < 0)
		return NULL;
	if (sys_fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= (long)sizeof *c)
		c = sys_mmap(sizeof *c, PROT_READ, MAP_SHARED, fd);
	sys_close(fd);
	return c && c->magic == CONTROL_MAGIC && c->version == WIRE_VERSION && c->state == SESSION_OPEN ? c : NULL;
}

bool session_attach(void)
{
	const char *dir = initial_variable("MLPROF_SESSION");

	if (is_secure())
		return false;
	if (dir && dir[0])
		text_copy(guest.dir, sizeof guest.dir, dir);
	else if (start_collector(guest.dir, sizeof guest.dir))
		bare = true;
	else
		return false;
	guest.control = is_private(guest.dir) ? map_control() : NULL;
	if (!guest.control)
		return false;
	guest.tick_kind = guest.control->tick_kind;
	guest.on_full = guest.control->on_full;
	guest.stacks = guest.control->check_stacks ? STACKS_CHECKED : guest.control->stacks;
	last_beat_ticks = 0;
	return true;
}

/* A killed collector whose parent has not waited for it still has its number, but nothing else. */
static bool is_zombie(u32 pid)
{
	char path[40] = "/proc/", stat[512];
	long n, fd;

	text_number(path, sizeof path, pid, 10);
	text_append(path, sizeof path, "/stat");
	fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
	n = fd >= 0 ? sys_read((int)fd, stat, sizeof stat) : 0;
	if (fd >= 0)
		sys_close((int)fd);
	while (n > 0 && stat[n - 1] != ')')
		n--;
	return n > 0 && (size_t)n + 1 < sizeof stat && (stat[n + 1] == 'Z' || stat[n + 1] == 'X');
}

static bool collector_visible(void)
{
	return sys(SYS_kill, guest.control->collector_pid, 0, 0) != -ESRCH;
}

/* In another PID namespace the collector's number says nothing: there we go by its heartbeat. */
void session_look_for_collector(void)
{
	by_number = collector_visible();
}

bool session_collector_gone(void)
{
	u64 beat = guest.control->heartbeat, now;

	if (by_number)
		return !collector_visible() || is_zombie(guest.control->collector_pid);
	now = ticks();
	if (beat != last_beat || !last_beat_ticks) {
		last_beat = beat;
		last_beat_ticks = now;
	}
	return now - last_beat_ticks > 8000000000ull;           /* some seconds, whatever a tick is */
}

/* ---- children ------------------------------------------------------------------------ */

/* Is this entry of LD_PRELOAD our library, by whatever path? */
static bool is_us(const char *path, size_t length)
{
	static const char name[] = "libmlprof.so";
	size_t n = sizeof name - 1;

	return length >= n && text_starts(path + length - n, name) && (length == n || path[length - n - 1] == '/');
}

/* LD_PRELOAD without us; "" if nothing is left. */
static void preload_without_us(char *to, size_t size, const char *value)
{
	to[0] = 0;
	while (*value) {
		size_t n = 0;

		while (value[n] && value[n] != ':' && value[n] != ' ')
			n++;
		if (n && !is_us(value, n)) {
			if (to[0])
				text_append(to, size, ":");
			if (text_length(to) + n + 1 < size) {
				char *end = to + text_length(to);

				for (size_t i = 0; i < n; i++)
					end[i] = value[i];
				end[n] = 0;
			}
		}
		value += n + (value[n] != 0);
	}
}

/* Unless that is so long that it would be cut. */
static void set_in_front(const char *variable, const char *first, const char *rest)
{
	char whole[4096 + sizeof guest.control->library];

	if (text_length(rest) >= 4095)
		return;
	text_copy(whole, sizeof whole, first);
	if (rest[0]) {
		text_append(whole, sizeof whole, ":");
		text_append(whole, sizeof whole, rest);
	}
	setenv(variable, whole, 1);
}

void session_set_environment(void)
{
	const char *preload = getenv("LD_PRELOAD"), *asan = getenv("ASAN_OPTIONS");
	char rest[4096];

	preload_without_us(rest, sizeof rest, preload ? preload : "");
	if (!guest.control->follow) {
		unsetenv("MLPROF_SESSION");
		if (rest[0])
			setenv("LD_PRELOAD", rest, 1);
		else
			unsetenv("LD_PRELOAD");
	} else if (bare) {              /* the path may have been relative */
		set_in_front("LD_PRELOAD", guest.control->library, rest);
		set_in_front("ASAN_OPTIONS", ASAN_LETS_US_IN, asan ? asan : "");
		setenv("MLPROF_SESSION", guest.dir, 1);
	}
}

static char *variable(char *const *env, const char *name)
{
	size_t n = text_length(name);

	for (; env && *env; env++)
		if (text_starts(*env, name) && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

static bool preload_has_us(const char *value)
{
	for (size_t n = 0; value && *value; value += n + (value[n] != 0)) {
		for (n = 0; value[n] && value[n] != ':' && value[n] != ' ';)
			n++;
		if (is_us(value, n))
			return true;
	}
	return false;
}

bool session_follows(char *const *env)
{
	return variable(env, "MLPROF_SESSION") && preload_has_us(variable(env, "LD_PRELOAD"));
}

/*
 * A program that sets LD_PRELOAD for its children (another allocator, say) does not mean to lose us: where the
 * session is still named, we go back in front. One that clears the environment is left alone. The scratch memory
 * is given back by the caller if the exec fails.
 */
char *const *session_with_us(char *const *env, char **scratch)
{
	const char *theirs = variable(env, "LD_PRELOAD");
	size_t n = 0, bytes;
	char **copy, *text;

	*scratch = NULL;
	if (!guest.control || !guest.control->follow || !variable(env, "MLPROF_SESSION") || preload_has_us(theirs))
		return env;
	while (env[n])
		n++;
	bytes = (n + 2) * sizeof *copy + sizeof guest.control->library + (theirs ? text_length(theirs) : 0) + 32;
	*scratch = sys_memory(bytes + sizeof bytes);
	if (!*scratch)
		return env;
	*(size_t *)*scratch = bytes + sizeof bytes;
	copy = (char **)(*scratch + sizeof bytes);
	text = (char *)(copy + n + 2);
	text_join(text, 1024, "LD_PRELOAD=", guest.control->library);
	if (theirs && *theirs) {
		size_t at = text_length(text);

		text[at] = ':';
		text_copy(text + at + 1, text_length(theirs) + 1, theirs);
	}
	for (size_t i = n = 0; env[i]; i++)
		if (!text_starts(env[i], "LD_PRELOAD="))
			copy[n++] = env[i];
	copy[n++] = text;
	copy[n] = NULL;
	return copy;
}

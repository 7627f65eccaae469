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

static bool started;                    /* the collector, by us */
static bool by_number;                  /* kill() can tell whether the collector is there */
static u64 last_beat, last_beat_ticks;  /* its heartbeat as last seen, and when */

char **session_initial_environment(void)
{
	char **p = __libc_stack_end;            /* argc, argv, NULL, envp, NULL, auxv */

	return p + 1 + *(long *)p + 1;
}

static char *variable(char *const *env, const char *name)
{
	size_t n = text_length(name);

	for (; env && *env; env++)
		if (text_starts(*env, name) && (*env)[n] == '=')
			return *env + n + 1;
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
	const char *dir = variable(session_initial_environment(), "MLPROF_SESSION");

	if (is_secure())
		return false;
	if (dir && dir[0])
		text_copy(guest.dir, sizeof guest.dir, dir);
	else if (start_collector(guest.dir, sizeof guest.dir))
		started = true;
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

/* Also after an exec; not where numbers are those of another PID namespace. */
bool session_bare(void)
{
	return guest.control->bare_pid == (u32)sys_getpid() && collector_visible();
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

struct variable { const char *name, *first, *rest; };           /* name=first:rest */

static size_t room_for(const struct variable *v)
{
	return text_length(v->name) + text_length(v->first) + text_length(v->rest) + sizeof "=:";
}

static void spell(char *to, const struct variable *v)
{
	size_t room = room_for(v);

	text_join(to, room, v->name, "=");
	text_append(to, room, v->first);
	text_append(to, room, v->rest[0] ? ":" : "");
	text_append(to, room, v->rest);
}

static bool names_one_of(const char *entry, const struct variable *v, u32 count)
{
	for (u32 i = 0; i < count; i++)
		if (text_starts(entry, v[i].name) && entry[text_length(v[i].name)] == '=')
			return true;
	return false;
}

/* env with these variables in it. It lies in memory of its own, which begins with the number of its bytes. */
static char **with_variables(char *const *env, const struct variable *v, u32 count, char **memory)
{
	size_t n = 0, kept = 0, bytes;
	char **copy, *text;

	while (env[n])
		n++;
	bytes = sizeof bytes + (n + count + 1) * sizeof *copy;
	for (u32 i = 0; i < count; i++)
		bytes += room_for(&v[i]);
	*memory = sys_memory(bytes);
	if (!*memory)
		return NULL;
	*(size_t *)*memory = bytes;
	copy = (char **)(*memory + sizeof bytes);
	text = (char *)(copy + n + count + 1);
	for (size_t i = 0; i < n; i++)
		if (!names_one_of(env[i], v, count))
			copy[kept++] = env[i];
	for (u32 i = 0; i < count; i++) {
		spell(text, &v[i]);
		copy[kept++] = text;
		text += room_for(&v[i]);
	}
	copy[kept] = NULL;
	return copy;
}

/* Not by setenv(): what that allocates the program would free, and nobody has seen it being allocated. */
static void set_variables(const struct variable *v, u32 count)
{
	char *memory, **with = environ ? with_variables(environ, v, count, &memory) : NULL;

	if (with)
		environ = with;
}

void session_set_environment(void)
{
	const char *preload = getenv("LD_PRELOAD"), *asan = getenv("ASAN_OPTIONS");
	char rest[4096];

	preload_without_us(rest, sizeof rest, preload ? preload : "");
	if (!guest.control->follow) {
		unsetenv("MLPROF_SESSION");
		if (rest[0])
			set_variables(&(struct variable){ "LD_PRELOAD", rest, "" }, 1);
		else
			unsetenv("LD_PRELOAD");
	} else if (started) {           /* the path may have been relative */
		const struct variable v[] = {
			{ "LD_PRELOAD", guest.control->library, rest },
			{ "ASAN_OPTIONS", ASAN_LETS_US_IN, asan ? asan : "" },
			{ "MLPROF_SESSION", guest.dir, "" },
		};

		set_variables(v, sizeof v / sizeof *v);
	}
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
	char **with;

	*scratch = NULL;
	if (!guest.control || !guest.control->follow || !variable(env, "MLPROF_SESSION") || preload_has_us(theirs))
		return env;
	with = with_variables(env, &(struct variable){ "LD_PRELOAD", guest.control->library, theirs ? theirs : "" }, 1, scratch);
	return with ? with : env;
}

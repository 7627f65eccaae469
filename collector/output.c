/* output.c - the files that a recording leaves. */
#include "output.h"
#include "util/buf.h"
#include "util/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FLUSH_MS = 50 };         /* so much of the trace is lost if the collector is killed; less in its first moments */

#define TRACE_SUFFIX ".perfetto-trace"

/* ---- names ------------------------------------------------------------------------- */

/* A name in the same directory that nobody can guess. */
static char *hidden_name(const char *name)
{
	const char *slash = strrchr(name, '/');
	char *hidden = NULL;
	u64 random = 0;

	if (getrandom(&random, sizeof random, 0) != sizeof random)
		return NULL;
	if (asprintf(&hidden, "%.*s.mlprof-%016llx.part", slash ? (int)(slash - name) + 1 : 0, name,
		     (unsigned long long)random) < 0)
		return NULL;
	return hidden;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static char *default_name(const char *program, int pid)
{
	char *name = NULL;

	return asprintf(&name, "mlprof-%.100s-%d" TRACE_SUFFIX, last_part(program), pid) < 0 ? NULL : name;
}

/* X.summary.txt for X.perfetto-trace, and for any other X as well. */
static char *beside(const char *trace, const char *suffix)
{
	size_t length = strlen(trace), cut = strlen(TRACE_SUFFIX);
	char *name = NULL;

	if (length > cut && !strcmp(trace + length - cut, TRACE_SUFFIX))
		length -= cut;
	return asprintf(&name, "%.*s%s", (int)length, trace, suffix) < 0 ? NULL : name;
}

/* Devices and pipes are written to, never replaced. */
static bool is_device(const char *name)
{
	struct stat st;

	return !stat(name, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static bool file_hidden(const struct output_file *f)
{
	return f->now && strcmp(f->now, f->name);
}

static bool file_init(struct output_file *f, char *name)
{
	*f = (struct output_file){ .name = name, .now = !name ? NULL : is_device(name) ? strdup(name) : hidden_name(name) };
	f->passing = file_hidden(f);
	if (f->now)
		return true;
	say("out of memory");
	return false;
}

/* What has the name now gets a hidden one. */
static void file_make_way(struct output_file *f)
{
	f->before = file_hidden(f) ? hidden_name(f->name) : NULL;
	if (f->before && rename(f->name, f->before)) {
		free(f->before);
		f->before = NULL;
	}
}

static bool file_settle(struct output_file *f)
{
	if (!file_hidden(f))
		return true;
	if (rename(f->now, f->name)) {
		say("cannot rename '%s' to '%s': %s", f->now, f->name, strerror(errno));
		return false;
	}
	free(f->now);
	f->now = strdup(f->name);
	return true;
}

/* It stays. */
static void file_keep(struct output_file *f)
{
	f->passing = f->passing && file_hidden(f);
	if (f->before && !file_hidden(f)) {
		unlink(f->before);
		free(f->before);
		f->before = NULL;
	}
}

/* Unless it was kept, things are as they were before. */
static void file_discard(struct output_file *f)
{
	if (f->passing && f->now)
		unlink(f->now);
	if (f->before)
		rename(f->before, f->name);
	free(f->name);
	free(f->now);
	free(f->before);
	*f = (struct output_file){ 0 };
}

/* ---- beginning --------------------------------------------------------------------- */

static int create(const struct output_file *f)
{
	int flags = file_hidden(f) ? O_CREAT | O_EXCL | O_NOFOLLOW : O_NOCTTY;

	return open(f->now, O_WRONLY | O_CLOEXEC | flags, 0666);
}

/* Found out now rather than after an hour's run. */
static bool usable_name(const char *option, const char *name)
{
	struct stat st;

	if (!name || stat(name, &st) || !S_ISDIR(st.st_mode))
		return true;
	say("%s: '%s' is a directory", option, name);
	return false;
}

static const char *function_at(void *functions, const struct module *m, u64 address)
{
	return symbols_function(functions, m, address);
}

static bool begin_trace(struct output *o)
{
	int fd = create(&o->trace);

	if (fd < 0) {
		say("cannot create the trace '%s': %s", o->trace.name, strerror(errno));
		return false;
	}
	o->writer = perfetto_open(fd);
	if (!o->writer) {
		say("out of memory");
		return false;
	}
	o->listener = perfetto_listener(o->writer);
	o->functions = symbols_new(false);
	o->listener.functions = o->functions;
	o->listener.function = o->functions ? function_at : NULL;
	return true;
}

bool output_open(struct output *o, const struct settings *set, const char *program, int pid)
{
	*o = (struct output){ 0 };
	if (!usable_name("--output", set->output) || !usable_name("--raw", set->raw))
		return false;
	if (set->raw && set->output && !strcmp(set->raw, set->output)) {
		say("--output and --raw name the same file '%s'", set->raw);
		return false;
	}
	bool good = file_init(&o->trace, set->output ? strdup(set->output) : default_name(program, pid)) &&
		(!set->raw || file_init(&o->raw, strdup(set->raw)));

	o->in_place = good && !file_hidden(&o->trace);
	if (good && begin_trace(o))
		return true;
	output_discard(o);
	return false;
}

void output_settle(struct output *o)
{
	perfetto_flush(o->writer);
	file_make_way(&o->trace);
	file_make_way(&o->raw);
	file_settle(&o->trace);
	file_settle(&o->raw);
}

void output_begun(struct output *o)
{
	file_keep(&o->trace);
	file_keep(&o->raw);
}

void output_turn(struct output *o, u64 now_ms)
{
	if (now_ms - o->flushed_ms < o->pause_ms)
		return;
	o->flushed_ms = now_ms;
	o->pause_ms = o->pause_ms < FLUSH_MS / 2 ? 2 * o->pause_ms + 1 : FLUSH_MS;
	perfetto_flush(o->writer);
}

void output_discard(struct output *o)
{
	if (o->writer)
		perfetto_close(o->writer);
	o->writer = NULL;
	symbols_free(o->functions);
	o->functions = NULL;
	file_discard(&o->raw);
	file_discard(&o->trace);
}

/* ---- the end ----------------------------------------------------------------------- */

static void say_trace(int fd, const char *trace, bool colour)
{
	struct buf b = { 0 };

	buf_print(&b, "%strace%s      %s\n           open it at https://ui.perfetto.dev\n", colour ? "\033[1m" : "",
		  colour ? "\033[0m" : "", trace);
	buf_write(&b, fd);
	buf_release(&b);
}

static int write_text(int fd, const struct output *o, const struct session *s, struct symbols *y)
{
	int error = summary_text(fd, s, y, false);

	if (!error)
		say_trace(fd, last_part(o->trace.name), false);
	return error;
}

static int write_json(int fd, const struct output *o, const struct session *s, struct symbols *y)
{
	(void)o;
	return summary_json(fd, s, y);
}

static const struct beside {
	const char *suffix;
	int (*write)(int fd, const struct output *o, const struct session *s, struct symbols *y);
} besides[] = {
	{ ".summary.txt", write_text },
	{ ".summary.json", write_json },
};

static int write_beside(const struct output *o, const struct beside *b, const struct session *s, struct symbols *y)
{
	struct output_file f;

	if (!file_init(&f, beside(o->trace.name, b->suffix)))
		return -ENOMEM;
	int fd = create(&f);
	int error = fd < 0 ? -errno : b->write(fd, o, s, y);

	if (fd >= 0 && close(fd) && !error)
		error = -errno;
	if (error)
		say("cannot write '%s': %s", f.name, strerror(-error));
	if (!error && !file_settle(&f))
		error = -EIO;
	if (!error)
		file_keep(&f);
	file_discard(&f);
	return error;
}

static int show(const struct output *o, const struct settings *set, const struct session *s, struct symbols *y)
{
	const char *no_colour = getenv("NO_COLOR");
	bool colour = isatty(2) && !(no_colour && *no_colour);
	int error = 0;

	if (set->json)
		error = summary_json(1, s, y);
	else if (!set->quiet)
		error = summary_text(2, s, y, colour);
	if (!set->json && !set->quiet && !o->in_place)
		say_trace(2, o->trace.name, colour);
	if (error)
		say("cannot print the summary: %s", strerror(-error));
	return error;
}

static int finish_trace(struct output *o, struct session *s, struct symbols *y)
{
	perfetto_finish(o->writer, s, y);
	int error = perfetto_close(o->writer);

	o->writer = NULL;
	s->losses.symbols = symbols_unnamed(y);
	if (error)
		say("cannot write '%s': %s; the trace ends early", o->trace.name, strerror(-error));
	return error;
}

static int write_all(struct output *o, const struct settings *set, struct session *s, struct symbols *y)
{
	int first = finish_trace(o, s, y), error;

	for (size_t i = 0; !o->in_place && i < sizeof besides / sizeof besides[0]; i++) {
		error = write_beside(o, &besides[i], s, y);
		first = first ? first : error;
	}
	error = show(o, set, s, y);
	return first ? first : error;
}

int output_finish(struct output *o, const struct settings *set, struct session *s)
{
	struct symbols *y = symbols_new(set->debuginfod);
	int error = -ENOMEM;

	if (y)
		error = write_all(o, set, s, y);
	else
		say("out of memory: the trace ends early, and there is no summary");
	output_discard(o);              /* `y` goes with the process, which ends: see recording_close() */
	return error;
}

/* test_option.c - the table of options: every way to set one, and what is refused. */
#include "settings.h"
#include "util/say.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tap.h"

enum { WORDS = 12 };

static struct settings set;
static char said[4096];

/* What `say` writes while a test runs. */
static int saved_stderr, said_fd;

static void listen_to_stderr(void)
{
	saved_stderr = dup(2);
	said_fd = memfd_create("said", 0);
	dup2(said_fd, 2);
}

static void stop_listening(void)
{
	ssize_t length = pread(said_fd, said, sizeof said - 1, 0);

	said[length > 0 ? length : 0] = 0;
	dup2(saved_stderr, 2);
	close(saved_stderr);
	close(said_fd);
}

/* "run -o x -- true" as words; returns what option_arguments() does. */
static int parse(const char *line)
{
	char copy[256], *argv[WORDS + 1], *save;
	int argc = 0;

	snprintf(copy, sizeof copy, "%s", line);
	for (char *word = strtok_r(copy, " ", &save); word && argc < WORDS; word = strtok_r(NULL, " ", &save))
		argv[argc++] = strdup(word);
	argv[argc] = NULL;
	listen_to_stderr();
	option_presets(settings_rows, &set);
	int at = option_arguments(settings_rows, &set, "run", argc, argv);

	stop_listening();
	return at;
}

static bool environment(const char *name, const char *value)
{
	setenv(name, value, 1);
	listen_to_stderr();
	option_presets(settings_rows, &set);
	bool good = option_environment(settings_rows, &set);

	stop_listening();
	unsetenv(name);
	return good;
}

static void presets(void)
{
	ok(parse("run true") == 1, "no options");
	ok(set.stacks == STACKS_FULL && set.follow == 1 && set.on_full == ON_FULL_BLOCK, "choices have their presets");
	ok(set.apis == (API_OPENCL | API_VULKAN) && set.device_time == DEVICE_TIME_KERNEL, "all APIs, the time of each kernel");
	ok(set.large == 1 << 20 && set.sample_ms == 20 && set.wait_ms == 2000, "numbers have their presets");
	ok(!set.output && !set.raw && !set.quiet && !set.json && !set.debuginfod, "the rest is off");
}

static void forms(void)
{
	ok(parse("run -o a -q -- true") == 5 && !strcmp(set.output, "a") && set.quiet, "letters");
	ok(parse("run -qob true") == 2 && !strcmp(set.output, "b") && set.quiet, "letters in one word");
	ok(parse("run --output=c --json true") == 3 && !strcmp(set.output, "c") && set.json, "names with =");
	ok(parse("run --output d --stacks none true") == 5 && !strcmp(set.output, "d") && set.stacks == STACKS_NONE,
	   "names and values as words");
	ok(parse("run true --quiet") == 1 && !set.quiet, "options of the program are its own");
	ok(parse("run -- --quiet") == 2 && !set.quiet, "-- ends the options");
	ok(parse("run --help") == -2 && parse("run -h") == -2, "help");
	ok(parse("run --quiet=0 true") == 2 && !set.quiet, "a flag with a value");
}

static void values(void)
{
	ok(parse("run --large=64K x") == 2 && set.large == 65536, "64K");
	ok(parse("run --large=2GiB x") == 2 && set.large == 2ull << 30, "2GiB");
	ok(parse("run --large=0 x") == 2 && set.large == 0, "0");
	ok(parse("run --wait=0.25 x") == 2 && set.wait_ms == 250, "a part of a second");
	ok(parse("run --stacks=caller --follow=none --on-full=drop x") == 4 && set.stacks == STACKS_CALLER && !set.follow &&
	   set.on_full == ON_FULL_DROP, "choices");
	ok(parse("run --api=vulkan --device-time=off x") == 3 && set.apis == API_VULKAN && set.device_time == DEVICE_TIME_OFF, "one of a set");
	ok(parse("run --api=vulkan,opencl x") == 2 && set.apis == (API_OPENCL | API_VULKAN), "two of a set, in any order");
	ok(parse("run --api=none x") == 2 && !set.apis, "none of a set");
}

static void refused(void)
{
	static const struct { const char *line, *word; } rows[] = {
		{ "run --stacks=ful x", "--stacks: 'ful' is not one of none|caller|full" },
		{ "run --stacks= x", "--stacks" },
		{ "run --api=opencl,metal x", "--api: 'opencl,metal' is not none, nor made of opencl,vulkan" },
		{ "run --api= x", "--api" },
		{ "run --api=opencl, x", "--api" },
		{ "run --device-time=all x", "--device-time: 'all' is not one of kernel|submit|off" },
		{ "run --large=many x", "--large: 'many' is not a size" },
		{ "run --large=-1 x", "--large" },
		{ "run --large=1X x", "--large" },
		{ "run --large=99999999999G x", "--large" },
		{ "run --sample=-5 x", "--sample" },
		{ "run --sample=2ms x", "--sample: '2ms' is not a whole number" },
		{ "run --wait=soon x", "--wait: 'soon' is not a number of seconds" },
		{ "run --output= x", "--output: '' is not the name of a file" },
		{ "run -o", "-o: a value is missing" },
		{ "run --stack=full x", "did you mean --stacks?" },
		{ "run --frobnicate x", "unknown option '--frobnicate'" },
		{ "run -z x", "unknown option '-z'" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		ok(parse(rows[i].line) == -1 && strstr(said, rows[i].word), "%s: %s", rows[i].line,
		   said[0] ? strtok(said, "\n") : "nothing said");
}

static void variables(void)
{
	ok(environment("MLPROF_STACKS", "none") && set.stacks == STACKS_NONE, "MLPROF_STACKS");
	ok(environment("MLPROF_ON_FULL", "drop") && set.on_full == ON_FULL_DROP, "MLPROF_ON_FULL");
	ok(environment("MLPROF_QUIET", "1") && set.quiet, "MLPROF_QUIET=1");
	ok(environment("MLPROF_QUIET", "no") && !set.quiet, "MLPROF_QUIET=no");
	ok(environment("MLPROF_LARGE", "") && set.large == 1 << 20, "an empty variable counts as none");
	ok(!environment("MLPROF_LARGE", "x") && strstr(said, "MLPROF_LARGE: 'x' is not a size"), "the variable is named");
	ok(environment("MLPROF_JSON", "1") && !set.json, "--json has no variable: a program's stdout is its own");
}

static void changed(void)
{
	parse("run --large=2M --stacks=none --quiet -o x true");
	char **list = option_changed(settings_rows, &set);

	ok(list && list[0] && !strcmp(list[0], "stacks=none"), "first change");
	ok(list && list[1] && !strcmp(list[1], "large=2097152"), "second change");
	ok(list && list[1] && !list[2], "where the files go is not part of the recording");
}

static void anywhere(void)
{
	char *argv[] = { "replay", "stream", "-o", "x", "--", "-other", NULL };
	int argc = 6;

	option_presets(settings_rows, &set);
	int result = option_anywhere(settings_rows, &set, "replay", &argc, argv);

	ok(!result && argc == 3 && !strcmp(argv[1], "stream") && !strcmp(argv[2], "-other"), "words are left");
	ok(set.output && !strcmp(set.output, "x"), "options are taken from between them");
}

int main(void)
{
	presets();
	forms();
	values();
	refused();
	variables();
	changed();
	anywhere();
	return done();
}

/*
 * test_target.c - which programs are refused, and why.
 *
 * The programs are copies of the system's shell with a few bytes changed, and small scripts.
 */
#include "target.h"
#include "util/say.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

static char dir[] = "/tmp/mlprof-test-XXXXXX";
static char *shell;
static size_t shell_size;

static void read_shell(void)
{
	struct stat st;
	int fd = open("/bin/sh", O_RDONLY);

	fstat(fd, &st);
	shell_size = st.st_size;
	shell = malloc(shell_size);
	if (read(fd, shell, shell_size) != (ssize_t)shell_size)
		shell_size = 0;
	close(fd);
}

static const char *file(const char *name, const void *bytes, size_t size, mode_t mode)
{
	static char path[256];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);

	if (write(fd, bytes, size) != (ssize_t)size)
		ok(0, "%s can be written", path);
	fchmod(fd, mode);
	close(fd);
	return path;
}

static const char *script(const char *name, const char *text)
{
	return file(name, text, strlen(text), 0755);
}

static void refused(const char *path, int status, const char *word)
{
	struct target t = { 0 };
	int got = target_find(&t, path);

	ok(got == status && (!word || strstr(t.why, word)) && !strchr(t.why, '\n'), "%s: %d %s", strrchr(path, '/') + 1, got, t.why);
}

/* ---- copies ------------------------------------------------------------------------ */

static ElfW(Phdr) *segment(char *copy, u_int32_t type)
{
	ElfW(Ehdr) *head = (ElfW(Ehdr) *)copy;
	ElfW(Phdr) *s = (ElfW(Phdr) *)(copy + head->e_phoff);

	for (int i = 0; i < head->e_phnum; i++)
		if (s[i].p_type == type)
			return &s[i];
	return NULL;
}

static void other_class(char *copy) { copy[EI_CLASS] = copy[EI_CLASS] == ELFCLASS64 ? ELFCLASS32 : ELFCLASS64; }
static void other_order(char *copy) { copy[EI_DATA] = 3 - copy[EI_DATA]; }
static void other_machine(char *copy) { ((ElfW(Ehdr) *)copy)->e_machine ^= 1; }
static void relocatable(char *copy) { ((ElfW(Ehdr) *)copy)->e_type = ET_REL; }
static void no_interpreter(char *copy) { segment(copy, PT_INTERP)->p_type = PT_NULL; }
static void interpreter_outside(char *copy) { segment(copy, PT_INTERP)->p_offset = ~0ull; }
static void unchanged(char *copy) { (void)copy; }

static void musl(char *copy)
{
	strcpy(copy + segment(copy, PT_INTERP)->p_offset, "/lib/ld-musl.so");
}

/* Every dynamic program refers to this name. */
static void sanitizer_symbol(char *copy)
{
	char *name = memmem(copy, shell_size, "\0__libc_start_main", 18);

	strcpy(name + 1, "__asan_init");
}

static void segments_outside(char *copy) { ((ElfW(Ehdr) *)copy)->e_phoff = ~0ull - 8; }

static const struct copy {
	const char *name;
	void (*change)(char *copy);
	mode_t mode;
	int status;
	const char *word;
} copies[] = {
	{ "plain", unchanged, 0755, 0, NULL },
	{ "setuid", unchanged, 04755, EXIT_NOT_EXECUTABLE, "setuid" },
	{ "setgid", unchanged, 02755, EXIT_NOT_EXECUTABLE, "setgid" },
	{ "class", other_class, 0755, EXIT_NOT_EXECUTABLE, "architecture" },
	{ "order", other_order, 0755, EXIT_NOT_EXECUTABLE, "architecture" },
	{ "machine", other_machine, 0755, EXIT_NOT_EXECUTABLE, "architecture" },
	{ "object", relocatable, 0755, EXIT_NOT_EXECUTABLE, "not a program" },
	{ "static", no_interpreter, 0755, EXIT_NOT_EXECUTABLE, "statically linked" },
	{ "interp-outside", interpreter_outside, 0755, EXIT_NOT_EXECUTABLE, "statically linked" },
	{ "segments-outside", segments_outside, 0755, EXIT_NOT_EXECUTABLE, "statically linked" },
	{ "musl", musl, 0755, EXIT_NOT_EXECUTABLE, "musl" },
	{ "asan", sanitizer_symbol, 0755, EXIT_NOT_EXECUTABLE, "AddressSanitizer" },
	{ "not-executable", unchanged, 0644, EXIT_NOT_EXECUTABLE, "permission" },
};

static void changed_copies(void)
{
	for (size_t i = 0; i < sizeof copies / sizeof copies[0]; i++) {
		char *copy = malloc(shell_size);

		memcpy(copy, shell, shell_size);
		copies[i].change(copy);
		refused(file(copies[i].name, copy, shell_size, copies[i].mode), copies[i].status, copies[i].word);
		free(copy);
	}
	for (size_t size = 0; size < 4096; size += 61)
		target_find(&(struct target){ 0 }, file("cut", shell, size, 0755));
	ok(1, "cut files do no harm");
}

static void scripts(void)
{
	char text[512];

	refused(script("sh", "#!/bin/sh\n"), 0, NULL);
	refused(script("env", "#!/usr/bin/env sh\n"), 0, NULL);
	refused(script("env-S", "#! /usr/bin/env -S A=1 sh -e\n"), 0, NULL);
	refused(script("no-newline", "#!/bin/sh"), 0, NULL);
	refused(script("missing", "#!/no/such/interpreter\n"), EXIT_NOT_EXECUTABLE, "interpreter /no/such/interpreter: not found");
	refused(script("nothing", "#!\n"), EXIT_NOT_EXECUTABLE, "interpreter");
	refused(script("text", "echo hello\n"), EXIT_NOT_EXECUTABLE, "neither");
	refused(script("empty", ""), EXIT_NOT_EXECUTABLE, "neither");
	snprintf(text, sizeof text, "#!%s/static\n", dir);
	refused(script("to-static", text), EXIT_NOT_EXECUTABLE, "statically linked");
	snprintf(text, sizeof text, "#!%s/sh\n", dir);
	refused(script("to-script", text), 0, NULL);
	snprintf(text, sizeof text, "#!%s/loop\n", dir);
	refused(script("loop", text), EXIT_NOT_EXECUTABLE, NULL);
}

static void paths(void)
{
	struct target t = { 0 };
	char path[600];

	refused("/no/such/program", EXIT_NOT_FOUND, "not found");
	refused(dir, EXIT_NOT_EXECUTABLE, "directory");
	ok(target_find(&t, "no-such-program-at-all") == EXIT_NOT_FOUND, "not in PATH");
	ok(target_find(&t, "") == EXIT_NOT_FOUND, "an empty name");
	script("found", "#!/bin/sh\n");
	snprintf(path, sizeof path, "/no/such/dir:%s/plain:%s:/bin:/usr/bin", dir, dir);
	setenv("PATH", path, 1);
	snprintf(path, sizeof path, "%s/found", dir);
	ok(!target_find(&t, "found") && !strcmp(t.path, path), "found in PATH: %s", t.path);
	ok(target_find(&t, "not-executable") == EXIT_NOT_EXECUTABLE, "in PATH but not executable");
}

int main(void)
{
	char remove[300];

	if (!mkdtemp(dir))
		return 1;
	read_shell();
	changed_copies();
	scripts();
	paths();
	snprintf(remove, sizeof remove, "/bin/rm -r %s", dir);
	ok(!system(remove), "cleaned up");
	return done();
}

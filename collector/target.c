/*
 * target.c - finds the program and looks at its first bytes, its program headers and its dynamic section.
 *
 *   script --#!--> interpreter (--env--> the one that env will find) --> ELF --> checks
 *
 * A table of checks: each returns the reason for which the loader would not, or should not, load
 * libmlprof.so there.
 */
#include "target.h"
#include "util/say.h"

#include <mlprof/wire.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define OWN_CLASS (__ELF_NATIVE_CLASS == 64 ? ELFCLASS64 : ELFCLASS32)

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#elif defined(__riscv)
#define OWN_MACHINE EM_RISCV
#elif defined(__i386__)
#define OWN_MACHINE EM_386
#elif defined(__arm__)
#define OWN_MACHINE EM_ARM
#elif defined(__powerpc64__)
#define OWN_MACHINE EM_PPC64
#elif defined(__s390x__)
#define OWN_MACHINE EM_S390
#else
#error "which ELF machine is this?"
#endif

enum { LEVELS = 4 };    /* as many #! as the kernel follows */

struct image {
	const char *path;
	struct stat stat;
	const unsigned char *at;
	size_t size;
};

/* ---- reading the file -------------------------------------------------------------- */

static bool inside(const struct image *i, u64 offset, u64 length)
{
	return offset <= i->size && length <= i->size - offset;
}

static const ElfW(Ehdr) *head(const struct image *i)
{
	return (const ElfW(Ehdr) *)i->at;
}

static const ElfW(Phdr) *segment(const struct image *i, unsigned index)
{
	u64 offset = head(i)->e_phoff + (u64)index * sizeof(ElfW(Phdr));

	if (index >= head(i)->e_phnum || head(i)->e_phentsize != sizeof(ElfW(Phdr)) || offset % 4)
		return NULL;
	return inside(i, offset, sizeof(ElfW(Phdr))) ? (const ElfW(Phdr) *)(i->at + offset) : NULL;
}

static const ElfW(Phdr) *segment_of_type(const struct image *i, u32 type)
{
	const ElfW(Phdr) *s;

	for (unsigned n = 0; (s = segment(i, n)); n++)
		if (s->p_type == type && inside(i, s->p_offset, s->p_filesz))
			return s;
	return NULL;
}

/* The file's bytes for a virtual address, with how many there are; NULL if it has none. */
static const void *at_address(const struct image *i, u64 address, size_t *room)
{
	const ElfW(Phdr) *s;

	for (unsigned n = 0; (s = segment(i, n)); n++) {
		if (s->p_type != PT_LOAD || address < s->p_vaddr || address - s->p_vaddr >= s->p_filesz)
			continue;
		u64 skip = address - s->p_vaddr;

		if (!inside(i, s->p_offset, s->p_filesz))
			return NULL;
		*room = s->p_filesz - skip;
		return i->at + s->p_offset + skip;
	}
	return NULL;
}

struct dynamic {
	const ElfW(Dyn) *at;
	size_t count;
	const char *strings;
	size_t strings_room;
};

static u64 dynamic_value(const struct dynamic *d, long tag)
{
	for (size_t n = 0; n < d->count && d->at[n].d_tag != DT_NULL; n++)
		if (d->at[n].d_tag == tag)
			return d->at[n].d_un.d_val;
	return 0;
}

static bool dynamic_open(const struct image *i, struct dynamic *d)
{
	const ElfW(Phdr) *s = segment_of_type(i, PT_DYNAMIC);

	if (!s || s->p_offset % sizeof(long))
		return false;
	d->at = (const ElfW(Dyn) *)(i->at + s->p_offset);
	d->count = s->p_filesz / sizeof(ElfW(Dyn));
	d->strings = at_address(i, dynamic_value(d, DT_STRTAB), &d->strings_room);
	return d->strings;
}

static const char *string(const struct dynamic *d, u64 offset)
{
	if (offset >= d->strings_room || !memchr(d->strings + offset, 0, d->strings_room - offset))
		return "";
	return d->strings + offset;
}

/* ---- checks ------------------------------------------------------------------------ */

static const char *other_architecture(const struct image *i)
{
	static const unsigned short one = 1;
	int own_data = *(const char *)&one ? ELFDATA2LSB : ELFDATA2MSB;

	if (i->at[EI_CLASS] != OWN_CLASS || i->at[EI_DATA] != own_data || head(i)->e_machine != OWN_MACHINE)
		return "it is built for another architecture than libmlprof.so";
	return NULL;
}

static const char *not_a_program(const struct image *i)
{
	return head(i)->e_type == ET_EXEC || head(i)->e_type == ET_DYN ? NULL : "it is an ELF file but not a program";
}

static const char *static_program(const struct image *i)
{
	return segment_of_type(i, PT_INTERP) ? NULL
		: "it is statically linked, so no library can be loaded into it (link it dynamically)";
}

static const char *other_libc(const struct image *i)
{
	const ElfW(Phdr) *s = segment_of_type(i, PT_INTERP);

	return memmem(i->at + s->p_offset, s->p_filesz, "ld-musl", 7)
		? "it is linked with musl; libmlprof.so needs glibc" : NULL;
}

static const char *gains_rights(const struct image *i)
{
	if (i->stat.st_mode & S_ISUID)
		return "it is setuid: the loader ignores LD_PRELOAD there, and mlprof leaves such programs alone";
	if (i->stat.st_mode & S_ISGID && i->stat.st_mode & S_IXGRP)
		return "it is setgid: the loader ignores LD_PRELOAD there, and mlprof leaves such programs alone";
	if (getuid() != 0 && getxattr(i->path, "security.capability", NULL, 0) > 0)
		return "it has file capabilities, so the loader ignores LD_PRELOAD";
	return NULL;
}

static const char *const sanitizers[][2] = {
	{ "libasan.so", "it is built with AddressSanitizer, which replaces malloc itself" },
	{ "libtsan.so", "it is built with ThreadSanitizer, which replaces malloc itself" },
	{ "libclang_rt.asan", "it is built with AddressSanitizer, which replaces malloc itself" },
	{ "libclang_rt.tsan", "it is built with ThreadSanitizer, which replaces malloc itself" },
	{ "liblsan.so", "it is built with LeakSanitizer, which replaces malloc itself" },
	{ "libhwasan.so", "it is built with HWAddressSanitizer, which replaces malloc itself" },
};

static const char *sanitizer_needed(const struct dynamic *d)
{
	for (size_t n = 0; n < d->count && d->at[n].d_tag != DT_NULL; n++) {
		if (d->at[n].d_tag != DT_NEEDED)
			continue;
		const char *name = string(d, d->at[n].d_un.d_val);

		for (size_t s = 0; s < sizeof sanitizers / sizeof sanitizers[0]; s++)
			if (!strncmp(name, sanitizers[s][0], strlen(sanitizers[s][0])))
				return sanitizers[s][1];
	}
	return NULL;
}

static const char *const sanitizer_symbols[][2] = {
	{ "__asan_init", "it is built with AddressSanitizer, which replaces malloc itself" },
	{ "__tsan_init", "it is built with ThreadSanitizer, which replaces malloc itself" },
	{ "__msan_init", "it is built with MemorySanitizer, which replaces malloc itself" },
	{ "__lsan_init", "it is built with LeakSanitizer, which replaces malloc itself" },
	{ "__hwasan_init", "it is built with HWAddressSanitizer, which replaces malloc itself" },
};

/* The dynamic symbol table has no length of its own, but by convention its strings follow it. */
static const char *sanitizer_defined(const struct image *i, const struct dynamic *d)
{
	size_t room = 0;
	u64 symtab = dynamic_value(d, DT_SYMTAB), strtab = dynamic_value(d, DT_STRTAB);
	const ElfW(Sym) *symbol = at_address(i, symtab, &room);

	if (!symbol || strtab <= symtab || symtab % sizeof(long))
		return NULL;
	size_t count = (strtab - symtab < room ? strtab - symtab : room) / sizeof *symbol;

	for (size_t n = 0; n < count; n++) {
		const char *name = string(d, symbol[n].st_name);

		if (name[0] != '_' || name[1] != '_')
			continue;
		for (size_t s = 0; s < sizeof sanitizer_symbols / sizeof sanitizer_symbols[0]; s++)
			if (!strcmp(name, sanitizer_symbols[s][0]))
				return sanitizer_symbols[s][1];
	}
	return NULL;
}

static const char *sanitized(const struct image *i)
{
	struct dynamic d = { 0 };

	if (!dynamic_open(i, &d))
		return NULL;
	const char *why = sanitizer_needed(&d);

	return why ? why : sanitizer_defined(i, &d);
}

static const char *(*const checks[])(const struct image *i) = {
	gains_rights, other_architecture, not_a_program, static_program, other_libc, sanitized,
};

static const char *check_elf(const struct image *i)
{
	const char *why = NULL;

	if (i->size < sizeof(ElfW(Ehdr)))
		return "it is not a whole ELF file";
	for (size_t n = 0; n < sizeof checks / sizeof checks[0] && !why; n++)
		why = checks[n](i);
	return why;
}

/* ---- finding ----------------------------------------------------------------------- */

static int refuse(struct target *t, int result, const char *path, const char *why)
{
	snprintf(t->why, sizeof t->why, "%.*s: %s", PATH_MAX - 1, path, why);
	return result;
}

static int try_path(struct target *t, const char *path)
{
	struct stat st;

	if (stat(path, &st) && errno == EACCES)
		return refuse(t, EXIT_NOT_EXECUTABLE, path, "permission to reach it is missing");
	if (stat(path, &st))
		return refuse(t, EXIT_NOT_FOUND, path, "not found");
	if (S_ISDIR(st.st_mode))
		return refuse(t, EXIT_NOT_EXECUTABLE, path, "is a directory");
	if (!S_ISREG(st.st_mode) || access(path, X_OK))
		return refuse(t, EXIT_NOT_EXECUTABLE, path, "permission to execute it is missing");
	snprintf(t->path, sizeof t->path, "%s", path);
	return 0;
}

/* The first in PATH that can be executed; failing that, the first that is there but cannot. */
static int look_up(struct target *t, const char *command)
{
	const char *dirs = getenv("PATH");
	int result = EXIT_NOT_FOUND;
	struct target found;
	char path[PATH_MAX];

	if (strchr(command, '/'))
		return try_path(t, command);
	refuse(t, result, *command ? command : "''", "not found");
	for (dirs = dirs ? dirs : "/bin:/usr/bin"; *command && *dirs;) {
		int length = strcspn(dirs, ":");
		int fits = snprintf(path, sizeof path, "%.*s%s%s", length, dirs, length ? "/" : "./", command);
		int here = fits < (int)sizeof path ? try_path(&found, path) : EXIT_NOT_FOUND;

		if (here < result) {
			*t = found;
			result = here;
		}
		if (!here)
			return 0;
		dirs += length + (dirs[length] == ':');
	}
	return result;
}

/* ---- following #! ------------------------------------------------------------------ */

static bool is_env(const char *path)
{
	const char *name = strrchr(path, '/');

	return !strcmp(name ? name + 1 : path, "env");
}

/* The program that a #! line names, after `env` and its options and settings; empty if there is none. */
static void interpreter(const struct image *i, char *name, size_t size)
{
	char line[512], *save;
	size_t length = i->size - 2 < sizeof line - 1 ? i->size - 2 : sizeof line - 1;

	memcpy(line, i->at + 2, length);
	line[length] = 0;
	line[strcspn(line, "\n")] = 0;
	char *word = strtok_r(line, " \t\r", &save);

	if (word && is_env(word)) {
		do
			word = strtok_r(NULL, " \t\r", &save);
		while (word && (word[0] == '-' || strchr(word, '=')));
	}
	snprintf(name, size, "%s", word ? word : "");
}

static int judge(struct target *t, const char *path, int level);

static int judge_script(struct target *t, const struct image *i, int level)
{
	struct target next = { 0 };
	char name[PATH_MAX];

	interpreter(i, name, sizeof name);
	int result = look_up(&next, name);

	if (!result)
		result = judge(&next, next.path, level + 1);
	if (result)
		snprintf(t->why, sizeof t->why, "%.*s: its interpreter %.*s", PATH_MAX / 3, i->path, PATH_MAX / 2,
			 next.why);
	return result ? EXIT_NOT_EXECUTABLE : 0;
}

static int judge_image(struct target *t, const struct image *i, int level)
{
	if (i->size >= 2 && !memcmp(i->at, "#!", 2) && level < LEVELS)
		return judge_script(t, i, level);
	const char *why = i->size >= SELFMAG && !memcmp(i->at, ELFMAG, SELFMAG) ? check_elf(i)
		: "it is neither an ELF program nor a script with a #! line";

	if (!why)
		return 0;
	snprintf(t->why, sizeof t->why, "%.*s: cannot be profiled: %s", PATH_MAX - 1, i->path, why);
	return EXIT_NOT_EXECUTABLE;
}

static int judge(struct target *t, const char *path, int level)
{
	struct image i = { .path = path };
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	/* A program that may be run but not read: the kernel makes it as untouchable as a setuid one. */
	if (fd < 0 || fstat(fd, &i.stat)) {
		snprintf(t->why, sizeof t->why, "%.*s: cannot be profiled: it cannot be read", PATH_MAX - 1, path);
		if (fd >= 0)
			close(fd);
		return EXIT_NOT_EXECUTABLE;
	}
	i.size = i.stat.st_size;
	i.at = i.size ? mmap(NULL, i.size, PROT_READ, MAP_PRIVATE, fd, 0) : (void *)"";
	close(fd);
	if (i.at == MAP_FAILED) {
		snprintf(t->why, sizeof t->why, "%.*s: cannot be mapped: %s", PATH_MAX - 1, path, strerror(errno));
		return EXIT_MLPROF;
	}
	int result = judge_image(t, &i, level);

	if (i.size)
		munmap((void *)i.at, i.size);
	return result;
}

int target_find(struct target *t, const char *command)
{
	int result = look_up(t, command);

	return result ? result : judge(t, t->path, 0);
}

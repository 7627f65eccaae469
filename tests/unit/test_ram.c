/* test_ram.c - limits of control groups, in a tree of files like the kernel's. */
#include "util/ram.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

static char root[] = "/tmp/mlprof-groups.XXXXXX";

static void path_of(const char *name, char *to, size_t size)
{
	snprintf(to, size, "%s%s", root, name);
}

static void directory(const char *name)
{
	char path[256];

	path_of(name, path, sizeof(path));
	mkdir(path, 0700);
}

static void file(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	path_of(name, path, sizeof(path));
	f = fopen(path, "w");
	if (f) {
		fputs(text, f);
		fclose(f);
	}
}

static void away(const char *name)
{
	char path[256];

	path_of(name, path, sizeof(path));
	remove(path);
}

int main(void)
{
	if (!mkdtemp(root))
		return 1;
	directory("/pod");
	directory("/pod/one");
	ok(ram_limit(root, "/pod/one") == UINT64_MAX, "no files, no limit");
	file("/pod/memory.max", "536870912\n");
	file("/pod/one/memory.max", "max\n");
	ok(ram_limit(root, "/pod/one") == 512 << 20, "what is around a group holds for it");
	file("/pod/one/memory.max", "1048576\n");
	ok(ram_limit(root, "/pod/one") == 1 << 20, "the least one holds");
	ok(ram_limit(root, "/pod") == 512 << 20 && ram_limit(root, "/") == UINT64_MAX, "what is inside does not");
	file("/memory.max", "4096\n");
	ok(ram_limit(root, "") == 4096, "a container sees its own limit at the root");
	ok(ram_limit(root, "/gone/away") == 4096, "a group that is not to be seen here");
	ok(ram_allowed() > 1 << 20 && ram_allowed() <= (u64)sysconf(_SC_PHYS_PAGES) * (u64)sysconf(_SC_PAGESIZE), "here: %llu",
	   (unsigned long long)ram_allowed());
	away("/pod/one/memory.max"), away("/pod/one"), away("/pod/memory.max"), away("/pod"), away("/memory.max"), away("");
	return done();
}

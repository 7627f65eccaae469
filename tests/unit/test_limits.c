/* test_limits.c - limits of control groups, in a tree of files like the kernel's. */
#include "util/limits.h"

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
	ok(limits_group(root, "/pod/one") == UINT64_MAX, "no files, no limit");
	file("/pod/memory.max", "536870912\n");
	file("/pod/one/memory.max", "max\n");
	ok(limits_group(root, "/pod/one") == 512 << 20, "what is around a group holds for it");
	file("/pod/one/memory.max", "1048576\n");
	ok(limits_group(root, "/pod/one") == 1 << 20, "the least one holds");
	ok(limits_group(root, "/pod") == 512 << 20 && limits_group(root, "/") == UINT64_MAX, "what is inside does not");
	file("/memory.max", "4096\n");
	ok(limits_group(root, "") == 4096, "a container sees its own limit at the root");
	ok(limits_group(root, "/gone/away") == 4096, "a group that is not to be seen here");
	ok(limits_memory() > 1 << 20 && limits_memory() <= (u64)sysconf(_SC_PHYS_PAGES) * (u64)sysconf(_SC_PAGESIZE), "here: %llu",
	   (unsigned long long)limits_memory());
	away("/pod/one/memory.max"), away("/pod/one"), away("/pod/memory.max"), away("/pod"), away("/memory.max"), away("");
	return done();
}

/*
 * ram.c - see ram.h.
 */
#include "ram.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

static const char root_dir[] = "/sys/fs/cgroup", old_limit[] = "/sys/fs/cgroup/memory/memory.limit_in_bytes";

/* "max" is no number. */
static u64 number_in(const char *path)
{
	FILE *f = fopen(path, "re");
	unsigned long long n;
	int got = f ? fscanf(f, "%llu", &n) : 0;

	if (f)
		fclose(f);
	return got == 1 ? n : UINT64_MAX;
}

u64 ram_limit(const char *root, const char *group)
{
	char at[PATH_BYTES], file[PATH_BYTES + 16];
	u64 least = UINT64_MAX, n;

	snprintf(at, sizeof(at), "%s%s", root, group);
	for (;;) {
		snprintf(file, sizeof(file), "%s/memory.max", at);
		n = number_in(file);
		least = n < least ? n : least;
		if (strlen(at) <= strlen(root))
			return least;
		*strrchr(at, '/') = 0;
	}
}

/* False: there are none of the unified kind. */
static bool own_group(char *to, size_t size)
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	bool found = false;

	while (f && !found && fgets(to, (int)size, f))
		found = !strncmp(to, "0::/", 4);
	if (f)
		fclose(f);
	if (!found)
		return false;
	to[strcspn(to, "\n")] = 0;
	memmove(to, to + 3, strlen(to + 3) + 1);
	return true;
}

u64 ram_allowed(void)
{
	u64 machine = (u64)sysconf(_SC_PHYS_PAGES) * (u64)sysconf(_SC_PAGESIZE), least = number_in(old_limit), n;
	char group[PATH_BYTES];

	n = ram_limit(root_dir, own_group(group, sizeof(group)) ? group : "");
	least = n < least ? n : least;
	return machine < least ? machine : least;
}

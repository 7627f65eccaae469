/*
 * limits.c - see limits.h.
 */
#include "limits.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, CAN_ADMIN = 21, CAN_RESOURCE = 24 /* CAP_SYS_* */ };

static const char root_dir[] = "/sys/fs/cgroup", old_limit[] = "/sys/fs/cgroup/memory/memory.limit_in_bytes";

static bool find_in(const char *path, const char *format, unsigned long long *to)
{
	FILE *f = fopen(path, "re");
	char line[256];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, format, to) == 1;
	if (f)
		fclose(f);
	return found;
}

/* ---- memory -------------------------------------------------------------------------------- */

/* "max" is no number. */
static u64 limit_in(const char *path)
{
	unsigned long long n;

	return find_in(path, "%llu", &n) ? n : UINT64_MAX;
}

u64 limits_group(const char *root, const char *group)
{
	char at[PATH_BYTES], file[PATH_BYTES + 16];
	u64 least = UINT64_MAX, n;

	snprintf(at, sizeof(at), "%s%s", root, group);
	for (;;) {
		snprintf(file, sizeof(file), "%s/memory.max", at);
		n = limit_in(file);
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

u64 limits_memory(void)
{
	u64 machine = (u64)sysconf(_SC_PHYS_PAGES) * (u64)sysconf(_SC_PAGESIZE), least = limit_in(old_limit), n;
	char group[PATH_BYTES];

	n = limits_group(root_dir, own_group(group, sizeof(group)) ? group : "");
	least = n < least ? n : least;
	return machine < least ? machine : least;
}

/* ---- pipes --------------------------------------------------------------------------------- */

/* Not in a container, which may have a root of its own or one without these capabilities. */
static bool has_no_quota(void)
{
	unsigned long long can, users;

	return find_in("/proc/self/status", "CapEff: %llx", &can) && can & (1ull << CAN_ADMIN | 1ull << CAN_RESOURCE) &&
	       find_in("/proc/self/uid_map", " 0 0 %llu", &users) && users == UINT32_MAX;
}

u64 limits_pipes(void)
{
	unsigned long long pages;

	if (has_no_quota() || !find_in("/proc/sys/fs/pipe-user-pages-soft", "%llu", &pages) || !pages)
		return UINT64_MAX;
	return pages * (u64)sysconf(_SC_PAGESIZE);
}

/* locate.c - where libmlprof.so is. */
#include "locate.h"
#include "util/say.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <unistd.h>

/* From the directory of the executable. The build tree comes first: an installed bin/../preload does not exist. */
static const char *const places[] = { "../preload/libmlprof.so", MLPROF_LIBRARY_REL };

bool locate_library(char *path, size_t size)
{
	char self[PATH_MAX], tried[2 * PATH_MAX], real[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);

	if (length < 0) {
		say("cannot read /proc/self/exe: %s", strerror(errno));
		return false;
	}
	self[length] = 0;
	*strrchr(self, '/') = 0;
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		snprintf(tried, sizeof tried, "%s/%s", self, places[i]);
		if (realpath(tried, real) && strlen(real) < size && !access(real, R_OK)) {
			strcpy(path, real);
			return true;
		}
	}
	say("libmlprof.so is missing: looked for %s/%s", self, MLPROF_LIBRARY_REL);
	return false;
}

/*
 * high_water.h - how much memory this process has taken at most, in KiB.
 */
#ifndef HIGH_WATER_H
#define HIGH_WATER_H

#include <stdio.h>

static long high_water(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	long kib = 0;

	while (file && fgets(line, sizeof line, file))
		sscanf(line, "VmHWM: %ld", &kib);
	if (file)
		fclose(file);
	return kib;
}

#endif

/* tap.h - the few lines of TAP that a unit test needs. */
#ifndef TAP_H
#define TAP_H

#include <stdio.h>

static int tap_count, tap_failed;

#define ok(condition, ...) do { \
	int tap_good = !!(condition); \
	printf("%sok %d - ", tap_good ? "" : "not ", ++tap_count); \
	printf(__VA_ARGS__); \
	printf("%s\n", tap_good ? "" : "   # " #condition); \
	tap_failed += !tap_good; \
} while (0)

static inline int done(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed != 0;
}

#endif

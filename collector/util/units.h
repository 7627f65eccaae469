/*
 * units.h - numbers as people read and write them.
 *
 * The functions that print return a text that stays valid for the next seven calls.
 */
#ifndef UNITS_H
#define UNITS_H

#include <mlprof/wire.h>
#include <stdbool.h>

const char *units_bytes(i64 bytes);     /* 0 B, 999 B, 1.00 KiB, 3.41 GiB */
const char *units_time(u64 ns);         /* 812 ns, 1.23 ms, 4.56 s, 3 min 20 s */
const char *units_count(double count);  /* 7, 1.2 k, 3.4 M */
const char *units_percent(double part, double whole);

/* "64", "64K", "64KiB", "1.5 GiB"; false if it is none of these or too large. */
bool units_parse_bytes(const char *text, u64 *bytes);

#endif

/*
 * library.h - the symbols of a library file, and whether calls to them can be seen: calls that go through PLT, GOT or dlsym
 * can, calls within the library to what it keeps for itself cannot.
 */
#ifndef PROBE_LIBRARY_H
#define PROBE_LIBRARY_H

#include "probe.h"

enum {
	SYMBOL_EXPORTED = 1,            /* others can call it, or find it by dlsym */
	SYMBOL_IMPORTED = 2,            /* defined elsewhere, called from here */
	SYMBOL_CALLED = 4,              /* calls from here go through PLT or GOT */
	SYMBOL_IN_DATA = 8,             /* its address stands in data: a vtable, a table of functions */
	SYMBOL_HIDDEN = 16,             /* a function that only the library itself knows */
};

struct library_symbol {
	char *name;
	u32 flags;                      /* SYMBOL_* */
};

struct library {
	struct library_symbol *symbol;  /* by name, each once */
	u32 symbols, exported;          /* exported: functions */
};

/* What a row finds in a library: how many symbols of each kind. */
struct library_match {
	u32 exported, called, imported, in_data, hidden;
	u32 missed;                     /* imported by pointers in data alone, and the row has no flag data */
	bool other;                     /* lib= says that the row is not for this file */
	bool by_table;                  /* a function in a table that a row can see */
};

bool library_read(struct library *l, const char *path, char *why, size_t size);        /* false: `why` says why not */
void library_release(struct library *l);
/* The nth preset or file of rows, from 0 on, whose library the file holds without a row of it seeing anything there; NULL: no more. */
const char *library_unseen(const struct library *l, const char *path, const struct probe_set *set, u32 n);
struct library_match library_match(const struct library *l, const char *path, const struct probe_set *set, u32 row);
bool library_seen(const struct library_match *m);

#endif

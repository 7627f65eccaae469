/*
 * summary_text.h - what the files of the summary for people share.
 */
#ifndef SUMMARY_TEXT_H
#define SUMMARY_TEXT_H

#include "summary.h"
#include "util/buf.h"
#include "util/units.h"

enum { FIRST_COLUMN = 16 };

struct text {
	struct buf b;
	const struct session *s;
	struct symbols *y;
	bool colour;
};

enum tone { PLAIN, BOLD, DIM, RED };

void text_tone(struct text *t, enum tone which);
void text_toned(struct text *t, enum tone which, const char *text);
void text_safe(struct buf *b, const char *text);        /* bytes of a program: no control character gets through */
void text_heading(struct text *t, const char *name);    /* "Peak       " */
void text_table(struct text *t, const char *name, const char *first, const char *others);

/* summary_text_owners.c */
void text_owners(struct text *t);
void text_device_owners(struct text *t);

/* summary_text_devices.c */
void text_devices(struct text *t);
void text_waits(struct text *t);

/* summary_text_probes.c */
void text_probes(struct text *t);
void text_tokens(struct text *t);
void text_unseen(struct text *t);

#endif

/*
 * status.h - the live line on a terminal: elapsed, live bytes, peak, events a second.
 *
 * It lives on the terminal's last row, which the program's output cannot scroll into while the line is shown
 * (a scroll region, as package managers do it). A terminal that does not say how high it is gets a plain line.
 * Nothing is shown while a program reads single keys there (an editor, a pager, a prompt with editing).
 */
#ifndef STATUS_H
#define STATUS_H

#include "record.h"

struct status {
	bool wanted, shown;
	int rows;               /* of the terminal while shown; 0: unknown */
	u64 next_ns;            /* when to draw again */
	u64 last_ns, last_events;
};

void status_init(struct status *s, bool wanted);
int status_due_ms(const struct status *s);      /* -1: never */
void status_draw(struct status *s, const struct recording_now *now);
void status_erase(struct status *s);

#endif

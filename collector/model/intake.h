/*
 * intake.h - how records get into a session: windows in, a finished session out.
 */
#ifndef INTAKE_H
#define INTAKE_H

#include "session.h"
#include "window.h"

struct session *session_new(const struct listener *listener);   /* listener may be NULL; it is copied */
void session_window(void *session, const struct window *w);
void session_early(void *session, const struct event *e);       /* of the collector's own stream, before its time */
void session_end(struct session *s, struct intake_counts c);    /* closes the books */
void session_free(struct session *s);

#endif

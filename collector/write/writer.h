/*
 * writer.h - one output, one file. A writer that streams is a listener too.
 */
#ifndef WRITER_H
#define WRITER_H

#include "../model/symbols.h"

/* perfetto.c: the trace. Whole packets are appended in order, so the file is valid at all times. */
struct perfetto;
struct perfetto *perfetto_open(int fd);                         /* takes the descriptor */
struct listener perfetto_listener(struct perfetto *w);
void perfetto_flush(struct perfetto *w);                        /* what is buffered reaches the file */
void perfetto_finish(struct perfetto *w, struct session *s, struct symbols *y);
int perfetto_close(struct perfetto *w);                         /* 0, or -errno of the first write that failed; the file
                                                                   then ends on the last whole packet */

/* summary.c: the peak, in words and in JSON. Return 0 or -errno. */
int summary_text(int fd, const struct session *s, struct symbols *y, bool colour);
int summary_json(int fd, const struct session *s, struct symbols *y);

#endif

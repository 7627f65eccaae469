/*
 * output.h - the files that a recording leaves.
 *
 *   X.perfetto-trace     begun under a hidden name in the same directory, renamed before the program starts, appended to
 *                        from then on: a killed collector leaves a valid prefix under the final name. What had that name
 *                        before waits under a hidden one until the program runs: a failed start destroys nothing
 *   raw stream           likewise
 *   X.summary.txt .json  written whole under a hidden name, then renamed
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include "settings.h"
#include "write/writer.h"

struct output_file {
	char *name;             /* final; NULL: not wanted */
	char *now;              /* where it is at this moment */
	char *before;           /* where what had the name before it waits; NULL: there is no such thing */
	bool passing;           /* it goes if it is discarded */
};

struct output {
	struct output_file trace, raw;
	bool in_place;          /* the trace goes to a device: no renaming, no files beside it */
	struct perfetto *writer;
	struct listener listener;
	struct symbols *functions;      /* names that are wanted while the program runs */
	u64 flushed_ms, pause_ms;       /* when the trace last reached its file, and until when it next does */
};

/* False: cannot be, and the reason was said. `program` and `pid` make the default name. */
bool output_open(struct output *o, const struct settings *set, const char *program, int pid);
void output_settle(struct output *o);           /* final names from here on */
void output_begun(struct output *o);            /* the program runs: what had these names is not wanted any more */
void output_turn(struct output *o, u64 now_ms); /* now and then: what is known so far reaches the file */
void output_discard(struct output *o);          /* all done, or it was never begun: leave no trace, what had these names has them again */

/*
 * The session is complete: finishes the trace, writes the summaries and shows one of them as the settings say
 * (text on stderr; JSON on stdout). What cannot be written is said; 0, or the -errno of the first such thing.
 */
int output_finish(struct output *o, const struct settings *set, struct session *s);

#endif

/*
 * summary.h - what the two summaries, text and JSON, both have to work out.
 */
#ifndef SUMMARY_H
#define SUMMARY_H

#include "writer.h"

/* The last image of the program that was started: it may have become another by exec. NULL: none was seen. */
const struct process *summary_last_image(const struct session *s);

u64 summary_duration_ns(const struct session *s, u64 from, u64 to);     /* of two stamps; 0 if they are out of order */
double summary_seconds(const struct session *s);                        /* the whole run; more than 0 */

/* Bytes of a scope's peak by pool: malloc and anonymous mappings. */
struct summary_parts { i64 malloc, mmap; };
struct summary_parts summary_parts(const struct scope *scope);

/*
 * Time spent in the hooks of all threads, estimated: the records taken and the stacks that were not in a cache,
 * each by what it costs on a current machine, and the time spent waiting for the collector, which is measured.
 */
u64 summary_hook_ns(const struct session *s);
u64 summary_waited_ns(const struct session *s);
u64 summary_peak_rss(const struct session *s);          /* largest of any process */

u64 summary_kernels(const struct device *d);            /* that ran: a call that was refused is none */

/* Sums over all devices. */
bool summary_has_devices(const struct session *s);              /* a library is one if its memory is not the host's */
double summary_per_ns(struct paced p);                          /* GFLOP/s, GB/s; 0 if it is not known */
struct summary_waits { u64 calls, total_ns; };
struct summary_waits summary_waits(const struct session *s);    /* the host blocked on devices */

const char *summary_last_part(const char *path);
/* "function" of any exit: how a process ended, in words. */
void summary_end(const struct process *p, char *text, size_t size);

/* summary_json.c, for summary_json_devices.c */
struct json;
void summary_json_holders(struct json *j, const struct session *s, struct symbols *y, const struct holder_list *list);
void summary_json_devices(struct json *j, const struct session *s, struct symbols *y);
void summary_json_probes(struct json *j, const struct session *s);       /* summary_json_probes.c */

#endif

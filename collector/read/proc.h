/*
 * proc.h - what the kernel says of a process, and the names its JIT left in /tmp.
 */
#ifndef PROC_H
#define PROC_H

#include <mlprof/wire.h>
#include <stdbool.h>

struct proc_files { int status, stat; };        /* -1: not open */
#define NO_PROC_FILES ((struct proc_files) { -1, -1 })

bool proc_sample(u32 pid, struct proc_files *f, struct rec_sample *to);
void proc_files_close(struct proc_files *f);

/* How a process ended that need not be our child, as wait() would say it. False: nobody knows any more. */
bool proc_end(u32 pid, int pidfd, int *wait_status);

/* Calls `name` for every line of /tmp/perf-PID.map, up to a bound. */
void proc_jit_names(u32 pid, u32 uid, void (*name)(void *to, const struct rec_jit_name *r, const char *text, size_t len), void *to);

#endif

/*
 * child.h - the program that `mlprof run` starts, and the signals between it, us and the terminal.
 *
 *   terminal --SIGINT, SIGQUIT, SIGTSTP--> whole foreground group: the program has its own copy, we do nothing
 *   kill MLPROF --SIGTERM, SIGHUP, ...---> us alone: passed on
 *   kill -GROUP --SIGTERM, ...-----------> the program has its own copy; a sentry in the group tells us so
 *   program stops ----------------------> we stop too, so that the shell sees a stopped job
 *
 * The program is forked first and waits at a gate, so it keeps every disposition, mask, limit and descriptor as
 * they were before mlprof touched its own, and its pid is known before anything is created.
 */
#ifndef CHILD_H
#define CHILD_H

#include <stdbool.h>
#include <sys/types.h>

struct child {
	pid_t pid;
	pid_t sentry;           /* a process that only waits, with signals pending if the group got them */
	int gate;               /* socket to the waiting child; gone once it runs */
	int signals;            /* signalfd, for poll() */
	bool ended;
	bool hurry;             /* asked to end while the program is over already */
	int how, code;          /* DIED_EXITED or DIED_SIGNAL once ended */
	void (*before_stop)(void *to);
	void *to;
};

int child_fork(struct child *c, const char *path, char **argv, const char *library);    /* 0 or -errno */
int child_signals(struct child *c);                             /* takes over the signals; 0 or -errno */
int child_go(struct child *c, const char *session);             /* lets it exec; 0 or -errno of the exec */
void child_cancel(struct child *c);                             /* it never ran: away with it */
void child_heed(struct child *c);                               /* c->signals is readable */
void child_release(struct child *c);                            /* after its end */
int child_status(const struct child *c);                        /* exit status to pass on */

#endif

/*
 * guest.h - what the whole library shares, and the rules of the house.
 *
 * We are a guest in someone else's process:
 *   - never malloc, never stdio, never exit; memory comes from sys_memory(), words go out by raw write
 *   - errno, signals, the signal mask and the program's descriptors stay as they are
 *   - no lock around a real call, no lock on the way of a record at all
 *   - initial-exec TLS of a few words; everything else lies behind one pointer
 *   - every hook is valid before our constructor and after our last exit handler has run
 *   - trouble ends the recording (quiet()), never the program
 */
#ifndef GUEST_H
#define GUEST_H

#include "sys.h"
#include <stdbool.h>

#define HOOKED __attribute__((visibility("default")))

/* Read by every hook, hardly ever written: a cache line (or two) that stays shared between cores. */
struct guest {
	u32 tick_kind;              /* TICK_* */
	u32 stacks;                 /* STACKS_* */
	u32 on_full;                /* ON_FULL_* */
	u32 state;                  /* GUEST_* */
	u64 epoch;                  /* counts unloads of code: stacks and rules of older epochs are void */
	const struct control *control;
	u32 slabs;                  /* large blocks that may be an IREE pool's: blocks that come and go are looked at */
	u32 bells;                  /* Vulkan devices whose stamps we take when their driver frees something: vk_bell.c */
	char dir[256];              /* session directory, ends without '/' */
};

enum { GUEST_NEW, GUEST_STARTING, GUEST_ON, GUEST_OFF };

extern struct guest guest;

/* For tests (control.check_stacks): stacks compared with libunwind's, and how many differed. */
enum { STACKS_CHECKED = STACKS_FULL + 1 };
extern struct guest_checks { u64 stacks, wrong; } guest_checks;

/* process.c */
bool process_ready(void);                       /* this process image records; starts it if it is new */
void quiet(const char *why);                    /* end the recording, tell the collector why */
void quiet_aloud(const char *why);              /* ... and the user, by one line on stderr */
u32 process_pid(void);
u64 process_born(void);
bool process_main(void);                        /* started by the collector itself, or its starter */
bool image_is_main(void);                       /* the same without a system call; a child of vfork is taken for its parent */

/* session.c */
bool session_attach(void);                      /* finds the session, or starts a collector; fills `guest` */
bool session_bare(void);                        /* this process started the collector, maybe as another program */
void session_look_for_collector(void);          /* at the start of each image */
bool session_collector_gone(void);
bool session_follows(char *const *env);         /* an environment that brings us along */
char *const *session_with_us(char *const *env, char **scratch); /* ... made to, if it names the session but lost the library */
char **session_initial_environment(void);

/* start.c: bare LD_PRELOAD */
bool start_collector(char *dir, size_t size);

#endif

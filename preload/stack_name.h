/*
 * stack_name.h - the numbers of stacks: (frame and all outside of it) -> node.
 */
#ifndef STACK_NAME_H
#define STACK_NAME_H

#include "context.h"

/* Works out the chain of slot `first` of a path's own run that ends at `end`, and of those between it and the next one outwards that
 * has been. */
void stack_chain(struct stack_cache *s, u32 first, u32 end);

/* The frame at pc; all frames outside of it that have no number, or not any more, are named first. Those are among the `slots` slots
 * from `first` outwards in the arena; the last of these is `joined` to a stack that goes on elsewhere. 0: some of them are there,
 * or there is no memory. */
u32 stack_name(struct context *c, u64 chain, u64 pc, u32 first, u32 slots, bool joined);
void stack_names_forget(struct stack_cache *s);

#endif

/*
 * vk_bell.h - what the heap's hooks know of vk_bell.c.
 */
#ifndef VK_BELL_H
#define VK_BELL_H

#include "guest.h"

void vk_bell_hear(void);        /* while guest.bells is not 0: a block is being freed on this thread */
void vk_bell_forked(void);      /* in the child: the devices are the parent's */

#endif

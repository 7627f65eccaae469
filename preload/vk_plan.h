/*
 * vk_plan.h - a submit on its way to the driver: vk_submit.c makes the plan, vk_post.c our own command buffers for it,
 * vk_hand.c hands it over.
 */
#ifndef VK_PLAN_H
#define VK_PLAN_H

#include "vk.h"

/* A VkSubmitInfo or VkSubmitInfo2. */
struct batch {
	u32 count;
	const VkCommandBuffer *one;
	const VkCommandBufferSubmitInfo *two;
	bool refused;                   /* must stay as it is */
	bool timed, whole;              /* whole: as one piece */
	bool late;                      /* see struct vk_recording */
	struct vk_part *first, *last;
	struct vk_slot *slot;
	u32 early;                      /* how many of its parts have a slot of their own */
};

struct plan {
	const VkSubmitInfo *one;        /* what the program submits: in this form or the other */
	const VkSubmitInfo2 *two;
	bool second;
	u64 name;                       /* of the call */
	struct vk_queue *queue;
	struct vk_submit *submit;
	u32 batches, buffers, works;
	struct batch *batch;
	bool marked;                    /* its end can be seen */
};

static inline VkCommandBuffer handle_in(const struct batch *b, u32 i)
{
	return b->one ? b->one[i] : b->two[i].commandBuffer;
}

void vk_plan_prepare(struct plan *p);           /* command buffers and memory for the results, if there are any to be had */
void vk_plan_untime(struct plan *p);            /* it goes without them */
VkResult vk_plan_submit(struct plan *p, VkFence fence);
VkResult vk_plan_plain(const struct plan *p, VkQueue queue, u32 count, VkFence fence);          /* as the program said it */

#endif

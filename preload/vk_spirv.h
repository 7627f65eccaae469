/*
 * vk_spirv.h - what a SPIR-V module says of its entry points.
 */
#ifndef VK_SPIRV_H
#define VK_SPIRV_H

#include "vk.h"

/* One side of a work-group: a number, or one that a specialization constant may replace. */
struct spirv_size { u32 value, constant; bool special; };

struct spirv_entry {
	struct spirv_entry *next;
	u32 model;                      /* SpvExecutionModel; compute is 5 */
	u64 name;                       /* its hash: names may be of any length */
	struct spirv_size size[3];      /* all 0: not said */
};

struct spirv_module {
	struct spirv_entry *entries;
	const char *file;               /* of its source, or NULL */
	u32 hash;
};

void spirv_read(struct spirv_module *m, const u32 *code, size_t bytes);
void spirv_release(struct spirv_module *m);
const struct spirv_entry *spirv_find(const struct spirv_module *m, const char *name, bool compute);
u64 spirv_local(const struct spirv_entry *e, const VkSpecializationInfo *special);     /* PACK3; 0: not known */

#endif

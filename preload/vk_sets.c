/*
 * vk_sets.c - descriptors, as far as they name ranges of large buffers (vk_used.c).
 *
 *   layout      which of a set's bindings get their offset when the set is bound
 *   set         what was written to it; bound, it is what the next dispatch uses
 *   template    where in the program's data the descriptors lie
 *
 * Pushed descriptors are used by the next dispatch at once. A pool's sets end with it, or when it is reset.
 */
#include "vk.h"

enum { DYNAMICS = 16, SET_ENTRIES = 16, SETS_MAX = 4096 };

/* The bindings that get offsets, in their order, unless there are more than that. */
struct layout { u32 count, offsets; bool more; struct { u32 binding, count; } at[DYNAMICS]; };

struct set {
	struct sets *in;
	struct set *next, *before;
	u64 key;
	struct layout layout;
	u32 count;
	struct { struct vk_use use; bool dynamic; } at[SET_ENTRIES];
};

struct sets { struct set *first; };             /* of a pool */
struct template { u32 count; size_t bytes; VkDescriptorUpdateTemplateEntry *at; };

/* Where descriptors go: a set, or a command buffer; neither: by whom they are used remains open. */
struct target { struct vk_device *device; struct set *set; struct vk_command_buffer *commands; u32 slot; };

static struct handles layouts, pools, sets, templates;
static struct pool layout_pool = POOL(struct layout), pool_pool = POOL(struct sets), set_pool = POOL(struct set),
		   template_pool = POOL(struct template);
static u32 set_count;

static bool is_dynamic(VkDescriptorType t) { return t == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC || t == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC; }
static bool is_buffer(VkDescriptorType t) { return t == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER || t == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER || is_dynamic(t); }

/* ---- layouts ------------------------------------------------------------------------------------------------ */

static void layout_add(struct layout *l, u32 binding, u32 count)
{
	u32 i;

	l->offsets += count;
	l->more |= l->count == DYNAMICS;
	if (l->more)
		return;
	i = l->count++;
	for (; i && l->at[i - 1].binding > binding; i--)
		l->at[i] = l->at[i - 1];
	l->at[i].binding = binding;
	l->at[i].count = count;
}

static void layout_known(struct vk_device *d, VkDescriptorSetLayout handle, const VkDescriptorSetLayoutCreateInfo *info)
{
	struct layout *l = NULL;

	for (u32 i = 0; i < info->bindingCount; i++) {
		if (!is_dynamic(info->pBindings[i].descriptorType))
			continue;
		l = l ? l : pool_get(&layout_pool);
		if (l)
			layout_add(l, info->pBindings[i].binding, info->pBindings[i].descriptorCount);
	}
	if (l)
		handles_put(&layouts, vk_key(d, (u64)handle), l);
}

VkResult w_vkCreateDescriptorSetLayout(VkDevice device, const VkDescriptorSetLayoutCreateInfo *info, const VkAllocationCallbacks *allocator,
				       VkDescriptorSetLayout *layout)
{
	struct vk_device *d = vk_device_of(device);
	VkResult r = VK_CALL(d, vkCreateDescriptorSetLayout)(device, info, allocator, layout);

	if (r == VK_SUCCESS && vk_ours(d))
		layout_known(d, *layout, info);
	return r;
}

void w_vkDestroyDescriptorSetLayout(VkDevice device, VkDescriptorSetLayout layout, const VkAllocationCallbacks *allocator)
{
	struct vk_device *d = vk_device_of(device);
	struct layout *l = vk_ours(d) ? handles_remove(&layouts, vk_key(d, (u64)layout)) : NULL;

	if (l)
		pool_put(&layout_pool, l);
	VK_CALL(d, vkDestroyDescriptorSetLayout)(device, layout, allocator);
}

/* Which of the offsets that a set is bound with is this descriptor's. */
static u32 offset_index(const struct layout *l, u32 binding, u32 element)
{
	u32 before = 0;

	for (u32 i = 0; i < l->count && l->at[i].binding < binding; i++)
		before += l->at[i].count;
	return before + element;
}

/* ---- sets --------------------------------------------------------------------------------------------------- */

static void set_gone(struct set *s)
{
	if (s->before)
		s->before->next = s->next;
	else
		s->in->first = s->next;
	if (s->next)
		s->next->before = s->before;
	handles_remove(&sets, s->key);
	pool_put(&set_pool, s);
	__atomic_sub_fetch(&set_count, 1, __ATOMIC_RELAXED);
}

static struct sets *sets_of(struct vk_device *d, VkDescriptorPool pool, bool make)
{
	struct sets *in = handles_find(&pools, vk_key(d, (u64)pool));

	if (in || !make)
		return in;
	in = pool_get(&pool_pool);
	if (in)
		handles_put(&pools, vk_key(d, (u64)pool), in);
	return in;
}

static void set_known(struct vk_device *d, struct sets *in, VkDescriptorSet handle, VkDescriptorSetLayout layout)
{
	const struct layout *l = handles_find(&layouts, vk_key(d, (u64)layout));
	struct set *s = __atomic_load_n(&set_count, __ATOMIC_RELAXED) < SETS_MAX ? pool_get(&set_pool) : NULL;

	if (!s)
		return;
	__atomic_add_fetch(&set_count, 1, __ATOMIC_RELAXED);
	s->key = vk_key(d, (u64)handle);
	if (l)
		s->layout = *l;
	s->in = in;
	s->next = in->first;
	if (s->next)
		s->next->before = s;
	in->first = s;
	handles_put(&sets, s->key, s);
}

VkResult w_vkAllocateDescriptorSets(VkDevice device, const VkDescriptorSetAllocateInfo *info, VkDescriptorSet *list)
{
	struct vk_device *d = vk_device_of(device);
	VkResult r = VK_CALL(d, vkAllocateDescriptorSets)(device, info, list);
	struct sets *in = r == VK_SUCCESS && vk_ours(d) && vk_wanted() ? sets_of(d, info->descriptorPool, true) : NULL;

	for (u32 i = 0; in && i < info->descriptorSetCount; i++)
		set_known(d, in, list[i], info->pSetLayouts[i]);
	return r;
}

static void sets_gone(struct vk_device *d, VkDescriptorPool pool)
{
	struct sets *in = vk_ours(d) ? sets_of(d, pool, false) : NULL;

	while (in && in->first)
		set_gone(in->first);
}

VkResult w_vkFreeDescriptorSets(VkDevice device, VkDescriptorPool pool, uint32_t count, const VkDescriptorSet *list)
{
	struct vk_device *d = vk_device_of(device);

	for (u32 i = 0; vk_ours(d) && i < count; i++) {
		struct set *s = handles_find(&sets, vk_key(d, (u64)list[i]));

		if (s)
			set_gone(s);
	}
	return VK_CALL(d, vkFreeDescriptorSets)(device, pool, count, list);
}

VkResult w_vkResetDescriptorPool(VkDevice device, VkDescriptorPool pool, VkDescriptorPoolResetFlags flags)
{
	struct vk_device *d = vk_device_of(device);

	sets_gone(d, pool);
	return VK_CALL(d, vkResetDescriptorPool)(device, pool, flags);
}

void w_vkDestroyDescriptorPool(VkDevice device, VkDescriptorPool pool, const VkAllocationCallbacks *allocator)
{
	struct vk_device *d = vk_device_of(device);
	struct sets *in;

	sets_gone(d, pool);
	in = vk_ours(d) ? handles_remove(&pools, vk_key(d, (u64)pool)) : NULL;
	if (in)
		pool_put(&pool_pool, in);
	VK_CALL(d, vkDestroyDescriptorPool)(device, pool, allocator);
}

/* ---- what is written to them -------------------------------------------------------------------------------- */

/* False: there is no room. slab NULL: what was there before is gone. */
static bool set_put(struct set *s, const struct vk_use *use, bool dynamic)
{
	u32 i = 0;

	while (i < s->count && (s->at[i].use.binding != use->binding || s->at[i].use.element != use->element))
		i++;
	if (!use->slab) {
		if (i < s->count)
			s->at[i] = s->at[--s->count];
		return true;
	}
	if (i == SET_ENTRIES)
		return false;
	s->at[i].use = *use;
	s->at[i].dynamic = dynamic;
	s->count += i == s->count;
	return true;
}

/* There is no room to remember it until it is bound. */
static void put_early(const struct vk_use *use, bool dynamic)
{
	if (dynamic)
		vk_slab_missed(use->slab);
	else
		vk_slab_use(use->slab, use->offset, use->length, 0);
}

static void put(const struct target *t, u32 binding, u32 element, VkDescriptorType type, const VkDescriptorBufferInfo *info)
{
	struct vk_use use = { .slab = vk_slab_of(t->device, info->buffer), .offset = info->offset, .length = info->range, .slot = t->slot,
			      .binding = binding, .element = element };

	use.id = use.slab ? use.slab->id : 0;
	if (t->commands) {
		vk_uses_drop(t->commands, t->slot, binding, element);
		if (use.slab)
			vk_uses_add(t->commands, &use);
	} else if (!t->set || !set_put(t->set, &use, is_dynamic(type))) {
		put_early(&use, is_dynamic(type));
	}
}

static void put_writes(struct target *t, u32 count, const VkWriteDescriptorSet *w)
{
	for (; count--; w++) {
		if (!is_buffer(w->descriptorType))
			continue;
		if (!t->commands)
			t->set = handles_find(&sets, vk_key(t->device, (u64)w->dstSet));
		for (u32 k = 0; k < w->descriptorCount; k++)
			put(t, w->dstBinding, w->dstArrayElement + k, w->descriptorType, &w->pBufferInfo[k]);
	}
}

static void put_template(const struct target *t, const struct template *from, const char *data)
{
	for (u32 i = 0; i < from->count; i++)
		for (u32 k = 0; k < from->at[i].descriptorCount; k++)
			put(t, from->at[i].dstBinding, from->at[i].dstArrayElement + k, from->at[i].descriptorType,
			    (const VkDescriptorBufferInfo *)(data + from->at[i].offset + k * from->at[i].stride));
}

static void copy_entries(struct vk_device *d, const VkCopyDescriptorSet *c)
{
	struct set *from = handles_find(&sets, vk_key(d, (u64)c->srcSet)), *to = handles_find(&sets, vk_key(d, (u64)c->dstSet));

	for (u32 i = 0; from && to && i < from->count; i++) {
		struct vk_use use = from->at[i].use;

		if (use.binding != c->srcBinding || use.element - c->srcArrayElement >= c->descriptorCount)
			continue;
		use.binding = c->dstBinding;
		use.element += c->dstArrayElement - c->srcArrayElement;
		set_put(to, &use, from->at[i].dynamic);
	}
}

void w_vkUpdateDescriptorSets(VkDevice device, uint32_t writes, const VkWriteDescriptorSet *w, uint32_t copies, const VkCopyDescriptorSet *c)
{
	struct vk_device *d = vk_device_of(device);

	if (vk_ours(d) && vk_wanted()) {
		put_writes(&(struct target){ .device = d }, writes, w);
		for (u32 i = 0; i < copies; i++)
			copy_entries(d, &c[i]);
	}
	VK_CALL(d, vkUpdateDescriptorSets)(device, writes, w, copies, c);
}

void w_vkUpdateDescriptorSetWithTemplate(VkDevice device, VkDescriptorSet set, VkDescriptorUpdateTemplate template, const void *data)
{
	struct vk_device *d = vk_device_of(device);
	const struct template *t = vk_ours(d) && vk_wanted() ? handles_find(&templates, vk_key(d, (u64)template)) : NULL;

	if (t)
		put_template(&(struct target){ .device = d, .set = handles_find(&sets, vk_key(d, (u64)set)) }, t, data);
	VK_CALL(d, vkUpdateDescriptorSetWithTemplate)(device, set, template, data);
}

/* ---- templates ---------------------------------------------------------------------------------------------- */

static void template_known(struct vk_device *d, VkDescriptorUpdateTemplate handle, const VkDescriptorUpdateTemplateCreateInfo *info)
{
	struct template *t = pool_get(&template_pool);

	if (!t)
		return;
	t->bytes = info->descriptorUpdateEntryCount * sizeof *t->at;
	t->at = t->bytes ? sys_memory(t->bytes) : NULL;
	for (u32 i = 0; t->at && i < info->descriptorUpdateEntryCount; i++)
		if (is_buffer(info->pDescriptorUpdateEntries[i].descriptorType))
			t->at[t->count++] = info->pDescriptorUpdateEntries[i];
	handles_put(&templates, vk_key(d, (u64)handle), t);
}

VkResult w_vkCreateDescriptorUpdateTemplate(VkDevice device, const VkDescriptorUpdateTemplateCreateInfo *info, const VkAllocationCallbacks *allocator,
					    VkDescriptorUpdateTemplate *template)
{
	struct vk_device *d = vk_device_of(device);
	VkResult r = VK_CALL(d, vkCreateDescriptorUpdateTemplate)(device, info, allocator, template);

	if (r == VK_SUCCESS && vk_ours(d))
		template_known(d, *template, info);
	return r;
}

void w_vkDestroyDescriptorUpdateTemplate(VkDevice device, VkDescriptorUpdateTemplate template, const VkAllocationCallbacks *allocator)
{
	struct vk_device *d = vk_device_of(device);
	struct template *t = vk_ours(d) ? handles_remove(&templates, vk_key(d, (u64)template)) : NULL;

	if (t && t->at)
		sys_munmap(t->at, t->bytes);
	if (t)
		pool_put(&template_pool, t);
	VK_CALL(d, vkDestroyDescriptorUpdateTemplate)(device, template, allocator);
}

/* ---- what the next dispatch uses ---------------------------------------------------------------------------- */

static bool is_recorded(const struct vk_command_buffer *c) { return c && c->recording && vk_ours(c->device); }

/* shifted: offsets are not known to be its own */
static void use_set(struct vk_command_buffer *c, const struct set *s, u32 slot, u32 count, const u32 *offsets, bool shifted)
{
	for (u32 i = 0; i < s->count; i++) {
		struct vk_use use = s->at[i].use;
		u32 k = s->at[i].dynamic ? offset_index(&s->layout, use.binding, use.element) : 0;

		use.slot = slot;
		if (s->at[i].dynamic)
			use.offset += k < count ? offsets[k] : 0;
		if (s->at[i].dynamic && (s->layout.more || shifted))
			vk_use_missed(&use);
		else
			vk_uses_add(c, &use);
	}
}

static void use_sets(struct vk_command_buffer *c, u32 first, u32 count, const VkDescriptorSet *list, u32 offsets, const u32 *offset)
{
	bool shifted = false;

	for (u32 i = 0; i < count; i++) {
		const struct set *s = handles_find(&sets, vk_key(c->device, (u64)list[i]));
		u32 own = !s ? 0 : s->layout.offsets < offsets ? s->layout.offsets : offsets;

		vk_uses_drop(c, first + i, ~0u, 0);
		if (s)
			use_set(c, s, first + i, own, offset, shifted);
		else
			shifted = true;
		offset += own;
		offsets -= own;
	}
}

void w_vkCmdBindDescriptorSets(VkCommandBuffer b, VkPipelineBindPoint point, VkPipelineLayout layout, uint32_t first, uint32_t count,
			       const VkDescriptorSet *list, uint32_t offsets, const uint32_t *offset)
{
	struct vk_command_buffer *c = vk_command_buffer_of(b);

	if (point == VK_PIPELINE_BIND_POINT_COMPUTE && is_recorded(c))
		use_sets(c, first, count, list, offsets, offset);
	VK_CALL(DEVICE(c), vkCmdBindDescriptorSets)(b, point, layout, first, count, list, offsets, offset);
}

void w_vkCmdPushDescriptorSetKHR(VkCommandBuffer b, VkPipelineBindPoint point, VkPipelineLayout layout, uint32_t slot, uint32_t count,
				 const VkWriteDescriptorSet *writes)
{
	struct vk_command_buffer *c = vk_command_buffer_of(b);

	if (point == VK_PIPELINE_BIND_POINT_COMPUTE && is_recorded(c))
		put_writes(&(struct target){ .device = c->device, .commands = c, .slot = slot }, count, writes);
	VK_CALL(DEVICE(c), vkCmdPushDescriptorSetKHR)(b, point, layout, slot, count, writes);
}

void w_vkCmdPushDescriptorSetWithTemplateKHR(VkCommandBuffer b, VkDescriptorUpdateTemplate template, VkPipelineLayout layout, uint32_t slot,
					     const void *data)
{
	struct vk_command_buffer *c = vk_command_buffer_of(b);
	const struct template *t = is_recorded(c) ? handles_find(&templates, vk_key(c->device, (u64)template)) : NULL;

	if (t)
		put_template(&(struct target){ .device = c->device, .commands = c, .slot = slot }, t, data);
	VK_CALL(DEVICE(c), vkCmdPushDescriptorSetWithTemplateKHR)(b, template, layout, slot, data);
}

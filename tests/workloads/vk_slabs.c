/*
 * vk_slabs.c - one buffer over all of a block, as IREE and ncnn have it, and ranges of it that commands use.
 *
 * Says each range and who used it first (KERNEL: the pipeline), and how many bytes they are together.
 */
#include "vk_client.h"

enum { BLOCK = 8 << 20, MANY = 1500, ROOM = 768, SPARE = 32, SETS = 3, EACH = 16, SMALL = 2 << 20, WIDE = 20, OF_ONE = 12, LONG = 36,
       KEPT = 16 };

struct range { uint64_t offset, length; };

static struct client c;
static VkCommandBuffer b;
static VkBuffer block;
static unsigned char marked[BLOCK];

static void uses(uint64_t offset, uint64_t length, const char *who)
{
	memset(marked + offset, 1, length);
	say("range %llu %llu %s\n", (unsigned long long)offset, (unsigned long long)length, who);
}

static VkBuffer slab(VkDeviceMemory *memory)
{
	VkBuffer buffer = client_buffer(&c, BLOCK);
	VkMemoryRequirements need;

	vkGetBufferMemoryRequirements(c.device, buffer, &need);
	*memory = client_memory(&c, need.size, need.memoryTypeBits);
	GOOD(vkBindBufferMemory(c.device, buffer, *memory, 0));
	return buffer;
}

/* ---- layouts ------------------------------------------------------------------------------ */

struct shape { VkDescriptorSetLayout set; VkPipelineLayout layout; VkPipeline pipeline; };

/* Bindings 0 and 3; the kernel uses the first. */
static struct shape shape_of(VkDescriptorType type, VkDescriptorSetLayoutCreateFlags flags)
{
	VkDescriptorSetLayoutBinding binding[2] = {
		{ 3, type, 2, VK_SHADER_STAGE_COMPUTE_BIT, NULL }, { 0, type, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL },
	};
	VkDescriptorSetLayoutCreateInfo set = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .flags = flags, .bindingCount = 2, .pBindings = binding,
	};
	VkPushConstantRange push = { VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(struct push) };
	struct shape s;
	VkPipelineLayoutCreateInfo layout = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .setLayoutCount = 1, .pSetLayouts = &s.set, .pushConstantRangeCount = 1,
		.pPushConstantRanges = &push,
	};

	GOOD(vkCreateDescriptorSetLayout(c.device, &set, NULL, &s.set));
	GOOD(vkCreatePipelineLayout(c.device, &layout, NULL, &s.layout));
	c.layout = s.layout;
	s.pipeline = client_pipeline(&c, c.module, "main", 64, 1);
	return s;
}

static void shape_end(struct shape s)
{
	vkDestroyPipeline(c.device, s.pipeline, NULL);
	vkDestroyPipelineLayout(c.device, s.layout, NULL);
	vkDestroyDescriptorSetLayout(c.device, s.set, NULL);
}

static void start(struct shape s)
{
	struct push push = { 1, 1, 64 };

	client_begin(b, 0, 0);
	vkCmdBindPipeline(b, VK_PIPELINE_BIND_POINT_COMPUTE, s.pipeline);
	vkCmdPushConstants(b, s.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
}

static void dispatch(void)
{
	vkCmdDispatch(b, 1, 1, 1);
	client_barrier(b);
}

static void finish(void)
{
	VkSubmitInfo submit = { .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &b };

	GOOD(vkEndCommandBuffer(b));
	GOOD(vkQueueSubmit(c.queue, 1, &submit, VK_NULL_HANDLE));
	GOOD(vkQueueWaitIdle(c.queue));
}

/* ---- sets --------------------------------------------------------------------------------- */

static VkDescriptorPool pool_of(VkDescriptorType type)
{
	VkDescriptorPoolSize size = { type, SPARE };
	VkDescriptorPoolCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .flags = VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT, .maxSets = SPARE,
		.poolSizeCount = 1, .pPoolSizes = &size,
	};
	VkDescriptorPool pool;

	GOOD(vkCreateDescriptorPool(c.device, &info, NULL, &pool));
	return pool;
}

static VkDescriptorSet set_of(VkDescriptorPool pool, struct shape s)
{
	VkDescriptorSetAllocateInfo info = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, .descriptorPool = pool, .descriptorSetCount = 1, .pSetLayouts = &s.set,
	};
	VkDescriptorSet set;

	GOOD(vkAllocateDescriptorSets(c.device, &info, &set));
	return set;
}

/* Binding 0 gets the first range, the two of binding 3 the others. */
static void writes(VkWriteDescriptorSet *w, VkDescriptorBufferInfo *info, VkDescriptorSet set, VkDescriptorType type, const struct range *r)
{
	for (int i = 0; i < 3; i++)
		info[i] = (VkDescriptorBufferInfo){ block, r[i].offset, r[i].length };
	for (int i = 0; i < 2; i++)
		w[i] = (VkWriteDescriptorSet){
			.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, .dstSet = set, .dstBinding = i ? 3 : 0, .descriptorCount = i ? 2 : 1,
			.descriptorType = type, .pBufferInfo = &info[i],
		};
}

static void write_set(VkDescriptorSet set, VkDescriptorType type, const struct range *r)
{
	VkWriteDescriptorSet w[2];
	VkDescriptorBufferInfo info[3];

	writes(w, info, set, type, r);
	vkUpdateDescriptorSets(c.device, 2, w, 0, NULL);
}

static void bind(struct shape s, VkDescriptorSet set, uint32_t count, const uint32_t *offsets)
{
	vkCmdBindDescriptorSets(b, VK_PIPELINE_BIND_POINT_COMPUTE, s.layout, 0, 1, &set, count, offsets);
}

/* One that is dispatched twice, one that is bound in vain, a copy of one, one in the place of another. */
static void sets(void)
{
	static const struct range first[3] = { { 0, 4096 }, { 8192, 256 }, { 2048, 4096 } }, vain[3] = { { 1 << 20, 256 }, { 1 << 20, 512 }, { 1 << 20, 768 } },
				  last[3] = { { 65536, 1024 }, { 65536, 1024 }, { BLOCK - 4096, VK_WHOLE_SIZE } };
	const VkDescriptorType type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
	struct shape s = shape_of(type, 0);
	VkDescriptorPool pool = pool_of(type);
	VkDescriptorSet a = set_of(pool, s), other = set_of(pool, s), copy = set_of(pool, s);
	VkCopyDescriptorSet copies[2] = {
		{ .sType = VK_STRUCTURE_TYPE_COPY_DESCRIPTOR_SET, .srcSet = other, .srcBinding = 3, .srcArrayElement = 1, .dstSet = a, .dstBinding = 0,
		  .descriptorCount = 1 },
		{ .sType = VK_STRUCTURE_TYPE_COPY_DESCRIPTOR_SET, .srcSet = other, .srcBinding = 3, .dstSet = a, .dstBinding = 3, .descriptorCount = 2 },
	};

	write_set(a, type, first);
	write_set(other, type, vain);
	start(s);
	bind(s, other, 0, NULL);
	bind(s, a, 0, NULL);
	dispatch();
	dispatch();
	bind(s, a, 0, NULL);
	dispatch();
	finish();
	for (int i = 0; i < 3; i++)
		uses(first[i].offset, first[i].length, "KERNEL");
	GOOD(vkFreeDescriptorSets(c.device, pool, 1, &copy));
	write_set(other, type, last);
	vkUpdateDescriptorSets(c.device, 0, NULL, 2, copies);
	start(s);
	bind(s, a, 0, NULL);
	dispatch();
	finish();
	uses(65536, 1024, "KERNEL");
	uses(BLOCK - 4096, 4096, "KERNEL");
	GOOD(vkResetDescriptorPool(c.device, pool, 0));
	a = set_of(pool, s);
	(void)a;
	vkDestroyDescriptorPool(c.device, pool, NULL);
	shape_end(s);
}

/* Offsets go by binding: first that of 0, then those of 3. */
static void dynamic(void)
{
	static const struct range base[3] = { { 131072, 256 }, { 262144, 512 }, { 262144, 1024 } };
	static const uint32_t offsets[2][3] = { { 0, 4096, 8192 }, { 256, 4096, 16384 } };
	const VkDescriptorType type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC;
	struct shape s = shape_of(type, 0);
	VkDescriptorPool pool = pool_of(type);
	VkDescriptorSet set = set_of(pool, s);

	write_set(set, type, base);
	start(s);
	for (int i = 0; i < 2; i++) {
		bind(s, set, 3, offsets[i]);
		dispatch();
		for (int k = 0; k < 3; k++)
			if (!i || offsets[1][k] != offsets[0][k])
				uses(base[k].offset + offsets[i][k], base[k].length, "KERNEL");
	}
	finish();
	vkDestroyDescriptorPool(c.device, pool, NULL);
	shape_end(s);
}

/* As they are, and by a template. */
static void pushed(void)
{
	static const struct range first[3] = { { 524288, 256 }, { 528384, 512 }, { 532480, 1024 } }, second[3] = { { 540672, 256 }, { 544768, 512 }, { 548864, 1024 } };
	const VkDescriptorType type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
	struct shape s = shape_of(type, VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR);
	PFN_vkCmdPushDescriptorSetKHR push = (PFN_vkCmdPushDescriptorSetKHR)vkGetDeviceProcAddr(c.device, "vkCmdPushDescriptorSetKHR");
	PFN_vkCmdPushDescriptorSetWithTemplateKHR push_template =
		(PFN_vkCmdPushDescriptorSetWithTemplateKHR)vkGetDeviceProcAddr(c.device, "vkCmdPushDescriptorSetWithTemplateKHR");
	VkDescriptorUpdateTemplateEntry entry[2] = {
		{ 0, 0, 1, type, 0, sizeof(VkDescriptorBufferInfo) },
		{ 3, 0, 2, type, sizeof(VkDescriptorBufferInfo), sizeof(VkDescriptorBufferInfo) },
	};
	VkDescriptorUpdateTemplateCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_UPDATE_TEMPLATE_CREATE_INFO, .descriptorUpdateEntryCount = 2, .pDescriptorUpdateEntries = entry,
		.templateType = VK_DESCRIPTOR_UPDATE_TEMPLATE_TYPE_PUSH_DESCRIPTORS_KHR, .pipelineBindPoint = VK_PIPELINE_BIND_POINT_COMPUTE,
		.pipelineLayout = s.layout,
	};
	VkDescriptorUpdateTemplate template;
	VkWriteDescriptorSet w[2];
	VkDescriptorBufferInfo data[3];

	GOOD(vkCreateDescriptorUpdateTemplate(c.device, &info, NULL, &template));
	start(s);
	writes(w, data, VK_NULL_HANDLE, type, first);
	push(b, VK_PIPELINE_BIND_POINT_COMPUTE, s.layout, 0, 2, w);
	dispatch();
	writes(w, data, VK_NULL_HANDLE, type, second);
	push_template(b, template, s.layout, 0, data);
	dispatch();
	finish();
	for (int i = 0; i < 6; i++)
		uses((i < 3 ? first : second)[i % 3].offset, (i < 3 ? first : second)[i % 3].length, "KERNEL");
	vkDestroyDescriptorUpdateTemplate(c.device, template, NULL);
	shape_end(s);
}

/* The set is written by a template, and a kernel runs with it. */
static void run_with_template(struct shape s, VkDescriptorSet set, const VkDescriptorUpdateTemplateCreateInfo *info, const void *data)
{
	VkDescriptorUpdateTemplate template;

	GOOD(vkCreateDescriptorUpdateTemplate(c.device, info, NULL, &template));
	vkUpdateDescriptorSetWithTemplate(c.device, set, template, data);
	start(s);
	bind(s, set, 0, NULL);
	dispatch();
	finish();
	vkDestroyDescriptorUpdateTemplate(c.device, template, NULL);
}

static void templates(void)
{
	static const struct range range[3] = { { 600064, 256 }, { 604160, 512 }, { 608256, 1024 } };
	const VkDescriptorType type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
	struct shape s = shape_of(type, 0);
	VkDescriptorPool pool = pool_of(type);
	VkDescriptorSet set = set_of(pool, s);
	VkDescriptorUpdateTemplateEntry entry[2] = { { 0, 0, 1, type, 0, 0 }, { 3, 0, 2, type, sizeof(VkDescriptorBufferInfo), sizeof(VkDescriptorBufferInfo) } };
	VkDescriptorUpdateTemplateCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_UPDATE_TEMPLATE_CREATE_INFO, .descriptorUpdateEntryCount = 2, .pDescriptorUpdateEntries = entry,
		.templateType = VK_DESCRIPTOR_UPDATE_TEMPLATE_TYPE_DESCRIPTOR_SET, .descriptorSetLayout = s.set,
	};
	VkDescriptorBufferInfo data[3];

	for (int i = 0; i < 3; i++) {
		data[i] = (VkDescriptorBufferInfo){ block, range[i].offset, range[i].length };
		uses(range[i].offset, range[i].length, "KERNEL");
	}
	run_with_template(s, set, &info, data);
	vkDestroyDescriptorPool(c.device, pool, NULL);
	shape_end(s);
}

/* ---- more than is kept -------------------------------------------------------------------- */

static VkDescriptorSetLayout layout_of(uint32_t count, const VkDescriptorSetLayoutBinding *binding)
{
	VkDescriptorSetLayoutCreateInfo info = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = count, .pBindings = binding };
	VkDescriptorSetLayout layout;

	GOOD(vkCreateDescriptorSetLayout(c.device, &info, NULL, &layout));
	return layout;
}

static struct shape shape_with(uint32_t count, const VkDescriptorSetLayout *sets)
{
	VkPushConstantRange push = { VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(struct push) };
	VkPipelineLayoutCreateInfo layout = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .setLayoutCount = count, .pSetLayouts = sets, .pushConstantRangeCount = 1,
		.pPushConstantRanges = &push,
	};
	struct shape s = { .set = sets[0] };

	GOOD(vkCreatePipelineLayout(c.device, &layout, NULL, &s.layout));
	c.layout = s.layout;
	s.pipeline = client_pipeline(&c, c.module, "main", 64, 1);
	return s;
}

/* A driver need not take more than 16 of one type. */
static VkDescriptorType type_at(uint32_t binding)
{
	return binding < OF_ONE ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC : VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC;
}

static VkBuffer for_both(VkDeviceMemory *memory)
{
	VkBufferCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = SMALL,
		.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT,
	};
	VkMemoryRequirements need;
	VkBuffer buffer;

	GOOD(vkCreateBuffer(c.device, &info, NULL, &buffer));
	vkGetBufferMemoryRequirements(c.device, buffer, &need);
	*memory = client_memory(&c, need.size, need.memoryTypeBits);
	GOOD(vkBindBufferMemory(c.device, buffer, *memory, 0));
	return buffer;
}

/* A set with many bindings that get an offset each; the offset of the next set comes after all of theirs. */
static void wide(void)
{
	VkDescriptorPoolSize size[2] = { { type_at(0), OF_ONE + 1 }, { type_at(OF_ONE), WIDE - OF_ONE } };
	VkDescriptorPoolCreateInfo pool_info = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = 2, .poolSizeCount = 2, .pPoolSizes = size };
	VkDescriptorSetLayoutBinding binding[WIDE];
	uint32_t offsets[WIDE + 1] = { [WIDE] = 512 };
	VkDescriptorSetLayout layout[2];
	VkDescriptorPool pool;
	VkDescriptorSet set[2];
	VkDeviceMemory memory;
	VkBuffer other = for_both(&memory);
	struct shape s;

	for (uint32_t i = 0; i < WIDE; i++)
		binding[i] = (VkDescriptorSetLayoutBinding){ i, type_at(i), 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL };
	layout[0] = layout_of(WIDE, binding);
	layout[1] = layout_of(1, binding);
	s = shape_with(2, layout);
	GOOD(vkCreateDescriptorPool(c.device, &pool_info, NULL, &pool));
	set[0] = set_of(pool, s);
	set[1] = set_of(pool, (struct shape){ .set = layout[1] });
	for (uint32_t i = 0; i <= WIDE; i++) {
		VkDescriptorBufferInfo range = { i < WIDE ? other : block, i < WIDE ? 0 : 704512, 256 };
		VkWriteDescriptorSet write = {
			.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, .dstSet = set[i == WIDE], .dstBinding = i % WIDE, .descriptorCount = 1,
			.descriptorType = type_at(i % WIDE), .pBufferInfo = &range,
		};

		vkUpdateDescriptorSets(c.device, 1, &write, 0, NULL);
	}
	start(s);
	vkCmdBindDescriptorSets(b, VK_PIPELINE_BIND_POINT_COMPUTE, s.layout, 0, 2, set, WIDE + 1, offsets);
	dispatch();
	finish();
	uses(704512 + 512, 256, "KERNEL");
	vkDestroyDescriptorPool(c.device, pool, NULL);
	vkDestroyDescriptorSetLayout(c.device, layout[1], NULL);
	shape_end(s);
	vkDestroyBuffer(c.device, other, NULL);
	vkFreeMemory(c.device, memory, NULL);
}

/* Of what it writes, a set keeps so much until it is bound; of the rest it is not known who uses it. */
static void long_template(void)
{
	const VkDescriptorType type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
	VkDescriptorSetLayoutBinding binding[2] = {
		{ 0, type, LONG / 2, VK_SHADER_STAGE_COMPUTE_BIT, NULL }, { 1, type, LONG / 2, VK_SHADER_STAGE_VERTEX_BIT, NULL },
	};
	VkDescriptorSetLayout layout = layout_of(2, binding);
	struct shape s = shape_with(1, &layout);
	VkDescriptorPoolSize size = { type, LONG };
	VkDescriptorPoolCreateInfo pool_info = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = 1, .poolSizeCount = 1, .pPoolSizes = &size };
	VkDescriptorUpdateTemplateEntry entry[LONG];
	VkDescriptorUpdateTemplateCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_UPDATE_TEMPLATE_CREATE_INFO, .descriptorUpdateEntryCount = LONG, .pDescriptorUpdateEntries = entry,
		.templateType = VK_DESCRIPTOR_UPDATE_TEMPLATE_TYPE_DESCRIPTOR_SET, .descriptorSetLayout = layout,
	};
	VkDescriptorBufferInfo data[LONG];
	VkDescriptorPool pool;
	VkDescriptorSet set;

	GOOD(vkCreateDescriptorPool(c.device, &pool_info, NULL, &pool));
	set = set_of(pool, s);
	for (uint32_t i = 0; i < LONG; i++) {
		entry[i] = (VkDescriptorUpdateTemplateEntry){ i / (LONG / 2), i % (LONG / 2), 1, type, i * sizeof *data, 0 };
		data[i] = (VkDescriptorBufferInfo){ block, 720896 + i * 4096, 128 };
		uses(data[i].offset, data[i].range, i < KEPT ? "KERNEL" : "unknown");
	}
	run_with_template(s, set, &info, data);
	vkDestroyDescriptorPool(c.device, pool, NULL);
	shape_end(s);
}

/* ---- transfers ---------------------------------------------------------------------------- */

static void transfers(void)
{
	VkBufferCopy copy[2] = { { 2 << 20, 3 << 20, 4096 }, { (2 << 20) + 8192, (3 << 20) + 8192, 100 } };
	VkBufferCopy2 newer = { .sType = VK_STRUCTURE_TYPE_BUFFER_COPY_2, .srcOffset = 2 << 20, .dstOffset = (3 << 20) + 16384, .size = 4096 };
	VkCopyBufferInfo2 info = {
		.sType = VK_STRUCTURE_TYPE_COPY_BUFFER_INFO_2, .srcBuffer = block, .dstBuffer = block, .regionCount = 1, .pRegions = &newer,
	};
	uint32_t word[4] = { 1, 2, 3, 4 };

	client_begin(b, 0, 0);
	vkCmdCopyBuffer(b, block, block, 2, copy);
	client_barrier(b);
	vkCmdCopyBuffer2(b, &info);
	client_barrier(b);
	vkCmdFillBuffer(b, block, 5 << 20, 65536, 7);
	vkCmdFillBuffer(b, block, BLOCK - 2048, VK_WHOLE_SIZE, 7);
	vkCmdUpdateBuffer(b, block, 6 << 20, sizeof word, word);
	finish();
	for (int i = 0; i < 2; i++) {
		uses(copy[i].srcOffset, copy[i].size, "vkCmdCopyBuffer");
		uses(copy[i].dstOffset, copy[i].size, "vkCmdCopyBuffer");
	}
	uses(newer.dstOffset, newer.size, "vkCmdCopyBuffer");
	uses(5 << 20, 65536, "vkCmdFillBuffer");
	uses(BLOCK - 2048, 2048, "vkCmdFillBuffer");
	uses(6 << 20, sizeof word, "vkCmdUpdateBuffer");
}

/* More ranges than are remembered. */
static void many(void)
{
	VkDeviceMemory memory;
	VkBuffer buffer = slab(&memory);

	client_begin(b, 0, 0);
	for (uint32_t i = 0; i < MANY; i++)
		vkCmdFillBuffer(b, buffer, i * 64, 16, i);
	finish();
	vkDestroyBuffer(c.device, buffer, NULL);
	vkFreeMemory(c.device, memory, NULL);
	say("many %d %d\n", ROOM, MANY - ROOM);
}

/* Descriptors of a buffer that is gone: more than a dispatch is remembered to use, so some are told when they are bound. */
static void stale(void)
{
	const VkDescriptorType type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
	VkDescriptorSetLayoutBinding binding = { 0, type, EACH, 0, NULL };
	VkDescriptorSetLayout layouts[SETS];
	VkPipelineLayoutCreateInfo layout = { .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .setLayoutCount = SETS, .pSetLayouts = layouts };
	VkDescriptorPoolSize size = { type, SETS * EACH };
	VkDescriptorPoolCreateInfo pool_info = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = SETS, .poolSizeCount = 1, .pPoolSizes = &size };
	VkDescriptorSetAllocateInfo take = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, .descriptorSetCount = SETS, .pSetLayouts = layouts };
	VkBuffer gone = client_buffer(&c, SMALL), after;
	VkDeviceMemory memory;
	VkMemoryRequirements need;
	VkDescriptorPool pool;
	VkDescriptorSet set[SETS];
	VkPipelineLayout bound;

	vkGetBufferMemoryRequirements(c.device, gone, &need);
	memory = client_memory(&c, need.size, need.memoryTypeBits);
	GOOD(vkBindBufferMemory(c.device, gone, memory, 0));
	for (int i = 0; i < SETS; i++) {
		binding.stageFlags = i < 2 ? VK_SHADER_STAGE_COMPUTE_BIT : VK_SHADER_STAGE_VERTEX_BIT;  /* a stage may have 32 */
		layouts[i] = layout_of(1, &binding);
	}
	GOOD(vkCreatePipelineLayout(c.device, &layout, NULL, &bound));
	GOOD(vkCreateDescriptorPool(c.device, &pool_info, NULL, &pool));
	take.descriptorPool = pool;
	GOOD(vkAllocateDescriptorSets(c.device, &take, set));
	for (uint32_t i = 0; i < SETS * EACH; i++) {
		VkDescriptorBufferInfo range = { gone, i * 4096, 256 };
		VkWriteDescriptorSet write = {
			.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, .dstSet = set[i / EACH], .dstArrayElement = i % EACH, .descriptorCount = 1,
			.descriptorType = type, .pBufferInfo = &range,
		};

		vkUpdateDescriptorSets(c.device, 1, &write, 0, NULL);
	}
	vkDestroyBuffer(c.device, gone, NULL);
	after = client_buffer(&c, SMALL);
	GOOD(vkBindBufferMemory(c.device, after, memory, 0));
	client_begin(b, 0, 0);
	vkCmdBindDescriptorSets(b, VK_PIPELINE_BIND_POINT_COMPUTE, bound, 0, SETS, set, 0, NULL);
	GOOD(vkResetCommandBuffer(b, 0));
	vkDestroyDescriptorPool(c.device, pool, NULL);
	vkDestroyPipelineLayout(c.device, bound, NULL);
	for (int i = 0; i < SETS; i++)
		vkDestroyDescriptorSetLayout(c.device, layouts[i], NULL);
	vkDestroyBuffer(c.device, after, NULL);
	vkFreeMemory(c.device, memory, NULL);
}

int main(void)
{
	VkDeviceMemory memory;
	size_t sum = 0;

	c.version = VK_API_VERSION_1_3;
	c.extension[0] = VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME;
	client_instance(&c, NULL, 0);
	client_device(&c, NULL);
	c.module = client_module(&c, vk_scale, sizeof vk_scale);
	b = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
	block = slab(&memory);
	sets();
	dynamic();
	pushed();
	templates();
	wide();
	long_template();
	transfers();
	for (size_t i = 0; i < BLOCK; i++)
		sum += marked[i];
	say("union %zu\n", sum);
	many();
	stale();
	vkDestroyBuffer(c.device, block, NULL);
	vkFreeMemory(c.device, memory, NULL);
	vkDestroyShaderModule(c.device, c.module, NULL);
	vkDestroyCommandPool(c.device, c.pool, NULL);
	vkDestroyDevice(c.device, NULL);
	vkDestroyInstance(c.instance, NULL);
	return 0;
}

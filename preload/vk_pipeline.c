/*
 * vk_pipeline.c - shader modules and pipelines: what a dispatch is called, and how large its groups are.
 *
 * The name is the first of these that says something: the one the program gave the pipeline; the entry point, unless it is
 * "main"; the one it gave the module; the source file; the module's hash.
 */
#include "vk.h"
#include "vk_spirv.h"

struct module { struct spirv_module code; const char *name; };

static struct handles modules, pipelines;
static struct pool module_pool = POOL(struct module), pipeline_pool = POOL(struct vk_pipeline);

struct vk_pipeline *vk_pipeline_of(struct vk_device *d, VkPipeline handle) { return handles_find(&pipelines, vk_key(d, (u64)handle)); }

/* ---- modules ---------------------------------------------------------------------------------------- */

VkResult w_vkCreateShaderModule(VkDevice device, const VkShaderModuleCreateInfo *info, const VkAllocationCallbacks *allocator, VkShaderModule *module)
{
	struct vk_device *d = vk_device_of(device);
	u64 begin = api_enter();
	VkResult r = VK_CALL(d, vkCreateShaderModule)(device, info, allocator, module);
	struct module *m = r == VK_SUCCESS && vk_ours(d) && vk_wanted() ? pool_get(&module_pool) : NULL;

	if (m) {
		spirv_read(&m->code, info->pCode, info->codeSize);
		handles_put(&modules, vk_key(d, (u64)*module), m);
	}
	vk_call_note(begin, CALL_BUILD, NAMED("vkCreateShaderModule"), r, NULL, CALLER());
	api_leave();
	return r;
}

void w_vkDestroyShaderModule(VkDevice device, VkShaderModule module, const VkAllocationCallbacks *allocator)
{
	struct vk_device *d = vk_device_of(device);
	struct module *m = vk_ours(d) ? handles_remove(&modules, vk_key(d, (u64)module)) : NULL;

	if (m) {
		spirv_release(&m->code);
		pool_put(&module_pool, m);
	}
	VK_CALL(d, vkDestroyShaderModule)(device, module, allocator);
}

void vk_module_named(struct vk_device *d, VkShaderModule handle, const char *name)
{
	struct module *m = handles_find(&modules, vk_key(d, (u64)handle));

	if (m)
		m->name = vk_text(name);
}

/* ---- names -------------------------------------------------------------------------------------------- */

static bool says_something(const char *entry) { return entry && *entry && !text_equal(entry, "main"); }

/* What the module is called; `text` is room to put it together in. */
static const char *module_words(const struct module *m, const char *entry, char *text, size_t size)
{
	if (m->name && *m->name)
		return m->name;
	if (m->code.file)
		return m->code.file;
	text_join(text, size, entry ? entry : "main", "#");
	text_number(text, size, m->code.hash, 16);
	return text;
}

/* A stage's module may come with it instead of as an object of its own. */
static const struct module *module_of(struct vk_device *d, const VkPipelineShaderStageCreateInfo *stage, struct module *scratch)
{
	const VkShaderModuleCreateInfo *inside = vk_in_chain(stage->pNext, VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
	const VkDebugUtilsObjectNameInfoEXT *name = vk_in_chain(stage->pNext, VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT);

	if (stage->module)
		return handles_find(&modules, vk_key(d, (u64)stage->module));
	if (!inside)
		return NULL;
	spirv_read(&scratch->code, inside->pCode, inside->codeSize);
	scratch->name = name ? name->pObjectName : NULL;
	return scratch;
}

static void pipeline_known(struct vk_device *d, VkPipeline handle, const VkPipelineShaderStageCreateInfo *stage)
{
	struct module scratch = { 0 };
	const struct module *m = module_of(d, stage, &scratch);
	struct vk_pipeline *p = pool_get(&pipeline_pool);
	const struct spirv_entry *e = m && stage->stage == VK_SHADER_STAGE_COMPUTE_BIT ? spirv_find(&m->code, stage->pName, true) : NULL;
	char text[160];

	if (p) {
		p->name = name_number(says_something(stage->pName) || !m ? stage->pName : module_words(m, stage->pName, text, sizeof text));
		p->local = e ? spirv_local(e, stage->pSpecializationInfo) : 0;
		handles_put(&pipelines, vk_key(d, (u64)handle), p);
	}
	spirv_release(&scratch.code);
}

void vk_pipeline_named(struct vk_device *d, VkPipeline handle, const char *name)
{
	struct vk_pipeline *p = vk_pipeline_of(d, handle);

	if (p && *name)
		p->name = name_number(name);
}

/* ---- pipelines ------------------------------------------------------------------------------------------ */

VkResult w_vkCreateComputePipelines(VkDevice device, VkPipelineCache cache, uint32_t count, const VkComputePipelineCreateInfo *infos,
				    const VkAllocationCallbacks *allocator, VkPipeline *list)
{
	struct vk_device *d = vk_device_of(device);
	u64 begin = api_enter();
	VkResult r = VK_CALL(d, vkCreateComputePipelines)(device, cache, count, infos, allocator, list);
	struct args a;

	a.used = 0;
	for (u32 i = 0; vk_ours(d) && vk_wanted() && i < count; i++)
		if (list[i])                    /* the others of the list may have failed */
			pipeline_known(d, list[i], &infos[i].stage);
	args_text(&a, "entry_point", count ? infos[0].stage.pName : "");
	args_number(&a, "pipelines", count);
	vk_call_note(begin, CALL_BUILD, NAMED("vkCreateComputePipelines"), r, &a, CALLER());
	api_leave();
	return r;
}

VkResult w_vkCreateGraphicsPipelines(VkDevice device, VkPipelineCache cache, uint32_t count, const VkGraphicsPipelineCreateInfo *infos,
				     const VkAllocationCallbacks *allocator, VkPipeline *list)
{
	struct vk_device *d = vk_device_of(device);
	u64 begin = api_enter();
	VkResult r = VK_CALL(d, vkCreateGraphicsPipelines)(device, cache, count, infos, allocator, list);
	struct args a;

	a.used = 0;
	args_number(&a, "pipelines", count);
	vk_call_note(begin, CALL_BUILD, NAMED("vkCreateGraphicsPipelines"), r, &a, CALLER());
	api_leave();
	return r;
}

/* Rays begin in this one. */
static const VkPipelineShaderStageCreateInfo *ray_stage(const VkRayTracingPipelineCreateInfoKHR *info)
{
	for (u32 i = 0; i < info->stageCount; i++)
		if (info->pStages[i].stage == VK_SHADER_STAGE_RAYGEN_BIT_KHR)
			return &info->pStages[i];
	return NULL;
}

/* One that is made later, by another thread of the program, goes without a name. */
VkResult w_vkCreateRayTracingPipelinesKHR(VkDevice device, VkDeferredOperationKHR later, VkPipelineCache cache, uint32_t count,
					  const VkRayTracingPipelineCreateInfoKHR *infos, const VkAllocationCallbacks *allocator, VkPipeline *list)
{
	struct vk_device *d = vk_device_of(device);
	u64 begin = api_enter();
	VkResult r = VK_CALL(d, vkCreateRayTracingPipelinesKHR)(device, later, cache, count, infos, allocator, list);
	struct args a;

	a.used = 0;
	for (u32 i = 0; vk_ours(d) && vk_wanted() && r != VK_OPERATION_DEFERRED_KHR && i < count; i++)
		if (list[i] && ray_stage(&infos[i]))
			pipeline_known(d, list[i], ray_stage(&infos[i]));
	args_number(&a, "pipelines", count);
	vk_call_note(begin, CALL_BUILD, NAMED("vkCreateRayTracingPipelinesKHR"), r, &a, CALLER());
	api_leave();
	return r;
}

void w_vkDestroyPipeline(VkDevice device, VkPipeline pipeline, const VkAllocationCallbacks *allocator)
{
	struct vk_device *d = vk_device_of(device);
	struct vk_pipeline *p = vk_ours(d) ? handles_remove(&pipelines, vk_key(d, (u64)pipeline)) : NULL;

	if (p)
		pool_put(&pipeline_pool, p);
	VK_CALL(d, vkDestroyPipeline)(device, pipeline, allocator);
}

/*
 * vk.h - Vulkan: what its files share.
 *
 *   api_vulkan.c    names -> wrappers; vkGet*ProcAddr
 *   vk_objects.c    instances, devices, queues: what is known of them, by handle
 *   vk_create.c     vkCreateDevice, with what timing needs switched on
 *   vk_pools.c      command pools and command buffers
 *   vk_record.c     what is recorded in command buffers, with stamps around it
 *   vk_commands.c   ... the commands that make work
 *   vk_label.c      ... labels and marks between them
 *   vk_stamps.c     query pools of a command buffer; their results are copied on the device
 *   vk_buffer.c     buffers of our own
 *   vk_queries.c    ... one such pool: the driver's, or
 *   vk_bell.c       ... of stamps that we take ourselves, on a device that is the CPU
 *   vk_submit.c     submits: what is in them
 *   vk_hand.c       ... on their way to the driver, with copies of our own behind them and a mark that tells when they are done
 *   vk_post.c       ... those copies (vk_plan.h)
 *   vk_ring.c       where the copies go
 *   vk_wait.c       waits and polls
 *   vk_drain.c      what is done is told; nobody ever waits for it
 *   vk_clock.c      the device's clock
 *   vk_pipeline.c   pipelines: names and local sizes (vk_spirv.c)
 *   vk_memory.c     memory, and what is bound in it
 *   vk_used.c       ... and which ranges of it commands use
 *   vk_sets.c       ... by descriptors
 *   vk_image.c      ... and the bytes that commands on images move
 *   vk_name.c       names that the program gives
 *
 * Objects are found by handle, never by what a handle points to: without a loader that is the driver's own. A handle that
 * is not known (made before us, or past us) is passed on unrecorded.
 */
#ifndef VK_H
#define VK_H

#include "device.h"
#include "handles.h"
#include <vulkan/vulkan.h>

/* Functions of a device that have wrappers ... */
#define VK_WRAPPED(X)                                                                                                   \
	X(vkDestroyDevice) X(vkGetDeviceQueue) X(vkGetDeviceQueue2)                                                     \
	X(vkQueueSubmit) X(vkQueueSubmit2) X(vkQueueBindSparse) X(vkQueuePresentKHR) X(vkAcquireNextImageKHR)           \
	X(vkAcquireNextImage2KHR) X(vkWaitForPresentKHR) X(vkGetQueryPoolResults)                                       \
	X(vkQueueWaitIdle) X(vkDeviceWaitIdle) X(vkWaitForFences) X(vkGetFenceStatus)                                   \
	X(vkWaitSemaphores) X(vkGetSemaphoreCounterValue) X(vkSignalSemaphore)                                          \
	X(vkCreateCommandPool) X(vkDestroyCommandPool) X(vkResetCommandPool)                                            \
	X(vkAllocateCommandBuffers) X(vkFreeCommandBuffers)                                                             \
	X(vkBeginCommandBuffer) X(vkResetCommandBuffer)                                                                 \
	X(vkCmdBindPipeline) X(vkCmdDispatch) X(vkCmdDispatchIndirect) X(vkCmdDispatchBase)                             \
	X(vkCmdCopyBuffer) X(vkCmdCopyBuffer2) X(vkCmdFillBuffer) X(vkCmdUpdateBuffer)                                  \
	X(vkCmdCopyImage) X(vkCmdCopyImage2) X(vkCmdBlitImage) X(vkCmdBlitImage2)                                       \
	X(vkCmdResolveImage) X(vkCmdResolveImage2) X(vkCmdCopyBufferToImage) X(vkCmdCopyBufferToImage2)                 \
	X(vkCmdCopyImageToBuffer) X(vkCmdCopyImageToBuffer2) X(vkCmdClearColorImage) X(vkCmdClearDepthStencilImage)     \
	X(vkCmdTraceRaysKHR) X(vkCmdTraceRaysIndirectKHR) X(vkCmdTraceRaysIndirect2KHR)                                 \
	X(vkCmdBuildAccelerationStructuresKHR) X(vkCmdBuildAccelerationStructuresIndirectKHR)                           \
	X(vkCmdCopyAccelerationStructureKHR) X(vkCmdCopyAccelerationStructureToMemoryKHR)                               \
	X(vkCmdCopyMemoryToAccelerationStructureKHR)                                                                    \
	X(vkCmdExecuteCommands) X(vkCmdBeginRenderPass) X(vkCmdBeginRenderPass2) X(vkCmdBeginRendering)                 \
	X(vkCmdEndRenderPass) X(vkCmdEndRenderPass2) X(vkCmdEndRendering)                                               \
	X(vkCmdBeginDebugUtilsLabelEXT) X(vkCmdEndDebugUtilsLabelEXT) X(vkCmdInsertDebugUtilsLabelEXT)                  \
	X(vkCmdDebugMarkerBeginEXT) X(vkCmdDebugMarkerEndEXT) X(vkCmdDebugMarkerInsertEXT)                              \
	X(vkQueueBeginDebugUtilsLabelEXT) X(vkQueueEndDebugUtilsLabelEXT) X(vkQueueInsertDebugUtilsLabelEXT)            \
	X(vkSetDebugUtilsObjectNameEXT) X(vkDebugMarkerSetObjectNameEXT)                                                \
	X(vkCreateShaderModule) X(vkDestroyShaderModule)                                                                \
	X(vkCreateComputePipelines) X(vkCreateGraphicsPipelines) X(vkCreateRayTracingPipelinesKHR) X(vkDestroyPipeline) \
	X(vkAllocateMemory) X(vkFreeMemory) X(vkMapMemory) X(vkUnmapMemory)                                             \
	X(vkCreateBuffer) X(vkDestroyBuffer) X(vkCreateImage) X(vkDestroyImage)                                         \
	X(vkBindBufferMemory) X(vkBindBufferMemory2) X(vkBindImageMemory) X(vkBindImageMemory2)                         \
	X(vkCreateDescriptorSetLayout) X(vkDestroyDescriptorSetLayout) X(vkAllocateDescriptorSets)                      \
	X(vkFreeDescriptorSets) X(vkResetDescriptorPool) X(vkDestroyDescriptorPool) X(vkUpdateDescriptorSets)           \
	X(vkCreateDescriptorUpdateTemplate) X(vkDestroyDescriptorUpdateTemplate) X(vkUpdateDescriptorSetWithTemplate)   \
	X(vkCmdBindDescriptorSets) X(vkCmdPushDescriptorSetKHR) X(vkCmdPushDescriptorSetWithTemplateKHR)

/* ... those that our own work needs ... */
#define VK_USED(X)                                                                                                      \
	X(vkCreateQueryPool) X(vkDestroyQueryPool) X(vkCmdResetQueryPool) X(vkCmdWriteTimestamp)                        \
	X(vkCmdCopyQueryPoolResults) X(vkCmdPipelineBarrier) X(vkEndCommandBuffer)                                      \
	X(vkCreateSemaphore) X(vkDestroySemaphore) X(vkCreateFence) X(vkDestroyFence) X(vkResetFences)                  \
	X(vkGetBufferMemoryRequirements) X(vkGetImageMemoryRequirements) X(vkGetCalibratedTimestampsEXT)

/* ... and other names of the same. */
#define VK_ALIASES(X)                                                                                                   \
	X(vkQueueSubmit2, vkQueueSubmit2KHR) X(vkWaitSemaphores, vkWaitSemaphoresKHR)                                   \
	X(vkGetSemaphoreCounterValue, vkGetSemaphoreCounterValueKHR) X(vkSignalSemaphore, vkSignalSemaphoreKHR)         \
	X(vkCmdDispatchBase, vkCmdDispatchBaseKHR)                                                                      \
	X(vkCmdCopyBuffer2, vkCmdCopyBuffer2KHR) X(vkCmdCopyImage2, vkCmdCopyImage2KHR)                                 \
	X(vkCmdBlitImage2, vkCmdBlitImage2KHR) X(vkCmdResolveImage2, vkCmdResolveImage2KHR)                             \
	X(vkCmdCopyBufferToImage2, vkCmdCopyBufferToImage2KHR) X(vkCmdCopyImageToBuffer2, vkCmdCopyImageToBuffer2KHR)   \
	X(vkCmdBeginRenderPass2, vkCmdBeginRenderPass2KHR) X(vkCmdBeginRendering, vkCmdBeginRenderingKHR)               \
	X(vkCmdEndRenderPass2, vkCmdEndRenderPass2KHR) X(vkCmdEndRendering, vkCmdEndRenderingKHR)                       \
	X(vkBindBufferMemory2, vkBindBufferMemory2KHR) X(vkBindImageMemory2, vkBindImageMemory2KHR)                     \
	X(vkCreateDescriptorUpdateTemplate, vkCreateDescriptorUpdateTemplateKHR)                                        \
	X(vkDestroyDescriptorUpdateTemplate, vkDestroyDescriptorUpdateTemplateKHR)                                      \
	X(vkUpdateDescriptorSetWithTemplate, vkUpdateDescriptorSetWithTemplateKHR)                                      \
	X(vkCmdPushDescriptorSetKHR, vkCmdPushDescriptorSet)                                                            \
	X(vkCmdPushDescriptorSetWithTemplateKHR, vkCmdPushDescriptorSetWithTemplate)

/* Functions of the instance that have wrappers; and those that we use. */
#define VK_INSTANCE_WRAPPED(X)                                                                                          \
	X(vkDestroyInstance) X(vkEnumeratePhysicalDevices) X(vkEnumeratePhysicalDeviceGroups) X(vkCreateDevice)
#define VK_INSTANCE_USED(X)                                                                                             \
	X(vkGetDeviceProcAddr) X(vkGetPhysicalDeviceProperties) X(vkGetPhysicalDeviceQueueFamilyProperties)             \
	X(vkGetPhysicalDeviceMemoryProperties) X(vkGetPhysicalDeviceFeatures2) X(vkGetPhysicalDeviceProperties2)        \
	X(vkEnumerateDeviceExtensionProperties) X(vkGetPhysicalDeviceCalibrateableTimeDomainsEXT)

#define VK_MEMBER(name) PFN_##name name;
struct vk_functions { VK_WRAPPED(VK_MEMBER) VK_USED(VK_MEMBER) };
struct vk_instance_functions { VK_INSTANCE_WRAPPED(VK_MEMBER) VK_INSTANCE_USED(VK_MEMBER) };

/* For handles that are not known: what the program was last given by dlsym, its GOT or a ProcAddr. */
extern struct vk_functions vk_real;
extern struct vk_instance_functions vk_real_instance;

/* get: the getter that `create` came from; NULL: another way. */
VkResult vk_create_instance(PFN_vkCreateInstance create, PFN_vkGetInstanceProcAddr get, const VkInstanceCreateInfo *info,
			    const VkAllocationCallbacks *allocator, VkInstance *instance, struct caller at);

#define VK_WRAPPER(name) __typeof__(*(PFN_##name)0) w_##name;
VK_WRAPPED(VK_WRAPPER)
VK_INSTANCE_WRAPPED(VK_WRAPPER)

/* ---- instances and devices: vk_objects.c ------------------------------------------------ */

enum { VK_FAMILIES = 16, VK_CHUNKS = 16, VK_PIECES = 8, VK_SLOT_LISTS = 16 };

struct vk_instance {
	VkInstance handle;
	PFN_vkGetInstanceProcAddr get;
	struct vk_instance_functions fn;
	u32 version;                    /* that the program asked for */
	bool properties2;               /* VK_KHR_get_physical_device_properties2 is there, or core */
};

struct vk_family { VkQueueFlags flags; u32 bits; };     /* bits: of its stamps; 0: it has none */

struct vk_device {
	VkDevice handle;
	struct vk_functions fn;
	struct vk_instance *instance;
	VkPhysicalDevice physical;
	u64 number, salt;
	u64 born;                       /* of the process image that made it */
	u32 version;                    /* the lesser of what the program asked for and what the device has */
	u32 families;
	struct vk_family family[VK_FAMILIES];
	VkPhysicalDeviceMemoryProperties memory;
	float period;                   /* ns of a device tick */
	bool cpu;                       /* its memory is the program's heap */
	bool synchronous;               /* its queue goes on when a dispatch is over, not when it has begun */
	u64 begun;                      /* ticks: its making */
	u32 lone_family;                /* of its queue, if it has no more than that one; else ~0 */
	struct vk_bell *bell;           /* we take its stamps; NULL: the driver does */
	bool rendered;                  /* render passes were recorded for it */
	bool timeline;                  /* timeline semaphores are switched on */
	bool hide_timeline, hide_calibrated;    /* by an extension that the program did not ask for: it shall not see it */
	bool calibrated, monotonic;     /* its clock can be read; together with CLOCK_MONOTONIC */
	u64 calibrate_next;             /* ticks: not before this */
	u64 clock_long, clock_at;       /* latest stamp of few bits, extended; when it was seen, CLOCK_MONOTONIC ns */
	const void *drainer;            /* the thread that exits is at it; its end waits for that */
	u32 lock;                       /* of the lists below; for a few instructions, never around a real call */
	struct vk_queue *queues;
	struct vk_pool *pools;
	struct vk_stamps *spare_stamps[VK_CHUNKS];      /* query pools of command buffers that are gone, by size */
};

/* A handle that is not dispatchable means something on its device only. */
static inline u64 vk_key(const struct vk_device *d, u64 handle) { return handle ? handle ^ d->salt : 0; }

struct vk_device *vk_device_of(VkDevice handle);
struct vk_queue *vk_queue_of(VkQueue handle);
struct vk_instance *vk_instance_of(VkInstance handle);
struct vk_instance *vk_physical_instance(VkPhysicalDevice handle);
bool vk_offers(const struct vk_instance *i, VkPhysicalDevice physical, const char *extension);
void vk_device_known(struct vk_device *d);
const void *vk_in_chain(const void *chain, VkStructureType type);
static inline bool vk_wanted(void) { return guest.state == GUEST_ON; }

/* What a process made that we were forked from is passed on as it is: its driver's threads did not come along. */
static inline bool vk_ours(const struct vk_device *d) { return d && d->born == image->born; }
void vk_drain_all(void);                        /* at exit */

/* The function for a handle that may be unknown. */
#define VK_CALL(device, name) ((device) && (device)->fn.name ? (device)->fn.name : vk_real.name)

#define DEVICE(object) ((object) ? (object)->device : NULL)

static inline void vk_call_note(u64 begin, u32 kind, u64 name, VkResult r, const struct args *a, struct caller at)
{
	if (begin)
		call_note(begin, &(struct call){ kind, name, .error = r < 0 ? r : 0 }, a, at);
}

/* ---- command buffers: vk_record.c, vk_stamps.c ------------------------------------------- */

struct vk_op {
	u32 kind;                       /* WORK_* */
	bool indirect;                  /* its size is known to the device only */
	bool in_order;                  /* a synchronous device goes on when it is over */
	u64 name, site, bytes, x, y, z, local;
	const char *label;              /* innermost, or NULL; lives as long as the image */
};

enum { VK_BLOCK_OPS = 31, VK_CHUNK_FIRST = 32, VK_LABELS = 8 };

struct vk_block { struct vk_block *next; u32 used; struct vk_op op[VK_BLOCK_OPS]; };

/* Other command buffers' work in this one: the results of that execution are copied to a range of a buffer. */
struct vk_child {
	struct vk_child *next;
	struct vk_recording *recording;
	VkBuffer buffer;                /* NULL: untimed */
	u64 offset;
};

/* What one vkBegin/EndCommandBuffer recorded. Submits hold it, so it stays when the command buffer is recorded anew. */
struct vk_recording {
	u32 references;
	u32 ops;
	u32 stamped;                    /* all its ops have stamps */
	u32 other;                      /* holds work that is not among them: draws */
	u32 late;                       /* even a synchronous device may go on before it is over */
	u32 total;                      /* ops with those of its children */
	struct vk_block *first, *last;
	struct vk_child *children, **children_end;
	struct vk_queue *queue;         /* last one that it was submitted to, and the mark of that submit */
	u64 mark;
};

struct vk_queries { VkQueryPool pool; VkBuffer buffer; VkDeviceMemory memory; u64 *at; };      /* a pool, or a buffer instead */

struct vk_content;
struct vk_stamps { struct vk_stamps *next; struct vk_queries queries; u32 ops; };      /* two queries an op */
struct vk_range { struct vk_range *next; VkBuffer buffer; VkDeviceMemory memory; u64 bytes, used; };

/* A large buffer, of which ranges are used: vk_used.c */
struct vk_slab { u64 id, bytes; struct vk_pieces *pieces; };           /* id 0: not looked at, or gone */

/* A descriptor that names such a range, and where it is bound. id: of the slab, when it was. */
struct vk_use { struct vk_slab *slab; u64 id, offset, length; u32 slot, binding, element; };

enum { VK_USES = 32 };
struct vk_uses { u32 count; struct vk_use at[VK_USES]; };

struct vk_command_buffer {
	VkCommandBuffer handle;
	struct vk_device *device;
	struct vk_pool *pool;
	struct vk_command_buffer *next, *before;        /* of its pool */
	bool secondary;
	struct vk_recording *recording;
	bool rendering;                 /* inside of a render pass */
	struct vk_pipeline *pipeline, *rays;
	struct vk_uses uses;            /* bound since the last dispatch */
	struct vk_stamps *stamps[VK_CHUNKS];            /* chunk i: VK_CHUNK_FIRST << i ops */
	struct vk_range *ranges;
	u32 labels;
	const char *label[VK_LABELS];
};

struct vk_pool {
	VkCommandPool handle;
	struct vk_device *device;
	struct vk_pool *next, *before;
	u32 family;
	bool stamps;                    /* can be timed */
	struct vk_command_buffer *buffers;
};

struct vk_command_buffer *vk_command_buffer_of(VkCommandBuffer handle);
void vk_recording_begin(struct vk_command_buffer *c, VkCommandBufferUsageFlags flags);
void vk_recording_end(struct vk_command_buffer *c);     /* the command buffer holds none any more */
void vk_recording_drop(struct vk_recording *r);

struct vk_stamp { const struct vk_queries *queries; u32 query; VkPipelineStageFlagBits end; };  /* queries NULL: not timed */
struct vk_stamp vk_op_begin(struct vk_command_buffer *c, const struct vk_op *what, struct caller at);
void vk_op_end(struct vk_command_buffer *c, struct vk_stamp s);
void vk_pools_release(struct vk_device *d);

bool vk_stamps_for(struct vk_command_buffer *c, u32 op, struct vk_stamp *to);
bool vk_stamps_keep(struct vk_command_buffer *c, struct vk_command_buffer *secondary, struct vk_child *child);
void vk_stamps_release(struct vk_command_buffer *c);
void vk_stamps_free(struct vk_device *d);
void vk_stamps_copy(struct vk_command_buffer *from, VkCommandBuffer in, VkBuffer to, u64 offset);
void vk_stamps_tell(const struct vk_command_buffer *from, struct vk_content *to);              /* what that copies */

/* ---- where stamps are kept: vk_queries.c, vk_bell.c --------------------------------------- */

bool vk_queries_make(struct vk_device *d, u32 count, struct vk_queries *q);
void vk_queries_free(struct vk_device *d, const struct vk_queries *q);
void vk_queries_reset(const struct vk_device *d, VkCommandBuffer in, const struct vk_queries *q, u32 count);
void vk_queries_stamp(const struct vk_device *d, VkCommandBuffer in, VkPipelineStageFlagBits stage, const struct vk_queries *q, u32 query);
void vk_queries_copy(const struct vk_device *d, VkCommandBuffer in, const struct vk_queries *q, u32 count, VkBuffer to, u64 offset);
static inline u64 vk_queries_key(const struct vk_queries *q) { return q->pool ? (u64)q->pool : (u64)q->buffer; }       /* 0: there are none */

void vk_bell_start(struct vk_device *d);                /* tries whether we can take the stamps; sets d->bell */
void vk_bell_silence(struct vk_device *d);              /* nobody writes stamps any more. Its queue is idle */
void vk_bell_end(struct vk_device *d);
void vk_bell_record(const struct vk_device *d, VkCommandBuffer in, bool after, u32 number, const u64 *place);

/* Where results go: buffers that the host can read (vk_buffer.c). */
bool vk_buffer_make(struct vk_device *d, u64 bytes, bool host, VkBuffer *buffer, VkDeviceMemory *memory, void **at);
void vk_buffer_free(struct vk_device *d, VkBuffer buffer, VkDeviceMemory memory);
/* What was written to them, by commands of the stage `from`, is seen by those of `to`, or may be overwritten there. */
void vk_barrier(const struct vk_device *d, VkCommandBuffer in, VkPipelineStageFlags from, VkPipelineStageFlags to, VkAccessFlags access);

/* ---- queues: vk_submit.c, vk_ring.c, vk_drain.c ------------------------------------------- */

/* What `post` below copies: results of so many ops of query pools, in this order; then those of the batch as a whole. */
struct vk_content {
	u64 words;
	u32 pieces;
	bool whole;
	bool late;                      /* ... whose end has to be waited for, even on a synchronous device */
	bool odd;                       /* not known, or more than can be told here */
	struct { u64 queries; u32 ops; } piece[VK_PIECES];
};

/* Our own command buffers of one batch: `pre` runs before the program's, `post` after them. */
struct vk_slot {
	struct vk_slot *next;
	VkCommandBuffer pre, post;
	struct vk_queries around;       /* two stamps around the batch, if it is timed as a whole */
	u64 *at, words;                 /* where `post` copies to, as the host sees it */
	VkBuffer buffer;                /* ... and as the device does */
	u64 offset;
	struct vk_content content;      /* of `post` as it is now */
};

/* One command buffer of a submit, or a batch as a whole. */
struct vk_part {
	struct vk_part *next;
	struct vk_recording *recording; /* NULL: the batch as a whole */
	struct vk_command_buffer *from; /* on its way to the driver only; and which of its batch it is */
	u32 index;
	bool early;                     /* its stamps must be taken before the batch is over */
	struct vk_slot *slot;           /* its own, then */
	u64 words;                      /* of its stamps */
	const u64 *stamps;              /* NULL: has none */
	u64 work;                       /* number of its first op */
};

struct vk_arena { struct vk_arena *next; VkBuffer buffer; VkDeviceMemory memory; u64 *at; u64 words, used; };

struct vk_submit {
	struct vk_submit *next;
	u64 mark;                       /* done when the semaphore has got this far */
	VkFence fence;                  /* instead of it */
	VkFence told;                   /* the program's own */
	u64 begin;                      /* ticks */
	u64 seen;                       /* ticks: when it was found done; 0: not yet */
	struct vk_part *parts, **parts_end;
	struct vk_slot *slots;
};

enum { VK_FENCES = 64 };

struct vk_queue {
	VkQueue handle;
	struct vk_device *device;
	struct vk_queue *next;
	u64 number;
	u32 family;
	bool stamps;                    /* can be timed */
	bool ready, broken;             /* our own objects are there; could not be made */
	VkCommandPool pool;
	VkSemaphore semaphore;
	u64 mark, done;                 /* of the last submit; of the last that was seen to be done */
	u32 lock;                       /* of `pending`, `slots` and `fence`; for a few instructions */
	u32 draining;
	struct vk_submit *pending, **pending_end;
	struct vk_slot *slots[VK_SLOT_LISTS];   /* free, by what they hold */
	struct vk_arena *arenas;        /* memory for them: the first is in use */
	VkFence fence[VK_FENCES];       /* free */
	u32 fences;
	u64 observed;                   /* ticks: end of the last work that nobody timed */
	u32 labels;
	const char *label[VK_LABELS];
};

bool vk_ring_start(struct vk_queue *q);                 /* once; false: there is no way to tell when a submit is done */
struct vk_slot *vk_ring_slot(struct vk_queue *q, const struct vk_content *wanted);      /* its content is that, or odd */
void vk_ring_put_slots(struct vk_queue *q, struct vk_slot *list);
VkFence vk_ring_fence(struct vk_queue *q);
void vk_ring_put_fence(struct vk_queue *q, VkFence fence);
void vk_ring_release(struct vk_queue *q);

void vk_drain(struct vk_device *d, u64 now);            /* now: what is found done is taken to have ended then, if nobody timed it */
void vk_drain_failed(struct vk_queue *q);
void vk_seen_fence(struct vk_device *d, VkFence fence, u64 now);       /* the program waited for it */
void vk_seen_idle(struct vk_queue *q, u64 now);
void vk_submit_over(struct vk_queue *q, struct vk_submit *s, u32 status, u64 now);      /* tells its work's end and takes it apart */
struct vk_submit *vk_submit_new(u64 begin);
struct vk_part *vk_submit_part(struct vk_submit *s, struct vk_recording *r);

/* ---- clock: vk_clock.c -------------------------------------------------------------------- */

u64 vk_clock_monotonic(void);                           /* CLOCK_MONOTONIC, ns */
void vk_clock_read(struct vk_device *d, bool now);      /* unless that was done a moment ago */
u64 vk_clock_ns(struct vk_device *d, u32 bits, u64 stamp);
void vk_clock_bound(struct vk_device *d, u64 before, u64 after, u64 ns);

/* ---- pipelines, memory, names -------------------------------------------------------------- */

struct vk_pipeline { u64 name; u64 local; };
struct vk_pipeline *vk_pipeline_of(struct vk_device *d, VkPipeline handle);
void vk_pipeline_named(struct vk_device *d, VkPipeline handle, const char *name);
void vk_module_named(struct vk_device *d, VkShaderModule handle, const char *name);
u64 vk_memory_id(struct vk_device *d, VkObjectType type, u64 handle, const char *name);        /* of what is being named; 0: it has none yet */
void vk_object_named(struct vk_device *d, VkObjectType type, u64 handle, const char *name);
u64 vk_buffer_bytes(struct vk_device *d, VkBuffer buffer);             /* 0: unknown */

struct vk_slab *vk_slab_of(struct vk_device *d, VkBuffer buffer);      /* NULL: none, or a small one */
void vk_slab_use(struct vk_slab *s, u64 offset, u64 length, u64 name);  /* name: of what used it, 0 if unknown */
void vk_slab_missed(struct vk_slab *s);                                 /* which range is not known */
void vk_slab_end(const struct vk_slab *s);
void vk_use_missed(const struct vk_use *use);                           /* its range is not known */
void vk_uses_add(struct vk_command_buffer *c, const struct vk_use *use);
void vk_uses_drop(struct vk_command_buffer *c, u32 slot, u32 binding, u32 element);
void vk_uses_tell(struct vk_command_buffer *c, u64 name);               /* the dispatch is there */

struct vk_image { u32 format, width, height, depth, layers, levels, samples; };
const struct vk_image *vk_image_of(struct vk_device *d, VkImage image); /* NULL: unknown */

/* Regions of a command, of whatever type: where in each of them its layers and its extent lie; or two corners instead of that. */
struct vk_regions { u32 count; const void *first; size_t stride, layers, extent; bool corners, in_buffer; };

u64 vk_bytes_of_regions(struct vk_device *d, VkImage image, struct vk_regions r);      /* or WORK_BYTES_UNKNOWN */
u64 vk_bytes_of_ranges(struct vk_device *d, VkImage image, u32 count, const VkImageSubresourceRange *ranges);
const char *vk_text(const char *text);                                 /* a copy that stays; NULL if there is no room */

#endif

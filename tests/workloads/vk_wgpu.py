"""vk_wgpu.py - a kernel by wgpu on Vulkan, three times."""
import numpy
import wgpu

adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
device = adapter.request_device_sync()
shader = device.create_shader_module(code="""
@group(0) @binding(0) var<storage, read_write> data: array<f32>;
@compute @workgroup_size(64) fn scale_add(@builtin(global_invocation_id) i: vec3<u32>) { data[i.x] = data[i.x] * 2.0 + 1.0; }
""")
numbers = numpy.arange(4096, dtype=numpy.float32)
buffer = device.create_buffer_with_data(data=numbers, usage=wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC)
pipeline = device.create_compute_pipeline(layout="auto", compute={"module": shader, "entry_point": "scale_add"})
group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0),
                                 entries=[{"binding": 0, "resource": {"buffer": buffer, "offset": 0, "size": buffer.size}}])
for _ in range(3):
    encoder = device.create_command_encoder()
    work = encoder.begin_compute_pass()
    work.set_pipeline(pipeline)
    work.set_bind_group(0, group)
    work.dispatch_workgroups(64)
    work.end()
    device.queue.submit([encoder.finish()])
print(adapter.info["backend_type"], numpy.frombuffer(device.queue.read_buffer(buffer), dtype=numpy.float32).sum())

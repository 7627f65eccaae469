"""metal_wgpu.py - two kernels by wgpu on buffers with labels, copied, filled and read back; the numbers are in tests/e2e/metal.py."""
import numpy
import wgpu

CODE = """
@group(0) @binding(0) var<storage, read_write> data: array<f32>;
@compute @workgroup_size(64) fn scale(@builtin(global_invocation_id) i: vec3<u32>) { data[i.x] = data[i.x] * 2.0; }
@compute @workgroup_size(8, 8) fn shift(@builtin(global_invocation_id) i: vec3<u32>) { data[i.y * 64 + i.x] += 1.0; }
"""
USAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST

device = wgpu.gpu.request_adapter_sync(power_preference="high-performance").request_device_sync()
shader = device.create_shader_module(code=CODE)
data = device.create_buffer(size=4096 * 4, usage=USAGE, label="data")
other = device.create_buffer(size=1 << 20, usage=USAGE, label="the other one")
pipelines = {name: device.create_compute_pipeline(layout="auto", compute={"module": shader, "entry_point": name}) for name in ("scale", "shift")}


def run(name, groups, copy):
    pipeline = pipelines[name]
    group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0),
                                     entries=[{"binding": 0, "resource": {"buffer": data, "offset": 0, "size": data.size}}])
    encoder = device.create_command_encoder()
    work = encoder.begin_compute_pass()
    work.set_pipeline(pipeline)
    work.set_bind_group(0, group)
    work.dispatch_workgroups(*groups)
    work.end()
    if copy:
        encoder.copy_buffer_to_buffer(data, 0, other, 0, copy)
        encoder.clear_buffer(other, copy, 4096)
    return encoder.finish()


device.queue.write_buffer(data, 0, numpy.arange(4096, dtype=numpy.float32))
texture = device.create_texture(size=(16, 8, 1), format="rgba8unorm", usage=wgpu.TextureUsage.COPY_DST)
device.queue.write_texture({"texture": texture}, bytes(16 * 8 * 4), {"bytes_per_row": 16 * 4, "rows_per_image": 8}, (16, 8, 1))
for _ in range(3):
    device.queue.submit([run("scale", (64, 1, 1), 0)])
both = [run("shift", (8, 8, 1), 8192), run("scale", (64, 1, 1), 0)]
device.queue.submit([])                                         # sends none of them
device.queue.submit(both)
print(numpy.frombuffer(device.queue.read_buffer(data), dtype=numpy.float32).sum())
other.destroy()

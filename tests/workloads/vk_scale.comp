#version 450
// data[i] = data[i] * factor + offset, `rounds` times; the group's size is a specialization constant
layout(local_size_x_id = 7) in;
layout(constant_id = 9) const uint rounds = 1;
layout(set = 0, binding = 0) buffer Data { uint data[]; };
layout(push_constant) uniform Push { uint factor; uint offset; uint count; };

void main()
{
	uint i = gl_GlobalInvocationID.x;
	if (i >= count)
		return;
	uint v = data[i];
	for (uint k = 0; k < rounds; k++)
		v = v * factor + offset;
	data[i] = v;
}

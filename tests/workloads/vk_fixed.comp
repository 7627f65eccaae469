#version 450
// the group's size stands in the shader
layout(local_size_x = 8, local_size_y = 4, local_size_z = 2) in;
layout(set = 0, binding = 0) buffer Data { uint data[]; };

void main()
{
	data[gl_LocalInvocationIndex + 64 * gl_WorkGroupID.x] += 1;
}

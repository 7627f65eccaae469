/* nccl_user.c - collectives of each kind and type, alone and in a group, between kernels of the same stream; -DHIP: over HIP. */
#include "gpu_runtime.h"
#include "nccl.h"

#include <stdio.h>

static char kernel;

int main(void)
{
	struct nccl_id id = { { [0] = 1, [127] = 9 } };
	struct gpu_dim3 one = { 1, 1, 1 };
	void *comm, *stream, *data;

	GPU_HIDDEN(RegisterFunction)(NULL, &kernel, NULL, "gradients", -1, NULL, NULL, NULL, NULL, NULL);
	GPU(Malloc)(&data, 1 << 20);
	GPU(StreamCreate)(&stream);
	printf("init %d\n", ncclCommInitRank(&comm, 2, id, 1));
	for (int type = NCCL_INT8; type <= NCCL_FLOAT8; type++) {
		GPU(LaunchKernel)(&kernel, one, one, NULL, 1000, stream);
		ncclAllReduce(data, data, 1000, type, 0, comm, stream);
		GPU(StreamSynchronize)(stream);
	}
	ncclGroupStart();
	ncclReduceScatter(data, data, 100, NCCL_HALF, 0, comm, stream);
	ncclReduce(data, data, 200, NCCL_FLOAT, 0, 1, comm, stream);
	ncclBroadcast(data, data, 300, NCCL_DOUBLE, 1, comm, stream);
	ncclAllGather(data, data, 400, NCCL_INT32, comm, stream);
	ncclSend(data, 500, NCCL_BFLOAT16, 1, comm, stream);
	ncclRecv(data, 600, NCCL_INT64, 1, comm, stream);
	ncclGroupEnd();
	GPU(DeviceSynchronize)();
	printf("no type %d\n", ncclAllReduce(data, data, 1, 99, 0, comm, stream));
	ncclCommDestroy(comm);
	return gpu_books();
}

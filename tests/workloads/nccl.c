/* cc: -shared -fPIC */
/* nccl.c - stands in for libnccl.so.2 and librccl.so.1: puts its work on streams of gpu_runtime.c, which keeps the books; a group at its end. */
#include "nccl.h"

#include "gpu_runtime.h"

enum { HELD_MAX = 16, BAD_ARGUMENT = 4 };

static const size_t size_of[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };
static struct { const char *name; size_t bytes; void *stream; } held[HELD_MAX];
static int helds, depth;

static int put(const char *name, size_t count, int type, void *comm, void *stream)
{
	if (!comm || type < 0 || (size_t)type >= sizeof(size_of) / sizeof(*size_of))
		return BAD_ARGUMENT;
	if (!depth)
		return gpu_collective(name, count * size_of[type], stream);
	held[helds].name = name;
	held[helds].stream = stream;
	held[helds++].bytes = count * size_of[type];
	return 0;
}

int ncclCommInitRank(void **comm, int ranks, struct nccl_id id, int rank)
{
	static char communicator;

	*comm = &communicator;
	return id.bytes[0] == 1 && id.bytes[127] == 9 && rank < ranks ? 0 : BAD_ARGUMENT;
}

int ncclCommDestroy(void *comm) { return comm ? 0 : BAD_ARGUMENT; }

int ncclAllReduce(const void *send, void *receive, size_t count, int type, int op, void *comm, void *stream)
{
	(void)send, (void)receive, (void)op;
	return put("ncclAllReduce", count, type, comm, stream);
}

int ncclReduceScatter(const void *send, void *receive, size_t count, int type, int op, void *comm, void *stream)
{
	(void)send, (void)receive, (void)op;
	return put("ncclReduceScatter", count, type, comm, stream);
}

int ncclReduce(const void *send, void *receive, size_t count, int type, int op, int root, void *comm, void *stream)
{
	(void)send, (void)receive, (void)op, (void)root;
	return put("ncclReduce", count, type, comm, stream);
}

int ncclBroadcast(const void *send, void *receive, size_t count, int type, int root, void *comm, void *stream)
{
	(void)send, (void)receive, (void)root;
	return put("ncclBroadcast", count, type, comm, stream);
}

int ncclAllGather(const void *send, void *receive, size_t count, int type, void *comm, void *stream)
{
	(void)send, (void)receive;
	return put("ncclAllGather", count, type, comm, stream);
}

int ncclSend(const void *send, size_t count, int type, int peer, void *comm, void *stream)
{
	(void)send, (void)peer;
	return put("ncclSend", count, type, comm, stream);
}

int ncclRecv(void *receive, size_t count, int type, int peer, void *comm, void *stream)
{
	(void)receive, (void)peer;
	return put("ncclRecv", count, type, comm, stream);
}

int ncclGroupStart(void) { return depth++ < 0; }

int ncclGroupEnd(void)
{
	depth--;
	for (int i = 0; i < helds && !depth; i++)
		gpu_collective(held[i].name, held[i].bytes, held[i].stream);
	helds = depth ? helds : 0;
	return 0;
}

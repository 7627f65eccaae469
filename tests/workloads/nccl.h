/* nccl.h - the part of NCCL's API that nccl.c stands in for; types and order of arguments are those of the public header. */
#ifndef NCCL_H
#define NCCL_H

#include <stddef.h>

struct nccl_id {
	char bytes[128];                /* by value */
};

enum { NCCL_INT8, NCCL_UINT8, NCCL_INT32, NCCL_UINT32, NCCL_INT64, NCCL_UINT64, NCCL_HALF, NCCL_FLOAT, NCCL_DOUBLE, NCCL_BFLOAT16, NCCL_FLOAT8 };

int ncclCommInitRank(void **comm, int ranks, struct nccl_id id, int rank);
int ncclCommDestroy(void *comm);
int ncclAllReduce(const void *send, void *receive, size_t count, int type, int op, void *comm, void *stream);
int ncclReduceScatter(const void *send, void *receive, size_t count, int type, int op, void *comm, void *stream);
int ncclReduce(const void *send, void *receive, size_t count, int type, int op, int root, void *comm, void *stream);
int ncclBroadcast(const void *send, void *receive, size_t count, int type, int root, void *comm, void *stream);
int ncclAllGather(const void *send, void *receive, size_t count, int type, void *comm, void *stream);
int ncclSend(const void *send, size_t count, int type, int peer, void *comm, void *stream);
int ncclRecv(void *receive, size_t count, int type, int peer, void *comm, void *stream);
int ncclGroupStart(void);
int ncclGroupEnd(void);

#endif

/*
 * mpi_calls.c - ranks that send each other things in many ways; each says "rank R did FUNCTION TIMES BYTES": what it
 * handed over.
 *
 * All lines are printed by rank 0, in the order of the ranks, so that the output is the same each time. Where the library is one
 * of MPI 4, its functions with counts of 64 bits are called as well.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { LINES = 64, LINE = 64, MANY = 1000 };

static char books[LINES][LINE];
static int lines, rank, ranks;

static void did(const char *function, int times, long bytes)
{
	snprintf(books[lines++], LINE, "rank %d did %s %d %ld", rank, function, times, bytes);
}

/* To the next rank, from the one before. */
static void messages(double *a, double *b)
{
	int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
	MPI_Request requests[2];
	MPI_Status statuses[2];

	for (int i = 0; i < 5; i++) {
		if (rank % 2) {
			MPI_Recv(b, MANY, MPI_DOUBLE, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(a, 10 * (rank + 1), MPI_DOUBLE, next, 1, MPI_COMM_WORLD);
		} else {
			MPI_Send(a, 10 * (rank + 1), MPI_DOUBLE, next, 1, MPI_COMM_WORLD);
			MPI_Recv(b, MANY, MPI_DOUBLE, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		}
	}
	did("MPI_Send", 5, 5 * 10 * (rank + 1) * sizeof(double));
	did("MPI_Recv", 5, 0);
	for (int i = 0; i < 3; i++) {
		MPI_Irecv(b, MANY, MPI_FLOAT, before, 2, MPI_COMM_WORLD, &requests[0]);
		MPI_Isend(a, 7, MPI_FLOAT, next, 2, MPI_COMM_WORLD, &requests[1]);
		MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
		MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
	}
	did("MPI_Irecv", 3, 0);
	did("MPI_Isend", 3, 3 * 7 * sizeof(float));
	did("MPI_Wait", 6, 0);
	MPI_Irecv(b, 9, MPI_INT, before, 3, MPI_COMM_WORLD, &requests[0]);
	MPI_Isend(a, 9, MPI_INT, next, 3, MPI_COMM_WORLD, &requests[1]);
	MPI_Waitall(2, requests, statuses);
	did("MPI_Irecv", 1, 0);
	did("MPI_Isend", 1, 9 * sizeof(int));
	did("MPI_Waitall", 1, 0);
	MPI_Sendrecv_replace(a, 23, MPI_CHAR, next, 7, before, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	did("MPI_Sendrecv_replace", 1, 23);
	MPI_Sendrecv(a, 21, MPI_CHAR, next, 4, b, 21, MPI_CHAR, before, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	did("MPI_Sendrecv", 1, 21);
	MPI_Send(a, 24, MPI_CHAR, rank ? MPI_PROC_NULL : 1, 8, MPI_COMM_WORLD);
	MPI_Recv(b, 24, MPI_CHAR, rank == 1 ? 0 : MPI_PROC_NULL, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	did("MPI_Send", 1, rank ? 0 : 24);
	did("MPI_Recv", 1, 0);
}

static double collectives(double *a, double *b)
{
	MPI_Datatype pair;
	MPI_Request request;
	double sum = 0;

	for (int i = 0; i < 4; i++)
		MPI_Allreduce(a, b, 100, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	did("MPI_Allreduce", 4, 4 * 100 * sizeof(double));
	sum = b[3];
	MPI_Reduce(a, b, 11, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
	did("MPI_Reduce", 1, 11 * sizeof(int));
	MPI_Bcast(a, 33, MPI_SHORT, 2, MPI_COMM_WORLD);
	did("MPI_Bcast", 1, rank == 2 ? 33 * sizeof(short) : 0);
	MPI_Alltoall(a, 6, MPI_LONG, b, 6, MPI_LONG, MPI_COMM_WORLD);
	did("MPI_Alltoall", 1, 6 * sizeof(long) * ranks);
	MPI_Allgather(a, 12, MPI_DOUBLE, b, 12, MPI_DOUBLE, MPI_COMM_WORLD);
	did("MPI_Allgather", 1, 12 * sizeof(double));
	MPI_Gather(a, 13, MPI_BYTE, b, 13, MPI_BYTE, 1, MPI_COMM_WORLD);
	did("MPI_Gather", 1, 13);
	MPI_Scatter(a, 14, MPI_FLOAT, b, 14, MPI_FLOAT, 0, MPI_COMM_WORLD);
	did("MPI_Scatter", 1, rank == 0 ? 14 * sizeof(float) * ranks : 0);
	if (rank == 3) {        /* its own part is where it belongs; who is not the root need not say what is sent */
		MPI_Scatter(a, 19, MPI_FLOAT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, 3, MPI_COMM_WORLD);
		MPI_Gather(MPI_IN_PLACE, 1000, MPI_DOUBLE, a, 19, MPI_FLOAT, 3, MPI_COMM_WORLD);
	} else {
		MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, b, 19, MPI_FLOAT, 3, MPI_COMM_WORLD);
		MPI_Gather(b, 19, MPI_FLOAT, NULL, 0, MPI_DATATYPE_NULL, 3, MPI_COMM_WORLD);
	}
	did("MPI_Scatter", 1, rank == 3 ? 19 * sizeof(float) * ranks : 0);
	did("MPI_Gather", 1, rank == 3 ? 0 : 19 * sizeof(float));
	MPI_Type_contiguous(2, MPI_DOUBLE, &pair);      /* a type of our own */
	MPI_Type_commit(&pair);
	MPI_Ibcast(a, 15, pair, 0, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	did("MPI_Ibcast", 1, rank == 0 ? 15 * 2 * sizeof(double) : 0);
	did("MPI_Wait", 1, 0);
	MPI_Type_free(&pair);
	for (int i = 0; i < 7; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	did("MPI_Barrier", 7, 0);
	return sum;
}

/* Two communicators of two ranks each; MPICH's have numbers whose highest bit is set. */
static void halves(double *a, double *b)
{
	MPI_Comm half;
	int place, places;

	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	MPI_Comm_rank(half, &place);
	MPI_Comm_size(half, &places);
	MPI_Bcast(a, 16, MPI_DOUBLE, 1, half);
	did("MPI_Bcast", 1, place == 1 ? 16 * sizeof(double) : 0);
	MPI_Scatter(a, 17, MPI_DOUBLE, b, 17, MPI_DOUBLE, 1, half);
	did("MPI_Scatter", 1, place == 1 ? 17 * sizeof(double) * places : 0);
	MPI_Alltoall(a, 18, MPI_DOUBLE, b, 18, MPI_DOUBLE, half);
	did("MPI_Alltoall", 1, 18 * sizeof(double) * places);
	MPI_Comm_free(&half);
}

static void wide(double *a, double *b)
{
#if MPI_VERSION >= 4
	int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
	MPI_Request requests[2];

	MPI_Irecv_c(b, 20, MPI_INT, before, 5, MPI_COMM_WORLD, &requests[0]);
	MPI_Isend_c(a, 20, MPI_INT, next, 5, MPI_COMM_WORLD, &requests[1]);
	MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	did("MPI_Irecv_c", 1, 0);
	did("MPI_Isend_c", 1, 20 * sizeof(int));
	did("MPI_Waitall", 1, 0);
	MPI_Sendrecv_c(a, 22, MPI_CHAR, next, 6, b, 22, MPI_CHAR, before, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	did("MPI_Sendrecv_c", 1, 22);
	MPI_Bcast_c(a, 34, MPI_SHORT, 1, MPI_COMM_WORLD);
	did("MPI_Bcast_c", 1, rank == 1 ? 34 * sizeof(short) : 0);
	MPI_Allreduce_c(a, b, 101, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	did("MPI_Allreduce_c", 1, 101 * sizeof(double));
	MPI_Alltoall_c(a, 7, MPI_LONG, b, 7, MPI_LONG, MPI_COMM_WORLD);
	did("MPI_Alltoall_c", 1, 7 * sizeof(long) * ranks);
	MPI_Allgather_c(a, 13, MPI_DOUBLE, b, 13, MPI_DOUBLE, MPI_COMM_WORLD);
	did("MPI_Allgather_c", 1, 13 * sizeof(double));
	MPI_Scatter_c(a, 15, MPI_FLOAT, b, 15, MPI_FLOAT, 0, MPI_COMM_WORLD);
	did("MPI_Scatter_c", 1, rank == 0 ? 15 * sizeof(float) * ranks : 0);
#else
	(void)a, (void)b;
#endif
}

static void tell(double sum)
{
	static char all[64][LINES][LINE];

	did("MPI_Gather", 1, sizeof(books));
	did("MPI_Init", 1, 0);
	did("MPI_Finalize", 1, 0);
	MPI_Gather(books, sizeof(books), MPI_CHAR, all, sizeof(books), MPI_CHAR, 0, MPI_COMM_WORLD);
	for (int r = 0; r < ranks && !rank; r++)
		for (int i = 0; i < LINES && all[r][i][0]; i++)
			puts(all[r][i]);
	if (!rank)
		printf("%g\n", sum);
}

int main(int count, char **word)
{
	static double a[MANY], b[4 * MANY];

	MPI_Init(&count, &word);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int i = 0; i < MANY; i++)
		a[i] = rank + i;
	messages(a, b);
	halves(a, b);
	wide(a, b);
	tell(collectives(a, b));
	MPI_Finalize();
	return 0;
}

/* cc: -shared -fPIC -Wl,-Bsymbolic */
/*
 * tensorflow.c - stands in for libtensorflow.so: see tensorflow.h. The real one is a download of 270 MB.
 *
 * A status is one word, as there: where all is well its code, 0, stands above two bits; an error has a pointer.
 */
#include "tensorflow.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 2, US = 1000 };

struct tensor {
	void *data;
	void (*release)(void *, size_t, void *);
	void *argument;
	size_t bytes;
};

static void say(void *status, int good)
{
	static const char why[] = "an error";

	*(unsigned long *)status = good ? SUCCESS : (unsigned long)why;
}

void *TF_NewStatus(void)
{
	unsigned long *status = malloc(sizeof(*status));

	say(status, 1);
	return status;
}

void *TF_NewTensor(int type, const long *sizes, int rank, void *data, size_t bytes, void (*release)(void *, size_t, void *), void *argument)
{
	struct tensor *t = malloc(sizeof(*t));

	(void)sizes, (void)rank;
	*t = (struct tensor) { data, release, argument, bytes };
	return type ? t : NULL;
}

static void release(void *data, size_t bytes, void *argument)
{
	(void)bytes, (void)argument;
	free(data);
}

void *TF_AllocateTensor(int type, const long *sizes, int rank, size_t bytes)
{
	return TF_NewTensor(type, sizes, rank, malloc(bytes), bytes, release, NULL);
}

void TF_DeleteTensor(void *tensor)
{
	struct tensor *t = tensor;

	if (!t)
		return;
	t->release(t->data, t->bytes, t->argument);
	free(t);
}

void *TFE_NewOp(void *context, const char *name, void *status)
{
	say(status, context && *name);
	return context && *name ? strdup(name) : NULL;
}

void TFE_OpReset(void *op, const char *name, const char *device, void *status)
{
	(void)device;
	strcpy(op, name);
	say(status, 1);
}

void TFE_Execute(void *op, void **results, int *count, void *status)
{
	(void)results;
	usleep(US);
	say(status, *count == 1 && op);
}

void TF_SessionRun(void *session, const void *options, const void *inputs, void *const *values, int input_count, const void *outputs, void **results,
		   int output_count, const void *const *targets, int target_count, void *metadata, void *status)
{
	(void)options, (void)inputs, (void)values, (void)outputs, (void)results, (void)targets, (void)metadata;
	usleep(US);
	say(status, session && input_count == 2 && output_count == 3 && target_count == 4);
}

void *TF_LoadSessionFromSavedModel(const void *options, const void *run_options, const char *directory, const char *const *tags, int tag_count,
				   void *graph, void *metadata, void *status)
{
	static char session;

	(void)options, (void)run_options, (void)tags, (void)graph, (void)metadata;
	say(status, tag_count == 1 && !access(directory, R_OK));
	return &session;
}

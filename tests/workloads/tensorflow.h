/* tensorflow.h - the part of TensorFlow's C API that tensorflow.c stands in for; types and order of arguments are those of the public headers. */
#ifndef TENSORFLOW_H
#define TENSORFLOW_H

#include <stddef.h>

void *TF_NewStatus(void);
void *TF_AllocateTensor(int type, const long *sizes, int rank, size_t bytes);
void *TF_NewTensor(int type, const long *sizes, int rank, void *data, size_t bytes, void (*release)(void *, size_t, void *), void *argument);
void TF_DeleteTensor(void *tensor);
void *TFE_NewOp(void *context, const char *name, void *status);
void TFE_OpReset(void *op, const char *name, const char *device, void *status);
void TFE_Execute(void *op, void **results, int *count, void *status);
void TF_SessionRun(void *session, const void *options, const void *inputs, void *const *values, int input_count, const void *outputs, void **results,
		   int output_count, const void *const *targets, int target_count, void *metadata, void *status);
void *TF_LoadSessionFromSavedModel(const void *options, const void *run_options, const char *directory, const char *const *tags, int tag_count,
				   void *graph, void *metadata, void *status);

#endif

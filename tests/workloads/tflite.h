/* tflite.h - the part of TensorFlow Lite's C API that tflite.c stands in for; types and order of arguments are those of the public header. */
#ifndef TFLITE_H
#define TFLITE_H

#include <stddef.h>

void *TfLiteModelCreate(const void *data, size_t bytes);
void *TfLiteModelCreateFromFile(const char *path);
void *TfLiteInterpreterCreate(const void *model, const void *options);
int TfLiteInterpreterAllocateTensors(void *interpreter);
int TfLiteInterpreterInvoke(void *interpreter);
void *TfLiteInterpreterGetInputTensor(const void *interpreter, int index);
const void *TfLiteInterpreterGetOutputTensor(const void *interpreter, int index);
int TfLiteTensorCopyFromBuffer(void *tensor, const void *data, size_t bytes);
int TfLiteTensorCopyToBuffer(const void *tensor, void *data, size_t bytes);
void tflite_books(void);                /* "invoked N from F to T" */

#endif

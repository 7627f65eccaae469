/* tflite_user.c - loads a model, runs it seven times, and does three things that fail. */
#include "tflite.h"

#include <stdio.h>

int main(int argc, char **argv)
{
	float data[64] = { 1 }, result[64];
	void *model = TfLiteModelCreateFromFile(argv[argc - 1]), *interpreter = TfLiteInterpreterCreate(model, NULL);

	printf("too early %d, no file %d\n", TfLiteInterpreterInvoke(interpreter), TfLiteModelCreateFromFile("/none") == NULL);
	TfLiteInterpreterAllocateTensors(interpreter);
	for (int i = 0; i < 7; i++) {
		TfLiteTensorCopyFromBuffer(TfLiteInterpreterGetInputTensor(interpreter, 0), data, sizeof(data));
		TfLiteInterpreterInvoke(interpreter);
	}
	printf("too few %d\n", TfLiteTensorCopyFromBuffer(TfLiteInterpreterGetInputTensor(interpreter, 0), data, 4));
	TfLiteTensorCopyToBuffer(TfLiteInterpreterGetOutputTensor(interpreter, 0), result, sizeof(result));
	printf("%g\n", result[0]);
	tflite_books();
	return 0;
}

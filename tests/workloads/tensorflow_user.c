/* tensorflow_user.c - eager operations, session runs and tensors; some calls fail. The numbers are in tests/e2e/runtimes.py. */
#include "tensorflow.h"

#include <stdio.h>

static int good(const void *status) { return *(const unsigned long *)status < 4; }
static void keep(void *data, size_t bytes, void *argument) { (void)data, (void)bytes, (void)argument; }

static void eager(void *context, void *status)
{
	void *op = TFE_NewOp(context, "MatMul__", status), *result;
	int one = 1, many = 9;

	TFE_OpReset(op, "MatMul", NULL, status);
	for (int i = 0; i < 6; i++)
		TFE_Execute(op, &result, &one, status);
	TFE_Execute(op, &result, &many, status);
	printf("too many results %d\n", good(status));
	op = TFE_NewOp(context, "Relu", status);
	TFE_Execute(op, &result, &one, status);
}

static void tensors(void)
{
	static char own[5000];
	long sizes[] = { 100, 100 };
	void *a = TF_AllocateTensor(1, sizes, 2, 40000), *b = TF_AllocateTensor(1, sizes, 2, 40000), *c = TF_NewTensor(1, sizes, 2, own, sizeof(own), keep, NULL);

	TF_DeleteTensor(a);
	TF_DeleteTensor(c);
	TF_DeleteTensor(NULL);
	printf("no type %d\n", TF_NewTensor(0, sizes, 2, own, 1, keep, NULL) == NULL);
	a = TF_AllocateTensor(1, sizes, 2, 10000);
	TF_DeleteTensor(a);
	(void)b;                        /* stays */
}

static void sessions(void *status)
{
	const char *tags[] = { "serve" };
	void *session = TF_LoadSessionFromSavedModel(NULL, NULL, "/", tags, 1, NULL, NULL, status);

	for (int i = 0; i < 3; i++)
		TF_SessionRun(session, NULL, NULL, NULL, 2, NULL, NULL, 3, NULL, 4, NULL, status);
	TF_SessionRun(NULL, NULL, NULL, NULL, 2, NULL, NULL, 3, NULL, 4, NULL, status);
	printf("no session %d\n", good(status));
	TF_LoadSessionFromSavedModel(NULL, NULL, "/none", tags, 1, NULL, NULL, status);
	printf("no model %d\n", good(status));
}

int main(void)
{
	int context;

	eager(&context, TF_NewStatus());
	tensors();
	sessions(TF_NewStatus());
	return 0;
}

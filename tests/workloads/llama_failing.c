/*
 * llama_failing.c - a stand-in for libllama.so (-DLIBRARY) whose calls fail, and a program that calls it: three of five decodes are of
 * a full cache.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct llama_batch { int n_tokens; void *rest[6]; };
struct params { void *all[12]; };

int llama_decode(void *context, struct llama_batch batch);
void *llama_model_load_from_file(const char *path, struct params params);
bool llama_state_load_file(void *context, const char *path, int *tokens, size_t room, size_t *count);

#ifdef LIBRARY
int llama_decode(void *context, struct llama_batch batch) { return context ? 0 : batch.n_tokens > 0; }
void *llama_model_load_from_file(const char *path, struct params params) { return *path ? params.all[0] : NULL; }
bool llama_state_load_file(void *context, const char *path, int *tokens, size_t room, size_t *count) { return context && path && tokens && room && count; }
#else
int main(void)
{
	struct params params = { { &params } };
	struct llama_batch batch = { 64, { NULL } };
	int failed = 0, tokens;
	size_t count;

	failed += !llama_model_load_from_file("", params);
	failed += !llama_model_load_from_file("there", params);
	failed += !llama_state_load_file(NULL, "state", &tokens, 1, &count);
	for (int i = 0; i < 5; i++)
		failed += llama_decode(i % 2 ? &batch : NULL, batch) != 0;
	printf("%d failed\n", failed);
	return 0;
}
#endif

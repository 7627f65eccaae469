// cc: -pthread
// card_user.cc - uses every function of card.h; the numbers are in tests/e2e/probe_roles.py.
#include "card.h"

#include <cstdio>
#include <cstring>
#include <stdexcept>

static char relu, softmax;      // their addresses are the handles

static void memory()
{
	void *weights, *cache, *none;

	card_malloc(&weights, 3 << 20, "weights");
	card_malloc(&cache, 1 << 20, "cache");
	printf("malloc says %d\n", card_malloc(&none, 1ul << 40, "too much"));
	static char from[100000];
	for (int i = 0; i < 10; i++)
		card_copy(weights, from, sizeof(from), 1);
	card_copy(from, weights, 50000, 2);
	card_free(weights);
	card_malloc(&weights, 1 << 19, "again");
	card_release(weights);
	// cache is never freed
}

static void compute()
{
	void *queue[2] = { card_queue(), card_queue() }, *encoder[2] = { card_encoder(queue[0]), card_encoder(queue[1]) };

	card_register(&relu, "relu");
	card_register(&softmax, "softmax");
	for (int i = 0; i < 4; i++) {
		card_use(encoder[0], &relu);
		card_launch(encoder[0], grid { 100, 20, 3 }, 3000);
		card_use(encoder[0], &softmax);
		card_launch(encoder[0], grid { 7, 1, 1 }, 2000);
		card_submit(queue[0]);
		card_use(encoder[1], &relu);
		card_launch(encoder[1], grid { 5, 5, 5 }, 1000);
		card_submit(queue[1]);
		card_wait(queue[0]);
		card_wait(queue[1]);
	}
	card_launch(encoder[1], grid { 1, 1, 1 }, 0);   // never submitted
	card_release(queue[1]);
}

int main()
{
	memory();
	compute();
	for (int i = 0; i < 5; i++)
		card_level(i * 1.5);
	card_note(7);
	card_books();
}

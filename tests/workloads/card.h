/* card.h - a make-believe accelerator with the shape of such libraries: memory, functions with names, queues, waits. */
#ifndef CARD_H
#define CARD_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct grid {
	unsigned long x, y, z;          /* by value: on the stack */
};

int card_malloc(void **to, size_t bytes, const char *label);    /* 0, or 2: more than the card has */
void card_free(void *memory);
void card_release(void *object);                                /* memory or a queue */
void *card_queue(void);
void card_register(const void *function, const char *name);
void *card_encoder(void *queue);
void card_use(void *encoder, const void *function);
void card_launch(void *encoder, struct grid grid, int us);
void card_submit(void *queue);
int card_wait(void *queue);
void card_copy(void *to, const void *from, size_t bytes, int kind);
double card_level(double value);
void card_note(int epoch);
void card_books(void);                                          /* "ran NAME QUEUE START_NS END_NS" a line */

#ifdef __cplusplus
}
#endif

#endif

// cc: -shared -fPIC
/* a plugin that defines what other plugins define too: -DNUMBER=n says which one this is */
#include <stdlib.h>

void host_register(long (*f)(void));
long host_number(void);

long p_data = 100 + NUMBER;             /* not a function, though its name looks like one */

long p_which(void) { return NUMBER; }

/* Which one this means is ld.so's business: its own, or that of somebody in the global scope. */
long p_ask(void) { return 10 * p_which(); }
long p_ask_data(void) { return p_data; }

#ifdef REGISTERS
/* Nobody asks dlsym for anything of this one. */
__attribute__((constructor)) static void start(void) { host_register(p_ask); }
#endif

#ifdef ASKS_HOST
long p_ask_host(void) { return 10 * host_number(); }
#endif

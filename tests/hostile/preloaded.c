// cc: -shared -fPIC
/* a preload library of the user's own */
#include <stdlib.h>

__attribute__((constructor)) static void hello(void)
{
	setenv("PRELOADED_HELLO", "1", 1);
}

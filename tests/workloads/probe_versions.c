// cc: -shared -fPIC
/* a library with two versions of one function; the old one is asked for by programs that were linked to it */
long old_get(void);
long new_get(void);
long old_get(void) { return 1; }
long new_get(void) { return 2; }
__asm__(".symver old_get,p_get@V1");
__asm__(".symver new_get,p_get@@V2");

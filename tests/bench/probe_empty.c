/* cc: -shared -fPIC */
/* the functions that probe_call.c calls */
long p_empty(long a);
long p_values(long a, long b, const char *text);

long p_empty(long a) { return a + 1; }
long p_values(long a, long b, const char *text) { return a + b + text[0]; }

/*
 * say.h - messages for the user, on stderr, each one line that starts with "mlprof: ".
 */
#ifndef SAY_H
#define SAY_H

/* What mlprof's own exit statuses mean; the same numbers as env(1), nohup(1) and timeout(1) use. */
enum { EXIT_MLPROF = 125, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127, EXIT_USAGE = 2 };

/* Written with one write(), so that lines of several processes do not mix. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The candidate that the user may have meant, or NULL if none is near; candidates end with NULL. */
const char *nearest(const char *word, const char *const *candidates);

#endif

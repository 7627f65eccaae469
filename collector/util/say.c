/* say.c - messages for the user. */
#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void say(const char *format, ...)
{
	char line[2048];
	int used = snprintf(line, sizeof line, "mlprof: ");
	va_list args;

	va_start(args, format);
	int more = vsnprintf(line + used, sizeof line - used - 1, format, args);
	va_end(args);
	used += more < 0 ? 0 : more;
	if (used > (int)sizeof line - 2)
		used = sizeof line - 2;
	line[used++] = '\n';
	if (write(2, line, used) < 0)
		return;         /* there is nowhere left to say it */
}

enum { WORD_MAX = 32 };

static int least(int a, int b, int c)
{
	int m = a < b ? a : b;

	return m < c ? m : c;
}

/* How many letters must be put in, left out or changed. */
static int distance(const char *a, const char *b)
{
	int row[WORD_MAX + 1], n = strlen(b);

	if (strlen(a) > WORD_MAX || n > WORD_MAX)
		return WORD_MAX;
	for (int j = 0; j <= n; j++)
		row[j] = j;
	for (int i = 1; a[i - 1]; i++) {
		int corner = row[0];

		row[0] = i;
		for (int j = 1; j <= n; j++) {
			int above = row[j];

			row[j] = least(above + 1, row[j - 1] + 1, corner + (a[i - 1] != b[j - 1]));
			corner = above;
		}
	}
	return row[n];
}

const char *nearest(const char *word, const char *const *candidates)
{
	const char *best = NULL;
	int best_distance = strlen(word) / 3 + 2;

	for (; *candidates; candidates++) {
		int d = distance(word, *candidates);

		if (d < best_distance) {
			best_distance = d;
			best = *candidates;
		}
	}
	return best;
}

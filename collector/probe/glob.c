/*
 * glob.c - see glob.h.
 */
#include "glob.h"

#include <string.h>

bool glob_fits(const char *glob, const char *text)
{
	const char *star = NULL, *from = NULL;

	while (*text) {
		if (*glob == '*') {
			star = ++glob;
			from = text;
		} else if (*glob == '?' || *glob == *text) {
			glob++;
			text++;
		} else if (star) {
			glob = star;
			text = ++from;
		} else {
			return false;
		}
	}
	while (*glob == '*')
		glob++;
	return !*glob;
}

const char *glob_wild(const char *glob, const char *text, size_t *length)
{
	size_t before = strcspn(glob, "*");

	*length = 0;
	if (!glob[before] || strlen(text) < before)
		return text;
	text += before;
	while (text[*length] && !glob_fits(glob + before + 1, text + *length))
		++*length;
	return text;
}

/*
 * stream.c - node numbers of a stream, where chunks may have been lost between them.
 */
#include "window.h"

u32 stream_node(const struct stream *s, u32 number)
{
	u32 low = 0, high = s->runs, end, i;

	if (number > NODE_RESTART / 2 && s->restart)
		high = s->restart;
	else
		low = s->restart;
	while (high - low > 1) {
		u32 mid = (low + high) / 2;

		if (s->run[mid].first <= number)
			low = mid;
		else
			high = mid;
	}
	end = low + 1 < s->runs ? s->run[low + 1].at : s->nodes;
	i = number - s->run[low].first;
	return i < end - s->run[low].at ? s->run[low].at + i : 0;
}

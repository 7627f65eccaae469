/* status.c - the live line on a terminal. */
#include "status.h"
#include "util/buf.h"
#include "util/units.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define TURN_NS 250000000ull
#define FIRST_NS 500000000ull           /* short runs show nothing */
enum { ROWS_MIN = 4 };

static u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

void status_init(struct status *s, bool wanted)
{
	const char *term = getenv("TERM");

	*s = (struct status){ .wanted = wanted && isatty(2) && !(term && !strcmp(term, "dumb")) };
	s->next_ns = now_ns() + FIRST_NS;
}

int status_due_ms(const struct status *s)
{
	u64 now = now_ns();

	if (!s->wanted)
		return -1;
	return s->next_ns <= now ? 0 : (s->next_ns - now) / 1000000 + 1;
}

static bool in_foreground(void)
{
	pid_t group = tcgetpgrp(2);

	return group < 0 || group == getpgrp();         /* < 0: not our controlling terminal, so nobody else's job */
}

static bool reads_single_keys(void)
{
	struct termios t;

	return !tcgetattr(2, &t) && !(t.c_lflag & ICANON);
}

static struct winsize terminal_size(void)
{
	struct winsize w;

	return ioctl(2, TIOCGWINSZ, &w) ? (struct winsize){ 0 } : w;
}

/* The region leaves the last row out; setting it moves the cursor, which must come back where it was. One step
 * down first (ESC D keeps the column, which a newline would not) makes sure that it is not on the last row itself. */
static void reserve_row(struct buf *b, int rows)
{
	buf_print(b, "\033D\0337\033[1;%dr\0338\033[1A", rows - 1);
}

static void erase(struct status *s, struct buf *b)
{
	if (s->rows)
		buf_print(b, "\0337\033[r\033[%d;1H\033[K\0338", s->rows);
	else
		buf_text(b, "\r\033[K");
	s->shown = false;
}

static void write_line(struct status *s, struct buf *b, const char *line)
{
	if (s->rows)
		buf_print(b, "\0337\033[%d;1H\033[K%s\0338", s->rows, line);
	else
		buf_print(b, "\r%s\033[K", line);
}

/* What is wider than the terminal would go on in the next row, which is not ours. */
static void compose(struct status *s, const struct recording_now *now, u64 at, unsigned columns, struct buf *line)
{
	double seconds = s->last_ns ? (at - s->last_ns) / 1e9 : now->elapsed_ns / 1e9;

	buf_print(line, "mlprof: %.1f s  live %s  peak %s  %s events/s", now->elapsed_ns / 1e9, units_bytes(now->live),
		  units_bytes(now->peak), units_count(seconds > 0 ? (now->events - s->last_events) / seconds : 0));
	if (columns && line->used > columns)
		line->at[columns] = 0;
	s->last_ns = at;
	s->last_events = now->events;
}

void status_draw(struct status *s, const struct recording_now *now)
{
	struct buf b = { 0 }, line = { 0 };
	u64 at = now_ns();
	struct winsize size = terminal_size();
	int rows = size.ws_row < ROWS_MIN ? 0 : size.ws_row;

	if (!s->wanted || at < s->next_ns)
		return;
	s->next_ns = at + TURN_NS;
	if (!in_foreground())
		return;
	if (s->shown && (rows != s->rows || reads_single_keys()))
		erase(s, &b);
	if (!reads_single_keys()) {
		compose(s, now, at, size.ws_col, &line);
		if (!s->shown && rows)
			reserve_row(&b, rows);
		s->rows = rows;
		s->shown = true;
		write_line(s, &b, line.at ? line.at : "");
	}
	buf_write(&b, 2);
	buf_release(&b);
	buf_release(&line);
}

void status_erase(struct status *s)
{
	struct buf b = { 0 };

	if (!s->shown)
		return;
	erase(s, &b);
	buf_write(&b, 2);
	buf_release(&b);
}

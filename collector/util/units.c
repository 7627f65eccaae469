/* units.c - numbers as people read and write them. */
#include "units.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { TEXTS = 8, TEXT_SIZE = 32 };

static char *next_text(void)
{
	static char text[TEXTS][TEXT_SIZE];
	static unsigned turn;

	return text[turn++ % TEXTS];
}

/* Three digits that mean something, whatever the size: 1.23, 12.3, 123. */
static const char *three_digits(double value, const char *unit)
{
	char *text = next_text();
	int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

	snprintf(text, TEXT_SIZE, "%.*f %s", decimals, value, unit);
	return text;
}

static const char *whole(i64 value, const char *unit)
{
	char *text = next_text();

	snprintf(text, TEXT_SIZE, "%lld%s%s", (long long)value, *unit ? " " : "", unit);
	return text;
}

const char *units_bytes(i64 bytes)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = bytes < 0 ? -(double)bytes : (double)bytes;
	int step = 0;

	if (value < 1024)
		return whole(bytes, "B");
	while (value >= 1023.5 && step < 6) {
		value /= 1024;
		step++;
	}
	return three_digits(bytes < 0 ? -value : value, unit[step]);
}

const char *units_time(u64 ns)
{
	if (ns < 1000)
		return whole(ns, "ns");
	if (ns < 999500)
		return three_digits(ns / 1e3, "us");
	if (ns < 999500000)
		return three_digits(ns / 1e6, "ms");
	if (ns < 120000000000)
		return three_digits(ns / 1e9, "s");
	u64 s = (ns + 500000000) / 1000000000;
	char *text = next_text();

	if (s < 7200)
		snprintf(text, TEXT_SIZE, "%u min %u s", (unsigned)(s / 60), (unsigned)(s % 60));
	else
		snprintf(text, TEXT_SIZE, "%u h %u min", (unsigned)(s / 3600), (unsigned)(s / 60 % 60));
	return text;
}

const char *units_count(double count)
{
	static const char *const unit[] = { "", "k", "M", "G", "T" };
	int step = 0;

	if (count < 10000)
		return whole(count + 0.5, "");
	while (count >= 999.5 && step < 4) {
		count /= 1000;
		step++;
	}
	return three_digits(count, unit[step]);
}

const char *units_percent(double part, double whole_value)
{
	char *text = next_text();

	snprintf(text, TEXT_SIZE, "%.1f %%", whole_value > 0 ? 100 * part / whole_value : 0.0);
	return text;
}

/* "", "B", "K", "KB" and "KiB" mean powers of 1024: nobody who sizes a block means 1000. */
static int suffix_shift(const char *suffix)
{
	static const char letters[] = "KMGT";

	if (!*suffix || !strcasecmp(suffix, "B"))
		return 0;
	const char *letter = strchr(letters, toupper((unsigned char)*suffix));

	if (!letter || (suffix[1] && strcasecmp(suffix + 1, "B") && strcasecmp(suffix + 1, "iB")))
		return -1;
	return 10 * (int)(letter - letters + 1);
}

bool units_parse_bytes(const char *text, u64 *bytes)
{
	char *end;

	if (!isdigit((unsigned char)*text) || (text[0] == '0' && tolower((unsigned char)text[1]) == 'x'))
		return false;
	double value = strtod(text, &end);

	while (*end == ' ')
		end++;
	int shift = suffix_shift(end);

	if (shift < 0 || value * (double)(1ull << shift) >= 9.2e18)
		return false;
	*bytes = value * (double)(1ull << shift);
	return true;
}

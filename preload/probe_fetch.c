/*
 * probe_fetch.c - reads the values of a probed call: registers, stack words, and memory that they point to.
 *
 * Rows that are known to be right read memory as it is, once a pointer looks like one. Others (PROBE_CAREFUL) let the
 * kernel read, which takes half a microsecond and cannot fault.
 */
#include "probe.h"
#include "slots.h"
#include <sys/uio.h>

static inline bool is_pointer(u64 address)
{
	return address >= 65536 && address < 1ull << 47;
}

static u32 read_careful(void *to, u64 from, u32 bytes)
{
	struct iovec local = { to, bytes }, remote = { (void *)from, bytes };
	long n = sys6(SYS_process_vm_readv, image->pid, (long)&local, 1, (long)&remote, 1, 0);

	return n > 0 ? (u32)n : 0;
}

static inline bool load(u64 *to, u64 from, u32 bytes, bool careful)
{
	*to = 0;
	if (unlikely(!is_pointer(from)))
		return false;
	if (unlikely(careful))
		return read_careful(to, from, bytes) == bytes;
	switch (bytes) {
	case 1: *to = *(const u8 *)from; break;
	case 2: *to = *(const u16 *)from; break;
	case 4: *to = *(const u32 *)from; break;
	default: *to = *(const u64 *)from; break;
	}
	return true;
}

bool probe_load(u64 *to, u64 from, bool careful) { return load(to, from, sizeof *to, careful); }

/* ---- text --------------------------------------------------------------------------------- */

/* Its longest cannot reach into another page, which may not be there. */
static inline bool in_page(u64 text) { return (text & 4095) <= 4096 - PROBE_STRING_MAX; }

/*
 * Writes the length and the text of one that is in its page, and returns the length. It is copied by words, behind the 16 bits of its
 * length: what is written is what will soon be read again, and a load of bytes from two stores would wait for both. What lies behind
 * the text is of no interest.
 */
static inline __attribute__((always_inline)) u32 copy_text(char *to, u64 from)
{
	u64 rest = 0;
	u32 n = 0, zeros;

	do {
		u64 one = *(const u64 *)(from + n), two = *(const u64 *)(from + n + 8);

		zeros = zero_bytes(from + n);
		*(u64 *)(to + n) = one << 16 | rest;
		*(u64 *)(to + n + 8) = two << 16 | one >> 48;
		rest = two >> 48;
		n += 16;
	} while (!zeros && n < PROBE_STRING_MAX);
	*(u64 *)(to + n) = rest;
	if (likely(zeros))
		n += (u32)__builtin_ctz(zeros) - 16;
	*(u64 *)to = *(const u64 *)from << 16 | n;
	return n;
}

static u32 copy_bytes(char *to, u64 from)
{
	u32 n = 0;

	for (; n < PROBE_STRING_MAX && ((const char *)from)[n]; n++)
		to[n] = ((const char *)from)[n];
	return n;
}

/* The same of what may not be there at all: first as far as its page goes. */
static u32 read_text(char *to, u64 from)
{
	u32 have = 0, length = 0;

	while (have < PROBE_STRING_MAX) {
		u32 page = 4096 - ((from + have) & 4095), want = page < PROBE_STRING_MAX - have ? page : PROBE_STRING_MAX - have;
		u32 n = read_careful(to + have, from + have, want);

		for (have += n; length < have && to[length];)
			length++;
		if (length < have || n < want)
			break;
	}
	return have ? length : PROBE_STRING_BAD;
}

/* Bytes up to NUL, behind the two of their length. No pointer is no text. */
static u32 any_text(char *to, u64 from, bool careful)
{
	if (!is_pointer(from))
		return from ? PROBE_STRING_BAD : 0;
	return careful ? read_text(to + 2, from) : in_page(from) ? copy_text(to, from) : copy_bytes(to + 2, from);
}

/* A pointer and a length lie at `place`; the length may say that there is a NUL instead. */
static u32 copy_view(char *to, u64 place, bool careful)
{
	u64 from, length;

	if (!place)
		return 0;
	if (!load(&from, place, 8, careful) || !load(&length, place + 8, 8, careful))
		return PROBE_STRING_BAD;
	if (length == UINT64_MAX)
		return any_text(to, from, careful);
	length = length < PROBE_STRING_MAX ? length : PROBE_STRING_MAX;
	if (length && (!is_pointer(from) || (careful && read_careful(to + 2, from, (u32)length) != length)))
		return PROBE_STRING_BAD;
	for (u32 i = 0; i < length && !careful; i++)
		to[2 + i] = ((const char *)from)[i];
	return (u32)length;
}

/* ---- values ------------------------------------------------------------------------------- */

static inline u64 widen(u64 word, const struct probe_value *v)
{
	return ((word & v->mask) ^ v->sign) - v->sign;
}

/* The place that the last step leads to. */
static inline bool follow(const struct probe_value *v, u64 *place, bool careful)
{
	for (u32 i = 0; i + 1 < v->steps; i++)
		if (!load(place, *place + (u64)(i64)v->offset[i], 8, careful))
			return false;
	if (v->steps)
		*place += (u64)(i64)v->offset[v->steps - 1];
	return true;
}

/* The ways that are not short: pointers to follow, or with care. Returns the bytes that were written. */
static __attribute__((noinline)) u32 other_string(char *to, const struct probe_value *v, u64 place, bool careful)
{
	u32 length = PROBE_STRING_BAD;

	if (follow(v, &place, careful))
		length = v->type == TYPE_STRV ? copy_view(to, place, careful) : any_text(to, place, careful);
	*(u16 *)to = (u16)length;
	return length == PROBE_STRING_BAD ? 2 : 2 + length;
}

static __attribute__((noinline)) bool numbers(u64 *to, const struct probe_value *v, u64 place, bool careful)
{
	i64 there = v->counted ? (i64)to[-1] : v->count;
	bool good = there <= 0 || follow(v, &place, careful);

	for (u32 i = 0; i < v->count; i++) {
		to[i] = 0;
		good = good && (i >= there || load(&to[i], place + i * v->bytes, v->bytes, careful));
		to[i] = widen(to[i], v);
	}
	return good;
}

/* Values `v` to `end`, of any kind. */
static __attribute__((noinline)) void fetch_long(struct probe_frame *f, const struct probe_value *v, const struct probe_value *end, char *to)
{
	const struct probe_rule *r = f->site->rule;
	u64 readable = offsetof(struct probe_frame, stack) + 8 * f->words;
	bool careful = r->flags & PROBE_CAREFUL;

	for (; v < end; v++) {
		bool good = v->at < readable;
		u64 word = good ? *(const u64 *)((const char *)f + v->at) : 0;

		if (v->type >= TYPE_STRING) {
			to += other_string(to, v, word, careful);
			continue;
		}
		if (v->steps)
			good &= numbers((u64 *)to, v, word, careful);
		else
			*(u64 *)to = widen(word, v);
		to += 8 * v->count;
		if (unlikely(!good))
			f->bad |= (u16)(1 << (v - r->value));
	}
	f->used = (u32)(to - (char *)probe_values(f));
}

/*
 * Values `from` to `to` of the row; those before are there already. Calls that have only words and texts in registers
 * are the ones that must be quick: nothing is called for them here.
 */
void probe_fetch(struct probe_frame *f, u32 from, u32 to)
{
	const struct probe_value *v = f->site->rule->value + from, *end = f->site->rule->value + to;
	char *at = (char *)probe_values(f) + f->used;

	for (; v < end; v++) {
		const u64 *word = (const u64 *)((const char *)f + v->at);

		if (v->way == WAY_WORD) {
			*(u64 *)at = widen(*word, v);
			at += 8;
		} else if (v->way == WAY_TEXT && is_pointer(*word) && in_page(*word)) {
			at += 2 + copy_text(at, *word);
		} else {
			fetch_long(f, v, end, at);
			return;
		}
	}
	f->used = (u32)(at - (char *)probe_values(f));
}

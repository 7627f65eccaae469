/*
 * probe_fetch.c - reads the values of a probed call: registers, stack words, and memory that they point to.
 *
 * Rows that are known to be right read memory as it is, once a pointer looks like one. Others (PROBE_CAREFUL) let the
 * kernel read, which takes half a microsecond and cannot fault.
 */
#include "probe.h"
#include "slots.h"
#include <sys/uio.h>

/* By type, as far as TYPE_F64: what is above a number's own bits. */
static const u8 above[] = { 56, 48, 32, 0, 56, 48, 32, 0, 32, 0 };

static inline u64 widen(u64 word, u32 type)
{
	u32 n = above[type];

	return type >= TYPE_S8 && type <= TYPE_S64 ? (u64)((i64)(word << n) >> n) : word << n >> n;
}

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
	if (careful)
		return read_careful(to, from, bytes) == bytes;
	switch (bytes) {
	case 1: *to = *(const u8 *)from; break;
	case 2: *to = *(const u16 *)from; break;
	case 4: *to = *(const u32 *)from; break;
	default: *to = *(const u64 *)from; break;
	}
	return true;
}

/* ---- text --------------------------------------------------------------------------------- */

static inline u64 zero_bytes(u64 word)
{
	return (word - 0x0101010101010101ull) & ~word & 0x8080808080808080ull;
}

/* Word by word: an aligned word has no part in a page that the text has none in. Up to 8 bytes more than `max` are written. */
static inline u32 copy_text(char *to, u64 from, u32 max)
{
	u32 skipped = from & 7, length = 0;
	const u64 *at = (const u64 *)(from - skipped);
	u64 word = *at >> 8 * skipped, zero = zero_bytes(word) << 8 * skipped >> 8 * skipped;

	*(u64 *)to = word;
	if (zero)
		return (u32)__builtin_ctzll(zero) / 8;
	for (length = 8 - skipped; length < max; length += 8) {
		word = *++at;
		*(u64 *)(to + length) = word;
		if ((zero = zero_bytes(word))) {
			length += (u32)__builtin_ctzll(zero) / 8;
			break;
		}
	}
	return length < max ? length : max;
}

/* First as far as its page goes: the next may not be there, and need not be. */
static u32 copy_text_careful(char *to, u64 from, u32 max)
{
	u32 have = 0, length = 0;

	while (have < max) {
		u32 page = 4096 - ((from + have) & 4095), want = page < max - have ? page : max - have;
		u32 n = read_careful(to + have, from + have, want);

		for (have += n; length < have && to[length];)
			length++;
		if (length < have || n < want)
			break;
	}
	return have ? length : PROBE_STRING_BAD;
}

static inline void copy_bytes(char *to, u64 from, u32 n)
{
	for (u32 i = 0; i < n; i++)
		to[i] = ((const char *)from)[i];
}

static inline u32 text(char *to, u64 from, bool careful)
{
	if (unlikely(!is_pointer(from)))
		return PROBE_STRING_BAD;
	return careful ? copy_text_careful(to, from, PROBE_STRING_MAX) : copy_text(to, from, PROBE_STRING_MAX);
}

/* A pointer and a length. */
static u32 view(char *to, u64 place, bool careful)
{
	u64 from, length;

	if (!load(&from, place, 8, careful) || !load(&length, place + 8, 8, careful))
		return PROBE_STRING_BAD;
	if (length > PROBE_STRING_MAX)
		length = PROBE_STRING_MAX;
	if (!length)
		return 0;
	if (!is_pointer(from))
		return PROBE_STRING_BAD;
	if (careful)
		return read_careful(to, from, (u32)length) == length ? (u32)length : PROBE_STRING_BAD;
	copy_bytes(to, from, (u32)length);
	return (u32)length;
}

/* ---- values ------------------------------------------------------------------------------- */

static inline bool base(const struct probe_frame *f, const struct probe_value *v, u64 *word)
{
	if (unlikely(v->at >= offsetof(struct probe_frame, stack) + 8 * f->words))
		return false;
	*word = *(const u64 *)((const char *)f + v->at);
	return true;
}

/* The place that the last step leads to; without a step the word itself. */
static inline bool follow(const struct probe_frame *f, const struct probe_value *v, u64 *place, bool careful)
{
	if (unlikely(!base(f, v, place)))
		return false;
	for (u32 i = 0; i + 1 < v->steps; i++)
		if (!load(place, *place + (u64)(i64)v->offset[i], 8, careful))
			return false;
	if (v->steps)
		*place += (u64)(i64)v->offset[v->steps - 1];
	return true;
}

static inline bool numbers(u64 *to, const struct probe_value *v, u64 place, bool careful)
{
	u32 bytes = 8 - above[v->type] / 8;
	bool good = true;

	if (!v->steps) {
		*to = widen(place, v->type);
		return true;
	}
	for (u32 i = 0; i < v->count; i++) {
		good &= load(&to[i], place + i * bytes, bytes, careful);
		to[i] = widen(to[i], v->type);
	}
	return good;
}

static inline __attribute__((always_inline)) void fetch(struct probe_frame *f, u32 from, u32 end, bool careful)
{
	const struct probe_rule *r = f->site->rule;
	char *to = (char *)probe_values(f) + f->used;

	for (u32 i = from; i < end; i++) {
		const struct probe_value *v = &r->value[i];
		u64 place = 0;
		bool good = follow(f, v, &place, careful);

		if (v->type < TYPE_STRING) {
			if (unlikely(!good || !numbers((u64 *)to, v, place, careful))) {
				f->bad |= (u16)(1 << i);
				for (u32 n = 0; n < v->count; n++)
					((u64 *)to)[n] = 0;
			}
			to += 8 * v->count;
		} else {
			u32 length = !good ? PROBE_STRING_BAD : v->type == TYPE_STRING ? text(to + 2, place, careful) : view(to + 2, place, careful);

			*(u16 *)to = (u16)length;
			to += 2 + (length == PROBE_STRING_BAD ? 0 : length);
		}
	}
	f->used = (u32)(to - (char *)probe_values(f));
}

void probe_fetch(struct probe_frame *f, u32 from, u32 to)
{
	if (f->site->rule->flags & PROBE_CAREFUL)
		fetch(f, from, to, true);
	else
		fetch(f, from, to, false);
}

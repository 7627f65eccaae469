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

/* ---- text --------------------------------------------------------------------------------- */

static inline u64 zero_bytes(u64 word)
{
	return (word - 0x0101010101010101ull) & ~word & 0x8080808080808080ull;
}

/*
 * Writes the length and the text, and returns the length. Where its longest cannot reach into another page, which may not be
 * there, a text is copied by words, behind the 16 bits of its length: what is written is what will soon be read again, as a
 * load of bytes from two stores would wait for both. What lies behind the text is of no interest.
 */
static inline u32 copy_text(char *to, u64 from)
{
	u64 word = 0, first = 0, rest = 0;
	u32 n = 0;

	if (unlikely((from & 4095) > 4096 - PROBE_STRING_MAX)) {
		for (; n < PROBE_STRING_MAX && ((const char *)from)[n]; n++)
			to[2 + n] = ((const char *)from)[n];
		*(u16 *)to = (u16)n;
		return n;
	}
	for (; n < PROBE_STRING_MAX; n += 8) {
		u64 zero;

		word = *(const u64 *)(from + n);
		first = n ? first : word;
		*(u64 *)(to + n) = word << 16 | rest;
		rest = word >> 48;
		if ((zero = zero_bytes(word))) {
			*(u64 *)(to + n + 8) = rest;
			n += (u32)__builtin_ctzll(zero) / 8;
			*(u64 *)to = first << 16 | n;
			return n;
		}
	}
	*(u64 *)(to + n) = rest;
	*(u64 *)to = first << 16 | n;
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

/* A pointer and a length lie at `place`. */
static u32 copy_view(char *to, u64 place, bool careful)
{
	u64 from, length;

	if (!load(&from, place, 8, careful) || !load(&length, place + 8, 8, careful))
		return PROBE_STRING_BAD;
	length = length < PROBE_STRING_MAX ? length : PROBE_STRING_MAX;
	if (length && (!is_pointer(from) || (careful && read_careful(to, from, (u32)length) != length)))
		return PROBE_STRING_BAD;
	for (u32 i = 0; i < length && !careful; i++)
		to[i] = ((const char *)from)[i];
	return (u32)length;
}

/* ---- values ------------------------------------------------------------------------------- */

static inline u64 widen(u64 word, const struct probe_value *v)
{
	return v->is_signed ? (u64)((i64)(word << v->above) >> v->above) : word << v->above >> v->above;
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

	if (follow(v, &place, careful)) {
		if (v->type == TYPE_STRV)
			length = copy_view(to + 2, place, careful);
		else if (is_pointer(place))
			length = careful ? read_text(to + 2, place) : copy_text(to, place);
	}
	*(u16 *)to = (u16)length;
	return length == PROBE_STRING_BAD ? 2 : 2 + length;
}

static __attribute__((noinline)) bool numbers(u64 *to, const struct probe_value *v, u64 place, bool careful)
{
	u32 bytes = 8 - v->above / 8;
	bool good = follow(v, &place, careful);

	for (u32 i = 0; i < v->count; i++) {
		to[i] = 0;
		good = good && load(&to[i], place + i * bytes, bytes, careful);
		to[i] = widen(to[i], v);
	}
	return good;
}

/* Values `from` to `end` of the row; those before are there already. */
void probe_fetch(struct probe_frame *f, u32 from, u32 end)
{
	const struct probe_rule *r = f->site->rule;
	const struct probe_value *v = r->value + from;
	u64 readable = offsetof(struct probe_frame, stack) + 8 * f->words;
	char *to = (char *)probe_values(f) + f->used;
	bool careful = r->flags & PROBE_CAREFUL;

	for (u32 i = from; i < end; i++, v++) {
		bool good = v->at < readable;
		u64 word = good ? *(const u64 *)((const char *)f + v->at) : 0;

		if (v->type == TYPE_STRING && !v->steps && is_pointer(word) && !careful) {
			to += 2 + copy_text(to, word);
			continue;
		}
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
			f->bad |= (u16)(1 << i);
	}
	f->used = (u32)(to - (char *)probe_values(f));
}

/*
 * dump.c - `mlprof dump` and the format page. Both come from records.def: a new record needs nothing here.
 */
#include "dump.h"
#include "../util/array.h"
#include "replay.h"
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 4 * TEXT_MAX + 1024 };

static int write_all(int fd, const char *text, size_t n)
{
	while (n) {
		ssize_t done = write(fd, text, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		text += done;
		n -= (size_t)done;
	}
	return 0;
}

int dump_flush(struct dump *d)
{
	if (!d->error)
		d->error = -write_all(d->fd, d->text, d->used);
	d->used = 0;
	return d->error ? -1 : 0;
}

void dump_put(struct dump *d, const char *format, ...)
{
	va_list args;

	if (d->used > sizeof(d->text) - LINE_MAX_BYTES)
		dump_flush(d);
	va_start(args, format);
	d->used += (u32)vsnprintf(d->text + d->used, sizeof(d->text) - d->used, format, args);
	va_end(args);
}

void dump_plain(struct dump *d, const char *text, u32 len)
{
	u32 i;

	for (i = 0; i < len; i++) {
		u8 c = (u8)text[i];

		dump_put(d, isprint(c) && c != '"' && c != '\\' ? "%c" : "\\x%02x", c);
	}
}

static void put_text(struct dump *d, const char *text, u32 len)
{
	dump_put(d, " \"");
	dump_plain(d, text, len);
	dump_put(d, "\"");
}

static const char *const value_format[] = {
	[UNIT_PLAIN] = " %s=%llu", [UNIT_TICKS] = " %s=%llu", [UNIT_NS] = " %s=%lluns", [UNIT_BYTES] = " %s=%llu",
	[UNIT_ADDR] = " %s=0x%llx", [UNIT_ID] = " %s=#%llu", [UNIT_COUNT] = " %s=%llu", [UNIT_BITS] = " %s=0x%llx",
};

static void put_value(struct dump *d, const struct field *f, u64 value)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	dump_put(d, value_format[f->unit], f->name, (unsigned long long)value);
#pragma GCC diagnostic pop
}

static void put_event(struct dump *d, const struct chunk_head *h, const struct event *e)
{
	const struct shape *s = &shape_of[e->type];
	u32 i;

	dump_put(d, "%s", s->name);
	for (i = 0; i < s->fields; i++)
		put_value(d, &s->field[i], e->body[i]);
	if (s->text)
		put_text(d, e->text, e->text_len);
	dump_probed(d, h, e);
	dump_put(d, "\n");
}

static void put_packed(struct dump *d, u64 w, u64 body)
{
	u32 kind = w & 7;
	unsigned long long addr = w & PACKED_ADDR_MASK;

	if (kind == KIND_node)
		dump_put(d, "node parent=#%llu pc=0x%llx\n", (unsigned long long)(body & NODE_MASK), (unsigned long long)(w >> 3));
	else if (packed_of[kind].words)
		dump_put(d, "%s addr=0x%llx size=%llu node=#%u\n", packed_of[kind].name, addr,
			 (unsigned long long)(body >> NODE_BITS), (u32)body & NODE_MASK);
	else
		dump_put(d, "%s addr=0x%llx\n", packed_of[kind].name, addr);
}

static void put_records(struct dump *d, const union chunk *c, u32 up)
{
	u64 t = c->head.t0;
	u32 i, down = 0;

	for (i = 0; i < up; i++) {
		u64 w = c->word[CHUNK_HEAD_WORDS + i];
		u32 kind = w & 7;
		struct event e;

		if (kind != KIND_event) {
			down += packed_of[kind].words;
			t += kind == KIND_node ? 0 : w >> PACKED_DT_SHIFT;
			dump_put(d, "  %llu ", (unsigned long long)t);
			put_packed(d, w, c->word[CHUNK_WORDS - (down ? down : 1)]);
			continue;
		}
		down += event_words(w);
		t += w >> EVENT_DT_SHIFT;
		e = chunk_event(c, w, down);
		dump_put(d, "  %llu ", (unsigned long long)t);
		put_event(d, &c->head, &e);
		if (e.type == EVENT_at)
			t = EVENT_BODY(&e, at)->ticks;
	}
}

void dump_chunk(void *dump, const union chunk *c, u64 number)
{
	const struct chunk_head *h = &c->head;
	struct dump *d = dump;
	struct extent to;

	if (chunk_check(c, &to)) {
		dump_put(d, "chunk %llu refused\n", (unsigned long long)number);
		return;
	}
	dump_put(d, "chunk %llu pid=%u born=%llu slot=%u seq=%llu t0=%llu node_base=%u lost=%u reached=%llu records=%u\n",
		 (unsigned long long)number, h->pid, (unsigned long long)h->born, h->slot, (unsigned long long)h->seq,
		 (unsigned long long)h->t0, h->node_base, h->lost, (unsigned long long)h->reserved, to.records);
	put_records(d, c, to.up);
}

/* ---- the page ------------------------------------------------------------------------- */

static const char *const unit_name[] = {
	[UNIT_PLAIN] = "", [UNIT_TICKS] = "ticks", [UNIT_NS] = "ns", [UNIT_BYTES] = "bytes",
	[UNIT_ADDR] = "address", [UNIT_ID] = "node", [UNIT_COUNT] = "count", [UNIT_BITS] = "bits",
};

static const char page_head[] =
	"# Records\n\n"
	"A stream is a sequence of chunks of %u bytes: a head of %u words, one word a record growing up from there, and\n"
	"the records' bodies growing down from the end. Every field of a body is a 64-bit word, in the order given\n"
	"here; text follows its fields. Version %u.\n\n"
	"## Packed records\n\n"
	"| kind | name | body words | meaning |\n|---|---|---|---|\n";

static void page_event(struct dump *d, u32 type)
{
	const struct shape *s = &shape_of[type];
	u32 i;

	dump_put(d, "### %u %s\n\n%s\n\n", type, s->name, s->meaning);
	if (s->fields || s->text)
		dump_put(d, "| field | unit | meaning |\n|---|---|---|\n");
	for (i = 0; i < s->fields; i++)
		dump_put(d, "| %s | %s | %s |\n", s->field[i].name, unit_name[s->field[i].unit], s->field[i].meaning);
	if (s->text)
		dump_put(d, "| | text | %s |\n", s->text);
	if (s->fields || s->text)
		dump_put(d, "\n");
}

int replay_format(int fd)
{
	struct dump d = { .fd = fd };
	u32 i;

	dump_put(&d, page_head, CHUNK_BYTES, CHUNK_HEAD_WORDS, WIRE_VERSION);
	for (i = 0; i < 8; i++)
		if (packed_of[i].name)
			dump_put(&d, "| %u | %s | %u | %s |\n", i, packed_of[i].name, packed_of[i].words, packed_of[i].meaning);
	dump_put(&d, "\n## Events\n\n");
	for (i = 0; i < EVENT_TYPES; i++)
		if (shape_of[i].name)
			page_event(&d, i);
	return dump_flush(&d) ? -d.error : 0;
}

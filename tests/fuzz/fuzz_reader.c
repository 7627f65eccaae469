/*
 * fuzz_reader.c - any bytes as a raw file: reader, merge and model must neither crash nor hang nor grow without bound.
 *
 * A chunk is 4096 bytes, nearly all of them idle; so the input is a shorter form that is expanded here:
 *   one byte each for the numbers of words up (127 at most) and down, a head of 8 words, the words up, the words down.
 * Without libFuzzer (FUZZ_ALONE), the files given as arguments are run once, and `--seeds DIR` and
 * `--dictionary` write what the fuzzer starts from.
 */
#include "../../collector/read/feed.h"
#include "../../collector/util/array.h"
#include <stdio.h>

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

volatile u64 walked;                    /* so that walking is not optimised away */

static size_t take(const u8 **data, size_t *left, void *to, size_t n)
{
	n = n < *left ? n : *left;
	memcpy(to, *data, n);
	*data += n;
	*left -= n;
	return n;
}

/* True: there was a chunk. Magic and version are right unless the input asks for others. */
static bool next_chunk(const u8 **data, size_t *left, union chunk *c)
{
	u8 words[2] = { 0 };
	u32 up, down;

	memset(c, 0, sizeof(*c));
	if (take(data, left, words, 2) < 2)
		return false;
	up = words[0] & 127;
	down = words[1];
	take(data, left, &c->head, sizeof(c->head));
	c->head.magic ^= CHUNK_MAGIC;
	c->head.version ^= WIRE_VERSION;
	if (!(words[0] & 0x80))
		c->head.used = USED_STEP(up, down);
	take(data, left, &c->word[CHUNK_HEAD_WORDS], up * 8);
	take(data, left, &c->word[CHUNK_WORDS - down], down * 8);
	return true;
}

static void look(void *to, struct process *p, enum curve_kind kind, u64 ticks, i64 bytes)
{
	(void)p, (void)kind;
	*(u64 *)to += ticks ^ (u64)bytes;
}

/* Everything that writers read is there. */
static u64 walk(const struct session *s)
{
	u64 sum = session_ns(s, s->start) + session_ns(s, s->end);
	u32 i, j;

	for (i = 0; i < s->processes; i++) {
		const struct process *p = s->process[i];

		sum += strlen(p->name) + strlen(p->exe);
		for (j = 0; j < p->at_exit.count; j++)
			sum += p->at_exit.at[j].node ? p->node[p->at_exit.at[j].node].pc : 0;
		for (j = 1; j < p->nodes; j++)
			sum += p->node[j].parent < j && process_module(p, p->node[j].pc, p->node[j].epoch);
	}
	for (i = 0; i < s->total.at_peak.count; i++)
		sum += s->process[s->total.at_peak.at[i].process]->pools.at[s->total.at_peak.at[i].pool].name[0];
	for (i = 0; i < s->spans; i++)
		sum += s->process[s->span[i].process]->pid;
	return sum;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	u64 sum = 0;
	struct listener l = { .to = &sum, .point = look };
	struct feed f = feed_new(&l);
	union chunk *c = merge_chunk(f.merge);

	while (next_chunk(&data, &size, c)) {
		feed_replay(&f, c);
		c = merge_chunk(f.merge);
	}
	merge_unread(f.merge, c);
	feed_end(&f);
	walked += sum + walk(f.session);
	feed_free(&f);
	return 0;
}

#ifdef FUZZ_ALONE
#include "../unit/gen.h"

static FILE *out;

/* The shorter form of a chunk that gen.h made. */
static void write_short(void *to, const union chunk *c)
{
	u32 up = USED_UP(c->head.used), down = USED_DOWN(c->head.used);
	struct chunk_head h = c->head;

	(void)to;
	h.magic ^= CHUNK_MAGIC;
	h.version ^= WIRE_VERSION;
	fputc((int)up, out);
	fputc((int)down, out);
	fwrite(&h, sizeof(h), 1, out);
	fwrite(&c->word[CHUNK_HEAD_WORDS], 8, up, out);
	fwrite(&c->word[CHUNK_WORDS - down], 8, down, out);
}

static void flush_when_long(struct gen *g)
{
	if (USED_UP(g->chunk.head.used) > 20 || USED_DOWN(g->chunk.head.used) > 16)
		gen_flush(g);
}

/* One seed for each event, in the company of blocks. */
static void seed_of_event(u32 type)
{
	u64 body[16] = { 0x7f0000001000, 0x3000, 3, 0, 1, 0x7f0000002000, 0x2000, 1 };
	struct gen own, g;

	gen_init(&own, 0, 0, 0, write_short, NULL);
	gen_session(&own, 1000, 4096);
	gen_flush(&own);
	gen_init(&g, 5, 1000, 0, write_short, NULL);
	GEN_EVENT(&g, 1000, hello, "/x", .pid = 5);
	GEN_EVENT(&g, 1000, map, NULL, .addr = 0x7f0000001000, .length = 0x8000, .prot = 3, .node = 1);
	gen_flush(&g);
	gen_node(&g, 0, 0x400000);
	gen_alloc(&g, 1010, 0x1000, 64, 1);
	gen_free(&g, 1020, 0x1000);
	gen_alloc(&g, 1030, 0x2000, 8192, 1);
	gen_leave(&g, 1040, 0x2000);
	gen_enter(&g, 1050, 0x3000, 64, 1);
	flush_when_long(&g);
	gen_event(type >= EVENT_session ? &own : &g, 1060, type, body, shape_of[type].fields * 8, shape_of[type].text ? "ab" : NULL);
	gen_flush(&g);
	GEN_EVENT(&own, 1070, died, NULL, .pid = 5, .born = 1000);
	gen_flush(&own);
}

static int write_seeds(const char *dir)
{
	char path[4096];
	u32 type;

	for (type = 0; type < EVENT_TYPES; type++) {
		if (!shape_of[type].name)
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, shape_of[type].name);
		out = fopen(path, "w");
		if (!out)
			return 1;
		seed_of_event(type);
		fclose(out);
	}
	return 0;
}

static void write_word(const char *name, u64 word)
{
	u32 i;

	printf("%s=\"", name);
	for (i = 0; i < 8; i++)
		printf("\\x%02x", (u32)(word >> i * 8) & 0xff);
	printf("\"\n");
}

static int write_dictionary(void)
{
	u32 i;

	for (i = 0; i < 8; i++)
		if (packed_of[i].name)
			write_word(packed_of[i].name, 0x7f0000001000 | i);
	for (i = 0; i < EVENT_TYPES; i++)
		if (shape_of[i].name)
			write_word(shape_of[i].name, KIND_event | (u64)i << 3 | (shape_of[i].text ? 2ull << 11 : 0));
	return 0;
}

static int run_file(const char *path)
{
	FILE *f = fopen(path, "r");
	u8 *data = must(malloc(1 << 20));
	size_t n;

	if (!f)
		return 1;
	n = fread(data, 1, 1 << 20, f);
	fclose(f);
	LLVMFuzzerTestOneInput(data, n);
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	int i, bad = 0;

	if (argc == 3 && !strcmp(argv[1], "--seeds"))
		return write_seeds(argv[2]);
	if (argc == 2 && !strcmp(argv[1], "--dictionary"))
		return write_dictionary();
	for (i = 1; i < argc; i++)
		bad |= run_file(argv[i]);
	return bad;
}
#endif

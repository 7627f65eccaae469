/*
 * probe_tables.c - tables of functions that a probed call leads to: an API's struct of pointers, a C++ class' virtual functions.
 *
 * The slots that have rows are replaced where they lie, read-only or not. So the program gets the very pointer that it would get
 * without us, however often it asks; nobody has to know how long the table is; and who has copied it calls through us, too. A
 * table is looked at whenever a call finds it: one of another version, of another copy of the library or of one that was
 * loaded again is just one more. What is done already costs a look at each slot.
 *
 * A getter (cuGetProcAddress) is told a name, and puts the function where its caller wants it: there it becomes the stub of the name's row.
 */
#include "bind.h"
#include "device.h"
#include "elf_image.h"
#include "probe.h"
#include <errno.h>

enum { LEFT_ALONE = 256, POINTER_ALIGN = 8 };

struct found {
	const struct probe_rule *rule;
	u64 at, bytes;
};

/* ---- which slots --------------------------------------------------------------------------- */

static void *left_alone[LEFT_ALONE];    /* slots whose functions cannot be probed: not looked at in every call */

static void **place_alone(void **slot) { return &left_alone[(u64)slot / sizeof *slot % LEFT_ALONE]; }
static void *mark_alone(void **slot, void *real) { return (void *)((u64)slot ^ (u64)real); }

/* The slot, if it holds a function that is not probed yet. */
static void **open_slot(const struct found *t, const struct probe_slot *s, void **real)
{
	void **slot = (void **)(t->at + sizeof *slot * s->index);
	u64 word;

	if (((u64)s->index + 1) * sizeof *slot > t->bytes || !probe_load(&word, (u64)slot, t->rule->flags & PROBE_CAREFUL) || !word)
		return NULL;
	*real = (void *)word;
	return probe_is_stub(*real) || *place_alone(slot) == mark_alone(slot, *real) ? NULL : slot;
}

/* ---- replacing one ------------------------------------------------------------------------- */

/* How a module's page is protected; ld.so has taken the right to write away from what was relocated (whole pages of it). */
static int protection_of(const struct dl_find_object *in, u64 place)
{
	const Elf64_Ehdr *e = in->dlfo_map_start;
	const Elf64_Phdr *p = (const void *)((const char *)e + e->e_phoff);
	u64 at = place - in->dlfo_link_map->l_addr;
	int protection = 0;

	for (u32 i = 0; i < e->e_phnum; i++) {
		if (p[i].p_type == PT_LOAD && at - p[i].p_vaddr < p[i].p_memsz)
			protection |= (p[i].p_flags & PF_R ? PROT_READ : 0) | (p[i].p_flags & PF_W ? PROT_WRITE : 0) | (p[i].p_flags & PF_X ? PROT_EXEC : 0);
	}
	for (u32 i = 0; i < e->e_phnum; i++) {
		u64 begin = p[i].p_vaddr & ~4095ull, end = (p[i].p_vaddr + p[i].p_memsz) & ~4095ull;

		if (p[i].p_type == PT_GNU_RELRO && at >= begin && at < end)
			protection &= ~PROT_WRITE;
	}
	return protection;
}

/* Memory that is in no module, or that the program itself has protected, is written only if it may be. */
static bool replace(void **slot, void *value)
{
	struct dl_find_object in;
	bool in_module = _dl_find_object(slot, &in) == 0;
	int protection = in_module ? protection_of(&in, (u64)slot) : PROT_WRITE;
	long written = protection & PROT_WRITE ? sys_rewrite(slot) : -EFAULT;
	u64 page = (u64)slot & ~4095ull;

	if (written == sizeof *slot || (in_module && written != -EFAULT)) {
		__atomic_store_n(slot, value, __ATOMIC_RELEASE);
		return true;
	}
	if (protection & PROT_WRITE || sys(SYS_mprotect, page, 4096, protection | PROT_WRITE) != 0)
		return false;
	__atomic_store_n(slot, value, __ATOMIC_RELEASE);
	sys(SYS_mprotect, page, 4096, protection);
	return true;
}

/* ---- a table ------------------------------------------------------------------------------- */

static u64 bind_slots(void *found)
{
	static bool noticed;
	const struct found *t = found;
	void *real, *stub;

	if (!bind_claim())              /* a signal's handler, and its thread is at this already */
		return 0;
	for (u32 i = 0; i < t->rule->slots; i++) {
		void **slot = open_slot(t, &t->rule->slot[i], &real);

		if (!slot)
			continue;
		stub = probe_stub_of_row(real, t->rule->slot[i].row);
		if (stub && replace(slot, stub))
			continue;
		*place_alone(slot) = mark_alone(slot, real);
		if (!noticed)
			notice_note("a table of functions has slots that cannot be replaced: calls through them are not seen");
		noticed = true;
	}
	bind_release();
	return 0;
}

/* Its address is the row's last value, its size the one before. */
void probe_table(const struct probe_frame *f)
{
	const struct probe_rule *r = f->site->rule;
	const u64 *end = (const u64 *)((const char *)probe_values(f) + f->used);
	bool sized = r->flags & PROBE_SIZED;
	struct found t = { r, end[-1], sized ? end[-2] : UINT64_MAX };
	void *real;

	if (!t.at || t.at % POINTER_ALIGN || f->bad >> (r->all - 1 - sized))
		return;
	for (u32 i = 0; i < r->slots; i++)
		if (open_slot(&t, &r->slot[i], &real)) {
			probe_keeping_vectors(bind_slots, &t);
			return;
		}
}

/* ---- one function, by its name --------------------------------------------------------------- */

struct answer {
	void **place;
	const char *name;
};

static u64 bind_answer(void *answer)
{
	const struct answer *a = answer;
	void *stub;

	if (!bind_claim())
		return 0;
	stub = probe_stub_by_name(*a->place, a->name);
	if (stub)
		*a->place = stub;
	bind_release();
	return 0;
}

/* A library whose own functions are probed looks for what it calls inside of them: that would be told twice. */
void probe_getter(const struct probe_frame *f)
{
	const char *values = (const char *)probe_values(f);
	u16 length = *(const u16 *)values;
	char name[PROBE_STRING_MAX + 1];
	struct answer a = { *(void ***)(values + f->used - sizeof(u64)), name };
	u64 real;

	if (length > PROBE_STRING_MAX || f->bad || (u64)a.place % POINTER_ALIGN || !probe_load(&real, (u64)a.place, f->site->rule->flags & PROBE_CAREFUL))
		return;
	for (u32 i = 0; i < length; i++)
		name[i] = values[sizeof length + i];
	name[length] = 0;
	if (real && !probe_is_stub((void *)real) && probe_wants(name, false) && !probes_are_in((const void *)f->pc))
		probe_keeping_vectors(bind_answer, &a);
}

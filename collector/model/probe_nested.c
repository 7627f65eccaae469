/*
 * probe_nested.c - calls inside of calls that do the same: a library's C functions over its C++ ones, a run-time over its driver.
 *
 *   cudaLaunchKernel ----------------------.        one kernel, told twice. The inner call is told first, and it is the one that did it:
 *        `-- cuLaunchKernel --.            |        what comes later and began before the other's end is around it, and does nothing more.
 *
 * That goes for dispatches, copies and memory: calls of one thread whose rows are of one role and one domain. Waits in waits: see calls.c.
 */
#include "inside.h"

enum { DONE_MAX = 1 << 16 };

static struct done_call *find(const struct probed *c)
{
	struct { u64 thread, role, domain; } key = { c->s->tid, c->rule->role, c->site->domain };
	struct done_call *d;

	HASH_FIND(hh, c->p->probes.done, &key, sizeof(key), d);
	return d;
}

bool probed_is_around(const struct probed *c, u64 address)
{
	const struct done_call *d = find(c);

	return d && d->end > c->call.begin && d->address == address;
}

void probed_has_done(struct probed *c, u64 address)
{
	struct done_call *d = find(c);

	if (!d && HASH_COUNT(c->p->probes.done) >= DONE_MAX)
		return;
	if (!d) {
		d = new_zeroed(1, sizeof(*d));
		d->key.thread = c->s->tid;
		d->key.role = c->rule->role;
		d->key.domain = c->site->domain;
		HASH_ADD(hh, c->p->probes.done, key, sizeof(d->key), d);
	}
	d->end = c->call.end;
	d->address = address;
}

void done_calls_release(struct probes *all)
{
	struct done_call *d, *next;

	HASH_ITER(hh, all->done, d, next) {
		HASH_DEL(all->done, d);
		free(d);
	}
}

/*
 * api_thread.c - names of threads, and code that is unloaded.
 */
#include "bind.h"
#include "cfi.h"
#include "iree.h"
#include "modules.h"
#include "note.h"
#include "text.h"
#include <linux/seccomp.h>
#include <stdarg.h>

static void note_name(const char *name)
{
	struct visit v = context_enter(FRAME());

	if (!v.context)
		return;
	writing_begin(v.context);
	EMIT(v.context, ticks(), thread_name, FIELDS(.tid = (u64)sys_gettid()), name, text_length(name));
	writing_end(v.context);
	context_leave(v);
}

/* Another thread's number can't be had from its pthread_t; its name is read when it ends. */
HOOKED int pthread_setname_np(pthread_t thread, const char *name)
{
	int r = PASS(pthread_setname_np)(thread, name);

	if (r == 0 && pthread_equal(thread, pthread_self()))
		note_name(name);
	return r;
}

/*
 * It allocates while it holds the thread's lock, and we call it ourselves when a thread allocates for the first time. So
 * that has been by then.
 */
HOOKED int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes)
{
	struct visit v = context_enter(FRAME());

	if (v.context)
		context_leave(v);
	return PASS(pthread_getattr_np)(thread, attributes);
}

HOOKED int prctl(int option, ...)
{
	unsigned long a[4];
	va_list more;
	int r;

	va_start(more, option);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(more, unsigned long);
	va_end(more);
	if (option == PR_SET_SECCOMP && a[0] == SECCOMP_MODE_STRICT)
		context_give_up();      /* from here on a look at our own descriptor would kill it */
	r = PASS(prctl)(option, a[0], a[1], a[2], a[3]);
	if (option == PR_SET_NAME && r == 0) {
		char name[16] = "";

		sys(SYS_prctl, PR_GET_NAME, name, 0);
		note_name(name);
	}
	return r;
}

/* ---- unloading ----------------------------------------------------------------------- */

static int read_unloads(struct dl_phdr_info *info, size_t size, void *to)
{
	(void)size;
	*(u64 *)to = info->dlpi_subs;
	return 1;
}

static u64 unloads(void)
{
	u64 n = 0;

	bind_read_list(read_unloads, &n);
	return n;
}

/* Addresses of unloaded code may mean something else from now on. Destructors have run, recorded, under the old epoch. */
HOOKED int dlclose(void *handle)
{
	u64 before = unloads();
	int r = PASS(dlclose)(handle);
	struct visit v;

	if (unloads() == before)
		return r;
	if (iree_images)
		iree_unloaded();
	if (__atomic_add_fetch(&guest.epoch, 1, __ATOMIC_RELEASE) % CFI_EPOCHS == 0 && cfi_table)
		cfi_forget();
	v = context_enter(FRAME());
	if (v.context) {
		writing_begin(v.context);
		modules_forget_gone(v.context, ticks());
		writing_end(v.context);
		context_leave(v);
	}
	return r;
}

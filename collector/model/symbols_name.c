/*
 * symbols_name.c - names as people read them, and which of them never own memory.
 *
 * The demangler of libiberty knows C++ and both kinds of Rust names. It is fed with whatever stands in a file, so what
 * comes out is bounded: a short name can be made to unfold without end.
 */
#include "symbols_parts.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_IN_MAX = 16384, NAME_OUT_MAX = 8192, PARTS_MAX = 4 * NAME_OUT_MAX };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- demangling -------------------------------------------------------------------- */

struct unfolding {
	char text[NAME_OUT_MAX];
	size_t len, parts;
	jmp_buf too_long;
};

/* The demangler has no way to be told to stop, but it holds nothing that would be lost by leaving it. */
static void take_part(const char *part, size_t len, void *to)
{
	struct unfolding *u = to;

	if (len >= sizeof(u->text) - u->len || ++u->parts > PARTS_MAX)
		longjmp(u->too_long, 1);
	memcpy(u->text + u->len, part, len);
	u->len += len;
}

/* Without return types: a name is looked at by how it begins. NULL: it is not mangled. */
char *symbols_demangled(const char *linkage, bool parameters)
{
	static struct unfolding u;
	const int options = (parameters ? DMGL_PARAMS : 0) | DMGL_ANSI | DMGL_RET_DROP;

	if ((strncmp(linkage, "_Z", 2) && strncmp(linkage, "_R", 2)) || strlen(linkage) > NAME_IN_MAX)
		return NULL;
	u.len = u.parts = 0;
	if (setjmp(u.too_long))
		return NULL;
	if (!rust_demangle_callback(linkage, options, take_part, &u)) {
		u.len = 0;
		if (!cplus_demangle_v3_callback(linkage, options, take_part, &u))
			return NULL;
	}
	return u.len ? strndup(u.text, u.len) : NULL;
}

/* ---- whose memory it is not -------------------------------------------------------- */

/* Beginnings of file names. */
static const char *const internal_module[] = {
	"ld-linux", "ld-musl", "ld.so", "libc.so", "libc-2", "libpthread", "libdl.so", "libdl-2", "libstdc++", "libc++", "libgcc_s",
	"libjemalloc", "libtcmalloc", "libmimalloc", "libmlprof", "linux-vdso", "[vdso]",
};

/* Beginnings of function names: allocators, and the containers and wrappers through which everybody calls them. */
static const char *const internal_prefix[] = {
	/* languages */
	"operator new", "operator delete", "std::", "__gnu_cxx::",
	"alloc::", "<alloc::", "core::", "<core::", "<std::", "__rust_", "__rdl_", "__rg_",
	"PyMem_", "_PyMem_", "_PyObject_", "PyObject_Malloc", "PyObject_Calloc", "PyObject_Realloc", "PyObject_Free",
	"PyObject_GC_", "PyObject_Init", "PyType_GenericAlloc", "_PyType_AllocNoTrack",
	"v8::base::OS::", "v8::internal::MemoryAllocator", "v8::internal::BackingStore",
	"v8::internal::Heap::AllocateExternalBackingStore", "node::NodeArrayBufferAllocator", "node::UncheckedMalloc",
	/* allocators */
	"je_", "jemalloc", "tc_", "tcmalloc", "mi_", "dlmalloc",
	/* libraries */
	"g_malloc", "g_realloc", "g_try_malloc", "g_try_realloc", "g_slice_", "g_strdup", "g_memdup",
	"CRYPTO_malloc", "CRYPTO_zalloc", "CRYPTO_realloc", "CRYPTO_strdup", "CRYPTO_memdup",
	"sqlite3Malloc", "sqlite3MemMalloc", "sqlite3DbMalloc", "sqlite3DbRealloc", "sqlite3Realloc", "sqlite3MemRealloc",
	"sqlite3_malloc", "sqlite3_realloc", "av_malloc", "av_realloc", "av_calloc", "ggc_internal_", "ggc_alloc",
	/* those of ML */
	"c10::alloc_cpu", "c10::DefaultCPUAllocator", "c10::StorageImpl", "cv::fastMalloc", "dnnl::impl::malloc",
	"Eigen::internal::aligned_malloc", "Eigen::internal::conditional_aligned", "ggml_aligned_malloc",
	"onnxruntime::CPUAllocator", "onnxruntime::BFCArena", "onnxruntime::utils::DefaultAlloc",
	"tsl::port::AlignedMalloc", "tensorflow::port::AlignedMalloc", "blas_memory_alloc",
};

static const char *const internal_exact[] = {
	"malloc", "calloc", "realloc", "reallocarray", "memalign", "posix_memalign", "aligned_alloc", "valloc", "pvalloc",
	"free", "strdup", "strndup", "asprintf", "vasprintf", "mmap", "mmap64", "mremap", "mprotect",
	"xmalloc", "xcalloc", "xrealloc", "xreallocarray", "xstrdup", "xstrndup", "xmemdup", "xzalloc", "x2realloc", "x2nrealloc",
	"xnmalloc", "xnrealloc", "xpalloc", "safe_malloc", "my_malloc", "zalloc", "zmalloc", "emalloc", "sh_xmalloc", "sh_xrealloc",
	"new_arena", "allocate_from_new_pool", "pymalloc_alloc", "arena_map_get", "arena_map_mark_used", "gc_alloc", /* CPython */
	"alloc_mmap", "alloc_malloc", "alloc_hugetlb",                                                               /* OpenBLAS */
};

static bool begins_with(const char *text, const char *const *table, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strncmp(text, table[i], strlen(table[i])))
			return true;
	return false;
}

static bool function_is_internal(const char *function)
{
	for (size_t i = 0; i < COUNT(internal_exact); i++)
		if (!strcmp(function, internal_exact[i]))
			return true;
	return begins_with(function, internal_prefix, COUNT(internal_prefix));
}

bool module_is_internal(const char *base)
{
	return begins_with(base, internal_module, COUNT(internal_module));
}

/* ---- tables ------------------------------------------------------------------------ */

const struct name *name_of(struct symbols *y, const char *linkage)
{
	struct name *n;

	HASH_FIND_STR(y->names, linkage, n);
	if (n)
		return n;
	n = calloc(1, sizeof(*n));
	if (!n || !(n->linkage = strdup(linkage))) {
		free(n);
		return NULL;
	}
	n->function = symbols_demangled(linkage, true);
	if (!n->function)
		n->function = n->linkage;
	n->internal = function_is_internal(n->function);
	HASH_ADD_KEYPTR(hh, y->names, n->linkage, strlen(n->linkage), n);
	return n;
}

const char *text_of(struct symbols *y, const char *text)
{
	size_t len = strlen(text);
	struct text *t;

	HASH_FIND(hh, y->texts, text, len, t);
	if (t)
		return t->at;
	t = calloc(1, sizeof(*t) + len + 1);
	if (!t)
		return "";
	memcpy(t->at, text, len);
	HASH_ADD_KEYPTR(hh, y->texts, t->at, len, t);
	return t->at;
}

void names_free(struct symbols *y)
{
	struct name *n, *next_name;
	struct text *t, *next_text;

	HASH_ITER(hh, y->names, n, next_name) {
		HASH_DEL(y->names, n);
		if (n->function != n->linkage)
			free(n->function);
		free(n->linkage);
		free(n);
	}
	HASH_ITER(hh, y->texts, t, next_text) {
		HASH_DEL(y->texts, t);
		free(t);
	}
}

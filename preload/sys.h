/*
 * sys.h - system calls without libc: no errno, no cancellation point, no hook of ours or of anyone else.
 *
 * Everything here returns -errno on failure, as the kernel does. Machine-dependent parts of the
 * library are in this file, ticks.h and frame_*.h only.
 */
#ifndef SYS_H
#define SYS_H

#include <fcntl.h>
#include <mlprof/wire.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#if !defined(__x86_64__)
#error "mlprof's preload library knows x86-64 only so far: sys.h, ticks.h, cfi.c and stack.c have to learn yours"
#endif

static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
}

#define sys(n, a, b, c) sys6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define sys4(n, a, b, c, d) sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

static inline int sys_open(const char *path, int flags, int mode) { return sys4(SYS_openat, AT_FDCWD, path, flags, mode); }
static inline int sys_close(int fd) { return sys(SYS_close, fd, 0, 0); }
static inline long sys_read(int fd, void *to, size_t n) { return sys(SYS_read, fd, to, n); }
static inline long sys_write(int fd, const void *from, size_t n) { return sys(SYS_write, fd, from, n); }
static inline int sys_fstat(int fd, struct stat *st) { return sys(SYS_fstat, fd, st, 0); }
static inline int sys_fcntl(int fd, int cmd, long arg) { return sys(SYS_fcntl, fd, cmd, arg); }
static inline long sys_readlink(const char *path, char *to, size_t n) { return sys4(SYS_readlinkat, AT_FDCWD, path, to, n); }
static inline int sys_getpid(void) { return sys(SYS_getpid, 0, 0, 0); }
static inline int sys_gettid(void) { return sys(SYS_gettid, 0, 0, 0); }
static inline int sys_poll(struct pollfd *fds, int n, int ms) { return sys(SYS_poll, fds, n, ms); }
static inline int sys_munmap(void *at, size_t n) { return sys(SYS_munmap, at, n, 0); }
static inline int sys_getrlimit(int what, struct rlimit *to) { return sys4(SYS_prlimit64, 0, what, 0, to); }

static inline void *sys_mmap(size_t n, int prot, int flags, int fd)
{
	long r = sys6(SYS_mmap, 0, (long)n, prot, flags, fd, 0);

	return r < 0 && r > -4096 ? NULL : (void *)r;
}

/* Zeroed memory of our own, backed only where it is touched; NULL if there is none. */
static inline void *sys_memory(size_t n)
{
	return sys_mmap(n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
}

/* Large pages where there are any to be had. */
static inline void sys_huge(void *at, size_t n) { sys(SYS_madvise, at, n, MADV_HUGEPAGE); }

/* Can 8 bytes at p be read? The kernel copies them in before it looks at the senseless first argument. */
static inline int sys_readable(const void *p)
{
	return sys4(SYS_rt_sigprocmask, ~0L, p, 0, 8) != -14;    /* EFAULT */
}

/* The kernel copies the word onto itself: 8, or why it cannot. -EFAULT: it must not be written. */
static inline long sys_rewrite(void **word)
{
	struct iovec place = { word, sizeof *word };

	return sys6(SYS_process_vm_readv, sys_getpid(), (long)&place, 1, (long)&place, 1, 0);
}

#endif

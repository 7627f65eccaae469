/*
 * cxx_books.cc - every form of new and delete, with its own books. "dry" allocates nothing: what the C++
 * library takes at its start. (Aligned sizes are whole multiples: libstdc++ rounds others up before it asks malloc.)
 */
#include "expect.h"
#include <new>

struct alignas(256) wide {
	char data[512];
};

static struct books b;

template <typename T> static T *counted(T *p, size_t size)
{
	books_alloc(&b, size);
	return static_cast<T *>(used(p));
}

template <typename T> static void dropped(T *p, size_t size)
{
	books_free(&b, size);
	delete p;
}

int main(int argc, char **)
{
	for (int i = 0; i < 1000 && argc == 1; i++) {
		long *one = counted(new long(i), sizeof(long));
		char *many = counted(new char[100 + i], 100 + i);
		wide *aligned = counted(new wide, sizeof(wide));
		int *quiet = counted(new (std::nothrow) int, sizeof(int));
		void *raw = counted(static_cast<char *>(::operator new(77)), 77);
		void *page = counted(static_cast<char *>(::operator new(8192, std::align_val_t(4096))), 8192);

		dropped(one, sizeof(long));
		books_free(&b, 100 + i);
		delete[] many;
		dropped(aligned, sizeof(wide));
		books_free(&b, 77);
		::operator delete(raw, size_t(77));
		books_free(&b, 8192);
		::operator delete(page, std::align_val_t(4096));
		if (i % 10)
			dropped(quiet, sizeof(int));
	}
	books_say(&b);
	return 0;
}

// symbols_sample.cc - code whose frames test_symbols.c knows by name and line: C++, a template, inlined functions.
// The lines that call are marked; the test looks for the marks.
#include <cstddef>
#include <vector>

typedef void (*leaf_function)(void);

static volatile int sink;

namespace shop {

template <typename T>
struct basket {
	__attribute__((noinline)) void fill(T count, leaf_function leaf);
};

static inline __attribute__((always_inline)) void pick(leaf_function leaf)
{
	leaf(); // MARK pick
	sink++;
}

static inline __attribute__((always_inline)) void choose(leaf_function leaf)
{
	sink++;
	pick(leaf); // MARK choose
	sink++;
}

template <typename T>
void basket<T>::fill(T count, leaf_function leaf)
{
	sink += count;
	choose(leaf); // MARK fill
	sink++;
}

}

extern "C" __attribute__((noinline, visibility("default"))) void sample_enter(leaf_function leaf)
{
	shop::basket<int> b;

	b.fill(3, leaf); // MARK enter
	sink++;
}

static leaf_function current;

struct element {
	element() { current(); }
	int value = 0;
};

// The stack goes through std::vector's own functions: the owner is the function that has the vector.
extern "C" __attribute__((noinline, visibility("default"))) void sample_vector(leaf_function leaf)
{
	current = leaf;
	std::vector<element> v(1);
	sink += v[0].value;
}

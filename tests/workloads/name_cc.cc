/*
 * name_cc.cc - a vector inside a class template: the frames of the standard library are inlined between
 * operator new and the function that a person would name.
 */
#include <cstddef>
#include <vector>

namespace model {
template <typename T> struct Layer {
	std::vector<T> weights;
	__attribute__((noinline)) void grow(size_t n)
	{
		weights.resize(n);              // frame: model::Layer<float>::grow
		__asm__ volatile("");           // so that the call above is not its last act
	}
};
}

int main()
{
	model::Layer<float> small, large;

	small.grow(1000);
	large.grow(3 << 20);                    // frame: main
	return large.weights[5] != 0;
}

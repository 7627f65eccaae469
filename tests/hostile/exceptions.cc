// cc: -pthread
/* exceptions through frames that allocate, in several threads, and a bad_alloc */
#include <cstdio>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static int deep(int depth)
{
	std::vector<std::string> text(depth % 5 + 1, std::string(100, 'x'));

	if (depth == 0)
		throw std::runtime_error(text[0]);
	return deep(depth - 1) + text.size();
}

static int times = 3000;

static void rounds(int *caught)
{
	for (int i = 0; i < times; i++) {
		try {
			deep(i % 40);
		} catch (const std::runtime_error &e) {
			*caught += std::string(e.what()).size() == 100;
		}
	}
}

int main(int argc, char **)
{
	bool few = argc > 1;
	int caught[4] = {};
	std::vector<std::thread> threads;
	volatile size_t huge = ~size_t(0) / 4;

	times = few ? 100 : times;
	for (int &c : caught)
		threads.emplace_back(rounds, &c);
	for (auto &t : threads)
		t.join();
	printf("%d %d %d %d\n", caught[0], caught[1], caught[2], caught[3]);
	try {
		delete[] new char[huge];
	} catch (const std::bad_alloc &e) {
		printf("%s\n", e.what());
	}
	printf("%d\n", new (std::nothrow) char[huge] == nullptr);
	fflush(stdout);
	if (!few)
		throw std::logic_error("the end");
	return 0;
}

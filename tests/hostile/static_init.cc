/* static constructors and destructors that allocate, thread_local ones too */
#include <cstdio>
#include <map>
#include <string>
#include <thread>

struct Registry {
	std::map<int, std::string> names;
	Registry()
	{
		for (int i = 0; i < 1000; i++)
			names[i] = std::string(i % 90, 'n');
	}
	~Registry()
	{
		names[-1] = std::string(500, 'z');
		dprintf(1, "gone with %zu\n", names.size());
	}
};

static Registry registry;
static thread_local std::string mine(300, 't');

int main()
{
	std::thread([] { mine += "more"; }).join();
	printf("%zu %zu\n", registry.names.size(), mine.size());
	fflush(stdout);
	return 0;
}

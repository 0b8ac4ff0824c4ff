// The standard containers: template code of vector, map, string and deque that ends up in the
// program itself.
#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "checksum.h"

NOINLINE static std::vector<std::string> split(const std::string &text, char separator)
{
	std::vector<std::string> words;
	std::string word;
	for (char c : text) {
		if (c != separator) {
			word += c;
			continue;
		}
		if (!word.empty())
			words.push_back(word);
		word.clear();
	}
	if (!word.empty())
		words.push_back(word);
	return words;
}

NOINLINE static void count(std::map<std::string, int> &counts,
	const std::vector<std::string> &words)
{
	for (const std::string &word : words)
		counts[word]++;
}

NOINLINE static int breadth_first(int nodes)
{
	std::vector<bool> seen(nodes);
	std::deque<int> queue{1};
	int order = 0;
	while (!queue.empty()) {
		int node = queue.front();
		queue.pop_front();
		if (node >= nodes || seen[node])
			continue;
		seen[node] = true;
		order = order * 3 + node;
		queue.push_back(node * 2 % nodes);
		if (node % 3)
			queue.push_front(node + 1);
	}
	return order;
}

int main()
{
	std::map<std::string, int> counts;
	count(counts, split("to be or not to be that is", ' '));
	for (const auto &entry : counts) {
		mix(entry.first.size() * 10 + entry.second);
		mix(entry.first[0]);
	}
	counts.erase("be");
	mix(counts.find("be") == counts.end());
	mix(breadth_first(9));
	std::vector<int> values{5, 3, 8, 1, 9, 2};
	std::make_heap(values.begin(), values.end());
	while (!values.empty()) {
		std::pop_heap(values.begin(), values.end());
		mix(values.back());
		values.pop_back();
	}
	report();
	return 0;
}

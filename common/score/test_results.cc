#include "common/score/test_results.h"

#include <algorithm>
#include <set>
#include <utility>

namespace proctor {
namespace {

// How alike two names are: bytes that they share at both ends, and bytes of `test` in parts that
// `wanted` has too.
std::size_t likeness(std::string_view wanted, std::string_view test) {
  std::size_t front = 0, back = 0, parts = 0;
  const std::size_t most = std::min(wanted.size(), test.size());
  while (front < most && wanted[front] == test[front]) ++front;
  while (front + back < most && wanted[wanted.size() - 1 - back] == test[test.size() - 1 - back])
    ++back;
  const auto next = [](std::string_view& rest) {
    const std::string_view part = rest.substr(0, rest.find_first_of(".:"));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    return part;
  };
  std::set<std::string_view> has;
  while (!wanted.empty()) has.insert(next(wanted));
  while (!test.empty())
    if (const std::string_view part = next(test); has.contains(part)) parts += part.size();
  return front + back + parts;
}

}  // namespace

std::string test_name(std::string_view id) {
  const std::string_view parameters = id.substr(std::min(id.find('['), id.size()));
  id.remove_suffix(parameters.size());
  const std::size_t file = std::min(id.find("::"), id.size());
  std::string out(id.substr(0, file));
  if (file < id.size() && out.ends_with(".py")) {
    out.resize(out.size() - 3);
    if (out.starts_with("./")) out.erase(0, 2);
    std::ranges::replace(out, '/', '.');
  }
  const std::size_t last = id.rfind("::");
  for (std::size_t at = file; at < id.size();) {
    const std::size_t next = std::min(id.find("::", at + 2), id.size());
    out += at == last ? "::" : ".";
    out += id.substr(at + 2, next - at - 2);
    at = next;
  }
  return out.append(parameters);
}

void TestResults::add(std::string id, TestStatus status, std::string_view name) {
  const auto named = by_name_.emplace(test_name(name.empty() ? id : name), id);
  if (!named.second && named.first->second != id) named.first->second.clear();
  const auto [it, is_new] = tests.emplace(std::move(id), status);
  if (!is_new && it->second != TestStatus::kFail) it->second = status;
}

std::map<std::string, TestStatus>::const_iterator TestResults::find(const std::string& id) const {
  if (const auto it = tests.find(id); it != tests.end()) return it;
  const auto named = by_name_.find(test_name(id));
  return named == by_name_.end() ? tests.end() : tests.find(named->second);
}

std::vector<std::string> TestResults::nearest(std::string_view id, std::size_t count) const {
  const std::string wanted = test_name(id);
  std::vector<std::pair<std::size_t, const std::string*>> ran;
  for (const auto& [test, status] : tests)
    if (status != TestStatus::kSkip) ran.emplace_back(likeness(wanted, test_name(test)), &test);
  const std::size_t n = std::min(count, ran.size());
  std::ranges::partial_sort(ran, ran.begin() + static_cast<std::ptrdiff_t>(n),
                            [](const auto& a, const auto& b) {
                              return a.first != b.first ? b.first < a.first : *a.second < *b.second;
                            });
  std::vector<std::string> out;
  for (std::size_t i = 0; i < n; ++i) out.push_back(*ran[i].second);
  return out;
}

}  // namespace proctor

#include "coordinator/cvdp/dataset/dockerfile.h"

#include <algorithm>

#include "common/base/parse.h"

namespace proctor::cvdp {
namespace {

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> out;
  std::string word;
  for (const char c : line) {
    if (c != ' ' && c != '\t' && c != '\r') {
      word += c;
    } else if (!word.empty()) {
      out.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) out.push_back(std::move(word));
  return out;
}

std::string upper(std::string word) {
  for (char& c : word)
    if ('a' <= c && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return word;
}

bool in(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

}  // namespace

std::optional<Dockerfile> read_dockerfile(std::string_view text) {
  Dockerfile out;
  std::vector<std::string> stages;
  std::size_t instructions = 0;
  bool goes_on = false;  // the line before ended in a backslash
  while (!text.empty()) {
    std::vector<std::string> words = words_of(take_until(text, '\n'));
    if (words.empty() || words[0].starts_with('#')) continue;
    const bool begins = !goes_on;
    goes_on = words.back().ends_with('\\');
    if (!begins) continue;
    ++instructions;
    if (upper(words[0]) != "FROM") continue;
    std::erase_if(words, [](const std::string& w) { return w.starts_with("--"); });
    if (words.size() < 2 || words[1].find('$') != std::string::npos) return std::nullopt;
    if (!in(stages, words[1]) && !in(out.bases, words[1])) out.bases.push_back(words[1]);
    if (words.size() == 4 && upper(words[2]) == "AS") stages.push_back(words[3]);
  }
  if (out.bases.empty()) return std::nullopt;
  out.only_from = instructions == 1 && stages.empty();
  return out;
}

}  // namespace proctor::cvdp

// The `container` of a check: a program of its own in an image.
#include <algorithm>
#include <set>

#include "common/base/text.h"
#include "common/contract/contract_sections.h"

namespace proctor {
namespace {

constexpr TextRule kContainerImageRule{500, "an image by digest: name@sha256:<64 hex digits>",
                                       is_image};
constexpr TextRule kFolderRule{kPathBytes, "an absolute path", is_absolute};
constexpr TextRule kPlaceRule{kPathBytes, "an absolute path, not of the container's own",
                              is_free_in_container};
bool is_workspace_path(std::string_view text) {
  return text == "." || is_work_file(text);
}
constexpr TextRule kFromRule{kPathBytes, "a path of the workspace, or \".\" for all of it",
                             is_workspace_path};
constexpr std::size_t kWordsMax = 1000, kMountsMax = 100;

// A word may be empty, and the same word may come twice.
std::vector<std::string> read_words(const Fields& f, std::string_view key) {
  std::vector<std::string> out;
  f.each(key, [&](const Node& item, const std::string& path) {
    const bool fits = item.kind == Node::Kind::kScalar && item.text.size() <= kCommandBytes &&
                      item.text.find('\0') == std::string::npos && out.size() < kWordsMax;
    if (!fits)
      f.problems().wrong(item, path, "a word of a command, at most 64 KiB, of at most 1000");
    else
      out.push_back(item.text);
  });
  return out;
}

std::vector<ProgramContainer::Mount> read_container_mounts(const Fields& f) {
  std::vector<ProgramContainer::Mount> out;
  std::set<std::string> places;
  f.each("mounts", [&](const Node& item, const std::string& path) {
    const Fields m(item, path, kContainerMountKeys, f.problems());
    ProgramContainer::Mount mount{m.text("from", Need::kRequired, kFromRule),
                                  m.text("at", Need::kRequired, kPlaceRule),
                                  m.flag("writable", true)};
    if (!places.insert(mount.at).second || kMountsMax < places.size())
      f.problems().wrong(item, path, "each place in the container once, at most 100");
    out.push_back(std::move(mount));
  });
  return out;
}

void append_word(std::string& line, const std::string& word) {
  constexpr std::string_view kPlain = "-_./:=@%+,";
  const bool plain = !word.empty() && std::ranges::all_of(word, [&](char c) {
    return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') ||
           kPlain.find(c) != std::string_view::npos;
  });
  if (!line.empty()) line += ' ';
  if (plain) {
    line += word;
    return;
  }
  line += '\'';
  for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
  line += '\'';
}

}  // namespace

ProgramContainer read_container(const Node& node, const std::string& path, Problems& problems) {
  const Fields f(node, path, kContainerKeys, problems);
  ProgramContainer out;
  out.image = f.text("image", Need::kOptional, kContainerImageRule);
  out.entrypoint = read_words(f, "entrypoint");
  out.command = read_words(f, "command");
  out.working_dir = f.text("working_dir", Need::kOptional, kFolderRule);
  out.variables = f.table("variables", kVariableRule, kVariableValueRule);
  out.mounts = read_container_mounts(f);
  return out;
}

std::string words_for_people(const ProgramContainer& container) {
  std::string line;
  for (const auto* words : {&container.entrypoint, &container.command})
    for (const std::string& word : *words) append_word(line, word);
  return line.empty() ? "the image's own program" : line;
}

}  // namespace proctor

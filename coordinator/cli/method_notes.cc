#include "coordinator/cli/method_notes.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "common/base/parse.h"

namespace proctor::cli {
namespace {

constexpr std::string_view kFolder = "PROCTOR_METHOD";

// Which program a file is for, where its name or its first words tell; empty: they do not.
std::string_view language_of(const ReferencedFile& file) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kEndings{
      {{".py", "python3"}, {".js", "node"}, {".mjs", "node"}, {".rb", "ruby"}, {".pl", "perl"}}};
  for (const auto& [ending, program] : kEndings)
    if (file.path.ends_with(ending)) return program;
  // The first line that is no comment: a shell has no such words with what follows them.
  for (std::string_view rest = file.bytes; !rest.empty();) {
    const std::string_view line = take_until(rest, '\n');
    if (line.empty() || line.starts_with('#')) continue;
    const bool imports = line.starts_with("import ") && line.find('/') == line.npos;
    const bool from = line.starts_with("from ") && line.find(" import ") != line.npos;
    return imports || from || line.starts_with("\"\"\"") ? "python3" : "";
  }
  return "";
}

// What its command is where `script: PATH` names it and no first line names an interpreter.
bool is_for_a_shell(const Method& m, const ReferencedFile& file) {
  const std::string named = "\"$" + std::string(kFolder) + "/" + file.path + "\"";
  return !file.bytes.starts_with("#!") && (m.command == "sh " + named || m.command == named);
}

bool is_of_name(char c) {
  return c == '_' || ('0' <= c && c <= '9') || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z');
}
bool is_of_path(char c) {
  return is_of_name(c) || c == '.' || c == '-' || c == '/';
}

// The paths behind $PROCTOR_METHOD/ in a command; "" for the folder itself, and for one that goes
// on in a way that cannot be read here.
std::set<std::string> named_in(std::string_view command) {
  std::set<std::string> out;
  for (std::size_t at = command.find(kFolder); at != command.npos;
       at = command.find(kFolder, at + 1)) {
    const std::string_view before = command.substr(0, at);
    const bool braced = before.ends_with("${");
    if (!braced && !before.ends_with('$')) continue;
    std::string_view rest = command.substr(at + kFolder.size());
    if (braced && !take_word(rest, "}")) continue;  // ${PROCTOR_METHOD:-...} and longer names
    if (!take_word(rest, "/")) {
      // Not of $PROCTOR_METHOD_HOME, whatever that is.
      if (braced || rest.empty() || !is_of_name(rest.front())) out.insert("");
      continue;
    }
    const auto end = std::ranges::find_if_not(rest, is_of_path);
    std::string_view path = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
    const std::string_view then = rest.substr(path.size());
    while (path.ends_with('/')) path.remove_suffix(1);
    const bool goes_on =
        !then.empty() && std::string_view("$*?[{`").find(then.front()) != then.npos;
    out.insert(goes_on ? "" : std::string(path));
  }
  return out;
}

bool brings(const Method& m, const std::string& path) {
  return path.empty() || std::ranges::any_of(m.files, [&](const ReferencedFile& f) {
           return f.path == path || f.path.starts_with(path + "/");
         });
}

void notes_of(const Method& m, std::vector<std::string>& out) {
  const std::string who = "the method " + m.name + ": ";
  for (const ReferencedFile& file : m.files) {
    const std::string_view program = language_of(file);
    if (program.empty() || !is_for_a_shell(m, file)) continue;
    out.push_back(who + file.path + " looks like a program for " + std::string(program) +
                  " and has no first line that names one, so that sh runs it and every run fails: "
                  "#!/usr/bin/env " +
                  std::string(program));
  }
  std::set<std::string> named = named_in(m.command);
  for (const SetupStep& step : m.environment.setup) named.merge(named_in(step.command));
  for (const std::string& path : named) {
    if (m.files.empty()) {
      out.push_back(who +
                    "its commands name $PROCTOR_METHOD, which is not set where a method has "
                    "no files: files: [" +
                    (path.empty() ? "..." : path) + "]");
      break;
    }
    if (!brings(m, path))
      out.push_back(who + "its commands name $PROCTOR_METHOD/" + path +
                    ", which its files do not bring: files: [..., " + path + "]");
  }
}

}  // namespace

std::vector<std::string> method_notes(const Campaign& campaign) {
  std::vector<std::string> out;
  for (const Method& m : campaign.methods)
    if (m.kind == Method::Kind::kCommand && !m.container) notes_of(m, out);
  return out;
}

}  // namespace proctor::cli

#include "common/contract/rules.h"

#include <algorithm>

#include "common/base/files.h"
#include "common/base/parse.h"
#include "common/contract/file_source.h"

namespace proctor {
namespace {
bool is_lower(char c) {
  return 'a' <= c && c <= 'z';
}
bool is_upper(char c) {
  return 'A' <= c && c <= 'Z';
}
bool is_hex(char c) {
  return is_digit(c) || ('a' <= c && c <= 'f');
}
bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F;
}
bool is_letter_digit_or(char c, std::string_view others) {
  return is_lower(c) || is_upper(c) || is_digit(c) || others.find(c) != std::string_view::npos;
}

bool lies_in(std::string_view path, std::string_view folder) {
  return path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
}

// ".git" as Windows' and macOS' file systems may spell it: cases, "git~1", dots and spaces behind,
// and what follows a colon.
bool is_git_name(std::string_view name) {
  name = name.substr(0, name.find(':'));
  while (name.ends_with('.') || name.ends_with(' ')) name.remove_suffix(1);
  const std::string lower = lowered(name);
  return lower == ".git" || lower == "git~1";
}

bool names_git(std::string_view path) {
  return std::ranges::any_of(split(path, '/'), is_git_name);
}
}  // namespace

bool is_id(std::string_view text) {
  const auto inside = [](char c) {
    return is_lower(c) || is_digit(c) || c == '.' || c == '_' || c == '-';
  };
  return !text.empty() && (is_lower(text.front()) || is_digit(text.front())) &&
         std::ranges::all_of(text, inside);
}

bool is_word(std::string_view text) {
  const auto inside = [](char c) { return is_lower(c) || is_digit(c) || c == '_' || c == '-'; };
  return !text.empty() && is_lower(text.front()) && std::ranges::all_of(text, inside);
}

bool is_one_line(std::string_view text) {
  return std::ranges::none_of(text, is_control);
}

bool is_commit(std::string_view text) {
  return (text.size() == 40 || text.size() == 64) && std::ranges::all_of(text, is_hex);
}

bool is_image(std::string_view text) {
  constexpr std::string_view kAlgorithm = "sha256:";
  const std::size_t at = text.find('@');
  if (at != std::string_view::npos) {
    const std::string_view name = text.substr(0, at);
    const auto inside = [](char c) { return is_letter_digit_or(c, "._/:-"); };
    if (name.empty() || !is_letter_digit_or(name.front(), "") || !std::ranges::all_of(name, inside))
      return false;
    text.remove_prefix(at + 1);
  }
  if (!text.starts_with(kAlgorithm)) return false;
  text.remove_prefix(kAlgorithm.size());
  return text.size() == 64 && std::ranges::all_of(text, is_hex);
}

bool is_variable(std::string_view text) {
  return !text.empty() && !is_digit(text.front()) && !text.starts_with("PROCTOR_") &&
         std::ranges::all_of(text, [](char c) { return is_letter_digit_or(c, "_"); });
}

bool is_glob(std::string_view text) {
  if (text.empty() || text.front() == '/' || !is_one_line(text)) return false;
  return std::ranges::count(split(text, '/'), std::string_view("..")) == 0;
}

bool is_file_path(std::string_view text) {
  constexpr std::string_view kShell = "\"'`$\\;&|<>*?!(){}[]";
  return is_safe_relative(text) && is_one_line(text) && text.front() != '-' &&
         text.find_first_of(kShell) == std::string_view::npos;
}

bool is_absolute(std::string_view text) {
  return 1 < text.size() && text.front() == '/' && is_safe_relative(text.substr(1)) &&
         is_one_line(text) && text.find(':') == std::string_view::npos;
}

bool is_locale(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return is_letter_digit_or(c, "_.@+-/"); });
}

bool is_flat_name(std::string_view text) {
  return is_file_path(text) && text.find('/') == std::string_view::npos;
}

bool is_work_file(std::string_view text) {
  return is_file_path(text) && !names_git(text);
}
bool is_work_glob(std::string_view text) {
  return is_glob(text) && !names_git(text);
}
bool is_free_place(std::string_view text) {
  // In bubblewrap /var/tmp is a link to /tmp: there is no place below it to mount anything at.
  constexpr std::array<std::string_view, 6> kOurs{"/proctor", "/workspace", "/proc",
                                                  "/sys",     "/dev",       "/var/tmp"};
  // What sandboxes make there themselves; something below may well be the task's.
  constexpr std::array<std::string_view, 10> kWhole{"/tmp",
                                                    "/run",
                                                    "/home",
                                                    "/home/proctor",
                                                    "/etc",
                                                    "/etc/group",
                                                    "/etc/hosts",
                                                    "/etc/resolv.conf",
                                                    "/etc/nsswitch.conf",
                                                    "/etc/passwd"};
  return is_absolute(text) &&
         std::ranges::none_of(kOurs, [&](auto p) { return lies_in(text, p); }) &&
         std::ranges::find(kWhole, text) == kWhole.end() && !lies_in(text, "/sbin/docker-init");
}
bool is_free_in_container(std::string_view text) {
  constexpr std::array<std::string_view, 4> kOurs{"/proctor", "/proc", "/sys", "/dev"};
  return is_absolute(text) &&
         std::ranges::none_of(kOurs, [&](auto p) { return lies_in(text, p); }) &&
         !lies_in(text, "/sbin/docker-init");
}

bool is_work_path(std::string_view text) {
  return text == "." || is_work_file(text);
}
bool is_kept_path(std::string_view text) {
  return is_work_glob(text.substr(text.starts_with("~/") ? 2 : 0));
}
bool is_service_name(std::string_view text) {
  const auto plain = [](char c) { return is_lower(c) || is_digit(c); };
  return !text.empty() && plain(text.front()) && plain(text.back()) && text != "localhost" &&
         text != "sandbox" &&  // two names are every sandbox's own
         std::ranges::all_of(text, [&](char c) { return plain(c) || c == '-'; });
}
bool is_alias(std::string_view text) {
  const std::size_t star = text.find('*');
  return is_one_line(text) && (star == std::string_view::npos || star + 1 == text.size());
}

std::string FileCollector::add(const Node& node, const std::string& where) {
  const std::string path = read_text(node, where, kPathRule, problems_);
  if (path.empty() || files_.contains(path)) return path;
  Result<ReferencedFile> file = source_.read(path);
  if (!file.ok()) {
    problems_.add(node.at, where, file.error().detail,
                  "a regular file of at most " +
                      std::to_string(limits::kReferencedFileBytes >> 20) +
                      " MiB in this file's folder");
    return "";
  }
  bytes_ += file->bytes.size();
  if (kFilesBytes < bytes_) {
    problems_.add(node.at, where, "files of more than " + std::to_string(kFilesBytes) + " bytes",
                  "at most that many together");
    return "";
  }
  files_.emplace(path, std::move(file).value());
  return path;
}

const ReferencedFile* FileCollector::find(const std::string& path) const {
  const auto it = files_.find(path);
  return it == files_.end() ? nullptr : &it->second;
}

std::vector<ReferencedFile> FileCollector::take() {
  std::vector<ReferencedFile> out;
  for (auto& [path, file] : files_) out.push_back(std::move(file));
  files_.clear();
  return out;
}

std::optional<std::string> interpreter_of(std::string_view script) {
  constexpr std::size_t kLineMax = 250;  // as Linux reads it
  if (!script.starts_with("#!")) return "sh";
  std::string_view line = script.substr(2, script.find('\n') - 2);
  line = trimmed(line.substr(0, line.find_last_not_of(" \t\r") + 1));
  const std::size_t space = line.find_first_of(" \t");
  const std::string_view program = line.substr(0, space);
  const std::string_view argument =
      space == std::string_view::npos ? std::string_view() : trimmed(line.substr(space));
  const bool plain = std::ranges::all_of(
      line, [](char c) { return (0x20 <= c && c < 0x7F && c != '\'') || c == '\t'; });
  if (!program.starts_with('/') || kLineMax < line.size() || !plain) return std::nullopt;
  const bool of_env = program.ends_with("/env") && argument == "sh";
  if (of_env || (program.ends_with("/sh") && argument.empty())) return "sh";
  std::string out = "'" + std::string(program) + "'";
  if (!argument.empty()) out.append(" '").append(argument).append("'");
  return out;
}

std::string read_command(const Fields& fields) {
  const Node* command = fields.find("command");
  const Node* script = fields.find("script");
  if (command != nullptr && script != nullptr)
    fields.wrong("script", "either a command or a script");
  if (command == nullptr && script == nullptr) {
    fields.missing("command", "a command for /bin/sh, or a script");
    return "";
  }
  std::string path;
  if (command != nullptr) {
    fields("command", path, kCommandRule);
    return path;
  }
  fields.file("script", path);
  const ReferencedFile* file = fields.files()->find(path);
  if (file == nullptr) return "";
  const std::string quoted = "\"$" + std::string(fields.files()->folder()) + "/" + path + "\"";
  constexpr std::uint32_t kExecutable = 0100;
  if ((file->mode & kExecutable) != 0) return quoted;
  const std::optional<std::string> interpreter = interpreter_of(file->bytes);
  if (!interpreter)
    fields.wrong("script",
                 "a script whose first line names its interpreter by a path, such as "
                 "#!/usr/bin/env python3, or has no #! and is for sh");
  return interpreter.value_or("sh") + " " + quoted;
}

void check_rates(const Fields& f, const Rates& rates) {
  if (kRateProvidersMax < rates.providers.size())
    f.complain("providers", std::to_string(rates.providers.size()) + " providers",
               "at most " + std::to_string(kRateProvidersMax));
}
}  // namespace proctor

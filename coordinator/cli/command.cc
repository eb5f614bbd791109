#include "coordinator/cli/command.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <system_error>
#include <vector>

#include "common/base/last_words.h"
#include "common/base/log.h"
#include "common/base/owned.h"
#include "common/base/text.h"
#include "common/base/version.h"
#include "coordinator/cli/completion.h"
#include "coordinator/shell/control_protocol.h"
#include "coordinator/shell/state_folder.h"

namespace proctor::cli {
std::function<std::string(const std::string&)> share(double least, double most) {
  return [=](const std::string& text) -> std::string {
    const bool plain = !text.empty() && text.size() <= 20 &&
                       text.find_first_not_of("0123456789.") == std::string::npos &&
                       std::ranges::count(text, '.') <= 1 && text != ".";
    const double value = plain ? std::strtod(text.c_str(), nullptr) : -1;
    if (least <= value && value <= most) return "";
    return "expected a share such as 0.05, not " + printable(text);
  };
}

namespace {
Status write_into(const fs::path& path, std::string_view bytes) {
  // A pipe without a reader fails with ENXIO, where it would else be waited for.
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd.valid()) return errno_error(path.string(), errno);
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags & ~O_NONBLOCK) != 0)
    return errno_error(path.string(), errno);
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error(path.string(), errno);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return ok_status();
}

// Where links lead to, also when nothing is there yet.
fs::path end_of_links(fs::path path) {
  constexpr int kLinksMax = 40;
  std::error_code ec;
  for (int i = 0; i < kLinksMax && fs::is_symlink(path, ec); ++i) {
    const fs::path to = fs::read_symlink(path, ec);
    if (ec) break;
    path = to.is_absolute() ? to : path.parent_path() / to;
  }
  return path;
}
}  // namespace

std::optional<fs::path> replaced_file(const fs::path& path) {
  std::error_code ec;
  // By its own name: what /dev/stdout leads to may have none.
  const fs::file_type type = fs::status(path, ec).type();
  if (type != fs::file_type::regular && type != fs::file_type::not_found) return std::nullopt;
  return end_of_links(path);
}

Status write_output(const fs::path& path, std::string_view bytes) {
  if (is_folder(path))
    return Error{Errc::kInvalid, path.string() + ": is a folder; name a file in it"};
  const std::optional<fs::path> file = replaced_file(path);
  return file ? write_file(*file, bytes) : write_into(path, bytes);
}

std::string printable_lines(std::string_view text, std::string_view kept) {
  std::string out;
  for (;;) {
    const std::string_view part = text.substr(0, text.find_first_of(kept));
    out += printable(part, 4 * part.size() + 4);
    if (part.size() == text.size()) return out;
    out += text[part.size()];
    text.remove_prefix(part.size() + 1);
  }
}

int with_output_written(int code) {
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  // What failed before is gone with its reason; one line's end more finds the same one.
  if (failed_before) std::fputc('\n', stdout);
  const bool flushed = std::fflush(stdout) == 0;
  const int reason = flushed ? 0 : errno;
  if ((flushed && !failed_before) || reason == EPIPE) return code;
  std::fprintf(stderr, "proctor: standard output: %s; not all of it was written\n",
               reason == 0 ? "a write failed" : std::strerror(reason));
  return code == kOk ? kInfrastructure : code;
}

// proctor cvdp ...: another program, proctor-cvdp.
std::optional<int> run_cvdp_program(int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  const bool completes = argc == 3 && words[1] == "__complete";
  const std::vector<std::string> line = completes ? words_of(words[2]) : words;
  if (line.size() < 2) return std::nullopt;
  // Options before a command have no values; a word that is being typed is no command yet.
  const auto command = std::find_if(line.begin() + 1, line.end() - (completes ? 1 : 0),
                                    [](const std::string& word) { return !word.starts_with("-"); });
  if (command == line.end() || *command != "cvdp") return std::nullopt;
  if (!completes) words.erase(words.begin() + (command - line.begin()));
  words[0] += "-cvdp";
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::error_code ec;
  const fs::path self = fs::read_symlink("/proc/self/exe", ec);
  if (ec)
    return complain({Errc::kUnavailable, "/proc/self/exe: " + ec.message() +
                                             "; `proctor cvdp` looks there for proctor-cvdp"});
  const fs::path beside = self.parent_path() / "proctor-cvdp";
  ::execv(beside.c_str(), arguments.data());
  const int reason = errno;
  std::string why = errno_error(beside.string(), reason).detail;
  if (reason == ENOENT)
    why +=
        "\n`proctor cvdp` is a program of its own beside proctor.  To build it, in the build "
        "folder:  "
        "cmake --build . --target proctor-cvdp";
  return complain({Errc::kUnavailable, why});
}

void add_cvdp_program(Command app, int&) {
  app.add_subcommand("cvdp", kCvdpSays);
}

// Shared by main functions: a command line of some commands, and what is said where one fails.

namespace {
// SQLite's words of a damaged journal tell nobody what to type.
const char* way_out(const Error& error) {
  const auto says = [&](std::string_view text) {
    return error.detail.find(text) != std::string::npos;
  };
  if (error.code != Errc::kCorrupt || !says("/journal.sqlite") || says("proctor journal"))
    return "";
  return "To see what is damaged: proctor journal check CAMPAIGN\n"
         "To rebuild it from what is whole: proctor journal recover CAMPAIGN\n";
}
}  // namespace

int complain(const Error& error) {
  std::fflush(stdout);
  std::fprintf(stderr, "proctor: %s\n%s", error.detail.c_str(), way_out(error));
  const bool is_input = error.code == Errc::kInvalid || error.code == Errc::kNotFound ||
                        error.code == Errc::kConflict;
  return is_input ? kBadInput : kInfrastructure;
}

int code_of(const Result<int>& done) {
  return done.ok() ? *done : complain(done.error());
}

int code_of(const Status& done) {
  return done.ok() ? kOk : complain(done.error());
}

int code_of(const Result<std::string>& text) {
  if (text.ok()) std::fputs(text->c_str(), stdout);
  return text.ok() ? kOk : complain(text.error());
}
}  // namespace proctor::cli

namespace proctor {
namespace {
// What was typed where a command stands, when there is no such command.
std::optional<std::string> unknown_command(cli::Command app, int argc, char** argv) {
  const auto* word = std::find_if(argv + 1, argv + argc, [](const char* a) { return *a != '-'; });
  if (word == argv + argc) return std::nullopt;
  std::vector<std::string> names;
  for (const cli::Command command : app.subcommands()) names.push_back(command.name());
  if (std::find(names.begin(), names.end(), *word) != names.end()) return std::nullopt;
  std::string said = "there is no command " + proctor::printable(*word);
  const std::vector<std::string_view> views(names.begin(), names.end());
  if (const std::string near = proctor::did_you_mean(*word, views); !near.empty())
    return said + near;
  said += "; there are";
  for (const std::string& name : names)
    if (!name.starts_with("_")) said += " " + name;
  return said;
}

// The first option that the typed command does not have, and the one that was probably meant.
struct MeantOption {
  std::string typed, near;
};
std::optional<MeantOption> meant_option(cli::Command command, int argc, char** argv) {
  std::vector<std::string> names = command.long_options();
  for (int i = 1; i < argc; ++i) {
    const std::string word = std::string(argv[i]).substr(0, std::string(argv[i]).find('='));
    if (const auto inner = command.subcommand(word)) {
      command = *inner;
      for (std::string& name : command.long_options()) names.push_back(std::move(name));
    }
    if (!word.starts_with("--") || std::ranges::find(names, word) != names.end()) continue;
    const std::vector<std::string_view> views(names.begin(), names.end());
    if (const auto near = proctor::nearest_word(word, views)) return MeantOption{word, *near};
  }
  return std::nullopt;
}

int run_command(int argc, char** argv, std::string_view commit,
                std::initializer_list<cli::Register> commands) {
  cli::CommandLine app(
      "Proctor runs evaluation campaigns of coding agents under budgets that hold.\n"
      "A first campaign:  proctor init demo && proctor run demo\n");
  app.set_version("proctor " + std::string(kVersion) + " (" + std::string(commit) + ")");
  app.require_subcommand(1);
  app.fallthrough();
  bool verbose = false;
  app.add_flag("-v,--verbose", verbose, "say more on standard error");
  int exit_code = cli::kOk;
  for (const cli::Register add : commands) add(app, exit_code);
  app.parse_complete_callback(
      [&] { log::init("proctor", verbose ? log::Level::kDebug : log::Level::kInfo); });
  if (const auto said = unknown_command(app, argc, argv))
    return cli::complain({Errc::kInvalid, *said});
  const auto explain = [&](cli::Mistake mistake, const std::string& says) -> std::optional<int> {
    const auto meant = meant_option(app, argc, argv);
    // What is missing may be there under another name, and then that is the mistake.
    if (mistake == cli::Mistake::kMissing && !meant) return std::nullopt;
    return cli::complain(
        {Errc::kInvalid,
         (mistake == cli::Mistake::kMissing ? "there is no option " + printable(meant->typed)
                                            : printable(says)) +
             (meant ? " (did you mean " + meant->near + "?)" : "") +
             "\nRun with --help for more information."});
  };
  if (const auto ended = app.parse(argc, argv, cli::kBadInput, explain)) return *ended;
  return exit_code;
}

// Of std::filesystem, about a path that no command looked at before.
int complain_of_path(const std::filesystem::filesystem_error& e) {
  const bool is_empty = e.path1().empty() && e.code() == std::errc::invalid_argument;
  return cli::complain(is_empty ? Error{Errc::kInvalid, "an empty path names nothing"}
                                : errno_error(printable(e.path1().string()), e.code().value()));
}
}  // namespace

int cli::run_program(int argc, char** argv, std::string_view commit,
                     std::initializer_list<Register> commands) try {
  forbid_core_dumps();
  last_words::prepare("proctor");
  last_words::explain_aborts();
  return with_output_written(run_command(argc, argv, commit, commands));
} catch (const std::bad_alloc&) {
  proctor::last_words::out_of_memory();
} catch (const std::filesystem::filesystem_error& e) {
  return complain_of_path(e);
} catch (const std::system_error& e) {
  // The host has no thread, descriptor or memory left for it.
  if (e.code() != std::errc::resource_unavailable_try_again &&
      e.code() != std::errc::not_enough_memory)
    throw;
  std::fprintf(stderr, "proctor: the host's limits (ulimit -v, -u) leave it no room: %s\n",
               e.what());
  return cli::kInfrastructure;
} catch (const std::exception& e) {
  std::fprintf(stderr, "proctor: %s\n", e.what());
  return proctor::last_words::kBug;
}
}  // namespace proctor

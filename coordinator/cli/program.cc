// What main functions share: a command line of some commands, and what is said where one fails.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "common/base/files.h"
#include "common/base/last_words.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/base/version.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/output_file.h"

namespace proctor::cli {

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
  switch (error.code) {
    case Errc::kInvalid:
    case Errc::kNotFound:
    case Errc::kConflict:
      return kBadInput;
    case Errc::kExhausted:
    case Errc::kUnavailable:
    case Errc::kCorrupt:
      return kInfrastructure;
  }
  return kInfrastructure;
}

int code_of(const Result<int>& done) {
  return done.ok() ? *done : complain(done.error());
}

int code_of(const Status& done) {
  return done.ok() ? kOk : complain(done.error());
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
  if (const auto near = proctor::nearest_word(*word, views))
    return said + " (did you mean " + *near + "?)";
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

int run_command(int argc, char** argv, std::initializer_list<cli::Register> commands) {
  cli::CommandLine app(
      "Proctor runs evaluation campaigns of coding agents under budgets that hold.\n"
      "A first campaign:  proctor init demo && proctor run demo\n");
  app.set_version("proctor " + std::string(kVersion));
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

int cli::run_program(int argc, char** argv, std::initializer_list<Register> commands) try {
  forbid_core_dumps();
  last_words::prepare("proctor");
  last_words::explain_aborts();
  return with_output_written(run_command(argc, argv, commands));
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

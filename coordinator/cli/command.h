#pragma once
// The `proctor` commands, which main.cc registers, and what all of them share: exit codes, errors,
// output.
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/command_line.h"
#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor::cli {
// Exit codes of every command.
inline constexpr int kOk = 0;
inline constexpr int kJobFailed = 1;
inline constexpr int kBadInput = 2;
inline constexpr int kBudgetExhausted = 3;
inline constexpr int kInfrastructure = 4;

// Adds the subcommand to `app`; its callback puts the exit code into `exit_code`.
using Register = void (*)(Command app, int& exit_code);

void add_init(Command app, int& exit_code);
void add_copy(Command app, int& exit_code);
void add_logs(Command app, int& exit_code);
void add_diff(Command app, int& exit_code);
void add_try(Command app, int& exit_code);
void add_replay(Command app, int& exit_code);  // and regrade
void add_check(Command app, int& exit_code);
void add_plan(Command app, int& exit_code);
void add_run(Command app, int& exit_code);
void add_serve(Command app, int& exit_code);
void add_resume(Command app, int& exit_code);
void add_status(Command app, int& exit_code);
void add_project(Command app, int& exit_code);
void add_budget(Command app, int& exit_code);
void add_review(Command app, int& exit_code);
void add_report(Command app, int& exit_code);
void add_rubric(Command app, int& exit_code);
void add_list(Command app, int& exit_code);
void add_compare(Command app, int& exit_code);
void add_leaderboard(Command app, int& exit_code);
void add_verify(Command app, int& exit_code);
void add_explain(Command app, int& exit_code);
void add_remove_task(Command app, int& exit_code);
void add_journal(Command app, int& exit_code);
void add_keygen(Command app, int& exit_code);
void add_images(Command app, int& exit_code);
void add_cassette(Command app, int& exit_code);
void add_operate(Command app, int& exit_code);  // pause ... kick
void add_story(Command app, int& exit_code);
void add_merge(Command app, int& exit_code);
void add_completion(Command app, int& exit_code);  // and what its scripts ask

// The main function of our programs for operators: runs the command that was typed, says where it
// fails, and returns the exit code.  `commit`: of the build (common/base/version.h), for --version.
int run_program(int argc, char** argv, std::string_view commit,
                std::initializer_list<Register> commands);

// `proctor cvdp` is a program of its own, proctor-cvdp, beside this one: its line in the help, and
// what becomes that program where the command line, or the line that a shell completes, is for it.
// It returns an exit code where that program is not there, else an empty value.
inline constexpr const char* kCvdpSays =
    "datasets of the CVDP benchmark: check, transform, run, ...";
void add_cvdp_program(Command app, int& exit_code);
std::optional<int> run_cvdp_program(int argc, char** argv);

// Prints "proctor: DETAIL" and gives the exit code its Errc stands for: wrong input 2, the rest 4.
int complain(const Error& error);
// The exit code of a command that came to this; an error is printed.
int code_of(const Result<int>& done);
int code_of(const Status& done);
// Prints the text that it came to.
int code_of(const Result<std::string>& text);

// The arguments of `command`, which then does `act` with them.  The options that fill them in are
// the caller's.
template <class Args, class Act>
std::shared_ptr<Args> arguments(Command command, int& exit_code, Act act) {
  auto args = std::make_shared<Args>();
  command.callback([args, act, &exit_code] { exit_code = code_of(act(*args)); });
  return args;
}

// Hears of a problem that a check found: where it is, and what.
using ProblemHandler = std::function<void(const std::string& where, const std::string& what)>;

// Exit code of run, resume and wait where nothing goes on before a person has decided.
inline constexpr int kWaitsForPerson = 5;

// A sentence of a scheduler, which knows no folder, with the campaign's where a command in it says
// CAMPAIGN ("proctor pilot approve CAMPAIGN full ...").  Whoever shows one to people or programs
// asks this.
std::string told_with_folder(std::string text, const std::string& folder);

// Commands of staged pilots (docs/pilots.md).

void add_pilot(Command app, int& exit_code);
void add_power(Command app, int& exit_code);
void add_screen(Command app, int& exit_code);
void add_selfcheck(Command app, int& exit_code);
void add_wait(Command app, int& exit_code);

// The check of an option that is a share of something, as in 0.05: digits and at most one point,
// from `least` to `most`.  It is kept as it was typed, and has to mean a number to whoever reads it
// later.  CLI11's ranges let "nan" through, which is below nothing.
std::function<std::string(const std::string&)> share(double least, double most);

// Writes where a person said so (--out PATH).  Replaces a regular file as a whole, also one that
// links lead to.  Into what is no regular file, a device or a pipe that somebody reads, it is
// written; that one stays what it is.
Status write_output(const fs::path& path, std::string_view bytes);
// The file that an output of this name replaces as a whole: where links lead to, also when nothing
// is there yet.  nullopt: no regular file is there, and the output is written into what is.
std::optional<fs::path> replaced_file(const fs::path& path);

// Safe to print on a terminal; of `kept` every byte stays as it is.
std::string printable_lines(std::string_view text, std::string_view kept = "\n");

// For the end of main(): `code`, or kInfrastructure after a line on standard error, where standard
// output did not take all that was printed.  A reader who stops (EPIPE) has what he wanted.
int with_output_written(int code);
}  // namespace proctor::cli

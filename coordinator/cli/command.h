#pragma once
// A `proctor` command: one file each, registered in main.cc.
#include <initializer_list>
#include <optional>
#include <string>

#include "common/base/command_line.h"
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
void add_completion(Command app, int& exit_code);  // and what its scripts ask

// The main function of our programs for operators: runs the command that was typed, says where it
// fails, and returns the exit code.
int run_program(int argc, char** argv, std::initializer_list<Register> commands);

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

}  // namespace proctor::cli

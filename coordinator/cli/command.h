#pragma once
// A `proctor` command: one file each, registered in main.cc.
#include <string>

#include "common/base/result.h"

namespace CLI {
class App;
}

namespace proctor::cli {

// Exit codes of every command.
inline constexpr int kOk = 0;
inline constexpr int kJobFailed = 1;
inline constexpr int kBadInput = 2;
inline constexpr int kBudgetExhausted = 3;
inline constexpr int kInfrastructure = 4;

// Adds the subcommand to `app`; its callback puts the exit code into `exit_code`.
using Register = void (*)(CLI::App& app, int& exit_code);

void add_init(CLI::App& app, int& exit_code);
void add_copy(CLI::App& app, int& exit_code);
void add_logs(CLI::App& app, int& exit_code);
void add_diff(CLI::App& app, int& exit_code);
void add_try(CLI::App& app, int& exit_code);
void add_check(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);
void add_run(CLI::App& app, int& exit_code);
void add_serve(CLI::App& app, int& exit_code);
void add_resume(CLI::App& app, int& exit_code);
void add_status(CLI::App& app, int& exit_code);
void add_project(CLI::App& app, int& exit_code);
void add_budget(CLI::App& app, int& exit_code);
void add_review(CLI::App& app, int& exit_code);
void add_report(CLI::App& app, int& exit_code);
void add_list(CLI::App& app, int& exit_code);
void add_compare(CLI::App& app, int& exit_code);
void add_leaderboard(CLI::App& app, int& exit_code);
void add_verify(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_remove_task(CLI::App& app, int& exit_code);
void add_journal(CLI::App& app, int& exit_code);
void add_keygen(CLI::App& app, int& exit_code);
void add_images(CLI::App& app, int& exit_code);
void add_cassette(CLI::App& app, int& exit_code);
void add_cvdp(CLI::App& app, int& exit_code);
void add_operate(CLI::App& app, int& exit_code);  // pause ... kick
void add_story(CLI::App& app, int& exit_code);
void add_completion(CLI::App& app, int& exit_code);  // and what its scripts ask

// Prints "proctor: DETAIL" and gives the exit code its Errc stands for: wrong input 2, the rest 4.
int complain(const Error& error);

}  // namespace proctor::cli

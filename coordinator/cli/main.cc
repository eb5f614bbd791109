// The program `proctor`: its commands.
#include "common/base/version.h"
#include "coordinator/cli/command.h"

int main(int argc, char** argv) {
  using namespace proctor::cli;
  if (const auto ended = run_cvdp_program(argc, argv)) return *ended;
  return run_program(
      argc, argv, proctor::build_commit(),
      {add_init,        add_copy,       add_try,     add_logs,         add_diff,    add_check,
       add_plan,        add_run,        add_serve,   add_resume,       add_status,  add_operate,
       add_project,     add_budget,     add_review,  add_report,       add_list,    add_compare,
       add_leaderboard, add_verify,     add_explain, add_story,        add_journal, add_remove_task,
       add_keygen,      add_completion, add_merge,   add_cvdp_program, add_images,  add_selfcheck,
       add_power,       add_cassette,   add_wait,    add_screen,       add_pilot,   add_rubric,
       add_replay});
}

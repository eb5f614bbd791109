#pragma once
// Checkpoint: what a worker that was killed has to know to go on with an attempt.  Written when the
// agent's program has a container that outlives the worker, when it has ended in any sandbox and
// its patch still lies in its workspace, and when that is extracted, from where acceptance can
// begin again.
//   RUNS/<campaign>-<run>.<attempt>/checkpoint: a digest, a newline, JSON
// Not synced: a kill -9 loses nothing that was written, and a checkpoint of another kernel boot is
// not believed.  The attempt's meter book has what was spent.  Adapter; any thread.
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/fields.h"
#include "common/base/files.h"
#include "common/trace/event.h"
#include "common/wire/messages.h"
#include "worker/core/run_lifecycle.h"
#include "worker/sandbox/sandbox.h"
#include "worker/shell/meter_book.h"
#include "worker/workspace/workspace.h"

namespace proctor {
struct Checkpoint {
  std::string campaign;
  Epoch epoch;  // it was assigned under
  Digest settings;
  wire::Assignment assignment;
  // How many lives of the worker had it before this one wrote: an attempt that outlived a worker
  // twice may be what kills them.
  std::uint32_t lives = 0;
  std::vector<LifecycleEvent> told;
  RunRecorder::Mark trace;
  // The protected paths that setup changes on the untouched snapshot; sorted.
  std::vector<std::string> setup_makes{};
  struct Program {  // of the agent
    std::string container;
    LeftWorkspace workspace;
    std::uint64_t disk_free = 0;  // bytes of this host, when it began
  };
  struct Ended {  // what it left
    LeftWorkspace workspace;
    Usage usage;  // with its own; the book may still say that it runs
  };
  // At most one; neither: the patch is extracted.
  std::optional<Program> program;
  std::optional<Ended> ended{};
  const LeftWorkspace* workspace() const {
    if (program) return &program->workspace;
    return ended ? &ended->workspace : nullptr;
  }
  wire::Stage stage() const {
    if (program) return wire::Stage::kAgent;
    return ended ? wire::Stage::kExtracting : wire::Stage::kAcceptance;
  }
};

void fields(auto& v, Is<Checkpoint::Program> auto& p) {
  v("container", p.container);
  v("workspace", p.workspace.dir);
  v("volume", p.workspace.volume);
  v("disk_free", p.disk_free, {.older_lack = true});
}
void fields(auto& v, Is<Checkpoint::Ended> auto& e) {
  v("workspace", e.workspace.dir);
  v("volume", e.workspace.volume);
  v("usage", UsageForm{e.usage});
}
// All but `told`.
void fields(auto& v, Is<Checkpoint> auto& c) {
  v("campaign", c.campaign);
  v("epoch", c.epoch);
  v("settings", c.settings);
  v("lives", c.lives);
  v.section("assignment", [&](auto& assignment) {
    assignment("run", c.assignment.attempt.run);
    assignment("attempt", c.assignment.attempt.no);
    assignment("run_name", c.assignment.run_name);
    assignment("contract", c.assignment.contract);
    assignment("method", c.assignment.method);
    assignment("replicate", c.assignment.replicate);
    assignment("seed", c.assignment.seed);
    assignment("ask_micros", c.assignment.ask);
    assignment("stage", c.assignment.stage);
  });
  v("trace", c.trace);
  v("setup_makes", c.setup_makes, kOptional);
  v("program", c.program, kOptional);
  v("ended", c.ended, kOptional);
}

// kInvalid: it holds what has no form in JSON.
Status write_checkpoint(const fs::path& dir, const Checkpoint& checkpoint);

// An attempt that an earlier life of this worker left, and that this one can go on with.
struct LeftAttempt {
  Checkpoint checkpoint;
  MeterBook::Left book;
  // Requires: the agent's program was running.
  LeftCommand command() const;
};
inline constexpr std::uint32_t kLivesMax = 2;  // that may have one attempt
// Those of `campaign` below `runs` that have no result yet, a checkpoint to be believed and one of
// `books`, which are taken out of it.  Their checkpoints count this life from now on.
std::vector<LeftAttempt> find_left_attempts(const fs::path& runs, const std::string& campaign,
                                            const std::set<AttemptId>& with_result,
                                            std::vector<MeterBook::Left>& books);
}  // namespace proctor

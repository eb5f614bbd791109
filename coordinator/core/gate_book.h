#pragma once
// GateBook: which stages of a campaign are open.  A gate stands before a stage that has rules, or
// whose predecessor has an exit to be held against (common/contract/stages.h); it holds back
// every run from the first of that stage on, so gates open one after the other.  Which checks were
// made and who approved which of them is here; what a check says is common/pilot/stage_check.h.
// Pure; owned by the scheduler.
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/digest.h"
#include "common/base/result.h"
#include "coordinator/core/gate_note.h"
#include "coordinator/core/run_queue.h"

namespace proctor {

inline constexpr const char* kStageClosed =
    "their stage was closed (proctor pilot close): no run of it begins any more";

class GateBook {
 public:
  struct Gate {
    std::string stage;
    std::uint16_t index = 0;      // of the stage
    std::uint32_t first_run = 0;  // of it, or of the first stage after it that has runs
    std::uint32_t people = 0;     // who have to approve, by distinct names
    bool open = false;
    Digest checked{};                          // by the last check; zeros: none was made
    bool held = false;                         // that check held
    std::map<std::string, Digest> approved{};  // what each person approved last
  };

  explicit GateBook(const PlanView& plan);

  // The first gate that is shut; nothing: all are open.
  const Gate* next() const;
  // Runs from here on wait for a gate; the plan's length: none does.
  std::uint32_t shut_from() const;
  // Nothing: no gate stands before a stage of that name.
  const Gate* find(std::string_view stage) const;
  const std::vector<Gate>& gates() const { return gates_; }
  // Who have approved that check of the gate, by name.
  static std::vector<std::string> approvers(const Gate& gate, const Digest& digest);

  // May the fact be true after those that were taken?  kCorrupt says why not.
  Status fits(const StageChecked& fact) const;
  Status fits(const StageOpened& fact) const;
  // Require: it fits.
  void take(const StageChecked& fact);
  void take(const StageOpened& fact);
  // Of a stage without a gate it changes nothing.
  void approve(std::string_view stage, const Digest& digest, const std::string& by);

  // By operators, also where a stage has no gate.  Criteria by the stage's name, as check_entry()
  // and StageFacts have them; envelopes of stages that were closed, of which no run begins.
  std::map<std::string, std::set<std::string>> waived;
  std::set<std::string> closed;
  bool is_closed(const PlanView& plan, RunId run) const {
    return closed.contains(plan.stage_scope_of(run));
  }

 private:
  Gate* mine(std::string_view stage);
  std::uint32_t runs_ = 0;
  std::vector<Gate> gates_;  // in the plan's order
};

// Where the next gate stands, for people and programs.
struct GateView {
  std::string stage;
  std::string waits_for;  // "runs", "criteria", "approval"
  std::string text;       // a sentence that goes on from "stage X "
  std::string digest;     // of the check, hex; empty while it waits for runs
  std::uint32_t people = 0;
  std::vector<std::string> approved;  // by them, that check
  std::uint64_t behind = 0;           // runs that it holds back
  // Nothing happens before a person acts.
  bool waits_for_people() const { return waits_for != "runs"; }
};

}  // namespace proctor

#pragma once
// Why a run is where it is, for people and programs.  Made by Scheduler::why(), from the predicates
// that decide.  Pure data.
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace proctor {

struct Explanation {
  // One word for programs.  Over: ended, removed, cancelled.  Waits for people or for nothing:
  // parked, decision, gate.  At work: running, cancelling, between.  Waits: backoff, draining,
  // paused, envelope, capability, worker, alone, elsewhere, order.
  std::string code;
  std::string text;  // one sentence that goes on from "run X: "
  using Value = std::variant<std::int64_t, std::string>;
  std::vector<std::pair<std::string, Value>> facts{};  // by name, in the order they are told
};

// {"code": ..., "facts": {...}, "text": ...}, one line.
std::string to_json(const Explanation& why);

}  // namespace proctor

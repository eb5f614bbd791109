#pragma once
// LiveAttempt: one attempt that is out, from its intent until it is paid for, as the scheduler
// holds it.  What facts say of it and what only this life of the coordinator knows stand apart,
// because the next life has the first from the journal and finds out the second anew.  Pure data.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/money.h"
#include "common/contract/cost_model.h"
#include "coordinator/core/retry_rules.h"
#include "coordinator/core/roster.h"

namespace proctor {

struct LiveAttempt {
  enum class State : std::uint8_t {
    kIntent,     // its intent is being made durable
    kReserving,  // the ledger has been asked
    kGranting,   // granted; the grant is being made durable
    kAssigned,   // sent; the worker has not mentioned it yet
    kRunning,    // the worker says it runs
    kFinishing,  // its result is being made durable
    kSettling,   // the ledger has been told what it cost
    kClosing,    // settled or voided; that is being made durable
  };

  // ---- what facts say of it: changed by scheduler_apply.cc, in every life alike
  AttemptId id;
  MicroUsd ask;
  WallTime granted_at{0};
  Cost cost;                         // what it is charged; zero until it is over
  std::uint32_t seq = 0;             // of its ask
  std::optional<WorkerIndex> owner;  // whom the grant names: nobody else may speak of it
  bool alone = false;                // has a worker for itself

  // ---- what this life knows besides
  State state = State::kIntent;
  bool cancel_sent = false;
  bool doubted = false;  // its usage went backwards: told
  bool at_work = false;  // its worker spoke of its work at it, in whatever way
  RetryClass wait_of = RetryClass::kInfrastructure;
  std::uint32_t caps = 0;                 // which caps hold where it asked
  std::optional<WorkerIndex> worker;      // while it holds a slot there
  std::optional<WorkerIndex> granted_to;  // by an earlier life of ours: may have started there
  BootId granted_boot;                    // likewise: in which life of that worker
  Instant since;                          // of the state
  Usage usage{};  // as last stated, and what it comes to: never above the ask
  MicroUsd metered{};
  MicroUsd counted{};              // of it in Scheduler::metered_
  std::optional<BootId> sent_to;   // the life of its worker that got our Assign
  std::optional<BootId> begun_in;  // its sandbox had started, in that life: the worker said so
  Millis wait{0};                  // before the next attempt, once this one is closed
  std::vector<WorkerIndex> ack_to;

  // What has begun has spent, whatever its worker says of it later: it is never given back.
  bool has_begun() const { return begun_in || at_work; }
  bool is_over() const { return state == State::kFinishing || state == State::kSettling; }
  // What of its ask is used, by the last word of its worker; zero once it is spent or given back.
  MicroUsd used() const {
    if (state == State::kClosing) return {};
    return is_over() ? std::min(ask, cost.total()) : metered;
  }
};

}  // namespace proctor

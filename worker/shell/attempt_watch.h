#pragma once
// AttemptWatch: what the loop thread and a slot thread share about one attempt.  The slot thread
// writes where it is; the loop reads that for Sync and Progress and asks for a stop.  Thread-safe.
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "common/contract/cost_model.h"
#include "common/wire/messages.h"
#include "worker/sandbox/hold.h"

namespace proctor {

class AttemptWatch {
 public:
  struct View {
    wire::Stage stage = wire::Stage::kAssigned;
    bool sandbox_started = false;
    Usage usage;
    std::uint64_t milestones = 0;
  };

  void enter(wire::Stage stage) {
    const std::lock_guard lock(mutex_);
    view_.stage = stage;
  }
  void sandbox_started() {
    const std::lock_guard lock(mutex_);
    view_.sandbox_started = true;
  }
  void meter(const Usage& usage, std::uint64_t milestones) {
    const std::lock_guard lock(mutex_);
    view_.usage = usage;
    view_.milestones = milestones;
  }
  View view() const {
    const std::lock_guard lock(mutex_);
    return view_;
  }
  // The first reason holds.
  void cancel(const std::string& reason) { stop(reason.empty() ? "cancelled" : reason, false); }
  // The agent alone must go, and what it left is judged.  The first reason holds.
  void stop_agent(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (agent_order_.empty()) agent_order_ = reason;
  }
  std::string agent_order() const {
    const std::lock_guard lock(mutex_);
    return agent_order_;
  }
  // This worker goes away: another may try again.
  void shut_down() { stop("the worker was stopped", true); }
  bool worker_leaves() const {
    const std::lock_guard lock(mutex_);
    return worker_leaves_;
  }
  // While it is on, the attempt's sandboxes stand still.
  const std::shared_ptr<Hold>& hold() const { return hold_; }
  std::string cancel_reason() const {
    const std::lock_guard lock(mutex_);
    return reason_;
  }
  std::stop_token token() const { return stop_.get_token(); }

 private:
  void stop(const std::string& reason, bool worker_leaves) {
    {
      const std::lock_guard lock(mutex_);
      if (reason_.empty()) {
        reason_ = reason;
        worker_leaves_ = worker_leaves;
      }
    }
    stop_.request_stop();
  }

  mutable std::mutex mutex_;
  View view_;
  std::string reason_, agent_order_;
  bool worker_leaves_ = false;
  std::stop_source stop_;
  std::shared_ptr<Hold> hold_ = std::make_shared<Hold>();
};

}  // namespace proctor

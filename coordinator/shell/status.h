#pragma once
// StatusSnapshot: what `proctor status` and the progress line show.  The coordinator writes it to
// .proctor/status.json once a second; readers never touch the coordinator.
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/fields.h"
#include "common/base/files.h"
#include "common/base/money.h"
#include "common/base/result.h"
#include "coordinator/core/failures.h"
#include "coordinator/shell/loop_guards.h"

namespace proctor {
struct StatusSnapshot {
  struct Envelope {
    std::string name;
    MicroUsd cap, spent, reserved;
    MicroUsd metered{};  // the part of `reserved` that its attempts have used, by their last word
  };
  struct Worker {
    std::string name;
    std::uint32_t slots = 0, held = 0;
    std::string state;          // "ready", "suspect", "gone"
    std::string offers;         // "bubblewrap and Docker"
    WallTime since{}, until{};  // it has stood so since then, and does until then; 0: unknown
  };
  std::string campaign;
  std::string unit = "USD";  // what amounts are counted in (cost_model.h)
  std::int64_t pid = 0;
  WallTime at, begun;
  std::string state;  // "running", "draining", "waiting for Redis: ...", "complete", "stopped"; and
                      // who else is waited for: "running; 3 runs wait for a worker with Docker"
  std::uint64_t planned = 0, queued = 0, active = 0, parked = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t held = 0;        // no attempt is left, and a person decides
  std::uint64_t removed = 0;     // with their task, by the report's count: in none of the others
  std::uint64_t in_backoff = 0;  // those of `queued` that wait before they are tried again
  std::array<std::uint64_t, 4> ended{};  // success, failure, acceptance error, invalid
  std::vector<Envelope> envelopes;       // those with something in them
  static constexpr std::size_t kAlertsShown = 20;
  struct Told {  // an alert about money
    WallTime at;
    std::string text;
  };
  std::vector<Told> alerts;         // the latest, in order
  std::uint64_t alerts_before = 0;  // earlier ones, not listed
  // A run that waits for something else than money.
  struct Broken {
    std::string run;                           // TASK/METHOD/rN
    std::string text;                          // "its task is parked: ...", for people
    std::optional<FaultSubject::Kind> kind{};  // that is broken; nothing: a person decides
  };
  std::vector<Broken> broken;
  std::uint64_t faulty = 0;  // those of `parked` that are parked for that
  // The next stage that is not open; nothing: all are, or none has a gate (run_queue.h).
  struct Gate {
    std::string stage;
    std::string waits_for;  // "runs", "criteria", "approval"
    std::string text;       // goes on from "stage X "
    std::string digest;     // of what is approved; empty while it waits for runs
    std::uint32_t people = 0;
    std::vector<std::string> approved;  // by them, that
    std::uint64_t behind = 0;           // those of `queued` that it holds back
    bool waits_for_people() const { return waits_for != "runs"; }
  };
  std::optional<Gate> gate;
  // Nothing happens before somebody opens the next stage, or mends what it asks for.
  bool is_at_gate() const {
    return gate && gate->waits_for_people() && queued <= gate->behind && active + held == 0;
  }
  static constexpr std::size_t kWorkersShown = 200;
  std::vector<Worker> workers;
  std::map<std::string, std::uint64_t> workers_more;  // beyond those, by state
  bool ready = false;                                 // somebody takes work; not in the file
  // Milliseconds until all runs have ended, if the others take as long as those so far, and between
  // what bounds that is with a confidence of 95 %.  -1: not known (yet).
  std::int64_t eta_ms = -1, eta_low_ms = -1, eta_high_ms = -1;
  std::string eta_waits;     // what has to happen before it can be foretold; empty: nothing
  LagFigures lag;            // of the coordinator's loop
  std::uint64_t floods = 0;  // messages dropped unread, of workers that sent too many

  std::uint64_t done() const { return ended[0] + ended[1] + ended[2] + ended[3]; }
};

void fields(auto& v, Is<StatusSnapshot::Envelope> auto& e) {
  v("name", e.name);
  v("cap_micro_usd", e.cap);
  v("spent_micro_usd", e.spent);
  v("reserved_micro_usd", e.reserved);
  v("metered_micro_usd", e.metered, kLater);
}
void fields(auto& v, Is<StatusSnapshot::Worker> auto& w) {
  v("name", w.name);
  v("slots", w.slots);
  v("held", w.held);
  v("state", w.state);
  v("offers", w.offers, kLater);
  v("since_ms", w.since, kLater);
  v("until_ms", w.until, kLater);
}
void fields(auto& v, Is<StatusSnapshot::Told> auto& a) {
  v("at_ms", a.at);
  v("text", a.text);
}
void fields(auto& v, Is<StatusSnapshot::Broken> auto& b) {
  v("run", b.run);
  v("of", b.kind, kOptional);
  v("text", b.text);
}
void fields(auto& v, Is<StatusSnapshot::Gate> auto& g) {
  v("stage", g.stage);
  v("waits_for", g.waits_for);
  v("text", g.text);
  v("digest", g.digest);
  v("people", g.people);
  v("approved", g.approved);
  v("runs", g.behind);
}
void fields(auto& v, Is<StatusSnapshot> auto& s) {
  v("campaign", s.campaign);
  v("unit", s.unit, kLater);
  v("pid", s.pid);
  v("at_ms", s.at);
  v("begun_ms", s.begun);
  v("state", s.state);
  v("planned", s.planned);
  v("queued", s.queued);
  v("running", s.active);
  v("parked", s.parked);
  v("cancelled", s.cancelled, kLater);
  v("removed", s.removed, kLater);
  v("waiting_for_person", s.held, kLater);
  v("in_backoff", s.in_backoff, kLater);
  v("success", s.ended[0]);
  v("failure", s.ended[1]);
  v("acceptance_error", s.ended[2]);
  v("invalid", s.ended[3]);
  v("eta_ms", s.eta_ms);
  v("eta_low_ms", s.eta_low_ms, kLater);
  v("eta_high_ms", s.eta_high_ms, kLater);
  v("eta_waits", s.eta_waits, kLater);
  v("envelopes", s.envelopes);
  v("alerts", s.alerts, kLater);
  v("alerts_before", s.alerts_before, kLater);
  v("broken", s.broken, kLater);
  v("faulty", s.faulty, kLater);
  v("gate", s.gate, kOptional);
  v.section("loop", [&](auto& loop) {
    loop("lag_p50_ms", s.lag.p50_ms);
    loop("lag_p99_ms", s.lag.p99_ms);
    loop("lag_max_ms", s.lag.max_ms);
    loop("stalled_ms", s.lag.stalled_ms);
    loop("dropped_messages", s.floods);
  });
  v("workers", s.workers);
  v("workers_more", s.workers_more, kLater);
}

// Puts the alerts in order and keeps the last ones only: the file stays small.
void keep_latest(StatusSnapshot& status);
// The text of status.json; a coordinator of another version may have written it.
std::string status_text(const StatusSnapshot& status);
Result<StatusSnapshot> parse_status(std::string_view json);
// "[#####.....] 12/36 done, 4 running, 2 parked, 1 cancelled | 9 success 3 failure ... | 1.20
// of 2.00 USD | ETA 0:42"
std::string progress_line(const StatusSnapshot& status, std::size_t columns);
// Several lines for `proctor status`.
std::string describe(const StatusSnapshot& status);
}  // namespace proctor

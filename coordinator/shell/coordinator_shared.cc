// The coordinator's part in an envelope that campaigns share (ledger.h): what its journal has
// to know before Redis may rely on it.
#include <fmt/format.h>

#include "common/base/log.h"
#include "common/base/result.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/wire/asio.h"
#include "coordinator/core/notes.h"
#include "coordinator/shell/coordinator.h"

namespace proctor {
namespace {

std::string described(const SharedFact& fact) {
  return std::visit(
      Overload{[](const SharedMember& m) {
                 const std::string who = fmt::format("campaign {} ({}) ", m.id, printable(m.name));
                 if (m.state == SharedMember::State::kLeft)
                   return who + fmt::format("has left, {} spent", format_usd(m.spent));
                 return who + fmt::format("may hold up to {}", format_usd(m.ceiling));
               },
               [](const SharedLimit& own) {
                 return fmt::format("all members know of this campaign; it may hold up to {} of it",
                                    format_usd(own.limit));
               }},
      fact);
}

}  // namespace

// Two arithmetics that disagree cannot both be trusted with money: what runs is paid for as the
// rules say, and nothing new starts until a person has looked.
void Coordinator::perform(const RaiseCaps& c) {
  ledger_->raise(c.scopes, c.reviewed);
}

void Coordinator::on_elsewhere(Elsewhere held) {
  const bool under_way = !ledger_said_.empty();
  ledger_said_.emplace_back(held);
  if (!under_way) hear_ledger();
}

void Coordinator::on_ledger_differs(const std::string& what) {
  if (outcome_) return;
  log::error("the ledger contradicts its rules: " + what +
             ". Nothing more is started; what runs is finished and charged by the rules. Compare "
             "with proctor verify, then go on with proctor resume");
  journal_->append({Note{wall_now(), "ledger_differs", {}, {}, what},
                    Note{wall_now(), "drain", {}, {}, "the ledger contradicts its rules"}},
                   [](Status) {});
  feed(DrainAsked{});
}

void Coordinator::note_shared(std::vector<SharedFact> what) {
  std::vector<JournalWrite> writes;
  for (const SharedFact& fact : what) {
    log::info("shared envelope: " + described(fact));
    writes.emplace_back(note_of(fact, wall_now()));
  }
  journal_->append(std::move(writes), [this, what = std::move(what)](Status s) {
    if (!s.ok()) return;  // whoever waits for the same journal ends this life
    boost::asio::post(io_, [this, what] { ledger_->noted(what); });
  });
}

// After a clean end nothing of it is reserved, and nothing will be before its next life: the others
// need not wait for it.  The journal first: from then on it brings no envelope back.
void Coordinator::leave_shared() {
  if (!shares_ || !outcome_ || outcome_->end == End::kFailed) return;
  for (const ScopeBalance& b : core_->balances())
    if (b.reserved != MicroUsd::zero()) return;
  const Status noted =
      journal_->append_and_wait({note_of(SharedLimit{MicroUsd::zero()}, wall_now())});
  if (noted.ok()) ledger_->leave();
}

}  // namespace proctor

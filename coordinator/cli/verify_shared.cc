#include "coordinator/cli/verify_shared.h"

#include <fmt/format.h>

#include "common/ledger/redis_ledger.h"
#include "coordinator/core/notes.h"

namespace proctor::cli {
namespace {

std::string part_text(const OwnPart& part) {
  return fmt::format("{} spent and {} reserved", format_usd_exact(part.spent),
                     format_usd_exact(part.reserved));
}

}  // namespace

OwnPart own_part(const RestoredState& state) {
  OwnPart out;
  for (const RestoredAttempt& a : state.attempts) {
    if (a.settled) out.spent = out.spent + a.charged;
    if (is_reserved(a)) out.reserved = out.reserved + a.ask;
  }
  return out;
}

std::string compare_part(const std::string& self, const std::string& envelope,
                         const RedisLedger::Fields& fields, const std::optional<OwnPart>& exact,
                         const RestoredState& after, const SharedProblem& problem) {
  const std::string where = "redis: this campaign's part of " + envelope;
  // Nobody can reserve from an envelope that is not there, so nothing false is counted on.
  if (fields.empty()) return envelope + " is not there: its part is not compared";
  const Result<SharedView> view = read_shared(fields);
  const Result<SharedBook> book = shared_book_of(self, after.shared);
  if (!view.ok() || !book.ok()) {
    problem(where, (view.ok() ? book.error() : view.error()).detail);
    return "its part of " + envelope + " is not compared";
  }
  const OwnPart part = own_part(after);
  const std::string done = "its part of " + envelope + " compared";
  const SharedMember* me = view->find(self);
  if (me == nullptr) {
    if (MicroUsd::zero() < part.held() || MicroUsd::zero() < book->limit())
      problem(where,
              "is not there, so the others count on it; the journal says " + part_text(part));
    return done;
  }
  switch (me->state) {
    case SharedMember::State::kUnheard:
      // Others brought the envelope back: until this one comes again its ceiling stands for it.
      if (me->ceiling < part.held())
        problem(where, fmt::format("counts as {} at most until it is heard of, the journal says {}",
                                   format_usd_exact(me->ceiling), part_text(part)));
      return done;
    case SharedMember::State::kLeft:
      if (me->spent + me->reserved != part.held())
        problem(where, fmt::format("has left with {}, the journal says {}",
                                   format_usd_exact(me->spent + me->reserved), part_text(part)));
      return done;
    case SharedMember::State::kHeard:
      break;
  }
  if (!exact) return "its part of " + envelope + " is of an earlier life: not compared";
  if (me->spent != exact->spent || me->reserved != exact->reserved)
    problem(where, fmt::format("holds {}, the journal says {}",
                               part_text({me->spent, me->reserved}), part_text(*exact)));
  // A limit is in the journal before Redis has it; none: it is about to leave.
  if (MicroUsd::zero() < book->limit() && book->limit() < me->limit)
    problem(where, fmt::format("may grow to {}, the journal says {}", format_usd_exact(me->limit),
                               format_usd_exact(book->limit())));
  return done;
}

}  // namespace proctor::cli

#include "coordinator/cli/shared_envelope.h"

#include <fmt/format.h>

#include <cstdio>
#include <map>

#include "common/base/json_fields.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/contract/cost_model.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/money_files.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/cli/verify_money.h"
#include "coordinator/core/notes.h"
#include "coordinator/journal/journal.h"
#include "coordinator/journal/owner_lock.h"
#include "coordinator/shell/behind.h"

namespace proctor::cli {
namespace {
Result<SharedView> look(const FrozenCampaign& frozen) {
  PROCTOR_TRY(RedisLedger ledger,
              configured_ledger(frozen.campaign, frozen.id, frozen.campaign.redis));
  PROCTOR_TRY(SharedView view, ledger.shared());
  if (view.cap == MicroUsd::zero())
    return Error{Errc::kNotFound, "Redis at " + frozen.campaign.redis + " does not have it"};
  return view;
}

std::string seen(const SharedMember& m) {
  return m.seen_ms == 0 ? "-" : to_rfc3339(WallTime(m.seen_ms));
}

MicroUsd held_by_all(const SharedView& view) {
  return view.elsewhere_of("").held;
}

Json money(MicroUsd amount) {
  JsonWriter out;
  out("usd", format_usd_exact(amount));
  out("micro_usd", amount);
  return out.take();
}

Json member_json(const SharedMember& m) {
  JsonWriter out;
  out("campaign", m.id);
  out("name", m.name);
  out("state", m.state);
  out("spent", money(m.spent));
  out("reserved", money(m.reserved));
  out("at_most", money(m.ceiling));
  out("limit", money(m.limit));
  out("last_seen", seen(m));
  return out.take();
}

SharedMember self_of(const FrozenCampaign& frozen) {
  SharedMember me;
  me.id = frozen.id;
  me.name = frozen.campaign.name + " on " + host_name();
  me.state = SharedMember::State::kLeft;
  return me;
}

// What a campaign's own journal says of its part, for one that is not here to say it.
std::optional<SharedMember> part_of(const FrozenCampaign& frozen, const RestoredState& state,
                                    const SharedBook& book) {
  SharedMember me = self_of(frozen);
  const OwnPart part = own_part(state);
  me.ceiling = me.spent = part.spent;
  if (MicroUsd::zero() < book.limit() || MicroUsd::zero() < part.reserved) {
    me.state = SharedMember::State::kUnheard;
    me.ceiling = std::max(book.limit(), part.held());
  }
  if (me.ceiling == MicroUsd::zero()) return std::nullopt;
  return me;
}

// Everybody else of whom the journal of this campaign knows, itself, and the cap with its raises.
struct Known {
  std::vector<SharedMember> members;
  std::optional<SharedMember> own;
  MicroUsd cap;
};
Result<Known> known_of(const std::string& folder, const SharedEnvelope& shared) {
  Known out{{}, {}, shared.cap};
  const Result<FrozenCampaign> frozen = load_registered(folder);
  if (!frozen.ok() && frozen.error().code == Errc::kNotFound) return out;  // it never ran
  if (!frozen.ok()) return frozen.error();
  const Result<RestoredState> state = read_journal(*frozen);
  if (!state.ok() && state.error().code == Errc::kNotFound) return out;
  if (!state.ok()) return state.error();
  for (const ScopeSpec& s : state->scopes)
    if (s.name == shared.scope()) out.cap = s.cap;
  PROCTOR_TRY(const SharedBook book, shared_book_of(frozen->id, state->shared));
  for (const auto& [id, member] : book.known()) out.members.push_back(member);
  out.own = part_of(*frozen, *state, book);
  return out;
}
}  // namespace

Result<RedisLedger> configured_ledger(const Campaign& campaign, const std::string& id,
                                      const std::string& address) {
  PROCTOR_TRY(RedisEndpoint endpoint, redis_endpoint(address));
  RedisLedger::Options options{.endpoint = std::move(endpoint), .campaign = id};
  if (campaign.envelopes.shared) {
    options.shared = campaign.envelopes.shared->name;
    options.label = campaign.name + " on " + host_name();
  }
  return RedisLedger::open(std::move(options));
}

std::string shared_envelope_text(const FrozenCampaign& frozen, const std::string& unit) {
  if (!frozen.campaign.envelopes.shared) return "";
  const std::string& name = frozen.campaign.envelopes.shared->name;
  const Result<SharedView> view = look(frozen);
  if (!view.ok())
    return fmt::format("\nShared envelope {}: what others hold of it is not known: {}\n", name,
                       printable(view.error().detail));
  const MicroUsd held = held_by_all(*view);
  std::string out =
      fmt::format("\nShared envelope {}, of all campaigns on {}: {} of {} {} are held\n\n", name,
                  printable(frozen.campaign.redis), format_usd(held), format_usd(view->cap), unit);
  aggregate::Table table({"member", "", "spent", "reserved", "at most", "last seen"}, 2,
                         aggregate::Table::Rule::kNone);
  bool unheard = false;
  for (const SharedMember& m : view->members) {
    const bool lost = m.state == SharedMember::State::kUnheard;
    const bool joins = m.state == SharedMember::State::kHeard && m.limit < m.ceiling;
    unheard = unheard || lost;
    table.add({printable(m.name) + (m.id == frozen.id ? " (this one)" : ""),
               joins ? "joining" : std::string(word_of(m.state)), lost ? "?" : format_usd(m.spent),
               lost ? "?" : format_usd(m.reserved), format_usd(m.ceiling), seen(m)});
  }
  table.append_to(out);
  if (unheard)
    out +=
        "unheard: Redis lost the envelope, and this member has not come back since; until it "
        "does (proctor resume),\nall that it may hold at most is counted. If it has ended, or is "
        "not "
        "to go on: proctor budget leave CAMPAIGN, with its folder\n";
  return out;
}

std::string with_shared_envelope(const FrozenCampaign& frozen, std::string text) {
  if (!frozen.campaign.envelopes.shared) return text;
  Json out = parse_json(text, {.bytes_max = text.size()}).value();
  const Result<SharedView> view = look(frozen);
  JsonWriter shared;
  shared("name", frozen.campaign.envelopes.shared->name);
  if (view.ok()) {
    shared("cap", money(view->cap));
    shared("held", money(held_by_all(*view)));
    Json members = Json::array();
    for (const SharedMember& m : view->members) members.push_back(member_json(m));
    shared("members", members);
  } else {
    shared("unknown", view.error().detail);
  }
  out["shared"] = shared.take();
  return out.dump_as_built(-1, Json::Utf8::kReplace) + "\n";
}

Result<int> share_envelope(const std::vector<std::string>& folders) {
  std::optional<Campaign> first;
  std::map<std::string, SharedMember> own, others;
  MicroUsd cap;
  for (const std::string& folder : folders) {
    PROCTOR_TRY(Campaign campaign, load_checked(folder, Outside::kSkip));
    const auto& shared = campaign.envelopes.shared;
    if (!shared)
      return Error{Errc::kInvalid, folder +
                                       " shares no envelope: budget.shared in campaign.yaml "
                                       "names one (docs/budgets.md)"};
    if (first && (first->envelopes.shared->name != shared->name || first->redis != campaign.redis))
      return Error{Errc::kInvalid, fmt::format("{} shares {} on {}, {} shares {} on {}: one of "
                                               "them at a time",
                                               folders.front(), first->envelopes.shared->name,
                                               first->redis, folder, shared->name, campaign.redis)};
    PROCTOR_TRY(Known known, known_of(folder, *shared));
    for (SharedMember& m : known.members) {
      const auto [at, fresh] = others.emplace(m.id, m);
      if (!fresh && at->second.ceiling < m.ceiling) at->second = std::move(m);
    }
    if (known.own) own.insert_or_assign(known.own->id, *known.own);
    cap = std::max(cap, known.cap);
    if (!first) first = std::move(campaign);
  }
  // What a campaign says of itself counts more than what others know of it.
  for (auto& [id, member] : own) others.insert_or_assign(id, std::move(member));
  std::vector<SharedMember> members;
  for (auto& [id, member] : others) members.push_back(std::move(member));
  const std::string& name = first->envelopes.shared->name;
  const std::string unit = money_word(first->cost_model);
  PROCTOR_TRY(RedisLedger ledger, configured_ledger(*first, "share", first->redis));
  const Status founded = ledger.found(cap, members);
  if (!founded.ok() && founded.error().code != Errc::kConflict) return founded.error();
  PROCTOR_TRY(const SharedView view, ledger.shared());
  std::printf("%s of %s %s %s %s; %s are held by %zu campaigns.\n", name.c_str(),
              format_usd(view.cap).c_str(), unit.c_str(),
              founded.ok() ? "is shared from now on at" : "was there already, nothing was changed:",
              first->redis.c_str(), format_usd(held_by_all(view)).c_str(), view.members.size());
  if (founded.ok())
    std::printf("Start those that share it, each where it is: proctor run %s\n",
                folders.front().c_str());
  return kOk;
}

Result<int> leave_envelope(const std::string& folder) {
  PROCTOR_TRY(const FrozenCampaign frozen, load_registered(folder));
  const auto& shared = frozen.campaign.envelopes.shared;
  if (!shared)
    return Error{Errc::kInvalid, folder +
                                     " shares no envelope, so there is none to leave: "
                                     "budget.shared in campaign.yaml names one (docs/budgets.md)"};
  // The journal's lock: no coordinator is at work, and none begins before the others are told.
  auto journal = Journal::open(frozen.folder.journal());
  if (!journal.ok())
    return in_context(
        "a campaign leaves its shared envelope by itself when it ends; proctor budget leave is for "
        "one that was killed and is not resumed",
        journal.error());
  // A copy of before would tell the others that this campaign holds less than it has spent.
  PROCTOR_TRY(const Around around, look_around(frozen));
  if (!around.problems.empty()) return behind_error(frozen.folder, around.problems);
  PROCTOR_TRY(const RestoredState state, read_journal(frozen));
  PROCTOR_TRY(const SharedBook book, shared_book_of(frozen.id, state.shared));
  if (MicroUsd::zero() < book.limit())
    PROCTOR_CHECK_OK(
        (*journal)->append_and_wait({note_of(SharedLimit{MicroUsd::zero()}, wall_now())}));
  SharedMember me = self_of(frozen);
  const OwnPart part = own_part(state);
  me.spent = part.held();
  PROCTOR_TRY(RedisLedger ledger,
              configured_ledger(frozen.campaign, frozen.id, frozen.campaign.redis));
  PROCTOR_CHECK_OK(ledger.tell_left(me));
  PROCTOR_CHECK_OK((*journal)->close());
  const std::string unit = money_word(frozen.campaign.cost_model);
  std::string told = fmt::format("{} has left {} and holds {} {} of it", frozen.campaign.name,
                                 shared->name, format_usd(me.spent), unit);
  if (MicroUsd::zero() < part.reserved)
    told += fmt::format(", {} of them for attempts that have not ended", format_usd(part.reserved));
  std::printf("%s.\nproctor resume %s makes it a member again.\n", told.c_str(), folder.c_str());
  return kOk;
}
}  // namespace proctor::cli

// RedisLedger's half that deals with an envelope shared by several campaigns (shared.lua).
#include <hiredis/hiredis.h>

#include <algorithm>

#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/ledger/ledger_script.h"
#include "common/ledger/redis_codec.h"
#include "common/ledger/redis_ledger.h"

namespace proctor {
namespace {

std::string now_ms() {
  return std::to_string(wall_now().raw());
}

std::string word_of(SharedCap cap) {
  if (cap == SharedCap::kAny) return "any";
  return cap == SharedCap::kEqual ? "equal" : "not lower";
}

// Another member as the scripts take it: id, state, ceiling, spent, name.
void add_member(const SharedMember& m, std::vector<std::string>& to) {
  const bool left = m.state == SharedMember::State::kLeft;
  to.insert(to.end(), {m.id, left ? "l" : "w", micros(m.ceiling), micros(m.spent), m.name});
}

Result<SharedView> view_of(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements % 2 != 0) return bad_reply("a view");
  std::vector<std::pair<std::string, std::string>> fields;
  for (std::size_t i = 0; i < reply.elements; i += 2) {
    const redisReply* field = reply.element[i];
    const redisReply* text = reply.element[i + 1];
    if (field->type != REDIS_REPLY_STRING || text->type != REDIS_REPLY_STRING)
      return bad_reply("a view");
    fields.emplace_back(std::string(field->str, field->len), std::string(text->str, text->len));
  }
  std::ranges::sort(fields);
  return read_shared(fields);
}

}  // namespace

Result<RedisReply> RedisLedger::run_shared(const std::vector<std::string>& args) {
  if (shared_key_.empty())
    return Error{Errc::kInvalid, "ledger: no envelope of this campaign is shared"};
  PROCTOR_CHECK_OK(connect());
  return run(&shared_sha_, kSharedScript, args);
}

Status RedisLedger::shared_refusal(std::string_view answer, MicroUsd cap) const {
  PROCTOR_CHECK_OK(refusal(answer));
  const std::string where = "shared envelope " + options_.shared;
  if (answer == "EMPTY") {
    return Error{Errc::kNotFound,
                 where + ": Redis at " + proctor::describe(options_.endpoint) +
                     " does not have it, and this campaign is not a member that could bring it "
                     "back. Where another member runs, it does so within a second. If no other "
                     "campaign has spent from it, say so: proctor budget share CAMPAIGN"};
  }
  if (answer.starts_with("CAP ")) {
    std::int64_t other = 0;
    if (!read_number(answer.substr(4), &other)) return bad_reply(answer);
    const MicroUsd held = MicroUsd::from_micros(other);
    const std::string type = "proctor budget raise CAMPAIGN shared:" + options_.shared + " " +
                             format_usd(std::max(held, cap)) + " --reason TEXT";
    return Error{Errc::kInvalid, where + ": this campaign has a cap of " + format_usd(cap) +
                                     ", the others one of " + format_usd(held) +
                                     ". Nothing was begun. To have the larger one " +
                                     (cap < held ? "here" : "there too, of each of them") + ": " +
                                     type +
                                     (cap < held ? "" : "; or start this one with their cap")};
  }
  if (answer != "OK") return bad_reply(answer);
  return ok_status();
}

// Its own part, and everybody whom its journal knows: in the same rebuild as its own envelopes,
// before any of them can be asked.
Status RedisLedger::report_part(Epoch epoch, const std::vector<ScopeSpec>& scopes,
                                const ScopeBalance& part) {
  const MicroUsd ceiling = std::min(scopes[0].cap, part.cap);
  std::vector<std::string> args{"report",
                                std::to_string(epoch.raw()),
                                token_,
                                options_.campaign,
                                connection_->facts().run_id,
                                micros(part.cap),
                                micros(part_->limit),
                                micros(ceiling),
                                micros(part.spent),
                                micros(part.reserved),
                                now_ms(),
                                options_.label,
                                word_of(part_->cap)};
  for (const SharedMember& m : part_->known) add_member(m, args);
  PROCTOR_TRY(const RedisReply reply, run_shared(args));
  if (reply->type != REDIS_REPLY_STRING) return bad_reply("report");
  PROCTOR_CHECK_OK(shared_refusal({reply->str, reply->len}, part.cap));
  part_->cap = SharedCap::kAny;
  return ok_status();
}

Result<SharedView> RedisLedger::tend(Epoch epoch, std::uint64_t noted, MicroUsd limit) {
  PROCTOR_CHECK_OK(connect());
  if (home_.empty()) return refusal("GONE").error();
  PROCTOR_TRY(const RedisReply reply,
              run_shared({"tend", std::to_string(epoch.raw()), token_, options_.campaign,
                          std::to_string(noted), micros(limit), now_ms()}));
  if (reply->type == REDIS_REPLY_STRING) {
    PROCTOR_CHECK_OK(refusal({reply->str, reply->len}));
    return bad_reply("tend");
  }
  return view_of(*reply);
}

Status RedisLedger::leave(Epoch epoch) {
  PROCTOR_TRY(const RedisReply reply, run_shared({"leave", std::to_string(epoch.raw()), token_,
                                                  options_.campaign, now_ms()}));
  if (reply->type != REDIS_REPLY_STRING) return bad_reply("leave");
  const std::string_view answer(reply->str, reply->len);
  if (answer == "HELD")
    return Error{Errc::kConflict, "shared envelope " + options_.shared + ": money is reserved"};
  return shared_refusal(answer, MicroUsd::zero());
}

Result<SharedView> RedisLedger::shared() {
  PROCTOR_TRY(const RedisReply reply, run_shared({"view"}));
  return view_of(*reply);
}

Status RedisLedger::found(MicroUsd cap, const std::vector<SharedMember>& known) {
  PROCTOR_CHECK_OK(connect());
  std::vector<std::string> args{"found", connection_->facts().run_id, micros(cap)};
  for (const SharedMember& m : known) add_member(m, args);
  PROCTOR_TRY(const RedisReply reply, run_shared(args));
  if (reply->type != REDIS_REPLY_STRING) return bad_reply("found");
  const std::string_view answer(reply->str, reply->len);
  if (answer == "HELD")
    return Error{Errc::kConflict, "shared envelope " + options_.shared + ": Redis at " +
                                      proctor::describe(options_.endpoint) + " has it already"};
  return shared_refusal(answer, cap);
}

Status RedisLedger::tell_left(const SharedMember& member) {
  PROCTOR_CHECK_OK(connect());
  PROCTOR_TRY(const RedisReply reply, run_shared({"left", connection_->facts().run_id, member.id,
                                                  micros(member.spent), member.name, now_ms()}));
  if (reply->type != REDIS_REPLY_STRING) return bad_reply("left");
  return shared_refusal({reply->str, reply->len}, MicroUsd::zero());
}

}  // namespace proctor

// What an operator asks at the control socket: words to an event, the core's answer to words.
#include <utility>

#include "common/base/log.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "coordinator/core/events.h"
#include "coordinator/shell/coordinator.h"

namespace proctor {
namespace {

using Verdict = ControlAnswer::Verdict;

std::string not_understood(const Error& error) {
  return encode(ControlAnswer{Verdict::kInvalid, error.detail, {}});
}

}  // namespace

void Coordinator::on_control(const std::string& line, ControlServer::Reply reply) {
  const Result<ControlRequest> request = parse_control_request(line);
  if (!request.ok()) return reply(not_understood(request.error()));
  if (outcome_)
    return reply(encode(ControlAnswer{Verdict::kUnavailable, "the campaign is ending", {}}));
  if (request->act == kActExplain) return reply(encode(explained(*request)));
  const Result<OperatorAct> act = act_of(*request, names_of(*options_.plan, *core_), wall_now());
  if (!act.ok()) return reply(not_understood(act.error()));
  // From here on it is done, whoever still listens.
  if (request->taken && !reply.first(kTakenLine))
    return log::info("operator " + printable(act->by) + ": " + request->act +
                     " was withdrawn before it was heard: nothing is done");
  const std::uint64_t ticket = ++last_ticket_;
  asked_.emplace(ticket, std::move(reply));
  log::info("operator " + printable(act->by) + ": " + request->act);
  feed(OperatorAsked{ticket, *act});
}

void Coordinator::perform(const Answer& c) {
  log::info("operator's act: " + c.answer.text);
  const auto asked = asked_.extract(c.ticket);
  if (asked.empty()) return;
  ControlAnswer answer{verdict_of(c.answer.verdict), c.answer.text, {}};
  if (c.answer.short_of_money) answer.explanation = {{"code", kCodeShort}};
  asked.mapped()(encode(answer));
}

ControlAnswer Coordinator::explained(const ControlRequest& request) const {
  const Result<RunId> run = find_run(*options_.plan, request.runs);
  if (!run.ok()) return {Verdict::kInvalid, run.error().detail, {}};
  const Explanation why = core_->why(*run);
  Result<Json> told = parse_json(to_json(why));
  PROCTOR_ASSERT(told.ok());  // we have just written it
  return {Verdict::kDone, why.text, std::move(told).value()};
}

}  // namespace proctor

#pragma once
// A call that was granted: to its provider, or to a recording, and back to its client.  Blocking;
// on its connection's thread.  Internal to this room.
#include <functional>

#include "worker/gateway/body_peek.h"
#include "worker/gateway/call_record.h"
#include "worker/gateway/session_shared.h"

namespace proctor {
// Answers to the client of one call, and whether its connection goes on.
class CallReply {
 public:
  CallReply(const GatewayCallInput& in, CallRecord& record) : in_(in), r_(record) {}

  void say(std::string_view bytes);
  // `listed`: with an event of its own.
  void refuse(const Refusal& refusal, bool listed = true);
  void end() { keep_ = false; }
  // Does the connection go on?
  bool keeps() const { return keep_; }

 private:
  const GatewayCallInput& in_;
  CallRecord& r_;
  bool keep_ = true;
};

struct ExchangeInput {
  const GatewayCallInput& in;
  const ModelAccess& access;
  CassettePlayer* player;  // answers instead of its provider; may be null
  const BodyPeek& peek;
  bool usage_asked;  // by us: its client does not see it
  CallReply& reply;
  CallRecord& record;
  // Called once, before the client has the whole answer: it may ask again at once.
  std::function<void(const Settlement&)> settle;
};

void exchange_with_provider(const ExchangeInput& input);
}  // namespace proctor

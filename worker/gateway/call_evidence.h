#pragma once
// What is kept of a call's texts: pieces of its request, its answer, and which tools were asked for
// and came back.  Thread-safe as the session is.  Internal to this room.
#include <string>

#include "worker/gateway/body_peek.h"
#include "worker/gateway/call_record.h"
#include "worker/gateway/session_shared.h"
#include "worker/gateway/tool_calls.h"

namespace proctor {

void keep_request(GatewaySession::Shared& shared, const std::string& body, const BodyPeek& peek,
                  CallRecord& record);
void keep_answer(GatewaySession::Shared& shared, const std::string& body, CallRecord& record);
// What a provider says of the operator's own key is nobody's to read.
void strike_out(std::string& text, const std::string& secret);
std::vector<ToolTold> told_of(const std::vector<ToolCall>& calls);

}  // namespace proctor

#include "common/contract/model_speech.h"

namespace proctor {

std::string_view spoken_as(MethodGateway::As as) {
  switch (as) {
    case MethodGateway::As::kOpenai:
      return "openai";
    case MethodGateway::As::kOpenaiResponses:
      return "openai-responses";
    case MethodGateway::As::kAnthropic:
      return "anthropic";
  }
  return {};
}

}  // namespace proctor

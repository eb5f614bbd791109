#include <doctest/doctest.h>

#include "common/base/json.h"
#include "tests/support/json_tools.h"
#include "worker/gateway/refusal.h"

using namespace proctor;
using testing::read_json;

namespace {

using Cause = Refusal::Cause;

OwnAnswer refusal(ModelApi api, Cause cause, bool litellm = false) {
  Refusal r{cause, "usd: 0.98 of 1.00 spent"};
  r.wait_ms = 11'400;
  return make_refusal(api, r, litellm, 17);
}

}  // namespace

TEST_SUITE("gateway refusals") {
  TEST_CASE("a final one stops the programs of each API, and nobody waits after it") {
    struct Row {
      ModelApi api;
      bool litellm;
      int status;
    };
    for (const Row& row :
         {Row{ModelApi::kChat, false, 401}, Row{ModelApi::kEmbeddings, false, 401},
          Row{ModelApi::kResponses, false, 429}, Row{ModelApi::kResponses, true, 401},
          Row{ModelApi::kMessages, false, 403}}) {
      const OwnAnswer a = refusal(row.api, Cause::kFinal, row.litellm);
      CHECK(a.status == row.status);
      CHECK(a.last);
      CHECK(a.headers.find("x-should-retry: false") != std::string::npos);
      CHECK(a.headers.find("retry-after") == std::string::npos);
      CHECK(a.headers.find("x-proctor: 1\r\n") != std::string::npos);
      CHECK(to_bytes(a).find("connection: close\r\n") != std::string::npos);
    }
    const Json chat = read_json(refusal(ModelApi::kChat, Cause::kFinal).body);
    CHECK(chat["error"]["type"] == "insufficient_quota");
    CHECK(chat["error"]["code"] == "budget_exceeded");
    CHECK(chat["error"]["param"].is_null());
    const Json messages = read_json(refusal(ModelApi::kMessages, Cause::kFinal).body);
    CHECK(messages["type"] == "error");
    CHECK(messages["error"]["type"] == "permission_error");
    CHECK(messages["request_id"] == "prq_17");
  }

  TEST_CASE("one for now says how long") {
    const OwnAnswer a = refusal(ModelApi::kResponses, Cause::kNotNow);
    CHECK(a.status == 429);
    CHECK_FALSE(a.last);
    CHECK(a.headers.find("retry-after: 12\r\n") != std::string::npos);
    CHECK(a.headers.find("x-should-retry: true") != std::string::npos);
    CHECK(a.body.find("try again in 12s") != std::string::npos);
  }

  TEST_CASE("the others have the status that their programs give up at") {
    CHECK(refusal(ModelApi::kChat, Cause::kUnknownModel).status == 404);
    CHECK(refusal(ModelApi::kResponses, Cause::kUnknownModel).status == 400);
    CHECK(refusal(ModelApi::kMessages, Cause::kToken).status == 401);
    CHECK(refusal(ModelApi::kChat, Cause::kPolicy).status == 400);
    CHECK(refusal(ModelApi::kMessages, Cause::kTooLarge).status == 413);
  }

  TEST_CASE("what an agent said comes back as text, never as a header or as JSON") {
    Refusal r{Cause::kPolicy, "a\r\nset-cookie: x\"}\x01\xff"};
    const OwnAnswer a = make_refusal(ModelApi::kChat, r, false, 1);
    CHECK(a.headers.find("set-cookie") == std::string::npos);
    CHECK(parse_json(a.body).ok());
  }

  TEST_CASE("the list of models is this run's, in both styles") {
    const std::vector<GatewayModel> one{{"m", {}, {}, {}}},
        two{{"m", {}, {}, {}}, {"a", {}, {}, {}}};
    CHECK(model_list(ModelApi::kChat, one) ==
          R"({"data":[{"created":0,"id":"m","object":"model","owned_by":"proctor"}],)"
          R"("object":"list"})");
    CHECK(model_list(ModelApi::kMessages, one) ==
          R"({"data":[{"created_at":"1970-01-01T00:00:00Z","display_name":"m","id":"m",)"
          R"("type":"model"}],"first_id":"m","has_more":false,"last_id":"m"})");
    const Json both = read_json(model_list(ModelApi::kMessages, two));
    CHECK(both["data"].size() == 2);
    CHECK(both["data"][1]["id"] == "a");
    CHECK(both["last_id"] == "a");
    CHECK(read_json(model_entry(ModelApi::kChat, "m"))["object"] == "model");
  }
}

#pragma once
// The worker's models file: how each model is reached from here.  The campaign says which model and
// what of it; where that is, which program runs and where the key lies is the operator's word.
// YAML or JSON, by the name's ending:
//
//   models:
//     gpt-4o: {url: "https://api.openai.com/v1", key_variable: OPENAI_API_KEY, api: [chat]}
//     opus:   {url: "https://api.anthropic.com", key_file: /etc/key, api: [messages],
//              auth: x-api-key, send_as: claude-opus-4-8, max_output: 32000}
//     local:  {url: "http://127.0.0.1:8000/v1", send_as: qwen, output_limit: max_tokens}
//     mine:   {program: [/opt/ask, --fast]}
//     played: {cassette: /srv/calls.jsonl, api: [chat]}
//
// Keys are never in it: it names the variable or the file.  Pure but for load; any thread.
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"
#include "common/base/ids.h"
#include "common/base/words.h"

namespace proctor {
// The APIs that an endpoint speaks, as the gateway forwards it.
enum class ModelApi { kChat, kCompletions, kResponses, kEmbeddings, kMessages, kCountTokens };
constexpr auto words(ModelApi) {
  return std::to_array<Word<ModelApi>>({{"chat", ModelApi::kChat},
                                        {"completions", ModelApi::kCompletions},
                                        {"responses", ModelApi::kResponses},
                                        {"embeddings", ModelApi::kEmbeddings},
                                        {"messages", ModelApi::kMessages},
                                        {"count_tokens", ModelApi::kCountTokens}});
}

enum class ModelAuth { kBearer, kXApiKey, kApiKey, kNone };
constexpr auto words(ModelAuth) {
  return std::to_array<Word<ModelAuth>>({{"bearer", ModelAuth::kBearer},
                                         {"x-api-key", ModelAuth::kXApiKey},
                                         {"api-key", ModelAuth::kApiKey},
                                         {"none", ModelAuth::kNone}});
}

// By what a call is found in a recording: its bytes, what they mean, or its place in the order.
enum class CassetteMatch { kExact, kCanonical, kSequence };
constexpr auto words(CassetteMatch) {
  return std::to_array<Word<CassetteMatch>>({{"exact", CassetteMatch::kExact},
                                             {"canonical", CassetteMatch::kCanonical},
                                             {"sequence", CassetteMatch::kSequence}});
}

struct ModelAccess {
  std::string url;                                     // without /chat/completions; or:
  std::vector<std::string> program;                    // reads a JSON request, writes a JSON answer
  std::string send_as;                                 // the name the provider knows; empty: ours
  std::string key_variable, key_file;                  // at most one
  std::string output_limit = "max_completion_tokens";  // what the endpoint calls it
  std::chrono::milliseconds backoff{1'000};            // first wait between two calls; doubles

  // For the gateway (docs/gateway.md).
  std::set<ModelApi> api{ModelApi::kChat};
  ModelAuth auth = ModelAuth::kBearer;
  std::string ca_file;                                        // beside the host's own authorities
  std::uint64_t max_input = 2'000'000, max_output = 200'000;  // tokens that the provider grants
  std::uint64_t output_default = 32'000;      // asked for where an agent names no limit
  std::uint64_t output_floor = 1'024;         // a limit is never lowered below it
  std::uint64_t hidden_input = 2'048;         // tokens that a provider puts around a request
  std::optional<std::uint64_t> image_tokens;  // at most, of one image; none: no images
  std::set<std::string> tiers;                // of service, beside the standard one
  bool errors_are_free = true;                // 5xx is not billed; false: the operator's word
  bool delta = true;                          // calls may be bounded by earlier ones of their run
  bool stream_usage = true;                   // knows stream_options.include_usage
  std::string cassette;                       // a recording that answers, instead of a URL
  CassetteMatch cassette_match = CassetteMatch::kCanonical;
  bool cassette_charges = false;  // what was recorded, as if a provider had answered
  std::chrono::milliseconds first_byte{600'000}, idle{300'000}, total{1'800'000};
};

using ModelsFile = std::map<std::string, ModelAccess>;

// kInvalid with every member that is wrong, and where it is.  A key goes over plain HTTP to this
// machine only.
Result<ModelsFile> parse_models(std::string_view text, std::string_view file = "models.json");
Result<ModelsFile> load_models(const fs::path& file);

// The provider's key of a model, read now: from its variable, or from its file, which no other user
// may read.  Empty where the models file names neither.
// Errors: kUnavailable, with the variable or the file and what to do.
Result<Secret> model_key(const ModelAccess& access);
}  // namespace proctor

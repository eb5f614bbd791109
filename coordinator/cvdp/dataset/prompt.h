#pragma once
// What a model is asked: the parts, their order and the answer's form are upstream's; the sentences
// are Proctor's own.  Pure; any thread.  Source: CVDP 8.2, 8.3, 8.5.
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/cvdp/dataset/record.h"

namespace proctor::cvdp {

// The two forms a JSON answer may have.
inline constexpr std::string_view kCodeSchema = "{ \"code\": [{ \"<name>\" : \"<code>\"}] }";
inline constexpr std::string_view kResponseSchema = "{ \"response\": \"<response>\" }";

// What reports say whose sentences these are; another number with every other sentence.
inline constexpr const char* kPromptsName = "Proctor 1";

struct Prompt {
  std::string system;
  std::string user;
  std::vector<std::string> expected;  // files the answer is to hold; none for an answer in words
};

// kInvalid: a category no model is asked about, or a record without a prompt.
Result<Prompt> prompt_for(const Record& record);

struct JudgePrompt {
  std::string system;
  std::string user;
};
JudgePrompt judge_prompt(std::string_view problem, std::string_view reference,
                         std::string_view candidate);

}  // namespace proctor::cvdp

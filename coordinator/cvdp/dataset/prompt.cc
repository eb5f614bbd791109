#include "coordinator/cvdp/dataset/prompt.h"

#include <array>

namespace proctor::cvdp {
namespace {

struct Guidance {
  int category;
  std::string_view task;
  std::string_view content;
};
constexpr std::array<Guidance, 13> kGuidance = {{
    {2, "completing RTL code", "the completed RTL code"},
    {3, "writing RTL code from a specification", "RTL code"},
    {4, "modifying RTL code", "the modified RTL code"},
    {5, "writing RTL code from a specification with existing modules", "RTL code"},
    {6, "matching RTL code and its specification", "a text"},
    {7, "improving RTL code for lint or quality of results", "the improved RTL code"},
    {8, "matching a test bench and its test plan", "a text"},
    {9, "answering a question on RTL code", "a text"},
    {10, "answering a question on a test bench", "a text"},
    {12, "writing test bench stimulus from a test plan", "test bench code"},
    {13, "writing test bench checkers from a test plan", "test bench code"},
    {14, "writing assertions from a test plan", "test bench code with assertions"},
    {16, "finding and repairing a fault of RTL code", "the repaired RTL code"},
}};

constexpr std::string_view kRole =
    "You are an assistant for hardware design and verification. A project keeps its files in "
    "folders: "
    "rtl/* holds RTL code, verif/* holds test benches and what belongs to them, docs/* holds "
    "documentation. Put every file into the folder where it belongs.";

std::string system_prompt(const Guidance& g, AnswerForm form) {
  std::string out(kRole);
  out += "\n\nYou are solving a problem of the kind '" + std::string(g.task) + "': return only " +
         std::string(g.content) + ".\n";
  if (form == AnswerForm::kPlainText) return out;
  out += "Answer in one of these JSON forms:\n" + std::string(kCodeSchema) + "\nor\n" +
         std::string(kResponseSchema) +
         "\nThe JSON must be correct: escape quotes, backslashes and "
         "line ends inside texts.\n";
  return out;
}

std::string closing(const std::vector<std::string>& expected, bool in_words) {
  if (expected.size() == 1)
    return "Answer in plain text, not in JSON: your answer becomes the file " + expected.front() +
           " as it is.\n";
  if (in_words) return "Answer in the form { \"response\": \"<your answer here>\" }.\n";
  if (expected.empty()) return "Give your answer.\n";
  std::string names;
  for (const std::string& e : expected) names += (names.empty() ? "'" : ", '") + e + "'";
  return "Name the files of your answer as follows: [" + names + "].\n";
}

std::string fenced(std::string_view text) {
  return "```\n" + std::string(text) + "\n```\n";
}

}  // namespace

Result<Prompt> prompt_for(const Record& record) {
  const int category = category_number(record.category);
  const Guidance* guidance = nullptr;
  for (const Guidance& g : kGuidance)
    if (g.category == category) guidance = &g;
  if (guidance == nullptr)
    return Error{Errc::kInvalid, "no model is asked about category " + record.category};
  const std::string* task = prompt_of(record);
  if (task == nullptr) return Error{Errc::kInvalid, "the record has no prompt"};
  Prompt out;
  const bool in_words = is_comprehension(category);
  if (const Object* solution = solution_files(record); solution != nullptr && !in_words)
    for (const Member& m : *solution) out.expected.push_back(m.key);
  out.system = system_prompt(*guidance, form_for(out.expected.size()));
  if (const Object* context = context_files(record))
    for (const Member& m : *context)
      if (const std::string* text = m.value.string())
        out.user += "\nThe file " + m.key + " holds:\n" + fenced(*text);
  out.user += "\nThe task is: " + *task + "\n" + closing(out.expected, in_words);
  return out;
}

JudgePrompt judge_prompt(std::string_view problem, std::string_view reference,
                         std::string_view candidate) {
  JudgePrompt out;
  out.system =
      "You are an expert who grades answers. Give a score from 0.0 to 1.0 that says how well the "
      "candidate answers the original question, compared with the reference. Judge it by:\n"
      "1. relevance to the question\n2. nearness of its meaning to the reference\n"
      "3. completeness\n4. correctness\n5. style and clarity\n"
      "Answer with a JSON object that has the members score (a number) and reasoning (a text).";
  out.user = "Grade the candidate against the reference for this problem.\n\nProblem:\n" +
             fenced(problem) + "\nReference:\n" + fenced(reference) + "\nCandidate:\n" +
             fenced(candidate) +
             "\nJudge it relative to the problem. For example:\n"
             "{\"score\": 0.85, \"reasoning\": \"covers all points but one\"}";
  return out;
}

}  // namespace proctor::cvdp

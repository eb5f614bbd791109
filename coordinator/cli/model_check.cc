#include "coordinator/cli/model_check.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "common/contract/money_word.h"
#include "common/cvdp/single_shot.h"

namespace proctor::cli {
namespace {

Mark mark_of(const Origin& origin, const std::string& field) {
  const auto it = origin.at.find(field);
  return it == origin.at.end() ? Mark{} : it->second;
}

bool asks_a_model(const Method& m) {
  return m.kind == Method::Kind::kSingleShot && !m.call.model.empty();
}

ActionName action_of(const Method& m) {
  return {.type = "llm_request", .provider = m.call.provider, .model = m.call.model};
}

// `price` is the method's, found before.
class PromptCheck {
 public:
  PromptCheck(const Campaign& campaign, Diagnostics& out)
      : c_(campaign), rules_(campaign.cap_rules()), out_(out) {}

  // Once for each method and contract: the first stage in which no call could be made.
  void check(const Method& m, const Tariff& tariff, const Contract& contract) {
    const auto file =
        std::ranges::find(contract.files, contract.single_shot, &ReferencedFile::path);
    if (file == contract.files.end()) return;
    const Result<cvdp::SingleShotTask> task = cvdp::read_task(file->bytes);
    if (!task.ok()) return;  // of another kind: its run says so
    const std::uint64_t input = cvdp::prompt_ceiling(task->system, task->user);
    const Quantities most{1, input, m.call.max_output_tokens, 0};
    for (const Stage& stage : c_.stages) {
      const Caps caps = effective_caps(rules_, stage.name, contract).caps;
      if (!fits_tokens(m, contract, caps, most) || !fits_money(m, contract, caps, tariff, most))
        return;
    }
  }

 private:
  void complain(const Method& m, const Contract& contract, std::string found,
                const std::string& expected) {
    out_.add({contract.origin.file, mark_of(contract.origin, "single_shot"), "single_shot",
              "a prompt of which one call by the method " + m.name + " may use " + std::move(found),
              expected, ""});
  }

  bool fits_tokens(const Method& m, const Contract& contract, const Caps& caps,
                   const Quantities& most) {
    const auto cap = cap_value(caps, Cap::kTokens);
    const std::uint64_t tokens = most.input_tokens + most.output_tokens;
    if (!cap || tokens <= *cap) return true;
    complain(m, contract,
             std::to_string(tokens) + " tokens (" + std::to_string(most.input_tokens) +
                 " of input, one for every byte, and max_output_tokens)",
             "at most the cap on tokens, " + std::to_string(*cap) +
                 ": no call would be made; raise caps.tokens to " + std::to_string(tokens) +
                 ", or shorten the prompt or max_output_tokens");
    return false;
  }

  // What is held for the rest of the run when the first call is asked for: the agent's own time,
  // and all that follows it.
  bool fits_money(const Method& m, const Contract& contract, const Caps& caps, const Tariff& tariff,
                  const Quantities& most) {
    Usage beside = worst_case(contract, m, *caps.wall);
    beside.setup_ms = 0;
    const MicroUsd held = price(c_.cost_model, beside).total();
    const MicroUsd call = price(tariff, most);
    const MicroUsd cap = *caps.usd;
    if (held + call <= cap) return true;
    const std::string unit = " " + std::string(money_word(c_.cost_model));
    complain(m, contract,
             format_usd(call) + unit + " (" + std::to_string(most.input_tokens) +
                 " tokens of input, one for every byte, and " + std::to_string(most.output_tokens) +
                 " of output)",
             "at most " + format_usd(std::max(cap - held, MicroUsd::zero())) + unit +
                 ": the run's cap of " + format_usd(cap) + unit + " less " + format_usd(held) +
                 unit +
                 " for its own time and the checks: no call would be made; raise budget.run (or "
                 "caps.usd) to " +
                 format_usd(held + call) + ", or shorten the prompt or max_output_tokens");
    return false;
  }

  const Campaign& c_;
  CapRules rules_;
  Diagnostics& out_;
};

// "model_calls (10)": of the first run of the method that has such caps; empty: none has.
std::string caps_of_method(const Campaign& campaign) {
  const CapRules rules = campaign.cap_rules();
  for (const Contract& contract : campaign.contracts)
    for (const Stage& stage : campaign.stages)
      if (std::string caps = caps_on_calls(effective_caps(rules, stage.name, contract).caps);
          !caps.empty())
        return caps;
  return "";
}

// Does the method say, where it can be read here, that it knows of a meter?
bool names_the_meter(const Method& m) {
  constexpr std::string_view kWord = "PROCTOR_METER", kPlace = "/proctor/meter";
  const auto names = [&](std::string_view text) {
    return text.find(kWord) != std::string_view::npos ||
           text.find(kPlace) != std::string_view::npos;
  };
  return names(m.command) ||
         std::ranges::any_of(m.files, [&](const ReferencedFile& f) { return names(f.bytes); });
}

}  // namespace

std::string caps_on_calls(const Caps& caps) {
  std::string out;
  for (const Cap cap : {Cap::kModelCalls, Cap::kTokens})
    if (const auto value = cap_value(caps, cap))
      out += (out.empty() ? "" : " and ") + std::string(to_string(cap)) + " (" +
             format_cap(cap, value) + ")";
  return out;
}

void check_model_calls(const Campaign& campaign, Diagnostics& out) {
  PromptCheck prompts(campaign, out);
  for (const Method& m : campaign.methods) {
    if (!asks_a_model(m)) continue;
    const Result<Tariff> tariff = find_tariff(campaign.cost_model, action_of(m));
    if (!tariff.ok()) {
      out.add({campaign.origin.file, mark_of(campaign.origin, "methods"),
               "methods." + m.name + ".model", tariff.error().detail,
               "a price, or every call of it is refused: lines such as "
               "llm_request,input_token,PRICE,," +
                   m.call.provider + "," + m.call.model +
                   " and the same with output_token in pilot_cost_model.csv",
               ""});
      continue;
    }
    for (const Contract& contract : campaign.contracts) prompts.check(m, *tariff, contract);
  }
}

Status refuse_model_calls(const Campaign& campaign) {
  Diagnostics diagnostics;
  check_model_calls(campaign, diagnostics);
  if (diagnostics.empty()) return ok_status();
  std::fputs(diagnostics.text().c_str(), stderr);
  return Error{Errc::kInvalid, std::to_string(diagnostics.count()) +
                                   (diagnostics.count() == 1 ? " error" : " errors") + " in " +
                                   campaign.folder.string()};
}

std::vector<std::string> model_notes(const Campaign& campaign, const std::string& models) {
  std::vector<std::string> out;
  const std::string caps = caps_of_method(campaign);
  std::set<std::string> asked;
  for (const Method& m : campaign.methods) {
    if (asks_a_model(m)) asked.insert(m.call.model);
    if (m.kind != Method::Kind::kCommand || caps.empty() || names_the_meter(m)) continue;
    out.push_back("the method " + m.name +
                  " is unmetered as far as can be seen here: its caps on " + caps +
                  " count only calls that its program reserves at $PROCTOR_METER, and neither its "
                  "command nor its files name it (docs/metering.md); status and report say whether "
                  "it did");
  }
  if (asked.empty() || !models.empty() || campaign.workers == 0) return out;
  std::string names;
  for (const std::string& model : asked) names += (names.empty() ? "" : ", ") + model;
  out.push_back("local workers have to be told how " + names +
                (asked.size() == 1 ? " is" : " are") + " reached: proctor run --models FILE " +
                campaign.folder.string() +
                ", or PROCTOR_MODELS (docs/single-shot.md); proctor check --models FILE looks "
                "whether the file names " +
                (asked.size() == 1 ? "it" : "them"));
  return out;
}

}  // namespace proctor::cli

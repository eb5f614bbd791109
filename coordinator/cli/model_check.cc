#include "coordinator/cli/model_check.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstdio>
#include <set>

#include "common/answers/single_shot.h"
#include "common/contract/campaign_parser.h"
#include "common/contract/cost_model.h"
#include "common/contract/cost_model_parser.h"
#include "common/contract/fields.h"
#include "common/contract/models_file.h"

namespace proctor::cli {
namespace {
Mark mark_of(const Origin& origin, const std::string& field) {
  const auto it = origin.at.find(field);
  return it == origin.at.end() ? Mark{} : it->second;
}

// With a gateway in place of a network; a tool_loop's is the worker's own.
bool is_program(const Method& m) {
  return m.gateway && m.kind == Method::Kind::kCommand;
}

ActionName action_of(const GatewayModel& m) {
  return {.type = "llm_request", .provider = m.provider, .model = m.name};
}

// "the method agent", with the model's name where it is one of several.
std::string who_asks(const Method& m, const GatewayModel& model) {
  return "the method " + m.name + (1 < m.models().size() ? ", model " + model.name : "");
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
    const Result<answers::SingleShotTask> task = answers::read_task(file->bytes);
    if (!task.ok()) return;  // said by check_tasks
    const std::uint64_t input = answers::prompt_ceiling(task->system, task->user);
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
    Usage beside = worst_case(contract, m, *caps.wall, contract.rerun_in(c_.rerun));
    beside.setup_ms = 0;
    const MicroUsd held = price(c_.cost_model, beside).total();
    const MicroUsd call = worst_price(tariff, most, CacheUse::kNone);
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

// What single-shot methods are asked, or hand in: a file that cannot be read is registered, and may
// not be mended any more.
void check_tasks(const Campaign& campaign, Diagnostics& out) {
  const auto is_single_shot = [](const Method& m) { return m.kind == Method::Kind::kSingleShot; };
  if (std::ranges::none_of(campaign.methods, is_single_shot)) return;
  const bool hands_in = std::ranges::any_of(
      campaign.methods, [&](const Method& m) { return is_single_shot(m) && m.call.model.empty(); });
  std::uint64_t replicates = 0;  // counted through the stages, as answers are
  for (const Stage& stage : campaign.stages) replicates += campaign.replicates_of(stage);
  for (const Contract& contract : campaign.contracts) {
    const auto file =
        std::ranges::find(contract.files, contract.single_shot, &ReferencedFile::path);
    if (file == contract.files.end()) continue;
    const auto complain = [&](std::string found, std::string expected) {
      out.add({contract.origin.file, mark_of(contract.origin, "single_shot"), "single_shot",
               std::move(found), std::move(expected), ""});
    };
    const Result<answers::SingleShotTask> task = answers::read_task(file->bytes);
    if (!task.ok())
      complain(file->path + ": " + task.error().detail, "a task as docs/single-shot.md has it");
    else if (hands_in && task->given.size() < replicates)
      complain(std::to_string(task->given.size()) + " answers in " + file->path,
               "one for each of the " + std::to_string(replicates) +
                   " replicates, or a model in the method");
  }
}

// A gateway is a way out of an empty network; with the host's own there is nothing to hold.
void check_network(const Campaign& campaign, const Method& m, const Contract& contract,
                   Diagnostics& out) {
  if (!joined(contract.policy.agent_network, m.environment.network).open) return;
  out.add({campaign.origin.file, mark_of(campaign.origin, "methods"),
           "methods." + m.name + ".gateway",
           "a gateway beside an open network (task " + contract.id + ")",
           "network: false, or {allow: [...]} with the places that the agent needs", ""});
}

// Of a token, in picodollars: 10,000 USD for a million of them.
constexpr std::uint64_t kPlausibleToken = 10'000'000'000;

// A call that asks for as much as a program that names no limit, after a prompt of the size of a
// coding agent's first.
constexpr std::uint64_t kFirstInput = 90'000, kUnlimitedOutput = 32'000;

// The least that one call of its model reserves, as the worker does it (worker/gateway/ceiling.h):
// what a provider puts around a request, and the lowest limit of output.
Quantities least_call(const GatewayModel& m, const ModelAccess& access) {
  const std::uint64_t output =
      std::min({access.output_floor, access.max_output, m.output_max.value_or(access.max_output)});
  return {1, std::min(access.hidden_input, access.max_input), output, 0};
}

// Of a file that is not named or not to be read nothing is told; that it is so is said elsewhere.
ModelsFile models_told(const std::string& file) {
  Result<ModelsFile> known = file.empty() ? Result<ModelsFile>(ModelsFile{}) : load_models(file);
  return known.ok() ? std::move(known).value() : ModelsFile{};
}

// A cap that no call fits into: each would be refused, and each run be the agent's failure.
void note_caps_of_no_call(const Campaign& campaign, const Method& m, const GatewayModel& model,
                          const ModelsFile& models, std::vector<std::string>& out) {
  const Result<Tariff> tariff = find_tariff(campaign.cost_model, action_of(model));
  if (!tariff.ok()) return;
  const auto access = models.find(model.name);
  const Quantities least =
      least_call(model, access == models.end() ? ModelAccess{} : access->second);
  const std::uint64_t tokens = least.input_tokens + least.output_tokens;
  const MicroUsd call = worst_price(*tariff, least, CacheUse::kNone);
  const std::string unit = " " + std::string(money_word(campaign.cost_model));
  const CapRules rules = campaign.cap_rules();
  for (const Contract& contract : campaign.contracts)
    for (const Stage& stage : campaign.stages) {
      const Caps caps = effective_caps(rules, stage.name, contract).caps;
      const std::string where = who_asks(m, model) + ": no call of its model fits into ";
      const std::string then =
          " (task " + contract.id + "), so that each is refused and every run fails: ";
      if (const auto cap = cap_value(caps, Cap::kTokens); cap && *cap < tokens)
        return out.push_back(
            where + "the cap on tokens, " + std::to_string(*cap) + then + "one reserves " +
            std::to_string(tokens) + " at least (" + std::to_string(least.input_tokens) +
            " that a provider may put around a request, hidden_input_tokens, and " +
            std::to_string(least.output_tokens) + " of output): raise caps.tokens well above that");
      if (*caps.usd < call)
        return out.push_back(where + "the cap of a run, " + format_usd(*caps.usd) + unit + then +
                             "one reserves " + format_usd(call) + unit +
                             " at least; look at its prices, or raise budget.run (or caps.usd)");
    }
}

// What a run of this method may spend at most, and on one call: before anything starts.
void gateway_notes(const Campaign& campaign, const Method& m, const GatewayModel& model,
                   const ModelsFile& models, std::vector<std::string>& out) {
  const Result<Tariff> tariff = find_tariff(campaign.cost_model, action_of(model));
  if (!tariff.ok()) return;
  const std::size_t before = out.size();
  note_caps_of_no_call(campaign, m, model, models, out);
  const bool holds_none = before < out.size();
  const std::string unit = " " + std::string(money_word(campaign.cost_model));
  const std::uint64_t output =
      std::min(kUnlimitedOutput, model.output_max.value_or(kUnlimitedOutput));
  const MicroUsd call = worst_price(*tariff, {1, kFirstInput, output, 0}, CacheUse::kMinutes);
  MicroUsd cap = kLedgerMax;
  const CapRules rules = campaign.cap_rules();
  for (const Contract& contract : campaign.contracts)
    for (const Stage& stage : campaign.stages)
      cap = std::min(cap, *effective_caps(rules, stage.name, contract).caps.usd);
  const std::string who = who_asks(m, model);
  out.push_back(who + " may spend at most " + format_usd(cap) + unit +
                " in a run, and reserves up to " + format_usd(call) + unit +
                " for a call of 90,000 bytes and " + std::to_string(output) + " tokens of output");
  if (!holds_none && cap < MicroUsd::from_micros(call.micros() * 4))
    out.push_back(who +
                  ": the cap of a run holds fewer than four such calls: raise budget.run (or "
                  "caps.usd), or lower " +
                  (is_program(m) ? "gateway.output_max" : "max_output_tokens"));
  std::string missing;
  const auto lacks = [&](const auto& price, const char* row) {
    if (!price) missing += (missing.empty() ? "" : ", ") + std::string(row);
  };
  lacks(tariff->cache_read, "cache_read_token (then priced as input)");
  if (m.gateway->as == MethodGateway::As::kAnthropic) {
    lacks(tariff->cache_write, "cache_write_token (then twice the input)");
    lacks(tariff->cache_write_long, "cache_write_long_token (then twice the input)");
  }
  if (!missing.empty())
    out.push_back(who + ": the price table has no row of " + model.name + " for " + missing);
}

// By what the model is priced, where its rows do not name it; empty: they do.
std::string priced_instead(const CostModel& table, const Tariff& tariff) {
  if (table.abstract())
    return "the built-in prices, in units that are no dollars, for there is no " +
           std::string(kCostModelFile);
  if (tariff.defaulted) return "the default row (llm_request with the model *)";
  const bool named = std::ranges::any_of(table.rows, [](const PriceRow& r) {
    return r.action_type == "llm_request" && (!r.model.empty() || !r.provider.empty());
  });
  return named ? "" : "the llm_request rows without a model, as every other model";
}

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

std::vector<std::string> price_notes(const Campaign& campaign) {
  std::vector<std::string> out;
  const CostModel& table = campaign.cost_model;
  const auto free = [&](std::uint64_t price, const char* row, const char* what) {
    if (price == 0)
      out.push_back(std::string("the price table has no row ") + row + " (or 0 in it): " + what);
  };
  free(table.sandbox_minute, "sandbox,minute", "the time of sandboxes costs nothing");
  free(table.run, "run,run", "a run that does nothing costs nothing");
  for (const Method& m : campaign.methods)
    for (const GatewayModel& model : m.models()) {
      const ActionName action = action_of(model);
      const Result<Tariff> tariff = find_tariff(campaign.cost_model, action);
      if (!tariff.ok()) continue;  // is an error: check_model_calls
      const std::string who = "the method " + m.name + ": the model " + action.model;
      const auto decimal = [](std::uint64_t pico) { return format_decimal(pico, kPriceDigits); };
      if (const std::string by = priced_instead(campaign.cost_model, *tariff); !by.empty())
        out.push_back(who + " has no price row of its own and is priced by " + by + ": " +
                      decimal(tariff->input_token) + " for a token of input, " +
                      decimal(tariff->output_token) + " of output");
      const std::uint64_t dearest = std::max(tariff->input_token, tariff->output_token);
      if (!table.abstract() && kPlausibleToken < dearest)
        out.push_back(who + " costs " + decimal(dearest) +
                      " USD for one token, as the price table has it: if that is a price for a "
                      "million, write it divided by 1,000,000");
      if (tariff->input_token == 0 || tariff->output_token == 0)
        out.push_back(who + " costs nothing for tokens of " +
                      (tariff->input_token == 0
                           ? (tariff->output_token == 0 ? "input and output" : "input")
                           : "output") +
                      ", as the price table has it: no cap in money holds them");
    }
  return out;
}

std::string caps_on_calls(const Caps& caps) {
  std::string out;
  for (const Cap cap : {Cap::kModelCalls, Cap::kTokens})
    if (const auto value = cap_value(caps, cap))
      out += (out.empty() ? "" : " and ") + std::string(to_string(cap)) + " (" +
             format_cap(cap, value) + ")";
  return out;
}

void check_model_calls(const Campaign& campaign, Diagnostics& out) {
  check_tasks(campaign, out);
  PromptCheck prompts(campaign, out);
  for (const Method& m : campaign.methods) {
    if (is_program(m))
      for (const Contract& contract : campaign.contracts) check_network(campaign, m, contract, out);
    for (const GatewayModel& model : m.models()) {
      const Result<Tariff> tariff = find_tariff(campaign.cost_model, action_of(model));
      if (!tariff.ok())
        out.add({campaign.origin.file, mark_of(campaign.origin, "methods"),
                 "methods." + m.name + (is_program(m) ? ".gateway.model" : ".model"),
                 tariff.error().detail,
                 "a price, or every call of it is refused: in pilot_cost_model.csv, under a header "
                 "action_type,unit,unit_price,provider,model, the line "
                 "llm_request,input_token,PRICE," +
                     model.provider + "," + model.name + " and the same with output_token",
                 ""});
      else if (!m.gateway)
        for (const Contract& contract : campaign.contracts) prompts.check(m, *tariff, contract);
    }
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

std::vector<std::string> no_call_notes(const Campaign& campaign, const std::string& models) {
  std::vector<std::string> out;
  const ModelsFile known = models_told(models);
  for (const Method& m : campaign.methods)
    if (m.gateway)
      for (const GatewayModel& model : m.models())
        note_caps_of_no_call(campaign, m, model, known, out);
  return out;
}

std::vector<std::string> model_notes(const Campaign& campaign, const std::string& models) {
  std::vector<std::string> out = price_notes(campaign);
  const std::string caps = caps_of_method(campaign);
  const ModelsFile known = models_told(models);
  std::set<std::string> asked;
  for (const Method& m : campaign.methods) {
    for (const GatewayModel& model : m.models()) {
      asked.insert(model.name);
      if (m.gateway) gateway_notes(campaign, m, model, known, out);
    }
    if (m.gateway || m.kind != Method::Kind::kCommand || caps.empty() || names_the_meter(m))
      continue;
    out.push_back("the method " + m.name +
                  " is unmetered as far as can be seen here: its caps on " + caps +
                  " count only calls that its program reserves at $PROCTOR_METER, and neither its "
                  "command nor its files name it (docs/metering.md); status and report say whether "
                  "it did");
  }
  if (asked.empty() || !models.empty() || campaign.workers == 0) return out;
  const std::string names = fmt::format("{}", fmt::join(asked, ", "));
  out.push_back("local workers have to be told how " + names +
                (asked.size() == 1 ? " is" : " are") + " reached: proctor run --models FILE " +
                campaign.folder.string() +
                ", or PROCTOR_MODELS (docs/single-shot.md); proctor check --models FILE looks "
                "whether the file names " +
                (asked.size() == 1 ? "it" : "them"));
  return out;
}
}  // namespace proctor::cli

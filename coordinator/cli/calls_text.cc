#include "coordinator/cli/calls_text.h"

#include <algorithm>

#include "common/base/text.h"
#include "coordinator/aggregate/format.h"

namespace proctor::cli {
namespace {

using aggregate::Table;

constexpr std::size_t kWordBytes = 60, kWhyBytes = 400;

std::string number(std::uint64_t n) {
  return std::to_string(n);
}

// "read_file x3, shell"
std::string tools_in(const Json& payload, const char* member) {
  const auto it = payload.find(member);
  if (it == payload.end() || !it->is_array()) return "";
  std::vector<std::pair<std::string, std::size_t>> names;
  for (const Json& tool : *it) {
    if (!tool.is_object()) continue;
    const std::string name = printable(text_in(tool, "name"), kWordBytes);
    const auto known = std::ranges::find(names, name, &std::pair<std::string, std::size_t>::first);
    if (known == names.end())
      names.emplace_back(name, 1);
    else
      ++known->second;
  }
  std::string out;
  for (const auto& [name, n] : names) {
    if (!out.empty()) out += ", ";
    out += name;
    if (1 < n) out += " x" + number(n);
  }
  return out;
}

std::string ended(const TracedCall& call) {
  if (!call.refused.is_null() && call.response.is_null())
    return "refused " + number(count_in(call.refused, "status"));
  if (call.response.is_null()) return "no end";
  std::string out = text_in(call.response, "settled");
  if (const std::string flag = text_in(call.response, "flag"); !flag.empty())
    out += " (" + flag + ")";
  if (const auto over = call.response.find("overrun"); over != call.response.end() && *over == true)
    out += ", overrun";
  if (0 < count_in(call.response, "replayed")) out += ", replayed";
  return printable(out, kWordBytes);
}

std::string why(const TracedCall& call) {
  const std::string refused = text_in(call.refused, "why");
  return printable(refused.empty() ? text_in(call.response, "why") : refused, kWhyBytes);
}

Json usage_of(const TracedCall& call) {
  const auto it = call.response.find("usage");
  return it != call.response.end() && it->is_object() ? *it : Json::object();
}

// "2 more were refused before they were calls, ...": why fewer are listed than are counted.
std::string unlisted_text(const UnlistedRefusals& unlisted) {
  if (unlisted.all == 0) return "";
  std::string out =
      "  " + number(unlisted.all) + " more refused before they were calls, which no event lists: ";
  const std::uint64_t others =
      unlisted.all - std::min(unlisted.all, unlisted.wrong_tokens + unlisted.unknown_routes);
  std::string parts;
  const auto part = [&](std::uint64_t n, const char* what) {
    if (0 < n) parts += (parts.empty() ? "" : ", ") + number(n) + " " + what;
  };
  part(unlisted.wrong_tokens, "without the run's token");
  part(unlisted.unknown_routes, "at an address that a gateway does not have");
  part(others,
       "after its last word (an envelope or a cap was used up), or with a head or a body "
       "that cannot be read");
  return out + parts + "\n";
}

// No call went through a gateway; an agent with a meter calls by another way.
std::string no_calls(std::uint64_t metered) {
  const std::string out = "  no call of a model went through the gateway";
  if (metered == 0) return out + "\n";
  return out + "; its meter granted " + number(metered) +
         ", and what each asked for and was charged are the events \"meter\" of its events.jsonl\n";
}

}  // namespace

std::string calls_text(const TracedModels& told) {
  const std::vector<TracedCall>& calls = told.calls;
  if (calls.empty()) return no_calls(told.metered) + unlisted_text(told.unlisted);
  Table table({"call", "route", "ended", "tools", "status", "input", "cached", "output", "usd",
               "waited", "ms", "bytes"},
              4);
  std::string notes;
  for (const TracedCall& c : calls) {
    const Json usage = usage_of(c);
    const std::string name = (1 < c.life ? number(c.life) + "." : "") + number(c.number);
    table.add({name, printable(text_in(c.request.is_null() ? c.refused : c.request, "route"), 20),
               ended(c), tools_in(c.response, "tool_calls"), number(count_in(c.response, "status")),
               number(count_in(usage, "input_tokens")), number(count_in(usage, "cache_read")),
               number(count_in(usage, "output_tokens")),
               format_usd(MicroUsd::from_micros(static_cast<std::int64_t>(
                   std::min(count_in(c.response, "charged_micros"), kUsageCountMax)))),
               number(count_in(c.request, "waited_ms")),
               number(count_in(c.response, "wall_us") / 1'000),
               number(count_in(c.request, "bytes"))});
    if (const std::string said = why(c); !said.empty())
      notes += "  call " + name + ": " + said + "\n";
  }
  std::string out;
  table.append_to(out);
  notes += unlisted_text(told.unlisted);
  return notes.empty() ? out : out + "\n" + notes;
}

Json unlisted_json(const UnlistedRefusals& unlisted) {
  return {{"refused", unlisted.all},
          {"wrong_tokens", unlisted.wrong_tokens},
          {"unknown_routes", unlisted.unknown_routes}};
}

Json calls_json(const std::vector<TracedCall>& calls) {
  Json out = Json::array();
  for (const TracedCall& c : calls)
    out.push_back({{"life", c.life},
                   {"call", c.number},
                   {"request", c.request},
                   {"response", c.response},
                   {"refused", c.refused}});
  return out;
}

Json trips_json(const std::vector<TracedTrip>& trips) {
  Json out = Json::array();
  for (const TracedTrip& t : trips)
    out.push_back({{"event", t.seq}, {"breaker", t.code}, {"action", t.action}, {"why", t.why}});
  return out;
}

std::string cassette_list(const std::vector<CassetteCall>& calls) {
  Table table({"call", "run", "route", "model", "status", "request", "answer", "form"}, 4);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const CassetteCall& c = calls[i];
    table.add({number(i + 1), printable(c.run, kWhyBytes), printable(c.route, kWordBytes),
               printable(c.model, kWordBytes), std::to_string(c.status), number(c.request().size()),
               number(c.answer.size()), c.streamed ? "stream" : "whole"});
  }
  std::string out;
  table.append_to(out);
  return out;
}

}  // namespace proctor::cli

#include "coordinator/cvdp/run/parts.h"

#include <algorithm>
#include <map>

#include "common/base/files.h"
#include "common/base/text.h"

namespace proctor::cli {
namespace {

constexpr const char* kMarker = "cvdp.json";
constexpr std::size_t kMarkerBytes = std::size_t{64} << 20;
constexpr const char* kFirst = "campaign";

Json json_of(const CvdpPart& part) {
  Json left_out = Json::array();
  for (const Imported::LeftOut& l : part.left_out)
    left_out.push_back({{"id", l.id},
                        {"category", l.category},
                        {"difficulty", l.difficulty},
                        {"why", printable(l.why, 2000)}});
  return {
      {"campaign", part.campaign},       {"from", part.from},         {"to", part.to},
      {"filter", part.selection.filter}, {"ids", part.selection.ids}, {"contracts", part.contracts},
      {"left_out", std::move(left_out)}, {"prepared", part.prepared}};
}

void take_counts(const Json& json, CvdpPart& part) {
  json.at("contracts").get_to(part.contracts);
  for (const Json& l : json.at("left_out"))
    part.left_out.push_back({l.at("id").string(), l.at("category").string(),
                             l.at("difficulty").string(), l.at("why").string()});
}

CvdpPart part_from(const Json& json) {
  CvdpPart part;
  json.at("campaign").get_to(part.campaign);
  json.at("from").get_to(part.from);
  json.at("to").get_to(part.to);
  json.at("filter").get_to(part.selection.filter);
  json.at("ids").get_to(part.selection.ids);
  json.at("prepared").get_to(part.prepared);
  take_counts(json, part);
  return part;
}

// A marker from before a prefix could grow: samples and selection stand in the question.
CvdpAsked only_part(const Json& marker) {
  CvdpAsked out;
  out.question = marker.at("question");
  CvdpPart part;
  out.question.at("samples").get_to(part.to);
  out.question.at("filter").get_to(part.selection.filter);
  out.question.at("ids").get_to(part.selection.ids);
  for (const char* key : {"samples", "filter", "ids"}) out.question.erase(key);
  take_counts(marker, part);
  for (std::uint32_t sample = 1; sample <= part.to; ++sample)
    part.prepared.push_back(part.to == 1 ? "" : "sample_" + std::to_string(sample));
  out.parts.push_back(std::move(part));
  return out;
}

bool is_name(const std::string& folder) {
  return is_safe_relative(folder) && folder.find('/') == std::string::npos;
}

}  // namespace

std::string CvdpPart::judging() const {
  return "judging" + campaign.substr(std::min(campaign.size(), std::string(kFirst).size()));
}

Result<CvdpAsked> read_asked(const fs::path& prefix) {
  const fs::path file = prefix / kMarker;
  PROCTOR_TRY(const std::string text, read_file(file, kMarkerBytes));
  PROCTOR_TRY(const Json marker, parse_json(text));
  CvdpAsked out;
  try {
    if (!marker.contains("parts")) return only_part(marker);
    out.question = marker.at("question");
    for (const Json& part : marker.at("parts")) {
      out.parts.push_back(part_from(part));
      if (!is_name(out.parts.back().campaign))
        return Error{Errc::kCorrupt, file.string() + ": a campaign lies outside"};
    }
  } catch (const Json::exception& e) {
    return Error{Errc::kCorrupt, file.string() + ": " + e.what()};
  }
  return out;
}

Status write_asked(const fs::path& prefix, const CvdpAsked& asked) {
  Json parts = Json::array();
  for (const CvdpPart& part : asked.parts) parts.push_back(json_of(part));
  const Json marker = {{"question", asked.question}, {"parts", std::move(parts)}};
  return write_file(prefix / kMarker, marker.dump(1) + "\n");
}

Result<CvdpDemand> demand_of(const std::string& file, const std::vector<CvdpPart>& parts,
                             const Selection& selection, std::uint32_t samples) {
  CvdpDemand out;
  out.touched.resize(parts.size());
  PROCTOR_TRY(const LastLines last, last_lines(file, selection));
  std::map<std::uint32_t, std::vector<std::string>> have;  // samples there are -> problems
  PROCTOR_TRY(const cvdp::DatasetSummary summary,
              read_dataset(
                  file,
                  [&](const cvdp::Record& record) {
                    if (!last.holds(record) || !selection.holds(record)) return ok_status();
                    std::uint32_t there = 0;
                    for (std::size_t i = 0; i < parts.size(); ++i) {
                      if (!parts[i].selection.holds(record)) continue;
                      there = std::max(there, parts[i].to);
                      if (parts[i].from <= samples) out.touched[i] = true;
                    }
                    have[std::min(there, samples)].push_back(record.id.text);
                    return ok_status();
                  },
                  Findings::kKnown));
  out.broken = summary.errors;
  for (auto& [there, ids] : have) {
    if (there == samples) continue;
    CvdpPart part;
    const std::size_t number = parts.size() + out.missing.size() + 1;
    if (1 < number) part.campaign = std::string(kFirst) + "-" + std::to_string(number);
    part.from = there + 1;
    part.to = samples;
    if (parts.empty())
      part.selection = selection;
    else
      part.selection.ids = std::move(ids);
    out.missing.push_back(std::move(part));
  }
  return out;
}

}  // namespace proctor::cli

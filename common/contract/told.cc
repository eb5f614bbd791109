#include "common/contract/told.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "common/contract/campaign_parser.h"
#include "common/contract/cost_inputs.h"

namespace proctor {
namespace {

bool is_of(std::string_view field, std::string_view section) {
  return field.starts_with(section) &&
         (field.size() == section.size() || field[section.size()] == '.' ||
          field[section.size()] == '[');
}

}  // namespace

Told::Told(const Campaign& campaign, const Diagnostics& before) {
  const auto folder = std::filesystem::path(campaign.origin.file).parent_path();
  const std::string prices = (folder / kCostModelFile).string();
  const std::string inputs = (folder / kCostInputsFile).string();
  contracts_ = before.count() == before.kept().size() && !campaign.contracts.empty();
  for (const Diagnostic& d : before.kept()) {
    if (d.file == prices) {
      prices_ = false;
    } else if (d.file == campaign.origin.file) {
      places_.emplace(d.at.line, d.at.column);
      contracts_ = contracts_ && !is_of(d.field, "contracts");
      for (const char* section : {"budget", "caps", "task_caps", "stages"})
        run_caps_ = run_caps_ && !is_of(d.field, section) && d.suggestion != section;
    } else if (d.file != inputs) {
      contracts_ = false;
    }
  }
  methods_ = !campaign.methods.empty() && std::ranges::none_of(campaign.methods, [](const auto& m) {
    return m.digest == Digest{};
  });
}

}  // namespace proctor

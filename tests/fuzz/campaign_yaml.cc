// campaign.yaml: errors name their line; methods and settings without errors reach a worker as they
// are.
#include "common/contract/bundle.h"
#include "common/contract/campaign_parser.h"
#include "common/contract/contract_digest.h"
#include "common/contract/cost_model_parser.h"
#include "tests/fuzz/fuzz.h"

namespace proctor::fuzz::campaign_yaml {

void target(std::string_view bytes) {
  Diagnostics out;
  const auto document = read_document(bytes, Format::kYaml, "campaign.yaml", out);
  if (!document) return;
  GivenFiles files;
  files.add({"agent.sh", 0755, "#!/bin/sh\n"});
  CampaignText read = parse_campaign(*document, files, out);
  check_diagnostics(out, bytes);
  if (!out.empty()) return;
  for (const Method& method : read.campaign.methods) {
    const Method arrived = must(open_method_bundle(make_bundle(method), method.digest));
    PROCTOR_ASSERT(canonical_form(arrived) == canonical_form(method));
  }
  read.campaign.cost_model = fallback_cost_model();
  const Settings settings = settings_of(read.campaign);
  const Settings arrived = must(open_settings_bundle(make_bundle(settings), digest_of(settings)));
  PROCTOR_ASSERT(canonical_form(arrived) == canonical_form(settings));
}

}  // namespace proctor::fuzz::campaign_yaml

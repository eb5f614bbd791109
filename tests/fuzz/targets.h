#pragma once
// Every fuzz target: NAME.cc has proctor::fuzz::NAME::target, a function of hostile bytes.
// tests/fuzz/run reads the names from here too.
#include <string_view>

// clang-format off
#define PROCTOR_FUZZ_TARGETS(X) \
  X(bundle) \
  X(campaign_yaml) \
  X(contract_yaml) \
  X(control_line) \
  X(csv) \
  X(cvdp_record) \
  X(cvdp_text) \
  X(docker_http) \
  X(event_chain) \
  X(gateway_body) \
  X(gateway_cassette) \
  X(gateway_head) \
  X(gateway_stream) \
  X(hostile_path) \
  X(journal_file) \
  X(journal_notes) \
  X(json_input) \
  X(mcp_line) \
  X(meter_request) \
  X(plan_csv) \
  X(price_table) \
  X(proxy_request) \
  X(registration) \
  X(run_archive) \
  X(run_report) \
  X(test_results) \
  X(tool_arguments) \
  X(unified_diff) \
  X(wire_message) \
  X(yaml_document)
// clang-format on

#define PROCTOR_FUZZ_DECLARE(name)     \
  namespace proctor::fuzz::name {      \
  void target(std::string_view bytes); \
  }
PROCTOR_FUZZ_TARGETS(PROCTOR_FUZZ_DECLARE)
#undef PROCTOR_FUZZ_DECLARE

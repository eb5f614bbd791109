// contracts/NAME.yaml: errors name their line; a contract without errors reaches a worker as it is.
#include "common/contract/bundle.h"
#include "common/contract/contract_digest.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/contract/support.h"

namespace proctor::fuzz::contract_yaml {

void target(std::string_view bytes) {
  Diagnostics out;
  const auto document = read_document(bytes, Format::kYaml, "c.yaml", out);
  if (!document) return;
  const Contract contract = parse_contract(*document, test::given_files(), out);
  check_diagnostics(out, bytes);
  if (!out.empty()) return;
  const std::string form = canonical_form(contract);
  PROCTOR_ASSERT(contract.digest == sha256(form));
  const ContractBundle arrived =
      must(open_contract_bundle(make_bundle(contract, "/base"), contract.digest));
  PROCTOR_ASSERT(canonical_form(arrived.contract) == form);
}

}  // namespace proctor::fuzz::contract_yaml

#include "common/contract/bundle.h"

#include "common/contract/bundle_frame.h"
#include "common/contract/contract_digest.h"
#include "common/contract/contract_parser.h"
#include "common/contract/method_parser.h"

namespace proctor {
namespace {

// The form that came may say more than we read, or the same in other words.
Status same_form(std::string_view came, const std::string& ours) {
  if (came != ours) return Error{Errc::kInvalid, "bundle: not in canonical form"};
  return ok_status();
}

}  // namespace

std::string make_bundle(const Contract& contract, const std::filesystem::path& base) {
  return frame_bundle("contract", canonical_form(contract), base.native(), contract.files);
}

Result<ContractBundle> open_contract_bundle(std::string_view bytes, const Digest& expected) {
  PROCTOR_TRY(OpenedBundle opened, open_frame(bytes, "contract", expected));
  const std::filesystem::path base(opened.base);
  if (!base.empty() && (!base.is_absolute() || opened.base.find('\0') != std::string::npos))
    return Error{Errc::kInvalid, "bundle: its base is not an absolute path"};
  Diagnostics out;
  Contract contract = parse_contract(opened.document, opened.files, out);
  if (!out.empty()) return as_error(out);
  PROCTOR_CHECK_OK(same_form(opened.form, canonical_form(contract)));
  contract.origin = Origin{"", base, {}};
  return ContractBundle{std::move(contract), base};
}

std::string make_bundle(const Method& method) {
  return frame_bundle("method", canonical_form(method), "", method.files);
}

Result<Method> open_method_bundle(std::string_view bytes, const Digest& expected) {
  PROCTOR_TRY(OpenedBundle opened, open_frame(bytes, "method", expected));
  Diagnostics out;
  Problems problems("bundle", out);
  Method method = read_method(opened.document.root, "method", opened.files, problems);
  if (!out.empty()) return as_error(out);
  PROCTOR_CHECK_OK(same_form(opened.form, canonical_form(method)));
  if (!opened.base.empty()) return Error{Errc::kInvalid, "bundle: a method has no base"};
  return method;
}

}  // namespace proctor

// The texts inside CVDP records, split at NULs: JSON and YAML as Python has them read back as what
// was written, and diffs are made and applied within bounds.
#include "coordinator/cvdp/dataset/transform.h"
#include "coordinator/cvdp/pycompat/python_text.h"
#include "coordinator/cvdp/pycompat/yaml.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/json_tools.h"

namespace proctor::fuzz::cvdp_text {

void check_json(std::string_view text) {
  const auto value = cvdp::read_json(text);
  if (!value.ok()) {
    PROCTOR_ASSERT(!value.error().detail.empty());
    return;
  }
  for (const int indent : {cvdp::kOneLine, 2})
    PROCTOR_ASSERT(must(cvdp::read_json(cvdp::write_json(*value, indent))) == *value);
}

void check_yaml(std::string_view text) {
  const auto value = cvdp::read_yaml(text, "a.yml");
  if (!value.ok()) return;
  const std::string written = cvdp::write_yaml(*value);
  PROCTOR_ASSERT(cvdp::write_yaml(must(cvdp::read_yaml(written, "a.yml"))) == written);
}

void target(std::string_view bytes) {
  const std::string_view text = take_part(bytes, '\0');
  check_json(text);
  check_yaml(text);
  for (const auto form : {cvdp::AnswerForm::kPlainText, cvdp::AnswerForm::kJson})
    (void)cvdp::parse_response(text, form);
  (void)cvdp::parse_judgement(text);
  const std::string_view other = take_part(bytes, '\0');
  (void)cvdp::apply_patch(text, other);
  if (const auto patch = cvdp::create_patch(text, other, "rtl/a.sv"); patch.ok())
    (void)cvdp::apply_patch(text, *patch);
}

}  // namespace proctor::fuzz::cvdp_text

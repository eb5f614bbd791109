// A dataset of CVDP: the same records and findings in whatever pieces the file comes; a record is
// written again as it was read, is turned into both shapes, and its answer is taken apart.
#include "coordinator/cvdp/dataset/dataset.h"
#include "coordinator/cvdp/dataset/transform.h"
#include "coordinator/cvdp/pycompat/python_text.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/json_tools.h"

namespace proctor::fuzz::cvdp_record {

struct Told {
  std::vector<cvdp::Record> records;
  std::string findings;
};

Told read(std::string_view bytes, std::size_t piece) {
  Told out;
  cvdp::DatasetReader reader([&](cvdp::Record record) { out.records.push_back(std::move(record)); },
                             [&](const cvdp::Finding& f) { out.findings += to_string(f) + "\n"; },
                             {.line_bytes_max = 4096, .records_max = 16});
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
    reader.feed(bytes.substr(0, piece));
  reader.finish();
  return out;
}

void check_record(const cvdp::Record& record) {
  const std::string text = cvdp::write_json(record.value);
  PROCTOR_ASSERT(cvdp::write_json(must(cvdp::read_json(text))) == text);
  for (const cvdp::Shape shape : {cvdp::Shape::kCopilot, cvdp::Shape::kAgentic}) {
    (void)cvdp::losses_of(record.value, shape);
    const auto made = cvdp::transform(record.value, shape);
    if (!made.ok()) continue;
    // It has the shape now: asked again nothing changes.
    const auto again = must(cvdp::transform(made->value, shape));
    PROCTOR_ASSERT(!again.changed);
  }
  if (const std::string* prompt = cvdp::prompt_of(record)) {
    const auto object = cvdp::parse_response(*prompt, cvdp::AnswerForm::kJson);
    if (!object.ok()) return;
    for (const auto& file : cvdp::files_of_response(*object, {"rtl/a.sv"}).files)
      PROCTOR_ASSERT(is_safe_relative(file.path));
  }
}

void target(std::string_view bytes) {
  const std::size_t piece = 1 + take_byte(bytes);
  const Told told = read(bytes, piece);
  const Told whole = read(bytes, bytes.size());
  PROCTOR_ASSERT(told.findings == whole.findings && told.records.size() == whole.records.size());
  for (const cvdp::Record& record : told.records) check_record(record);
}

}  // namespace proctor::fuzz::cvdp_record

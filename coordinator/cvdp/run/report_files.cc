#include "coordinator/cvdp/run/report_files.h"

#include <cstdio>
#include <ctime>

#include "coordinator/cvdp/report/pass_k.h"

namespace proctor::cli {
namespace {

Status put(const fs::path& folder, const char* name, std::string_view bytes) {
  const fs::path path = folder / name;
  PROCTOR_CHECK_OK(write_file(path, bytes));
  std::printf("%s\n", path.c_str());
  return ok_status();
}

}  // namespace

std::string local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  std::string out(32, '\0');
  out.resize(std::strftime(out.data(), out.size(), "%Y-%m-%d %H:%M:%S", &parts));
  return out;
}

Status write_single_report(const cvdp::Value& report, const fs::path& folder, bool is_there) {
  PROCTOR_TRY(const std::string text, cvdp::render_report(report));
  if (!is_there) PROCTOR_CHECK_OK(put(folder, "report.json", cvdp::write_json(report)));
  return put(folder, "report.txt", text);
}

Status write_composite(const std::vector<cvdp::Value>& reports,
                       const cvdp::CompositeMetadata& metadata, const fs::path& folder) {
  PROCTOR_TRY(const cvdp::Value composite, cvdp::make_composite(reports, metadata));
  PROCTOR_CHECK_OK(put(folder, "composite_report.json", cvdp::write_json(composite, 2)));
  return write_composite_texts(composite, folder, 0);
}

Status write_composite_texts(const cvdp::Value& composite, const fs::path& folder, std::int64_t k) {
  PROCTOR_TRY(const std::string text, cvdp::render_composite(composite, k));
  PROCTOR_TRY(const cvdp::PassTable table, cvdp::pass_table(composite, k));
  PROCTOR_CHECK_OK(put(folder, "composite_report.txt", text));
  PROCTOR_CHECK_OK(put(folder, "pass_at_k.txt", table.text));
  return put(folder, "pass_at_k.json", cvdp::write_json(table.json, 2) + "\n");
}

}  // namespace proctor::cli

#include "coordinator/cvdp/run/dataset_file.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>

#include "common/base/files.h"
#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor::cli {
Status read_pieces(const std::string& file, const std::function<Status(std::string_view)>& take) {
  const fs::path path(file);
  std::error_code ec;
  const fs::file_status status = fs::status(path, ec);
  if (!fs::exists(status)) return Error{Errc::kNotFound, file + ": no such file"};
  if (fs::is_directory(status)) return cvdp::invalid("{}: is a folder", file);
  // Its writer may never come.  What /dev/stdin and the shell's <(...) lead to has one.
  if (fs::is_fifo(fs::symlink_status(path, ec)))
    return cvdp::invalid("{}: a named pipe, and no file: <(...) can be read", file);
  std::ifstream in(path, std::ios::binary);
  if (!in) return cvdp::invalid("{}: cannot be opened", file);
  std::string piece(std::size_t{1} << 20, '\0');
  while (in) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    PROCTOR_CHECK_OK(take(std::string_view(piece.data(), static_cast<std::size_t>(in.gcount()))));
  }
  if (in.bad()) return Error{Errc::kUnavailable, file + ": cannot be read to its end"};
  return ok_status();
}

Status read_lines(const std::string& file, std::size_t bytes_max,
                  const std::function<Status(const cvdp::LineFeed::Line&)>& take, Sha256* sum) {
  Status first = ok_status();
  cvdp::LineFeed lines(bytes_max);
  const auto line = [&](const cvdp::LineFeed::Line& l) {
    if (first.ok()) first = take(l);
  };
  PROCTOR_CHECK_OK(read_pieces(file, [&](std::string_view piece) {
    if (sum != nullptr) sum->update(piece);
    lines.feed(piece, line);
    return first;
  }));
  lines.finish(line);
  return first;
}

Result<cvdp::DatasetSummary> read_dataset(const std::string& file,
                                          const std::function<Status(cvdp::Record)>& record,
                                          Findings findings) {
  constexpr std::uint64_t kTold = 1000;
  Status first = ok_status();
  std::uint64_t told = 0;
  cvdp::DatasetReader reader(
      [&](cvdp::Record r) {
        if (first.ok()) first = record(std::move(r));
      },
      [&](const cvdp::Finding& finding) {
        if (findings == Findings::kKnown) return;
        if (++told <= kTold) tell(stderr, "{}:{}\n", file, cvdp::to_string(finding));
        if (told == kTold) std::fputs("... and so on\n", stderr);
      });
  PROCTOR_CHECK_OK(read_pieces(file, [&](std::string_view piece) {
    reader.feed(piece);
    return first;
  }));
  reader.finish();
  PROCTOR_CHECK_OK(first);
  return reader.summary();
}

namespace {
using Pairs = std::vector<std::pair<std::string, std::string>>;

// Nothing where a part is not key=value with a key there is.
std::optional<Pairs> pairs_of(const std::string& filter) {
  Pairs out;
  for (std::string_view rest = filter; !rest.empty();) {
    std::string_view part = take_until(rest, ',');
    if (part.find('=') == part.npos) return std::nullopt;
    const std::string key(take_until(part, '='));
    if (key != "category" && key != "difficulty" && key != "kind") return std::nullopt;
    out.emplace_back(key, part);
  }
  return out;
}

// Values of one key are alternatives, different keys all have to hold.
bool agrees(const Pairs& pairs, const std::string& key, std::string_view value) {
  bool asked = false;
  for (const auto& [k, v] : pairs) {
    if (k != key) continue;
    if (v == value) return true;
    asked = true;
  }
  return !asked;
}
}  // namespace

bool Selection::holds(const cvdp::Record& record) const {
  if (!ids.empty() && std::find(ids.begin(), ids.end(), record.id.text) == ids.end()) return false;
  const Pairs pairs = pairs_of(filter).value_or(Pairs());
  return agrees(pairs, "category", record.category) &&
         agrees(pairs, "difficulty", record.difficulty) &&
         agrees(pairs, "kind", cvdp::to_string(record.shape));
}

void add_selection(Command command, Selection& selection) {
  command
      .add_option("--filter", selection.filter,
                  "category=cid003,difficulty=easy,kind=agentic; one key again is one more value")
      .check(
          [](const std::string& text) {
            return pairs_of(text)
                       ? std::string()
                       : "expected KEY=VALUE,... with the keys category, difficulty, kind";
          },
          "KEY=VALUE,...");
  command.add_option("-i,--id", selection.ids, "only this problem; may be given again");
}

Result<cvdp::DatasetSummary> read_selected(const std::string& file, const Selection& selection,
                                           const std::function<Status(cvdp::Record)>& record,
                                           Findings findings) {
  std::map<std::string, std::uint64_t> last;  // id -> line
  bool any = selection.ids.empty() && selection.filter.empty();
  const auto note = [&](const cvdp::Record& r) {
    last[r.id.text] = r.line;
    any = any || selection.holds(r);
    return ok_status();
  };
  PROCTOR_CHECK_OK(read_dataset(file, note, Findings::kKnown));
  for (const std::string& id : selection.ids)
    if (!last.contains(id))
      return cvdp::invalid(
          "--id {}: {} has no problem of this name that can be used (see proctor cvdp check)",
          printable(id), file);
  if (!any) return cvdp::invalid("--filter and --id leave no problem of {}", file);
  const auto take = [&](cvdp::Record r) {
    return last[r.id.text] == r.line && selection.holds(r) ? record(std::move(r)) : ok_status();
  };
  return read_dataset(file, take, findings);
}

void say(const std::string& file, const cvdp::Record& record, const std::string& what) {
  tell(stderr, "{}:{}: {}: {}\n", file, record.line, record.id.text, what);
}
}  // namespace proctor::cli

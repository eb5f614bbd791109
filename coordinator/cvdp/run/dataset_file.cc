#include "coordinator/cvdp/run/dataset_file.h"

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "common/base/files.h"
#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor::cli {
Status read_pieces(const std::string& file, const std::function<Status(std::string_view)>& take) {
  const fs::path path(file);
  std::error_code ec;
  const fs::file_status status = fs::status(path, ec);
  if (!fs::exists(status)) return Error{Errc::kNotFound, file + ": no such file"};
  if (fs::is_directory(status)) return Error{Errc::kInvalid, file + ": is a folder"};
  // Its writer may never come.  What /dev/stdin and the shell's <(...) lead to has one.
  if (fs::is_fifo(fs::symlink_status(path, ec)))
    return Error{Errc::kInvalid, file + ": a named pipe, and no file: <(...) can be read"};
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{Errc::kInvalid, file + ": cannot be opened"};
  std::string piece(std::size_t{1} << 20, '\0');
  while (in) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    PROCTOR_CHECK_OK(take(std::string_view(piece.data(), static_cast<std::size_t>(in.gcount()))));
  }
  if (in.bad()) return Error{Errc::kUnavailable, file + ": cannot be read to its end"};
  return ok_status();
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
        if (++told <= kTold)
          std::fprintf(stderr, "%s:%s\n", file.c_str(), cvdp::to_string(finding).c_str());
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

bool LastLines::holds(const cvdp::Record& record) const {
  const auto it = line.find(record.id.text);
  return it != line.end() && it->second == record.line;
}

Result<LastLines> last_lines(const std::string& file, const Selection& selection) {
  LastLines out;
  bool any = selection.ids.empty() && selection.filter.empty();
  cvdp::DatasetReader reader(
      [&](const cvdp::Record& r) {
        out.line[r.id.text] = r.line;
        any = any || selection.holds(r);
      },
      [](const cvdp::Finding&) {});
  PROCTOR_CHECK_OK(read_pieces(file, [&](std::string_view piece) {
    reader.feed(piece);
    return ok_status();
  }));
  reader.finish();
  for (const std::string& id : selection.ids)
    if (!out.line.contains(id))
      return Error{Errc::kInvalid,
                   "--id " + printable(id) + ": " + file +
                       " has no problem of this name that can be used (see proctor cvdp check)"};
  if (!any) return Error{Errc::kInvalid, "--filter and --id leave no problem of " + file};
  return out;
}
}  // namespace proctor::cli

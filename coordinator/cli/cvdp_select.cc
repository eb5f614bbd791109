#include "coordinator/cli/cvdp_select.h"

#include <algorithm>

#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor::cli {
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

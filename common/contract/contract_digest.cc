#include "common/contract/contract_digest.h"

#include "common/contract/contract_sections.h"
#include "common/contract/method_parser.h"

namespace proctor {
void Canonical::operator()(const char* key, const std::map<std::string, std::string>& value,
                           const TextRule&, const TextRule&, Need need) {
  Json table = Json::object();
  for (const auto& [name, text] : value) table[name] = text;
  put(key, std::move(table), need != Need::kMay || !value.empty());
}

Json paths_json(const std::vector<ReferencedFile>& files) {
  Json out = Json::array();
  for (const ReferencedFile& f : files) out.push_back(f.path);
  return out;
}

namespace {
Json files_json(const std::vector<ReferencedFile>& files) {
  std::vector<FileFacts> out;
  for (const ReferencedFile& f : files)
    out.push_back({f.path, f.mode == 0755 ? FileMode::kExecutable : FileMode::kPlain,
                   f.bytes.size(), sha256(f.bytes)});
  return list_json(out);
}
}  // namespace

std::string canonical_text(const Json& value) {
  Result<std::string> text = canonical_json(value);
  // Parsers admit only UTF-8 and integers below 2^53: anything else is our own mistake.
  PROCTOR_ASSERT(text.ok());
  return std::move(text).value();
}

std::string canonical_form(const Contract& contract) {
  return canonical_text(
      {{"contract", node_json(contract)}, {"files", files_json(contract.files)}, {"format", 1}});
}

Digest digest_of(const Contract& contract) {
  return sha256(canonical_form(contract));
}

std::string canonical_form(const Method& method) {
  return canonical_text(
      {{"method", node_json(method)}, {"files", files_json(method.files)}, {"format", 1}});
}

Digest digest_of(const Method& method) {
  return sha256(canonical_form(method));
}
}  // namespace proctor

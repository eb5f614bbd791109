#include "common/contract/bundle_frame.h"

#include <algorithm>
#include <array>

#include "common/base/files.h"
#include "common/base/parse.h"
#include "common/contract/rules.h"
#include "common/contract/scalar.h"

namespace proctor {
namespace {

constexpr std::string_view kMagic = "proctor-bundle 1 ";
constexpr std::size_t kHex = 64;
constexpr std::array<std::string_view, 4> kFileKeys{"path", "mode", "size", "sha256"};

Error corrupt(std::string why) {
  return Error{Errc::kCorrupt, "bundle: " + std::move(why)};
}

Result<std::string_view> take_bytes(std::string_view& rest, std::uint64_t n) {
  if (rest.size() < n) return corrupt("cut short");
  const std::string_view out = rest.substr(0, static_cast<std::size_t>(n));
  rest.remove_prefix(out.size());
  return out;
}

Result<ReferencedFile> take_file(const Node& node, std::string_view& rest) {
  Diagnostics out;
  Problems problems("bundle", out);
  const Fields f(node, "files", kFileKeys, problems);
  ReferencedFile file;
  file.path = f.text("path", Need::kRequired, kPathRule);
  const std::array<Word<std::uint32_t>, 2> modes{{{"0644", 0644}, {"0755", 0755}}};
  file.mode = f.choice("mode", std::uint32_t{0644}, modes);
  const std::uint64_t size = f.count("size", 0, 0, limits::kReferencedFileBytes);
  constexpr TextRule kDigestRule{kHex, "a SHA-256"};
  const std::string digest = f.text("sha256", Need::kRequired, kDigestRule);
  if (!out.empty()) return as_error(out);
  PROCTOR_TRY(const std::string_view bytes, take_bytes(rest, size));
  if (sha256(bytes).hex() != digest) return corrupt("the file " + file.path + " was changed");
  file.bytes = bytes;
  return file;
}

}  // namespace

Error as_error(const Diagnostics& diagnostics) {
  PROCTOR_ASSERT(!diagnostics.empty());
  return Error{Errc::kInvalid, to_string(diagnostics.kept().front())};
}

std::string frame_bundle(std::string_view kind, std::string_view form, std::string_view base,
                         const std::vector<ReferencedFile>& files) {
  std::string body = std::string(kMagic) + std::string(kind) + " " + std::to_string(form.size()) +
                     " " + std::to_string(base.size()) + "\n";
  body += form;
  body += base;
  for (const ReferencedFile& f : files) body += f.bytes;
  return sha256(body).hex() + "\n" + body;
}

Result<OpenedBundle> open_frame(std::string_view bytes, std::string_view kind,
                                const Digest& expected) {
  if (limits::kContractBundleBytes < bytes.size())
    return Error{Errc::kExhausted,
                 "bundle: larger than " + std::to_string(limits::kContractBundleBytes) + " bytes"};
  std::string_view rest = bytes;
  const std::string_view digest = take_until(rest, '\n');
  if (digest != sha256(rest).hex())
    return corrupt("its bytes do not have the digest in its first line");
  const std::string head = std::string(kMagic) + std::string(kind) + " ";
  if (!take_word(rest, head)) return corrupt("not a " + std::string(kind) + " of version 1");
  std::uint64_t form_bytes = 0, base_bytes = 0;
  if (!take_number(rest, form_bytes) || !take_word(rest, " ") || !take_number(rest, base_bytes) ||
      !take_word(rest, "\n"))
    return corrupt("a broken header");
  if (kPathBytes < base_bytes) return corrupt("a base folder above 4096 bytes");
  OpenedBundle out;
  PROCTOR_TRY(out.form, take_bytes(rest, form_bytes));
  if (sha256(out.form) != expected) return corrupt("it is not the one asked for");
  PROCTOR_TRY(const std::string_view base, take_bytes(rest, base_bytes));
  out.base = base;

  Diagnostics diagnostics;
  DocumentBounds bounds;  // the form spells out defaults and lists every file with its digest
  bounds.bytes_max = limits::kContractBundleBytes - kFilesBytes;
  bounds.nodes_max = 16 * limits::kConfigNodes;
  bounds.depth_max = 2 + limits::kConfigDepth;
  auto document = read_document(out.form, Format::kJson, "bundle", diagnostics, bounds);
  if (!diagnostics.empty()) return as_error(diagnostics);
  Node& root = document->root;
  if (const Node* files = root.find("files"))
    for (const Node& node : files->items) {
      PROCTOR_TRY(ReferencedFile file, take_file(node, rest));
      out.files.add(std::move(file));
    }
  if (!rest.empty()) return corrupt("bytes after its last file");
  const auto part = std::ranges::find(root.entries, kind, &Entry::key);
  if (part == root.entries.end()) return corrupt("no " + std::string(kind) + " in it");
  Node node = std::move(part->value);
  out.document = Document{"bundle", std::move(node)};
  return out;
}

}  // namespace proctor

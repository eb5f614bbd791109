// YAML from a person: a bounded tree, or errors that name a line.
#include <algorithm>

#include "common/contract/document.h"
#include "tests/fuzz/fuzz.h"

namespace proctor::fuzz::yaml_document {

constexpr DocumentBounds kBounds{.bytes_max = 1U << 16, .depth_max = 8, .nodes_max = 500};

std::size_t depth_of(const Node& node) {
  std::size_t inside = 0;
  for (const Node& item : node.items) inside = std::max(inside, depth_of(item));
  for (const Entry& entry : node.entries) inside = std::max(inside, depth_of(entry.value));
  const bool holds = node.kind == Node::Kind::kSequence || node.kind == Node::Kind::kMapping;
  return inside + (holds ? 1 : 0);
}

std::size_t nodes_of(const Node& node) {
  std::size_t n = 1;
  for (const Node& item : node.items) n += nodes_of(item);
  for (const Entry& entry : node.entries) n += nodes_of(entry.value);
  return n;
}

void target(std::string_view bytes) {
  Diagnostics out;
  const auto document = read_document(bytes, Format::kYaml, "a.yaml", out, kBounds);
  check_diagnostics(out, bytes);
  PROCTOR_ASSERT(document || !out.empty());
  if (!document) return;
  PROCTOR_ASSERT(depth_of(document->root) <= kBounds.depth_max);
  PROCTOR_ASSERT(nodes_of(document->root) <= kBounds.nodes_max);
}

}  // namespace proctor::fuzz::yaml_document

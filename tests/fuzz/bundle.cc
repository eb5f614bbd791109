// What a coordinator sends to its workers.  The first line of a real one is a digest that no
// fuzzer guesses, so the parts are given and framed here:
//   KIND-BYTE FORM LF BASE LF file contents
// What is opened is, made again, the same bytes: none of them was ignored.
#include "common/contract/bundle.h"

#include "tests/fuzz/fuzz.h"

namespace proctor::fuzz::bundle {

void target(std::string_view bytes) {
  const std::uint8_t kind = take_byte(bytes);
  const std::string_view form = take_part(bytes, '\n');
  const std::string_view base = take_part(bytes, '\n');
  const Digest expected = sha256(form);
  const auto framed = [&](std::string_view name) {
    return frame_bundle(name, form, base, {ReferencedFile{"", 0644, std::string(bytes)}});
  };
  if (kind % 3 == 0) {
    const std::string bundle = framed("contract");
    if (const auto opened = open_contract_bundle(bundle, expected); opened.ok())
      PROCTOR_ASSERT(make_bundle(opened->contract, opened->base) == bundle);
  } else if (kind % 3 == 1) {
    const std::string bundle = framed("method");
    if (const auto opened = open_method_bundle(bundle, expected); opened.ok())
      PROCTOR_ASSERT(make_bundle(*opened) == bundle);
  } else {
    const std::string bundle = framed("settings");
    if (const auto opened = open_settings_bundle(bundle, expected); opened.ok())
      PROCTOR_ASSERT(make_bundle(*opened) == bundle);
  }
}

}  // namespace proctor::fuzz::bundle

#pragma once
// Which kind of sandbox the hostile campaigns run in: $PROCTOR_TEST_SANDBOX names it.
#include <memory>
#include <string>

namespace proctor::testing {

class Kind {
 public:
  virtual ~Kind() = default;
  // What contracts name as environment.image; empty: none.
  virtual std::string image() const = 0;
  // Are pipes and the like that are made inside seen in the tree from outside?
  virtual bool special_files() const { return true; }
  // How many times as much time programs are given in it as elsewhere.
  virtual int patience() const { return 1; }
};

// What there is in images; elsewhere it is the host's.
enum class Tools { kShell, kPython };
// Null, with a MESSAGE that names the reason, when this machine has no such kind.
std::unique_ptr<Kind> make_kind(Tools tools = Tools::kShell);
std::unique_ptr<Kind> make_bubblewrap_kind();
std::unique_ptr<Kind> make_docker_kind(Tools tools);
std::unique_ptr<Kind> make_oci_kind(Tools tools);

}  // namespace proctor::testing

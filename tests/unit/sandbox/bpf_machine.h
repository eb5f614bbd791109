#pragma once
// Runs a filter of system calls as the kernel would, for tests that ask it about every call there
// is.  Source: bpf's instructions in Documentation/networking/filter.rst.
#include <doctest/doctest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstring>
#include <string>
#include <vector>

namespace proctor::testing {

class BpfMachine {
 public:
  explicit BpfMachine(const std::string& program) : code_(program.size() / sizeof(sock_filter)) {
    std::memcpy(code_.data(), program.data(), program.size());
  }
  std::size_t size() const { return code_.size(); }

  // 0: allowed; else the error that the caller is given.
  int answer(const seccomp_data& call) const {
    const std::uint32_t action = run(call);
    if (action == SECCOMP_RET_ALLOW) return 0;
    REQUIRE((action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO);
    return static_cast<int>(action & SECCOMP_RET_DATA);
  }

  // What the program returns, untranslated.
  std::uint32_t run(const seccomp_data& call) const {
    std::uint32_t loaded = 0;
    for (std::size_t at = 0; at < code_.size(); ++at) {
      const sock_filter& i = code_[at];
      bool jumps = false;
      switch (i.code) {
        case BPF_LD | BPF_W | BPF_ABS:
          REQUIRE(i.k + sizeof loaded <= sizeof call);
          std::memcpy(&loaded, reinterpret_cast<const char*>(&call) + i.k, sizeof loaded);
          continue;
        case BPF_ALU | BPF_AND | BPF_K:
          loaded &= i.k;
          continue;
        case BPF_RET | BPF_K:
          return i.k;
        case BPF_JMP | BPF_JA:
          at += i.k;
          continue;
        case BPF_JMP | BPF_JEQ | BPF_K:
          jumps = loaded == i.k;
          break;
        case BPF_JMP | BPF_JGE | BPF_K:
          jumps = loaded >= i.k;
          break;
        case BPF_JMP | BPF_JGT | BPF_K:
          jumps = loaded > i.k;
          break;
        default:
          FAIL("an instruction that filters do not have: " << i.code);
      }
      at += jumps ? i.jt : i.jf;
    }
    FAIL("a filter without an end");
    return 0;
  }

 private:
  std::vector<sock_filter> code_;
};

}  // namespace proctor::testing

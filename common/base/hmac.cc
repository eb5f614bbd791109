#include "common/base/hmac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "common/base/assert.h"

namespace proctor {
namespace {

constexpr std::size_t kHmacBlock = 64;
constexpr unsigned char kInner = 0x36, kOuter = 0x5c;

std::string_view raw(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes().data()), Digest::kBytes};
}

}  // namespace

// SHA-256 after the padded key, inner and outer: what every message would begin with.
struct HmacKey::State {
  EVP_MD* sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  EVP_MD_CTX *inner = EVP_MD_CTX_new(), *outer = EVP_MD_CTX_new(), *work = EVP_MD_CTX_new();
  ~State() {
    EVP_MD_CTX_free(inner);
    EVP_MD_CTX_free(outer);
    EVP_MD_CTX_free(work);
    EVP_MD_free(sha256);
  }
  void begin(EVP_MD_CTX* ctx, std::string padded, unsigned char with) const {
    for (char& c : padded) c = static_cast<char>(static_cast<unsigned char>(c) ^ with);
    PROCTOR_ASSERT(EVP_DigestInit_ex(ctx, sha256, nullptr) == 1);
    PROCTOR_ASSERT(EVP_DigestUpdate(ctx, padded.data(), padded.size()) == 1);
    OPENSSL_cleanse(padded.data(), padded.size());
  }
  Digest go_on(const EVP_MD_CTX* from, std::string_view bytes) const {
    Digest::Bytes out{};
    unsigned int size = 0;
    PROCTOR_ASSERT(EVP_MD_CTX_copy_ex(work, from) == 1);
    PROCTOR_ASSERT(EVP_DigestUpdate(work, bytes.data(), bytes.size()) == 1);
    PROCTOR_ASSERT(EVP_DigestFinal_ex(work, out.data(), &size) == 1);
    PROCTOR_ASSERT(size == Digest::kBytes);
    return Digest(out);
  }
};

HmacKey::HmacKey(std::string_view secret) : state_(std::make_unique<State>()) {
  PROCTOR_ASSERT(state_->sha256 != nullptr && state_->inner != nullptr &&
                 state_->outer != nullptr && state_->work != nullptr);
  const Digest hashed = kHmacBlock < secret.size() ? sha256(secret) : Digest();
  std::string padded(kHmacBlock < secret.size() ? raw(hashed) : secret);
  padded.resize(kHmacBlock, '\0');
  state_->begin(state_->inner, padded, kInner);
  state_->begin(state_->outer, padded, kOuter);
  OPENSSL_cleanse(padded.data(), padded.size());
  id_ = mac("proctor-key-id").short_hex();
}
HmacKey::~HmacKey() = default;
HmacKey::HmacKey(HmacKey&&) noexcept = default;
HmacKey& HmacKey::operator=(HmacKey&&) noexcept = default;

Digest HmacKey::mac(std::string_view message) const {
  return state_->go_on(state_->outer, raw(state_->go_on(state_->inner, message)));
}

}  // namespace proctor

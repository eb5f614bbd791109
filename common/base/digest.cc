#include "common/base/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

namespace proctor {
namespace {
// Looked up once: OpenSSL 3 otherwise searches its providers, under a lock, for every message.
const EVP_MD* sha256_algorithm() {
  static const EVP_MD* const found = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  PROCTOR_ASSERT(found != nullptr);
  return found;
}
}  // namespace

struct Sha256::State {
  EVP_MD_CTX* ctx = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(ctx); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  PROCTOR_ASSERT(state_->ctx != nullptr);
  PROCTOR_ASSERT(EVP_DigestInit_ex(state_->ctx, sha256_algorithm(), nullptr) == 1);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::string_view bytes) {
  PROCTOR_ASSERT(EVP_DigestUpdate(state_->ctx, bytes.data(), bytes.size()) == 1);
}

Digest Sha256::finish() {
  Digest::Bytes out{};
  unsigned int size = 0;
  PROCTOR_ASSERT(EVP_DigestFinal_ex(state_->ctx, out.data(), &size) == 1);
  PROCTOR_ASSERT(size == Digest::kBytes);
  return Digest(out);
}

Digest sha256(std::string_view bytes) {
  // The digest of a short message costs less than the context for it.
  thread_local const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> ctx(EVP_MD_CTX_new(),
                                                                            EVP_MD_CTX_free);
  PROCTOR_ASSERT(ctx != nullptr);
  Digest::Bytes out{};
  unsigned int size = 0;
  PROCTOR_ASSERT(EVP_DigestInit_ex(ctx.get(), sha256_algorithm(), nullptr) == 1);
  PROCTOR_ASSERT(EVP_DigestUpdate(ctx.get(), bytes.data(), bytes.size()) == 1);
  PROCTOR_ASSERT(EVP_DigestFinal_ex(ctx.get(), out.data(), &size) == 1);
  PROCTOR_ASSERT(size == Digest::kBytes);
  return Digest(out);
}

std::string md5_hex(std::string_view bytes) {
  std::array<char, 16> out{};
  PROCTOR_ASSERT(EVP_Digest(bytes.data(), bytes.size(),
                            reinterpret_cast<unsigned char*>(out.data()), nullptr, EVP_md5(),
                            nullptr) == 1);
  return to_hex({out.data(), out.size()});
}

std::string to_hex(std::string_view bytes) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto b = static_cast<unsigned char>(c);
    out += kHex[b >> 4];
    out += kHex[b & 15];
  }
  return out;
}

std::string Digest::hex() const {
  std::string raw;
  raw.reserve(kBytes);
  for (const std::uint8_t b : bytes_) raw += static_cast<char>(b);
  return to_hex(raw);
}

Result<Digest> Digest::from_hex(std::string_view hex) {
  const auto bad = [] { return Error{Errc::kInvalid, "expected 64 lower-case hex digits"}; };
  if (hex.size() != kBytes * 2) return bad();
  const auto nibble = [](char c) {
    if ('0' <= c && c <= '9') return c - '0';
    if ('a' <= c && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  Bytes out{};
  for (std::size_t i = 0; i < kBytes; ++i) {
    const int hi = nibble(hex[2 * i]);
    const int lo = nibble(hex[2 * i + 1]);
    if (hi < 0 || lo < 0) return bad();
    out[i] = static_cast<std::uint8_t>(hi * 16 + lo);
  }
  return Digest(out);
}

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

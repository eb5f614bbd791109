#include "worker/model/http_model.h"

#include <curl/curl.h>

#include <mutex>

#include "common/base/text.h"
#include "common/contract/model_key.h"
#include "worker/model/call_rules.h"
#include "worker/model/chat_protocol.h"

namespace proctor {
namespace {

constexpr long kConnectSeconds = 30;

struct FreeCurl {
  void operator()(CURL* c) const { curl_easy_cleanup(c); }
  void operator()(curl_slist* l) const { curl_slist_free_all(l); }
};
using Curl = std::unique_ptr<CURL, FreeCurl>;
using Headers = std::unique_ptr<curl_slist, FreeCurl>;

// One call while it lasts.
struct Call {
  HttpAnswer answer;
  bool too_large = false;
  std::stop_token stop;
};

std::size_t on_body(char* data, std::size_t size, std::size_t n, void* user) {
  Call& call = *static_cast<Call*>(user);
  if (kModelReplyBytes < call.answer.body.size() + size * n) {
    call.too_large = true;
    return 0;
  }
  call.answer.body.append(data, size * n);
  return size * n;
}

std::size_t on_header(char* data, std::size_t size, std::size_t n, void* user) {
  constexpr std::string_view kRetry = "retry-after:";
  std::string_view line(data, size * n);
  std::string name;
  for (const char c : line.substr(0, kRetry.size()))
    name += 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (name == kRetry)
    static_cast<Call*>(user)->answer.retry_after = parse_retry_after(line.substr(kRetry.size()));
  return size * n;
}

int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Call*>(user)->stop.stop_requested() ? 1 : 0;
}

class HttpModel final : public Model {
 public:
  explicit HttpModel(ModelAccess access) : access_(std::move(access)) {
    static std::once_flag once;
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  }

  ModelReply ask(const ModelRequest& request, std::stop_token stop) override {
    const Result<Secret> key = model_key(access_);
    if (!key.ok()) return unasked(ModelReply::End::kNoAccess, key.error().detail);
    const Curl curl(curl_easy_init());
    if (!curl) return unasked(ModelReply::End::kFailed, "libcurl cannot begin");
    Call call;
    call.stop = std::move(stop);
    const std::string body = chat_body(request, access_.output_limit);
    const Headers headers = dress(curl.get(), call, *key, body, request.timeout);
    const CURLcode code = curl_easy_perform(curl.get());
    curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &call.answer.status);
    const char* type = nullptr;
    curl_easy_getinfo(curl.get(), CURLINFO_CONTENT_TYPE, &type);
    if (type != nullptr) call.answer.content_type = type;
    strike_out(call.answer.body, key->reveal());
    return reply_of(code, call);
  }

 private:
  static ModelReply unasked(ModelReply::End end, std::string why) {
    ModelReply out;
    out.end = end;
    out.billed = false;
    out.why = std::move(why);
    return out;
  }

  Headers dress(CURL* c, Call& call, const Secret& key, const std::string& body,
                std::chrono::milliseconds timeout) const {
    std::string url = access_.url;
    while (url.ends_with('/')) url.pop_back();
    url += "/chat/completions";
    curl_slist* list = curl_slist_append(nullptr, "Content-Type: application/json");
    list = curl_slist_append(list, "Expect:");
    if (!key.empty())
      list = curl_slist_append(list, ("Authorization: Bearer " + key.reveal()).c_str());
    curl_easy_setopt(c, CURLOPT_URL, url.c_str());
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);  // the key is for this place alone
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    curl_easy_setopt(c, CURLOPT_COPYPOSTFIELDS, body.c_str());
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, static_cast<long>(timeout.count()));
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, &call);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, &call);
    curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(c, CURLOPT_XFERINFODATA, &call);
    return Headers(list);
  }

  static ModelReply reply_of(CURLcode code, Call& call) {
    if (code == CURLE_OK) return read_chat_answer(std::move(call.answer));
    ModelReply out;
    out.raw = std::move(call.answer.body);
    out.billed = code != CURLE_COULDNT_CONNECT && code != CURLE_COULDNT_RESOLVE_HOST &&
                 code != CURLE_COULDNT_RESOLVE_PROXY && code != CURLE_SSL_CONNECT_ERROR &&
                 code != CURLE_PEER_FAILED_VERIFICATION && code != CURLE_URL_MALFORMAT;
    out.why = call.too_large ? too_large() : curl_easy_strerror(code);
    if (call.too_large) {
      out.end = ModelReply::End::kUnreadable;
      out.raw.clear();
    }
    if (code == CURLE_ABORTED_BY_CALLBACK) out.end = ModelReply::End::kStopped;
    return out;
  }

  ModelAccess access_;
};

}  // namespace

std::unique_ptr<Model> open_http_model(const ModelAccess& access) {
  return std::make_unique<HttpModel>(access);
}

}  // namespace proctor

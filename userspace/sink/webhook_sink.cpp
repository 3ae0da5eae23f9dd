// SPDX-License-Identifier: Apache-2.0
// See webhook_sink.h. The HTTP library bounds each read and write, not their
// sum: a watchdog ends a request whose time is up.
#include "sink/webhook_sink.h"

#include <fcntl.h>
#include <httplib.h>
#include <sys/stat.h>

#include <charconv>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/fd.h"
#include "base/io.h"
#include "sink/url.h"

namespace gpuwatch::sink {

namespace {

using base::Error;
using base::Status;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kMaxAnswer = 64U << 10;
constexpr std::size_t kMaxSecret = 4096;
constexpr milliseconds kMaxRetryAfter{60'000};

}  // namespace

// The client and its watchdog.
struct WebhookSink::Connection {
  Url url;
  std::unique_ptr<httplib::ClientImpl> client;

  std::mutex mutex;
  std::condition_variable changed;
  Clock::time_point until = Clock::time_point::max();
  bool expired = false;
  bool cancelled = false;
  bool ended = false;
  std::thread watchdog;

  Connection(Url to, const WebhookOptions& options) : url(std::move(to)) {
    if (url.tls) {
      auto secure = std::make_unique<httplib::SSLClient>(url.host, url.port);
      if (!options.ca_file.empty()) secure->set_ca_cert_path(options.ca_file);
      secure->enable_server_certificate_verification(true);
      ::SSL_CTX_set_min_proto_version(secure->ssl_context(), TLS1_2_VERSION);
      client = std::move(secure);
    } else {
      client = std::make_unique<httplib::ClientImpl>(url.host, url.port);
    }
    client->set_connection_timeout(options.limit);
    client->set_read_timeout(options.limit);
    client->set_write_timeout(options.limit);
    client->set_follow_location(false);
    client->set_keep_alive(false);
    client->set_url_encode(false);
    watchdog = std::thread([this] { watch(); });
  }

  ~Connection() {
    {
      std::unique_lock lock(mutex);
      ended = true;
      changed.notify_all();
    }
    watchdog.join();
  }

  void watch() {
    std::unique_lock lock(mutex);
    while (!ended) {
      if (until == Clock::time_point::max())
        changed.wait(lock);
      else
        changed.wait_until(lock, until);
      // Again and again: a request that was still connecting hears it later.
      if (until <= Clock::now()) {
        expired = true;
        until = Clock::now() + milliseconds(50);
        lock.unlock();
        client->stop();
        lock.lock();
      }
    }
  }

  void arm(Clock::time_point time) {
    std::unique_lock lock(mutex);
    expired = false;
    until = cancelled ? Clock::now() : time;
    changed.notify_all();
  }
  bool disarm() {
    std::unique_lock lock(mutex);
    until = Clock::time_point::max();
    return expired;
  }
};

base::Result<std::string> read_secret(const std::string& path) {
  base::Fd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return Error::from_errno("secret file " + path);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return Error::from_errno("secret file " + path);
  if (!S_ISREG(info.st_mode)) return Error(base::Code::kBadInput, "secret file " + path + ": is no regular file");
  if ((info.st_mode & 0007) != 0)
    return Error(base::Code::kPermission, "secret file " + path + ": everybody may use it; chmod o= it");
  std::string text(kMaxSecret + 2, '\0');
  auto got = base::read_full(fd.get(), std::as_writable_bytes(std::span(text)));
  if (!got) return std::move(got.error());
  text.resize(*got);
  if (text.ends_with('\n')) text.pop_back();
  const auto printable = [](char c) { return c > 0x20 && c < 0x7f; };
  if (text.empty() || text.size() > kMaxSecret || !std::all_of(text.begin(), text.end(), printable))
    return Error(base::Code::kBadInput,
                 "secret file " + path + ": wants one line of up to 4096 printable characters without blanks");
  return text;
}

WebhookSink::WebhookSink(WebhookOptions options, std::unique_ptr<Connection> connection)
    : options_(std::move(options)), bucket_(options_.rate), connection_(std::move(connection)) {}

WebhookSink::~WebhookSink() = default;

base::Result<std::unique_ptr<Sink>> WebhookSink::open(WebhookOptions options) {
  auto url = parse_url(options.url);
  if (!url) return std::move(url.error());
  if (!options.secret_file.empty() && !url->tls && !url->loopback())
    return Error(base::Code::kBadInput, "webhook: the secret would go over the network in clear; use https");
  if (!options.ca_file.empty() && ::access(options.ca_file.c_str(), R_OK) != 0)
    return Error::from_errno("webhook: certificates " + options.ca_file);
  auto connection = std::make_unique<Connection>(std::move(*url), options);
  std::unique_ptr<WebhookSink> sink(new WebhookSink(std::move(options), std::move(connection)));
  if (Status status = sink->reopen(); !status) return std::move(status.error());
  return std::unique_ptr<Sink>(std::move(sink));
}

Status WebhookSink::reopen() {
  if (options_.secret_file.empty()) return {};
  auto secret = read_secret(options_.secret_file);
  if (!secret) return std::move(secret.error());
  secret_ = std::move(*secret);
  return {};
}

bool WebhookSink::wants(const Item& item) const {
  return item.kind == ItemKind::kAlert || (options_.losses && item.kind == ItemKind::kLoss);
}

Outcome WebhookSink::write(std::span<const ItemPtr> items) {
  const std::string where = "webhook at " + connection_->url.origin();
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (const auto wait = bucket_.take(Clock::now()); wait.count() > 0) return Outcome::wait(wait, i);
    httplib::Request request;
    request.method = "POST";
    request.path = connection_->url.target;
    request.body = items[i]->json + "\n";
    request.headers = {{"Content-Type", "application/json"}, {"User-Agent", "gpuwatchd"}};
    if (!items[i]->alert_id.empty()) request.headers.emplace("Idempotency-Key", "\"" + items[i]->alert_id + "\"");
    if (!secret_.empty()) request.headers.emplace("Authorization", "Bearer " + secret_);
    std::size_t read = 0;
    request.content_receiver = [&](const char*, std::size_t length, std::uint64_t, std::uint64_t) {
      read += length;
      return read <= kMaxAnswer;
    };
    connection_->arm(Clock::now() + options_.limit);
    const httplib::Result result = connection_->client->send(request);
    const bool expired = connection_->disarm();
    if (!result) {
      // A server that says too much has heard us.
      if (read > kMaxAnswer) continue;
      const std::string why = expired ? "no answer in " + std::to_string(options_.limit.count()) + " ms"
                                      : httplib::to_string(result.error());
      return Outcome::again(Error(base::Code::kIo, where + ": " + why), i);
    }
    const int status = result->status;
    if (status >= 200 && status < 300) continue;
    Outcome outcome = Outcome::again(Error(base::Code::kIo, where + ": HTTP status " + std::to_string(status)), i);
    if (status == 408 || status == 425 || status == 429 || status >= 500) {
      const std::string after = result->get_header_value("Retry-After");
      unsigned seconds = 0;
      const auto parsed = std::from_chars(after.data(), after.data() + after.size(), seconds);
      if (parsed.ec == std::errc() && parsed.ptr == after.data() + after.size())
        outcome.retry_after = std::min<milliseconds>(kMaxRetryAfter, std::chrono::seconds(seconds));
    } else {
      outcome.refused = 1;  // it will not like it better the next time
    }
    return outcome;
  }
  return Outcome::all();
}

void WebhookSink::cancel() {
  std::unique_lock lock(connection_->mutex);
  connection_->cancelled = true;
  if (connection_->until != Clock::time_point::max()) connection_->until = Clock::now();
  connection_->changed.notify_all();
}

}  // namespace gpuwatch::sink

// SPDX-License-Identifier: Apache-2.0
// WebhookSink: each alert as an HTTP POST of its JSON line. Bounded in time,
// rate and what it reads of an answer; follows no redirect; verifies the
// server's certificate. URL and secret never appear in a message.
#pragma once

#include <memory>
#include <string>

#include "sink/sink.h"
#include "sink/token_bucket.h"

namespace gpuwatch::sink {

struct WebhookOptions {
  std::string url{};
  std::string secret_file{};              // sent as "Authorization: Bearer ..."; only over https or to this machine
  std::string ca_file{};                  // certificates to trust instead of the system's
  std::chrono::milliseconds limit{5000};  // of one POST, in all
  Rate rate{};
  bool losses = false;  // losses too
};

class WebhookSink : public Sink {
 public:
  static base::Result<std::unique_ptr<Sink>> open(WebhookOptions options);
  ~WebhookSink() override;

  std::string_view name() const override { return "webhook"; }
  bool wants(const Item& item) const override;
  Outcome write(std::span<const ItemPtr> items) override;
  base::Status reopen() override;  // reads the secret again
  void cancel() override;

 private:
  struct Connection;
  WebhookSink(WebhookOptions options, std::unique_ptr<Connection> connection);

  WebhookOptions options_;
  TokenBucket bucket_;
  std::string secret_;
  std::unique_ptr<Connection> connection_;
};

// The first line of a file that others cannot read.
base::Result<std::string> read_secret(const std::string& path);

}  // namespace gpuwatch::sink

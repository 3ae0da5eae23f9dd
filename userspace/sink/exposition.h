// SPDX-License-Identifier: Apache-2.0
// The two ways metrics leave: an HTTP endpoint on the loopback address, and a
// file for node_exporter's textfile collector. The endpoint is one thread with
// hard limits on connections, bytes and time of each; it serves one page and
// reads no body.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace gpuwatch::sink {

struct ExpositionOptions {
  std::string address = "127.0.0.1";  // or "::1"; another one only with `anywhere`
  std::uint16_t port = 9847;          // 0: any that is free
  bool anywhere = false;              // the address need not be a loopback one
  unsigned connections = 16;
  std::size_t request_bytes = 8192;
  unsigned limit_ms = 5000;  // of a connection, in all
};

// Takes address and port of "127.0.0.1:9847" or "[::1]:9847" over.
base::Status parse_address(const std::string& text, ExpositionOptions& options);

// What a request that has come whole asks for.
enum class Asked : std::uint8_t { kMetrics, kRoot, kOther, kMethod, kNonsense };
struct Request {
  Asked asked = Asked::kNonsense;
  bool head_only = false;
};
Request parse_request(std::string_view request);

class Exposition {
 public:
  // `page` is called on the endpoint's thread for each GET of /metrics.
  static base::Result<std::unique_ptr<Exposition>> open(const ExpositionOptions& options,
                                                        std::function<std::string()> page);
  ~Exposition();
  Exposition(const Exposition&) = delete;
  Exposition& operator=(const Exposition&) = delete;

  std::uint16_t port() const { return port_; }
  std::uint64_t scrapes() const { return scrapes_; }
  std::uint64_t refused() const { return refused_; }  // connections over the limit, late, or not HTTP

 private:
  struct Peer;
  Exposition(const ExpositionOptions& options, std::function<std::string()> page);
  void run();
  void accept_one(std::vector<Peer>& peers);
  bool serve(Peer& peer);  // false: done with it
  std::string answer(std::string_view request);

  ExpositionOptions options_;
  std::function<std::string()> page_;
  base::Fd listener_;
  base::Fd wake_;
  std::uint16_t port_ = 0;
  std::atomic<std::uint64_t> scrapes_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
  std::thread thread_;
};

// Writes beside `path` and renames: a reader sees the old text or the new one.
base::Status write_textfile(const std::string& path, std::string_view text);

}  // namespace gpuwatch::sink

// SPDX-License-Identifier: Apache-2.0
// Compares the code that lies in a living process's GPU memory with images that
// may have been loaded there. Nothing says which were, so a function that is
// nowhere is no finding; and there is stale code beside the living. It knows no
// socket and no driver: bytes and digests come from a CodeAccess.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "probe/agent/wire.h"
#include "probe/session.h"
#include "probe/verify.h"

namespace gpuwatch::probe::agent {

// One GPU of a process, seen from outside.
class CodeAccess {
 public:
  virtual ~CodeAccess() = default;
  // `refused`: why this request could not be met, empty when it was. A failure
  // ends the work.
  virtual Failure read(const Span& span, std::vector<std::uint8_t>& out, std::string& refused) = 0;
  // What lies in each span; what cannot count says that there is code, and then
  // everything is read.
  virtual Failure survey(const std::vector<Span>& spans, std::vector<SpanCount>& counts, std::string& refused) {
    counts.assign(spans.size(), {1, 1});
    refused.clear();
    return {};
  }
  // `refresh`: instruction caches fetch anew before it, where something can make them.
  virtual Failure hash(const std::vector<Span>& spans, const Nonce& nonce, bool refresh,
                       std::vector<identify::Digest>& roots, std::string& refused) = 0;
};

struct LiveModule {
  std::string label;
  Code code;
  std::vector<Bank> banks;
  std::shared_ptr<const ImageIdentity> identity;
};

struct LiveVerdict {
  const LiveModule* module = nullptr;
  FunctionVerdict function;
};

struct ForeignBlock {
  Span span;
  identify::Digest sha256{};
};

// What the driver asks for at a time for code and constant banks.
inline constexpr std::uint64_t kDriverBlock = 2u << 20;

// More units of 16 bytes than this that differ are not told as changed code of a
// function: what is so different may be other code that resembles it, or a
// leftover that was overwritten.
inline constexpr std::uint64_t kChangedUnitsMax = 16;

class ResidentCode {
 public:
  using NonceSource = std::function<Nonce()>;
  ResidentCode(CodeAccess& access, NonceSource nonces) : access_(access), nonces_(std::move(nonces)) {}

  // Reads what has ends of functions. Stops at `max_bytes`; what could not be read
  // is counted.
  Failure read(const std::vector<Span>& ranges, std::uint64_t max_bytes);

  // What read() left out of the blocks in which the driver keeps code: those that
  // have no ends of functions and yet something. Constant banks lie there, and a
  // function whose end was changed may. find_changed() and find_banks() call it
  // when they miss something. Larger ranges without ends are data.
  Failure read_rest();

  // The first for all modules, then the second for all of them again: what lies
  // there whole explains its place before anything is taken for a changed form
  // of something else. Modules are told by their labels.
  Failure find_whole(const std::vector<LiveModule>& modules, std::vector<LiveVerdict>& out);
  Failure find_changed(const std::vector<LiveModule>& modules, std::vector<LiveVerdict>& out);

  // After find_whole(): the jump tables (constant bank 2) of functions that are
  // there whole. Those that nothing is known of but addresses are left out.
  Failure find_banks(const std::vector<LiveModule>& modules, std::vector<LiveVerdict>& out);

  // Blocks with instructions that nothing explained, in ranges where something was.
  std::vector<ForeignBlock> foreign() const;

  const std::vector<Copy>& copies() const { return copies_; }
  std::uint64_t read_bytes() const { return read_bytes_; }
  std::uint64_t surveyed_bytes() const { return surveyed_bytes_; }  // looked over and not read
  std::uint64_t unread_bytes() const { return unread_bytes_; }
  std::uint64_t hashed_bytes() const { return hashed_bytes_; }
  const std::string& unread_reason() const { return unread_reason_; }

 private:
  struct Found {
    const LiveModule* module;
    const Function* function;
    Place place;
  };
  Failure with_code(const std::vector<Span>& ranges, std::vector<Span>& out);
  Failure read_all(const std::vector<Span>& spans);
  Failure confirm(const std::vector<Found>& found, std::vector<LiveVerdict>& out);
  Failure hash(const std::vector<Span>& spans, const std::vector<std::vector<std::uint8_t>>& expected,
               std::size_t begin, std::size_t end, bool refresh, std::vector<std::string>& wrong);
  Failure hash_all(const std::vector<Span>& spans, const std::vector<std::vector<std::uint8_t>>& expected,
                   std::vector<std::string>& wrong);
  Failure conclude(const Span& span, const std::vector<std::uint8_t>& expected, const std::string& wrong,
                   FunctionVerdict& verdict);
  void explain(const Found& found);

  CodeAccess& access_;
  NonceSource nonces_;
  std::vector<Span> ranges_;
  std::uint64_t max_bytes_ = 0;
  std::vector<Span> later_;  // for read_rest()
  std::vector<Copy> copies_;
  std::vector<Copy> rest_;                               // the same, with what was explained cleared
  std::vector<bool> explains_;                           // for each copy: holds code that was explained
  std::set<std::pair<std::string, std::string>> whole_;  // label of the module, function
  std::uint64_t read_bytes_ = 0, surveyed_bytes_ = 0, unread_bytes_ = 0, hashed_bytes_ = 0;
  std::string unread_reason_;
};

// Stretches of a copy, between zeros, that hold ends of functions.
std::vector<Span> code_like(const Copy& copy);

}  // namespace gpuwatch::probe::agent

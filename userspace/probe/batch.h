// SPDX-License-Identifier: Apache-2.0
// Modules that are loaded together and compared together: one reading of the
// heap before and one after, one search for all their functions and banks, one
// launch that hashes them all per reading. What one module costs alone, hundreds
// cost together. It decides nothing about which modules go together.
#pragma once

#include <set>

#include "probe/banks.h"
#include "probe/images.h"
#include "probe/session.h"
#include "probe/verdict.h"

namespace gpuwatch::probe {

using NonceSource = std::function<Nonce()>;

// What a batch was and where its time went.
struct BatchFigures {
  std::size_t modules = 0, functions = 0, banks = 0;
  std::uint64_t text_bytes = 0, hashed_bytes = 0;
  std::uint64_t heap_bytes = 0;   // that were read after the load
  std::uint64_t heap_ranges = 0;  // they lie in
  float gpu_ms[2] = {};           // of each reading, all of it
  double load_ms = 0;             // of the driver's loader, with compiling PTX
  double read_ms = 0;             // heap to host, before and after
  double refresh_ms = 0;          // clearing free memory and refreshing caches
  double search_ms = 0, settle_ms = 0;
  double hash_ms = 0;  // launches and digests on the GPU, seen from the host
  double host_ms = 0;  // the same digests on the host
  double unload_ms = 0;
};

struct LoadedModule {
  CuModule module = nullptr;
  Code code;
  std::vector<Bank> banks;
  std::set<std::string, std::less<>> shared_names;  // of more than one symbol that is not a function
  std::shared_ptr<const ImageIdentity> identity;
};

class Batch {
 public:
  Batch(Session& session, NonceSource nonces) : session_(session), nonces_(std::move(nonces)) {}
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // Loads one module more. The first reads the heap before it. After a failure
  // the others are as they were, but for a fault.
  Failure add(const LoadableImage& image);
  // Verdicts on all modules, in the order of their loading; only the function
  // `kernel` of each and its banks, if not empty.
  Failure check(const std::string& kernel, std::vector<ModuleVerdict>& out);
  // Overwrites what check() found, so that it can't be taken for code of a later
  // module, and unloads all. The modules are not to be run any more.
  Failure unload();

  std::size_t size() const { return modules_.size(); }
  std::uint64_t text_bytes() const { return figures_.text_bytes; }
  const LoadedModule& module(std::size_t number) const { return modules_[number]; }
  const BatchFigures& figures() const { return figures_; }

 private:
  // What is to be compared: a function or a bank of a module.
  struct Claim {
    std::size_t module = 0;
    std::vector<FunctionVerdict> ModuleVerdict::*list = &ModuleVerdict::functions;
    FunctionVerdict verdict;  // with address 0 it is settled already
    const Function* function = nullptr;
    std::vector<std::uint8_t> own;  // expected bytes, unless they are the function's text
    identify::Bytes expected() const { return own.empty() && function != nullptr ? function->text : own; }
  };
  struct Memory {
    std::vector<Copy> copies;
    RangeRecord proven;
  };

  Failure read_heap(std::vector<Copy>& out);
  Addresses globals_of(const LoadedModule& module, const std::vector<Relocation>& relocations) const;
  std::vector<FunctionPlaces> claim_functions(const std::string& kernel, const Memory& memory,
                                              std::vector<Claim>& claims);
  void claim_banks(const std::string& kernel, const Memory& memory, const std::vector<FunctionPlaces>& places,
                   std::vector<Claim>& claims);
  Failure hash(const std::vector<Claim>& claims, std::vector<bool>& equal);
  Failure judge(std::vector<Claim>& claims, const std::vector<bool>& equal, std::vector<ModuleVerdict>& out);

  Session& session_;
  NonceSource nonces_;
  std::vector<LoadedModule> modules_;
  std::vector<Copy> before_;  // the heap before the first was loaded
  std::vector<Span> found_;
  BatchFigures figures_;
};

}  // namespace gpuwatch::probe

// SPDX-License-Identifier: Apache-2.0
// Names: what containers and pods are called, looked up by a thread of its own.
// The side that handles records never waits: it puts a question into a bounded
// queue, or counts that there was no room, and takes answers that are there.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "attribute/names_source.h"
#include "model/actor.h"

namespace gpuwatch::attribute {

struct NamesLimits {
  std::size_t remembered = 4096;                // containers, known and not known
  std::size_t waiting = 256;                    // questions in the queue
  std::uint64_t lookup_ns = 2'000'000'000;      // one source, one question
  std::uint64_t ask_again_ns = 30'000'000'000;  // after nobody knew it, or the queue was full
  std::uint64_t mute_ns = 30'000'000'000;       // a source that let the time pass
};

// Written by both sides, read by anybody.
struct NamesCounters {
  std::uint64_t hits = 0;     // asked for and known
  std::uint64_t misses = 0;   // asked for and not (yet) known
  std::uint64_t lookups = 0;  // questions that the thread worked on
  std::uint64_t found = 0;
  std::uint64_t not_found = 0;
  std::uint64_t failed = 0;  // a source gave an error
  std::uint64_t timed_out = 0;
  std::uint64_t queue_full = 0;
  std::uint64_t evicted = 0;
};

// An answer with its labels as the actor shows them.
struct KnownNames {
  explicit KnownNames(NameAnswer from);
  KnownNames(const KnownNames&) = delete;
  KnownNames& operator=(const KnownNames&) = delete;

  NameAnswer answer;
  std::vector<model::Label> labels;  // views into answer
};

class Names {
 public:
  explicit Names(NameSources sources, NamesLimits limits = {});
  // Ends a lookup under way at once.
  ~Names();
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;

  // Never waits. nullptr: not known now; it is being asked for, or nobody knew.
  std::shared_ptr<const KnownNames> find(const NameQuery& query);

  // Changes when an answer came in or a question may be asked again: where it
  // has not changed, find() would say what it said. Cheap.
  std::uint64_t generation();

  NamesCounters counters() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuwatch::attribute

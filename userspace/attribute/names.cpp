// SPDX-License-Identifier: Apache-2.0
#include "attribute/names.h"

#include <sys/eventfd.h>

#include <atomic>
#include <string>
#include <thread>

#include "attribute/lru_map.h"
#include "attribute/spsc_ring.h"
#include "base/clock.h"
#include "base/fd.h"

namespace gpuwatch::attribute {

namespace {

struct Reply {
  std::string key;
  std::shared_ptr<const KnownNames> names;  // nothing: nobody knew
};

struct Slot {
  enum class State : std::uint8_t { kNew, kAsked, kAnswered };
  State state = State::kNew;
  std::shared_ptr<const KnownNames> names;
  std::uint64_t again_ns = 0;
};

struct Count {
  std::atomic<std::uint64_t> value{0};
  void operator++() { value.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t get() const { return value.load(std::memory_order_relaxed); }
};

}  // namespace

KnownNames::KnownNames(NameAnswer from) : answer(std::move(from)) {
  labels.reserve(answer.labels.size());
  for (const auto& [key, value] : answer.labels) labels.push_back({key, value});
}

struct Names::Impl {
  Impl(NameSources given, NamesLimits with)
      : limits(with),
        sources(std::move(given)),
        muted_until(sources.size(), 0),
        questions(limits.waiting),
        replies(limits.waiting),
        slots(limits.remembered),
        cancel(::eventfd(0, EFD_CLOEXEC)) {}

  // --- the side of the records ---

  void collect() {
    while (auto reply = replies.pop()) {
      --outstanding;
      Slot* slot = slots.find(reply->key);
      if (slot == nullptr) continue;  // forgotten meanwhile
      slot->state = Slot::State::kAnswered;
      slot->names = std::move(reply->names);
      slot->again_ns = base::monotonic_ns() + limits.ask_again_ns;
      ++changes;
    }
  }

  void ask(const NameQuery& query, Slot& slot) {
    // No more questions than replies have room, so the thread never waits for us.
    if (outstanding >= limits.waiting || !questions.push(NameQuery(query))) {
      ++queue_full;
      slot.state = Slot::State::kAnswered;
      slot.again_ns = base::monotonic_ns() + limits.ask_again_ns;
      return;
    }
    ++outstanding;
    slot.state = Slot::State::kAsked;
    asked.fetch_add(1, std::memory_order_release);
    asked.notify_one();
  }

  // --- the thread ---

  void run() {
    std::uint32_t seen = 0;
    while (!stop.load(std::memory_order_acquire)) {
      if (auto query = questions.pop()) {
        auto names = lookup(*query);
        (void)replies.push({query->key(), std::move(names)});
        continue;
      }
      asked.wait(seen, std::memory_order_acquire);
      seen = asked.load(std::memory_order_acquire);
    }
  }

  static bool complete(const NameQuery& query, const NameAnswer& answer) {
    return !answer.container_name.empty() && !answer.image.empty() &&
           (query.pod_uid.empty() || !answer.pod_name.empty());
  }

  std::shared_ptr<const KnownNames> lookup(const NameQuery& query) {
    ++lookups;
    NameAnswer all;
    for (std::size_t i = 0; i < sources.size() && !complete(query, all); ++i) {
      const std::uint64_t now = base::monotonic_ns();
      if (stop.load(std::memory_order_acquire)) break;
      if (now < muted_until[i] || !sources[i]->answers(query)) continue;
      auto answer = sources[i]->lookup(query, {now + limits.lookup_ns, cancel.get()});
      if (answer.ok()) {
        if (*answer) all.complete_with(std::move(**answer));
        continue;
      }
      muted_until[i] = base::monotonic_ns() + limits.mute_ns;
      if (answer.error().code() == base::Code::kLimit)
        ++timed_out;
      else
        ++failed;
    }
    if (all.empty()) {
      ++not_found;
      return nullptr;
    }
    ++found;
    all.bound();
    return std::make_shared<const KnownNames>(std::move(all));
  }

  const NamesLimits limits;
  NameSources sources;
  std::vector<std::uint64_t> muted_until;  // of the thread
  SpscRing<NameQuery> questions;
  SpscRing<Reply> replies;

  LruMap<std::string, Slot, std::hash<std::string>> slots;  // of the records' side
  std::size_t outstanding = 0;
  std::uint64_t changes = 0;
  std::uint64_t next_again_ns = ~std::uint64_t{0};

  base::Fd cancel;
  std::atomic<std::uint32_t> asked{0};
  std::atomic<bool> stop{false};
  Count hits, misses, lookups, found, not_found, failed, timed_out, queue_full, evicted;
  std::thread thread;
};

Names::Names(NameSources sources, NamesLimits limits) : impl_(std::make_unique<Impl>(std::move(sources), limits)) {
  impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
}

Names::~Names() {
  impl_->stop.store(true, std::memory_order_release);
  (void)::eventfd_write(impl_->cancel.get(), 1);
  impl_->asked.fetch_add(1, std::memory_order_release);
  impl_->asked.notify_one();
  impl_->thread.join();
}

std::shared_ptr<const KnownNames> Names::find(const NameQuery& query) {
  Impl& impl = *impl_;
  impl.collect();
  if (query.key().empty()) return nullptr;
  Slot& slot = impl.slots.insert_or_get(query.key());
  impl.evicted.value.store(impl.slots.evicted(), std::memory_order_relaxed);
  const bool again = slot.state == Slot::State::kAnswered && !slot.names && base::monotonic_ns() >= slot.again_ns;
  if (slot.state == Slot::State::kNew || again) impl.ask(query, slot);
  if (slot.state == Slot::State::kAnswered && !slot.names)
    impl.next_again_ns = std::min(impl.next_again_ns, slot.again_ns);
  if (slot.names)
    ++impl.hits;
  else
    ++impl.misses;
  return slot.names;
}

std::uint64_t Names::generation() {
  Impl& impl = *impl_;
  impl.collect();
  if (impl.next_again_ns != ~std::uint64_t{0} && base::monotonic_ns() >= impl.next_again_ns) {
    impl.next_again_ns = ~std::uint64_t{0};
    ++impl.changes;
  }
  return impl.changes;
}

NamesCounters Names::counters() const {
  const Impl& impl = *impl_;
  return {impl.hits.get(),   impl.misses.get(),    impl.lookups.get(),    impl.found.get(),  impl.not_found.get(),
          impl.failed.get(), impl.timed_out.get(), impl.queue_full.get(), impl.evicted.get()};
}

}  // namespace gpuwatch::attribute

// SPDX-License-Identifier: Apache-2.0
#include "daemon/last_run.h"

#include <string>

#include "daemon/log.h"

namespace gpuwatch::daemon {

std::optional<Loss> loss_since(const LastRun& last, std::uint64_t started_unix_ns, bool resumed) {
  if (last.clean && !last.same_boot) return std::nullopt;  // the machine was off
  const std::uint64_t gap_ns = started_unix_ns > last.alive_unix_ns ? started_unix_ns - last.alive_unix_ns : 0;
  const std::string gap =
      std::to_string(gap_ns / 1'000'000'000) + "." + std::to_string(gap_ns / 100'000'000 % 10) + " s";
  if (resumed) {
    say(Level::kNotice, "the earlier process ended " + std::string(last.clean ? "in order" : "unexpectedly") +
                            "; the ring was kept, last sign of life " + gap + " ago");
    return std::nullopt;
  }
  if (last.clean) {
    say(Level::kNotice, "did not run for " + gap + ": what GPUs were used for then is not known");
    return std::nullopt;
  }
  Loss loss;
  loss.source = "daemon";
  loss.reason = "not_running";
  loss.words = "the earlier process ended unexpectedly and its ring with it; the records of " + gap +
               " before this start were not seen, how many is not known";
  return loss;
}

std::vector<Loss> unsent_since(const std::vector<Unsent::Left>& left, bool same_boot) {
  std::vector<Loss> losses;
  for (const Unsent::Left& one : left) {
    Loss loss;
    loss.source = "sink";
    loss.name = one.sink;
    loss.reason = kUnsent;
    loss.lost = loss.total = one.items;
    loss.words = "they waited for it when the earlier process was killed, and may not have gone out";
    if (!same_boot) loss.words += "; the machine went down since, so the number is what had reached the disk";
    losses.push_back(std::move(loss));
  }
  return losses;
}

}  // namespace gpuwatch::daemon

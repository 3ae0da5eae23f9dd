// SPDX-License-Identifier: Apache-2.0
#include "probe/agent/resident.h"

#include <algorithm>
#include <utility>

#include "kernels/agent.h"

namespace gpuwatch::probe::agent {

namespace {

constexpr std::size_t kUnit = 16;
constexpr std::size_t kGap = 128;  // zeros between what belongs together
constexpr std::size_t kCodeUnitsMin = 4;
const std::string kDiffers = "differ";

// On sm_70 and later.
bool is_exit(const std::uint8_t* unit) {
  return unit[0] == 0x4d && (unit[1] & 0x0f) == 0x09;
}
bool is_branch(const std::uint8_t* unit) {
  return unit[0] == 0x47 && (unit[1] & 0x0f) == 0x09;
}
bool is_last_branch(const std::uint8_t* unit) {
  return kernels::is_last_branch(identify::load<std::uint64_t>(identify::Bytes(unit, kUnit), 0));
}

}  // namespace

std::vector<Span> code_like(const Copy& copy) {
  std::vector<Span> out;
  const std::size_t size = copy.bytes.size() / kUnit * kUnit;
  std::size_t begin = 0, last = 0, exits = 0, branches = 0, last_branches = 0;
  bool inside = false;
  const auto close = [&] {
    const bool ends = last_branches != 0 || (exits != 0 && branches != 0);
    if (inside && ends && last + kUnit - begin >= kCodeUnitsMin * kUnit)
      out.push_back({copy.address + begin, last + kUnit - begin});
    inside = false;
    exits = branches = last_branches = 0;
  };
  for (std::size_t at = 0; at < size; at += kUnit) {
    const std::uint8_t* unit = copy.bytes.data() + at;
    if (std::all_of(unit, unit + kUnit, [](std::uint8_t byte) { return byte == 0; })) continue;
    if (inside && at - last > kGap) close();
    if (!inside) begin = at;
    inside = true;
    last = at;
    exits += is_exit(unit) ? 1 : 0;
    branches += is_branch(unit) ? 1 : 0;
    last_branches += is_last_branch(unit) ? 1 : 0;
  }
  close();
  return out;
}

Failure ResidentCode::with_code(const std::vector<Span>& ranges, std::vector<Span>& out) {
  std::vector<bool> wanted(ranges.size(), true);
  for (std::size_t begin = 0; begin < ranges.size();) {
    std::vector<Span> spans;
    std::vector<std::size_t> which;
    std::size_t end = begin;
    for (std::uint64_t bytes = 0; end < ranges.size() && spans.size() < kSurveySpansMax; ++end) {
      if (ranges[end].bytes > kSurveyBytesMax) continue;
      if (bytes + ranges[end].bytes > kSurveyBytesMax) break;
      bytes += ranges[end].bytes;
      spans.push_back(ranges[end]);
      which.push_back(end);
    }
    begin = end;
    if (spans.empty()) continue;
    std::vector<SpanCount> counts;
    std::string refused;
    if (Failure failure = access_.survey(spans, counts, refused)) return failure;
    // What was refused is for the reading to say, range by range.
    for (std::size_t i = 0; refused.empty() && i < counts.size(); ++i) {
      if (counts[i].ends != 0) continue;
      wanted[which[i]] = false;
      surveyed_bytes_ += spans[i].bytes;
      if (counts[i].units != 0 && spans[i].bytes <= kDriverBlock) later_.push_back(spans[i]);
    }
  }
  for (std::size_t i = 0; i < ranges.size(); ++i)
    if (wanted[i]) out.push_back(ranges[i]);
  return {};
}

Failure ResidentCode::read(const std::vector<Span>& ranges, std::uint64_t max_bytes) {
  ranges_ = ranges;
  max_bytes_ = max_bytes;
  std::vector<Span> wanted;
  if (Failure failure = with_code(ranges, wanted)) return failure;
  return read_all(wanted);
}

Failure ResidentCode::read_rest() {
  const std::vector<Span> spans = std::exchange(later_, {});
  for (const Span& span : spans) surveyed_bytes_ -= span.bytes;
  return read_all(spans);
}

Failure ResidentCode::read_all(const std::vector<Span>& spans) {
  for (const Span& range : spans) {
    if (read_bytes_ + range.bytes > max_bytes_) {
      unread_bytes_ += range.bytes;
      unread_reason_ = "the limit of " + std::to_string(max_bytes_ >> 20) + " MiB was reached";
      continue;
    }
    Copy copy{range.address, {}};
    copy.bytes.reserve(range.bytes);
    std::string refused;
    for (std::uint64_t at = 0; at < range.bytes && refused.empty(); at += kReadMax) {
      std::vector<std::uint8_t> part;
      const Span span{range.address + at, std::min(kReadMax, range.bytes - at)};
      if (Failure failure = access_.read(span, part, refused)) return failure;
      if (refused.empty()) copy.bytes.insert(copy.bytes.end(), part.begin(), part.end());
    }
    if (!refused.empty()) {
      unread_bytes_ += range.bytes - copy.bytes.size();
      unread_reason_ = refused;
    }
    read_bytes_ += copy.bytes.size();
    if (copy.bytes.empty()) continue;
    rest_.push_back(copy);
    copies_.push_back(std::move(copy));
    explains_.push_back(false);
  }
  return {};
}

void ResidentCode::explain(const Found& found) {
  for (std::size_t i = 0; i < rest_.size(); ++i) {
    Copy& copy = rest_[i];
    const std::uint64_t address = found.place.address;
    const std::uint64_t bytes = found.function->text.size();
    if (address < copy.address || !identify::fits(address - copy.address, bytes, copy.bytes.size())) continue;
    std::fill_n(copy.bytes.begin() + static_cast<std::ptrdiff_t>(address - copy.address), bytes, 0);
    explains_[i] = true;
  }
}

Failure ResidentCode::find_whole(const std::vector<LiveModule>& modules, std::vector<LiveVerdict>& out) {
  struct Entry {
    const LiveModule* module;
    const Function* function;
  };
  std::vector<Entry> wanted;
  for (const LiveModule& module : modules)
    for (const Function& function : module.code.functions) wanted.push_back({&module, &function});
  // A module may have been loaded more than once: until nothing is found any more.
  while (!wanted.empty()) {
    std::vector<const Function*> functions;
    for (const Entry& entry : wanted) functions.push_back(entry.function);
    const std::vector<Place> places = locate(functions, rest_, {}, Search::kExact);
    std::vector<Found> found;
    std::vector<Entry> again;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (places[i].address == 0 || !places[i].exact) continue;
      found.push_back({wanted[i].module, wanted[i].function, places[i]});
      again.push_back(wanted[i]);
    }
    for (const Found& one : found) {
      explain(one);
      whole_.insert({one.module->label, one.function->name});
    }
    if (Failure failure = confirm(found, out)) return failure;
    wanted = std::move(again);
  }
  return {};
}

Failure ResidentCode::find_changed(const std::vector<LiveModule>& modules, std::vector<LiveVerdict>& out) {
  std::vector<const Function*> functions;
  std::vector<const LiveModule*> owners;
  bool missing = false;
  for (const LiveModule& module : modules)
    for (const Function& function : module.code.functions) {
      functions.push_back(&function);
      owners.push_back(&module);
      missing = missing || !whole_.contains({module.label, function.name});
    }
  if (missing)
    if (Failure failure = read_rest()) return failure;
  const std::vector<Place> places = locate(functions, rest_);
  std::vector<Found> found;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    if (places[i].address != 0 && places[i].differences <= kChangedUnitsMax) {
      found.push_back({owners[i], functions[i], places[i]});
      continue;
    }
    if (whole_.contains({owners[i]->label, functions[i]->name})) continue;
    LiveVerdict verdict;
    verdict.module = owners[i];
    verdict.function.name = functions[i]->name;
    verdict.function.bytes = functions[i]->text.size();
    verdict.function.relocations = functions[i]->relocations.size();
    if (places[i].address != 0) {
      verdict.function.verdict = Verdict::kNotProbed;
      verdict.function.address = places[i].address;
      verdict.function.reason = "something like it is resident, with " + std::to_string(places[i].differences) +
                                " of " + std::to_string((functions[i]->text.size() + kUnit - 1) / kUnit) +
                                " units of 16 bytes different: other code, or this one changed in large part";
    } else if (unread_bytes_ != 0) {
      verdict.function.verdict = Verdict::kNotProbed;
      verdict.function.reason = "not found, and not all memory was read: " + unread_reason_;
    } else {
      verdict.function.verdict = Verdict::kNotResident;
      verdict.function.reason = "nowhere in the code heap: not loaded, or not used yet";
    }
    out.push_back(std::move(verdict));
  }
  for (const Found& one : found) explain(one);
  return confirm(found, out);
}

// Marks those of [begin, end) whose digests are not the expected ones, or which
// the agent refuses; a refusal of many is taken apart to find whom it concerns.
Failure ResidentCode::hash(const std::vector<Span>& spans, const std::vector<std::vector<std::uint8_t>>& expected,
                           std::size_t begin, std::size_t end, bool refresh, std::vector<std::string>& wrong) {
  const std::vector<Span> part(spans.begin() + static_cast<std::ptrdiff_t>(begin),
                               spans.begin() + static_cast<std::ptrdiff_t>(end));
  const Nonce nonce = nonces_();
  std::vector<identify::Digest> roots;
  std::string why;
  if (Failure failure = access_.hash(part, nonce, refresh, roots, why)) return failure;
  if (!why.empty()) {
    if (part.size() == 1) {
      if (wrong[begin].empty()) wrong[begin] = why;
      return {};
    }
    const std::size_t middle = begin + (end - begin) / 2;
    if (Failure failure = hash(spans, expected, begin, middle, refresh, wrong)) return failure;
    return hash(spans, expected, middle, end, refresh, wrong);
  }
  for (std::size_t i = begin; i < end; ++i)
    if (roots[i - begin] != host_root(expected[i], Form::kTree, nonce)) wrong[i] = kDiffers;
  return {};
}

Failure ResidentCode::confirm(const std::vector<Found>& found, std::vector<LiveVerdict>& out) {
  const auto mapped = [&](std::uint64_t address) {
    return std::any_of(ranges_.begin(), ranges_.end(), [&](const Span& range) {
      return address >= range.address && address - range.address < range.bytes;
    });
  };
  std::vector<LiveVerdict> verdicts;
  std::vector<const Function*> hashed;
  std::vector<Span> spans;
  std::vector<std::vector<std::uint8_t>> expected;
  for (const Found& one : found) {
    LiveVerdict verdict;
    verdict.module = one.module;
    FunctionVerdict& function = verdict.function;
    function.name = one.function->name;
    function.bytes = one.function->text.size();
    function.address = one.place.address;
    function.relocations = one.function->relocations.size();
    if (function.bytes > kHashBytesMax) {
      function.reason = "longer than the agent hashes at once";
      out.push_back(std::move(verdict));
      continue;
    }
    std::vector<std::uint8_t> bytes;
    settle_function(one.module->code, *one.function, resident_at(copies_, function.address, function.bytes), copies_,
                    mapped, {}, function, bytes);
    spans.push_back({function.address, function.bytes});
    expected.push_back(std::move(bytes));
    hashed.push_back(one.function);
    verdicts.push_back(std::move(verdict));
  }
  std::vector<std::string> wrong;
  if (Failure failure = hash_all(spans, expected, wrong)) return failure;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    FunctionVerdict& verdict = verdicts[i].function;
    if (Failure failure = conclude(spans[i], expected[i], wrong[i], verdict)) return failure;
    if (verdict.verdict == Verdict::kMatch || verdict.verdict == Verdict::kMatchRelocated) {
      verdict.form = form_of(verdicts[i].module->code, *hashed[i], expected[i]);
      verdict.image = verdicts[i].module->identity;
    }
    out.push_back(std::move(verdicts[i]));
  }
  return {};
}

// Everything once, then everything again, each time after instruction caches were
// made to fetch anew. That costs the process's work a wait until the GPU has
// drained, so it is done once for all that is hashed behind it.
Failure ResidentCode::hash_all(const std::vector<Span>& spans, const std::vector<std::vector<std::uint8_t>>& expected,
                               std::vector<std::string>& wrong) {
  wrong.assign(spans.size(), {});
  for (int reading = 0; reading < 2; ++reading) {
    for (std::size_t begin = 0; begin < spans.size();) {
      std::size_t end = begin;
      for (std::uint64_t bytes = 0; end < spans.size() && end - begin < kHashSpansMax; ++end) {
        bytes += spans[end].bytes;
        if (bytes > kHashBytesMax) break;
      }
      if (Failure failure = hash(spans, expected, begin, end, begin == 0, wrong)) return failure;
      begin = end;
    }
  }
  for (std::size_t i = 0; i < spans.size(); ++i)
    if (wrong[i].empty() || wrong[i] == kDiffers) hashed_bytes_ += spans[i].bytes;
  return {};
}

// The verdict on what lies at `span`, from what hash_all() says of it.
Failure ResidentCode::conclude(const Span& span, const std::vector<std::uint8_t>& expected, const std::string& wrong,
                               FunctionVerdict& verdict) {
  if (wrong.empty() && verdict.reason.empty()) {
    verdict.verdict = verdict.relocations + verdict.loader_changes != 0 ? Verdict::kMatchRelocated : Verdict::kMatch;
    verdict.resident = host_root(expected, Form::kPlain, {});
    return {};
  }
  if (!wrong.empty() && wrong != kDiffers) {
    verdict.verdict = Verdict::kNotProbed;
    verdict.reason = wrong;
    return {};
  }
  verdict.verdict = Verdict::kDiffer;
  std::vector<std::uint8_t> now;
  std::string refused;
  // Readings are of whole units and of bounded size; what is behind the last lies in the same block.
  const std::uint64_t bytes = (span.bytes + kUnit - 1) / kUnit * kUnit;
  for (std::uint64_t at = 0; at < bytes && refused.empty(); at += kReadMax) {
    std::vector<std::uint8_t> part;
    if (Failure failure = access_.read({span.address + at, std::min(kReadMax, bytes - at)}, part, refused))
      return failure;
    now.insert(now.end(), part.begin(), part.end());
  }
  now.resize(std::min<std::uint64_t>(now.size(), span.bytes));
  tell_differences(expected, now, verdict);
  if (verdict.different_bytes == 0 && verdict.reason.empty()) verdict.reason = "it changed while it was looked at";
  return {};
}

Failure ResidentCode::find_banks(const std::vector<LiveModule>& modules, std::vector<LiveVerdict>& out) {
  std::vector<LiveVerdict> verdicts;
  std::vector<BankImage> images;
  for (const LiveModule& module : modules)
    for (const Bank& bank : module.banks) {
      const auto owner = std::find_if(module.code.functions.begin(), module.code.functions.end(),
                                      [&](const Function& function) { return function.section == bank.function; });
      if (owner == module.code.functions.end() || !whole_.contains({module.label, owner->name})) continue;
      BankImage image;
      image.bytes = expected_bank(bank, {}, image.mask);
      if (tells_nothing(image)) continue;
      LiveVerdict verdict;
      verdict.module = &module;
      verdict.function.name = bank.name;
      verdict.function.bytes = image.bytes.size();
      verdict.function.relocations = bank.relocations.size();
      verdicts.push_back(std::move(verdict));
      images.push_back(std::move(image));
    }
  if (!images.empty())
    if (Failure failure = read_rest()) return failure;
  const std::vector<Place> places = locate_banks(images, copies_, {});
  std::vector<Span> spans;
  std::vector<std::vector<std::uint8_t>> expected;
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    FunctionVerdict& verdict = verdicts[i].function;
    const std::uint64_t words = (images[i].bytes.size() + 3) / 4;
    // What differs in more may be another's, or a leftover: a stale function is whole, too.
    const std::uint64_t most = std::max<std::uint64_t>(1, words / 4);
    if (places[i].address == 0 || places[i].differences > most || places[i].differences == words) {
      verdict.verdict = Verdict::kNotResident;
      verdict.reason = "nowhere in the driver's memory";
      continue;
    }
    verdict.address = places[i].address;
    const identify::Bytes resident = resident_at(copies_, verdict.address, verdict.bytes);
    for (std::size_t at = 0; at < images[i].bytes.size(); ++at)
      if (images[i].mask[at] == 0) images[i].bytes[at] = resident[at];
    spans.push_back({verdict.address, verdict.bytes});
    expected.push_back(std::move(images[i].bytes));
    which.push_back(i);
  }
  std::vector<std::string> wrong;
  if (Failure failure = hash_all(spans, expected, wrong)) return failure;
  for (std::size_t i = 0; i < spans.size(); ++i)
    if (Failure failure = conclude(spans[i], expected[i], wrong[i], verdicts[which[i]].function)) return failure;
  std::move(verdicts.begin(), verdicts.end(), std::back_inserter(out));
  return {};
}

std::vector<ForeignBlock> ResidentCode::foreign() const {
  std::vector<ForeignBlock> out;
  for (std::size_t i = 0; i < rest_.size(); ++i) {
    if (!explains_[i]) continue;
    for (const Span& span : code_like(rest_[i])) {
      const identify::Bytes bytes = resident_at(rest_, span.address, span.bytes);
      out.push_back({span, host_root(bytes, Form::kPlain, {})});
    }
  }
  return out;
}

}  // namespace gpuwatch::probe::agent

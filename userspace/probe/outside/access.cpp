// SPDX-License-Identifier: Apache-2.0
#include "probe/outside/access.h"

#include <algorithm>
#include <cstdio>

#include "kernels/agent.h"
#include "probe/agent/wire.h"

namespace gpuwatch::probe::outside {

namespace {

// Readings begin and end at multiples of this, which is what was tried.
constexpr std::uint64_t kAlign = 4096;

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

OutsideAccess::OutsideAccess(TargetFiles& files, int file, Device device)
    : files_(files), file_(file), device_(std::move(device)) {
  std::sort(device_.memory.begin(), device_.memory.end(),
            [](const MappedMemory& a, const MappedMemory& b) { return a.span.address < b.span.address; });
}

Failure OutsideAccess::read(const Span& span, std::vector<std::uint8_t>& out, std::string& refused) {
  out.clear();
  refused.clear();
  auto at = std::upper_bound(device_.memory.begin(), device_.memory.end(), span.address,
                             [](std::uint64_t address, const MappedMemory& one) { return address < one.span.address; });
  if (at != device_.memory.begin()) --at;
  if (at == device_.memory.end() || span.address < at->span.address || span.bytes == 0 ||
      span.bytes > agent::kHashBytesMax ||
      !identify::fits(span.address - at->span.address, span.bytes, at->span.bytes)) {
    refused = "the records have nothing mapped at " + hex(span.address);
    return {};
  }
  if (!at->held) {
    refused = "the process gave its handle of the memory at " + hex(at->span.address) + " back";
    return {};
  }
  const std::uint64_t begin = at->offset + (span.address - at->span.address);
  const std::uint64_t first = begin / kAlign * kAlign;
  const std::uint64_t whole = at->offset + at->span.bytes;
  const std::uint64_t last = std::min((begin + span.bytes + kAlign - 1) / kAlign * kAlign, whole);
  std::vector<std::uint8_t> bytes(last - first);
  for (std::uint64_t done = 0; done < bytes.size();) {
    const std::span<std::uint8_t> part(bytes.data() + done,
                                       std::min<std::uint64_t>(agent::kReadMax, bytes.size() - done));
    Answer answer{ENOENT, 0};
    for (std::size_t tried = 0; tried < device_.debuggers.size() && !answer.good(); ++tried) {
      const std::size_t which = (debugger_ + tried) % device_.debuggers.size();
      if (Failure failure =
              files_.read(file_, at->client, device_.debuggers[which], at->memory, first + done, part, answer))
        return failure;
      if (answer.good()) debugger_ = which;
    }
    if (!answer.good()) {
      refused = "the driver: " + answer.text() + " for memory " + hex(at->memory) + " of client " + hex(at->client);
      return {};
    }
    done += part.size();
  }
  if (bytes.size() == span.bytes)
    out = std::move(bytes);
  else
    out.assign(bytes.begin() + static_cast<std::ptrdiff_t>(begin - first),
               bytes.begin() + static_cast<std::ptrdiff_t>(begin - first + span.bytes));
  return {};
}

Failure OutsideAccess::survey(const std::vector<Span>& spans, std::vector<agent::SpanCount>& counts,
                              std::string& refused) {
  counts.assign(spans.size(), {});
  refused.clear();
  for (std::size_t i = 0; i < spans.size(); ++i) {
    // Counting is reading, and such a block will be read: not twice.
    if (spans[i].bytes <= agent::kDriverBlock) {
      counts[i] = {1, 1};
      continue;
    }
    // To the first piece with any: that there are some is what matters.
    for (std::uint64_t at = 0; at < spans[i].bytes && counts[i].ends == 0; at += agent::kReadMax) {
      std::vector<std::uint8_t> bytes;
      const Span piece{spans[i].address + at, std::min(agent::kReadMax, spans[i].bytes - at)};
      if (Failure failure = read(piece, bytes, refused)) return failure;
      if (!refused.empty()) return {};
      for (std::size_t unit = 0; unit + 16 <= bytes.size(); unit += 16) {
        const auto low = identify::load<std::uint64_t>(bytes, unit);
        counts[i].units += (low | identify::load<std::uint64_t>(bytes, unit + 8)) != 0 ? 1 : 0;
        counts[i].ends += kernels::is_end(low) ? 1 : 0;
      }
    }
  }
  return {};
}

Failure OutsideAccess::hash(const std::vector<Span>& spans, const Nonce& nonce, bool,
                            std::vector<identify::Digest>& roots, std::string& refused) {
  roots.clear();
  refused.clear();
  for (const Span& span : spans) {
    std::vector<std::uint8_t> bytes;
    if (Failure failure = read(span, bytes, refused)) return failure;
    if (!refused.empty()) return {};
    roots.push_back(host_root(bytes, Form::kTree, nonce));
  }
  return {};
}

Failure file_of(TargetFiles& files, Handle client, int& file, std::string& why) {
  file = -1;
  why.clear();
  std::vector<int> numbers;
  if (Failure failure = files.control_files(numbers)) return failure;
  if (numbers.empty()) why = "the process has no file of /dev/nvidiactl open";
  for (const int number : numbers) {
    Answer answer;
    if (Failure failure = files.knows(number, client, answer)) return failure;
    if (answer.good()) {
      file = number;
      why.clear();
      return {};
    }
    why = "the driver: " + answer.text() + " for client " + hex(client);
  }
  return {};
}

std::vector<Span> heap_of(const Device& device) {
  std::vector<MappedMemory> ranges;
  for (const MappedMemory& one : device.memory)
    if (one.memory_class == kClassVideoMemory && one.span.bytes <= agent::kHeapBlockMax && one.span.address % 16 == 0 &&
        one.span.bytes % 16 == 0)
      ranges.push_back(one);
  std::stable_partition(ranges.begin(), ranges.end(),
                        [](const MappedMemory& one) { return one.flags == agent::kHeapFlags; });
  std::vector<Span> out;
  for (const MappedMemory& one : ranges) out.push_back(one.span);
  return out;
}

}  // namespace gpuwatch::probe::outside

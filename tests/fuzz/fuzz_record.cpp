// SPDX-License-Identifier: Apache-2.0
// Fuzz target: records from the wire to the screen. Whatever the bytes, each
// form of output must be well formed: no control byte in text, JSON that
// parses, one line per record where that is promised.
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/view.h"

namespace {

using namespace gpuwatch;

void must(bool good) {
  if (!good) std::abort();
}

void check_text(const std::string& out) {
  for (const char c : out) must(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f));
}

void check_json(const std::string& out) {
  for (std::size_t at = 0; at < out.size();) {
    const std::size_t end = out.find('\n', at);
    must(end != std::string::npos);
    must(nlohmann::json::parse(out.begin() + static_cast<std::ptrdiff_t>(at),
                               out.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false)
             .is_object());
    at = end + 1;
  }
}

void run(model::Bytes bytes, bool raw, bool json) {
  const cli::Selection selection;
  cli::ViewOptions options;
  options.raw = raw;
  options.json = json;
  auto filter = cli::Filter::compile("(failed || !failed) && comm!~'\x01' && name!='x' && exe!~'\x02' && duration>=0");
  must(filter.ok());
  cli::View view(options, {}, std::move(*filter), selection);
  std::string out;
  while (const auto record = model::parse_record(bytes)) {
    const std::size_t before = out.size();
    const std::size_t lines = view.observe(*record, out);
    must(static_cast<std::size_t>(std::count(out.begin() + static_cast<std::ptrdiff_t>(before), out.end(), '\n')) ==
         lines);
    bytes = bytes.subspan(record->head.len);
  }
  if (json)
    check_json(out);
  else
    check_text(out);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of the exact size lets the address sanitizer see any overrun.
  const std::vector<std::uint8_t> copy(data, data + size);
  const model::Bytes bytes = std::as_bytes(std::span(copy));
  for (const bool raw : {false, true})
    for (const bool json : {false, true}) run(bytes, raw, json);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Fuzz target: lines of the control socket, from either side. A request that is
// taken reads the same when it is written again; a refusal is one line of JSON
// whatever the request was; an answer gives JSON or a reason.
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "control/protocol.h"

namespace {

using namespace gpuwatch::control;

void must(bool holds) {
  if (!holds) std::abort();
}

bool is_line(const std::string& text) {
  return nlohmann::json::accept(text) && std::count(text.begin(), text.end(), '\n') == 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  if (auto request = parse_request(line)) {
    must(line.size() <= kRequestMax);
    must(request->path.empty() || (request->verb == Verb::kDump && request->path.front() == '/'));
    const std::string written = format_request(*request);
    must(is_line(written));
    auto again = parse_request(written);
    must(again.ok() && again->verb == request->verb && again->path == request->path);
  } else {
    must(is_line(format_refusal(request.error().message())));
  }
  for (const Verb verb : {Verb::kStatus, Verb::kHoldings, Verb::kDump, Verb::kReload}) {
    auto body = parse_answer(line, verb);
    if (!body) continue;
    must(is_line(*body));
    auto again = parse_answer(format_answer(verb, *body), verb);
    must(again.ok() && *again == *body);
  }
  return 0;
}

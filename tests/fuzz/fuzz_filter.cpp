// SPDX-License-Identifier: Apache-2.0
// Fuzz target: the filter language. Any text either compiles and can then be
// evaluated, or gives an error that names a column inside the text.
#include <cstdlib>

#include "cli/filter.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  auto filter = gpuwatch::cli::Filter::compile(text);
  if (filter.ok()) {
    gpuwatch::model::Call call;
    (void)filter->matches(call, gpuwatch::model::Actor{});
    return 0;
  }
  const std::string& message = filter.error().message();
  if (!message.starts_with("column ")) std::abort();
  const unsigned long column = std::strtoul(message.c_str() + 7, nullptr, 10);
  if (column == 0 || column > size + 1) std::abort();
  return 0;
}

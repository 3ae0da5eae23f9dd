// SPDX-License-Identifier: Apache-2.0
// Fuzz target: what gpuwatch takes from a probe, and what the probe takes from an
// image. Lines of output in whatever pieces they come give the same objects; of a
// cubin, functions and constant banks are looked for in memory made of its own
// bytes, and what is found lies where it is said to.
#include <cstdlib>

#include "probe/answer.h"
#include "probe/banks.h"
#include "probe/locate.h"

namespace {

using namespace gpuwatch;
using namespace gpuwatch::probe;

std::vector<nlohmann::json> lines_of(std::string_view text, std::size_t step) {
  std::vector<nlohmann::json> out;
  AnswerLines lines(1 << 16);
  for (std::size_t at = 0; at < text.size(); at += step)
    if (!lines
             .feed(text.substr(at, step),
                   [&](const nlohmann::json& line) {
                     out.push_back(line);
                     return base::Status();
                   })
             .ok())
      break;
  (void)lines.end();
  return out;
}

void answers(std::string_view text) {
  const auto whole = lines_of(text, std::max<std::size_t>(1, text.size()));
  if (lines_of(text, 7) != whole) std::abort();
  for (const nlohmann::json& line : whole) {
    (void)kernel_answer(line);
    for (const char* key : {"gpu", "bytes", "r", "name"}) {
      (void)answer_number(line, key);
      (void)answer_digest(line, key);
      if (answer_text(line, key, 16).size() > 16) std::abort();
    }
  }
}

void image(identify::Bytes bytes) {
  Code code;
  std::vector<Bank> banks;
  if (!read_code(bytes, code).empty() || !read_banks(bytes, banks).empty()) return;
  Copy copy{0x7f0000000000, std::vector<std::uint8_t>(1 << 16)};
  std::vector<const Function*> functions;
  std::size_t at = 256;
  for (const Function& function : code.functions) {
    functions.push_back(&function);
    if (!identify::fits(at, function.text.size(), copy.bytes.size())) break;
    std::copy(function.text.begin(), function.text.end(), copy.bytes.begin() + static_cast<std::ptrdiff_t>(at));
    at += (function.text.size() + 0x8ff) / 256 * 256;
  }
  const std::vector<Copy> copies{copy};
  const std::vector<Place> places = locate(functions, copies);
  for (std::size_t i = 0; i < places.size(); ++i)
    if (places[i].address != 0 &&
        resident_at(copies, places[i].address, functions[i]->text.size()).size() != functions[i]->text.size())
      std::abort();
  std::vector<BankImage> images;
  for (const Bank& bank : banks) {
    BankImage one;
    one.bytes = expected_bank(bank, {}, one.mask);
    if (one.mask.size() != one.bytes.size()) std::abort();
    images.push_back(std::move(one));
  }
  (void)locate_banks(images, copies, {});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of the exact size lets the address sanitizer see any overrun.
  const std::vector<std::uint8_t> copy(data, data + size);
  if (size != 0 && data[0] == '{')
    answers(identify::as_text(copy));
  else
    image(copy);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any bytes as PTX text, and as a file in which such text may lie.
// The normal form is one: it has no comment, no blank line, and is its own.
#include <cstdlib>
#include <string>
#include <vector>

#include "identify/ptx.h"
#include "identify/scan.h"

using namespace gpuwatch::identify;

namespace {

void must(bool good) {
  if (!good) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::uint8_t> copy(data, data + size);
  const Bytes bytes(copy);
  (void)find_ptx_header(bytes);
  must(ptx_lead(bytes) <= bytes.size());
  const Bytes text = ptx_text(bytes);
  must(text.size() <= bytes.size() && (text.empty() || text.back() != 0));

  const std::string normal = ptx_normal_form(bytes);
  must(normal.size() <= bytes.size());
  must(normal.find('\0') == std::string::npos && normal.find("//") == std::string::npos);
  must(normal.find("\n\n") == std::string::npos);
  must(ptx_normal_form(as_bytes(normal)) == normal);

  Limits limits;
  limits.ptx_bytes = 16 << 10;
  const MemorySource source(bytes);
  const Scan found = scan(source, limits);
  std::uint64_t at = 0;
  for (const Image& image : found.images) {
    must(image.offset >= at && image.offset <= size && image.stored_bytes <= size - image.offset);
    at = image.offset + image.stored_bytes;
    if (image.kind != Kind::kPtx || image.in_container) continue;
    const PtxHeader header = find_ptx_header(bytes.subspan(image.offset, image.stored_bytes));
    must(header.sm == image.sm && header.suffix == image.sm_suffix);
  }
  return 0;
}

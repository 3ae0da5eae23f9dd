// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any bytes as a cubin: ELF, symbols, relocations, attributes and
// the canonical form. The same bytes hash the same by every engine, and what is
// hashed is bounded by the size of the image.
#include <cstdlib>
#include <vector>

#include "identify/cubin.h"
#include "identify/elf.h"
#include "identify/nvinfo.h"

using namespace gpuwatch::identify;

namespace {

void must(bool good) {
  if (!good) std::abort();
}

Module module_of(Bytes image, const Limits& limits, HashBatch::Engine engine) {
  HashBatch batch(engine);
  Module module;
  CubinPlan plan;
  plan.plan(image, limits, batch, module);
  batch.run();
  plan.finish(batch, module);
  return module;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::uint8_t> image(data, data + size);
  Limits limits;
  limits.sections = 2000;
  limits.symbols = 2000;
  limits.name_bytes = 4096;

  Elf elf;
  if (elf.parse(image, limits).empty()) {
    must(elf.sections().size() <= limits.sections && elf.symbols().size() <= limits.symbols);
    for (const Section& section : elf.sections()) {
      must(section.name.size() < limits.name_bytes);
      must(!section.in_file || elf.bytes(section).size() == section.size);
      std::vector<Attribute> attributes;
      (void)read_attributes(elf.bytes(section), attributes);
      for (const Attribute& attribute : attributes) must(!attribute.value.empty() || attribute.format == 4);
    }
    for (const Symbol& symbol : elf.symbols()) must(symbol.name.size() < limits.name_bytes);
  }

  const Module module = module_of(image, limits, HashBatch::Engine::kBest);
  const Module again = module_of(image, limits, HashBatch::Engine::kOpenSsl);
  must(module.m == again.m && module.d == again.d && module.kernels.size() == again.kernels.size());
  must(module.has_modules || (!module.errors.empty() && module.kernels.empty()));
  for (std::size_t i = 0; i < module.kernels.size(); ++i) {
    must(module.kernels[i].k == again.kernels[i].k && module.kernels[i].t == again.kernels[i].t);
    must(!module.kernels[i].name.empty() && module.kernels[i].k != Digest{});
  }
  return 0;
}

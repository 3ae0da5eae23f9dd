// SPDX-License-Identifier: Apache-2.0
// Describer: every field of a call with its value before and after, from the
// layouts in tables/. For people and for single calls: it allocates and is a
// hundred times slower than Decoder, which stays the path of every record.
// Never fails and drops nothing: bytes that no field owns are given as hex and
// counted.
#pragma once

#include "decode/describe_value.h"
#include "decode/file_table.h"
#include "model/call.h"
#include "model/description.h"
#include "model/driver_version.h"

namespace gpuwatch::decode {

struct CapturePart;
class Captures;

class Describer {
 public:
  // An unknown version is described by the newest branch, as Decoder does.
  explicit Describer(model::DriverVersion version = {}) { use(version); }

  // As Decoder::use().
  void use(model::DriverVersion version);

  // Every call of the stream, so that descriptor numbers can be told as files.
  void observe(const model::Call& call) { files_.observe(call); }

  model::Description describe(const model::Call& call) const;

  const Unnamed& unnamed() const { return unnamed_; }

 private:
  struct Source;

  void describe_argument(const model::Call& call, const Captures& captures, model::Description& out) const;
  void describe_parameters(const model::Call& call, const Captures& captures, model::Description& out) const;
  // One part from its bytes. `first` and `other` are the forms the struct may
  // have, kNoStruct where there is none.
  void add_part(Source source, std::string_view role, std::uint16_t first, std::uint16_t other,
                model::Description& out) const;
  void add_fields(const Source& source, std::uint16_t struct_id, unsigned branch, std::uint32_t base,
                  const std::string& prefix, model::DescribedPart& part) const;
  void add_field(const Source& source, const tables::LayoutField& field, unsigned branch, std::uint32_t base,
                 const std::string& prefix, model::DescribedPart& part) const;
  void add_roles(const Source& source, const tables::StructInfo& info, model::DescribedPart& part) const;

  unsigned branch_;
  mutable FileTable files_;
  mutable Unnamed unnamed_;
};

}  // namespace gpuwatch::decode

// SPDX-License-Identifier: Apache-2.0
// Decoder: gives a record its names and values by table lookup. Pure apart
// from its counters, allocates nothing, never fails: what the tables do not
// know stays a number and is counted. One Decoder per thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/call.h"
#include "model/driver_version.h"

namespace gpuwatch::decode {

class Captures;

struct Stats {
  std::uint64_t records = 0;
  std::uint64_t malformed = 0;        // payload does not have the promised form
  std::uint64_t unknown_types = 0;    // record types of a newer schema
  std::uint64_t unknown_escapes = 0;  // each: calls whose number has no name
  std::uint64_t unknown_uvm = 0;
  std::uint64_t unknown_nvkms = 0;
  std::uint64_t unknown_other = 0;  // commands of nodes without a table: capabilities, switches
  std::uint64_t unknown_classes = 0;
  std::uint64_t unknown_controls = 0;
  std::uint64_t unknown_status = 0;
  std::uint64_t size_mismatches = 0;  // argument size differs from the table's
};

class Decoder {
 public:
  // An unknown version decodes by the newest branch.
  explicit Decoder(model::DriverVersion version = {});

  model::Call decode(const model::RawRecord& record) const;

  // From here on by another version's tables, for a stream that tells its
  // driver late. Counters go on.
  void use(model::DriverVersion version);

  // The driver branch whose tables are used, "580"; inherited() when the version
  // is not of that branch or not known, so names are likely but not verified.
  std::string_view branch() const;
  bool inherited() const { return inherited_; }
  const Stats& stats() const { return stats_; }

 private:
  void decode_ioctl(model::Call& call) const;
  void decode_frontend(model::Call& call, const Captures& captures) const;
  void decode_uvm(model::Call& call, const Captures& captures) const;
  void decode_nvkms(model::Call& call, const Captures& captures) const;
  void name_class(model::Call& call, const Captures& captures) const;
  void name_control(model::Call& call, const Captures& captures) const;
  void read_params(model::Call& call, const Captures& captures, std::uint16_t struct_id) const;
  void name_status(model::Call& call) const;

  unsigned branch_;
  bool inherited_;
  std::string_view ok_name_;  // of status 0, which nearly every call has
  mutable Stats stats_;
};

}  // namespace gpuwatch::decode

// SPDX-License-Identifier: Apache-2.0
// Reads the records of one process's driver calls: a .gwcap file, which may
// still be being written, or the directory in which libgpuwatch-record.so keeps
// what it records. Whoever can write them can say anything; every byte is
// checked by the readers in source/ and preload/. They are opened by whoever may,
// and read where there are no rights.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "preload/shards.h"
#include "probe/outside/driver_facts.h"
#include "probe/session.h"

namespace gpuwatch::probe::outside {

// Which process is meant, in the words of records.
struct Identity {
  std::vector<std::uint32_t> numbers;  // its ids, from our pid namespace to its own
  std::uint64_t start_ticks = 0;       // since boot, as /proc has it
};

// What is open of them.
struct RecordFiles {
  std::string path;    // as it was named
  std::string driver;  // the release that runs; a .gwcap has its own
  bool directory = false;
  std::vector<preload::OpenShard> files;  // of a .gwcap the one
};

struct Records {
  DriverFacts facts;
  std::string recorder;     // "kmod", "preload"
  std::string driver;       // by whose tables they were read
  std::uint64_t calls = 0;  // of this process
  std::uint64_t lost = 0;   // records, of any process
  std::string end;          // why there are no more; empty: they are whole
};

// Opens what is regular, and nothing else that lies there.
Failure open_records(const std::string& path, RecordFiles& out);

// Opens nothing. As often as wanted; up to where the files ended when it began.
Failure read_records(const RecordFiles& files, const Identity& process, Records& out);

}  // namespace gpuwatch::probe::outside

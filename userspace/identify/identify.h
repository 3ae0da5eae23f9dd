// SPDX-License-Identifier: Apache-2.0
// The room's front door: a path, a descriptor or bytes in, entries with hashes
// and kernels out. Parsing happens in worker processes; nothing here throws.
//
// A program that uses Identifier must begin main() with
//   if (identify::is_worker(argc, argv)) return identify::worker_main();
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "identify/bytes.h"
#include "identify/image.h"
#include "identify/limits.h"
#include "identify/worker.h"

namespace gpuwatch::identify {

// One image of a file. Errors: image.error names a wrong header, module.errors
// what is wrong inside, in the words of the format: "declared size", "zstd
// error", "both compression bits", "not ELF64LE", "symtab".
struct Entry {
  Image image;
  Digest stored{};          // SHA-256 of the bytes as they lie in the file
  std::string section;      // of the host file, empty where unknown
  bool from_cache = false;  // the module was known by `stored`
  Module module;
};

// Takes what is found, in the order of the file; entries that suit Options::sm
// come first. `file` is the path; members of archives follow after "!".
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void entry(const std::string& file, const Entry& entry) = 0;
  // A container with errors or an unparsed rest.
  virtual void container(const std::string& file, const Container& container) = 0;
  // The file as a whole, or a part of it, could not be read.
  virtual void error(const std::string& file, const std::string& what) = 0;
  // A file is done; it had so many entries.
  virtual void end_of_file(const std::string&, std::uint64_t) {}
  // Bytes of this file done so far, of so many.
  virtual void progress(const std::string&, std::uint64_t, std::uint64_t) {}
  virtual bool stop_wanted() { return false; }
};

struct Options {
  std::optional<std::uint32_t> sm;  // of the device: only what it can run
  bool all = false;                 // with sm: the rest, too, after that
  unsigned workers = 0;             // 0: one per processor, at most 16
  int timeout_ms = 120'000;         // for one request to a worker
  std::string cache_path;           // empty: no cache
  std::string spool_dir;            // for members of archives; empty: $TMPDIR or /tmp
  Limits limits;
};

// Does a device of compute capability `sm` take this image: the same SM, the
// same family with a lower number, PTX or LTO-IR for what came before?
bool suits(const Image& image, std::uint32_t sm);

class Identifier {
 public:
  explicit Identifier(Options options);
  ~Identifier();
  Identifier(Identifier&&) noexcept;

  // A file, or all files below a directory. Errors that concern the path itself
  // are returned; those of files below go to the sink.
  base::Status path(const std::string& path, Sink& sink);
  // An open file; `name` is for reports. Archives are opened.
  base::Status file(const std::string& name, int fd, Sink& sink);
  // Bytes in memory, as a file without a name.
  base::Status bytes(const std::string& name, Bytes bytes, Sink& sink);

  // C++ names, empty where a name is none.
  std::vector<std::string> demangle(const std::vector<std::string>& names);

  // What went wrong with the cache, if anything; the work is done without it.
  const std::vector<std::string>& warnings() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// All of it at once, for callers that need no stream.
struct FileReport {
  struct Part {
    std::string file;
    std::string error;  // empty: see container or entry
    std::optional<Container> container;
    std::optional<Entry> entry;
  };
  std::vector<Part> parts;
};
class Collector : public Sink {
 public:
  FileReport report;
  void entry(const std::string& file, const Entry& entry) override { report.parts.push_back({file, {}, {}, entry}); }
  void container(const std::string& file, const Container& container) override {
    report.parts.push_back({file, {}, container, {}});
  }
  void error(const std::string& file, const std::string& what) override {
    report.parts.push_back({file, what, {}, {}});
  }
};

}  // namespace gpuwatch::identify

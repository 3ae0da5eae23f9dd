// SPDX-License-Identifier: Apache-2.0
// `gpuwatch hash`: prints what identify finds in files, as JSON or for people,
// with a progress bar where a person waits. It judges nothing.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "base/io.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "identify/cache.h"
#include "identify/identify.h"

namespace gpuwatch::cli {

namespace {

using identify::Container;
using identify::Entry;
using identify::Kernel;
using identify::Kind;

constexpr auto kBarAfter = std::chrono::milliseconds(700);
constexpr auto kBarEvery = std::chrono::milliseconds(100);
constexpr std::size_t kBarWidth = 30;
constexpr std::size_t kShownNameMax = 100;

class Bar {
 public:
  Bar() : on_(::isatty(STDERR_FILENO) == 1), begin_(std::chrono::steady_clock::now()) {}

  void update(const std::string& file, std::uint64_t done, std::uint64_t total) {
    const auto now = std::chrono::steady_clock::now();
    if (!on_ || total == 0 || now - begin_ < kBarAfter || now - last_ < kBarEvery) return;
    last_ = now;
    const std::size_t filled = static_cast<std::size_t>(
        static_cast<double>(kBarWidth) * std::min(1.0, static_cast<double>(done) / static_cast<double>(total)));
    std::string line = "\r[" + std::string(filled, '#') + std::string(kBarWidth - filled, ' ') + "] " +
                       std::to_string(std::min<std::uint64_t>(100, done * 100 / total)) + " % ";
    const std::string name = file.substr(file.rfind('/') == std::string::npos ? 0 : file.rfind('/') + 1);
    base::append_escaped(line, std::string_view(name).substr(0, 40));
    line += "\033[K";
    (void)base::write_all(STDERR_FILENO, line).ok();
    shown_ = true;
  }

  void clear() {
    if (shown_) (void)base::write_all(STDERR_FILENO, "\r\033[K").ok();
    shown_ = false;
  }

 private:
  bool on_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point last_;
};

class Printer : public identify::Sink {
 public:
  explicit Printer(bool json) : json_(json) {}

  void entry(const std::string& file, const Entry& entry) override {
    bar_.clear();
    ++entries_;
    if (!entry.module.errors.empty()) found_ = true;
    if (json_)
      print_json(file, entry);
    else
      print_text(file, entry);
    written();
  }

  void container(const std::string& file, const Container& container) override {
    bar_.clear();
    found_ = true;
    if (json_) {
      nlohmann::json line{{"file", base::to_utf8(file)},
                          {"container_offset", container.offset},
                          {"section", base::to_utf8(container.section)},
                          {"entry", nullptr},
                          {"errors", utf8(container.errors)}};
      if (container.unparsed_bytes != 0) line["unparsed_bytes"] = container.unparsed_bytes;
      put(line);
    } else {
      heading(file);
      for (const std::string& error : container.errors) {
        output_.buffer() += "  container at " + std::to_string(container.offset) + ": ";
        base::append_escaped(output_.buffer(), error);
        output_.buffer() += '\n';
      }
    }
    written();
  }

  void error(const std::string& file, const std::string& what) override {
    bar_.clear();
    trouble_ = true;
    say(what.starts_with(file) ? what : file + ": " + what);
  }

  void progress(const std::string& file, std::uint64_t done, std::uint64_t total) override {
    bar_.update(file, done, total);
  }

  bool stop_wanted() override { return cli::stop_wanted() || output_.closed() || !status_.ok(); }

  base::Result<int> finish() {
    bar_.clear();
    written();
    if (status_.ok()) status_ = output_.flush();
    if (!status_.ok()) return std::move(status_.error());
    if (entries_ == 0 && !found_ && !trouble_) say("no GPU code found");
    return trouble_ ? kExitTrouble : found_ ? kExitFinding : kExitOk;
  }

  void set_demangler(identify::Identifier& identifier) { identifier_ = &identifier; }

 private:
  static nlohmann::json utf8(const std::vector<std::string>& list) {
    nlohmann::json out = nlohmann::json::array();
    for (const std::string& item : list) out.push_back(base::to_utf8(item));
    return out;
  }

  void put(const nlohmann::json& line) {
    output_.buffer() += line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }

  void written() {
    if (base::Status status = output_.flush_if_full(); !status.ok() && status_.ok()) status_ = std::move(status);
  }

  void print_json(const std::string& file, const Entry& entry) {
    const auto& [image, stored, section, from_cache, module] = entry;
    nlohmann::json kernels = nlohmann::json::array();
    for (const Kernel& kernel : module.kernels)
      kernels.push_back({{"name", base::to_utf8(kernel.name)},
                         {"entry", kernel.entry},
                         {"k", identify::to_hex(kernel.k)},
                         {"t", identify::to_hex(kernel.t)},
                         {"code_bytes", kernel.code_bytes},
                         {"regs", kernel.registers},
                         {"shared", kernel.shared_bytes},
                         {"barriers", kernel.barriers}});
    nlohmann::json line{{"file", base::to_utf8(file)},
                        {"container_offset", image.container_offset},
                        {"entry", image.entry},
                        {"in_container", image.in_container},
                        {"kind", identify::to_string(image.kind)},
                        {"sm", module.sm != 0 ? module.sm : image.sm},
                        {"bytes", module.bytes},
                        {"stored_bytes", image.stored_bytes},
                        {"stored_sha256", identify::to_hex(stored)},
                        {"r", identify::to_hex(module.r)},
                        {"m", nullptr},
                        {"d", nullptr},
                        {"kernels", std::move(kernels)},
                        {"errors", utf8(module.errors)}};
    if (module.has_modules) {
      line["m"] = identify::to_hex(module.m);
      line["d"] = identify::to_hex(module.d);
      line["abi"] = module.abi;
      line["relocatable"] = module.relocatable;
    }
    if (module.p) line["p"] = identify::to_hex(*module.p);
    if (image.sm_suffix != 0) line["sm_suffix"] = std::string(1, image.sm_suffix);
    if (image.opaque) line["opaque"] = true;
    if (!section.empty()) line["section"] = base::to_utf8(section);
    if (!image.identifier.empty()) line["identifier"] = base::to_utf8(image.identifier);
    put(line);
  }

  void heading(const std::string& file) {
    if (file == file_) return;
    file_ = file;
    base::append_escaped(output_.buffer(), file);
    output_.buffer() += ":\n";
  }

  void print_text(const std::string& file, const Entry& entry) {
    heading(file);
    const auto& [image, stored, section, from_cache, module] = entry;
    std::string& out = output_.buffer();
    out += "  " + std::string(identify::to_string(image.kind));
    if (const std::uint32_t sm = module.sm != 0 ? module.sm : image.sm; sm != 0) {
      out += " sm_" + std::to_string(sm);
      if (image.sm_suffix != 0) out += image.sm_suffix;
    }
    out += image.in_container
               ? " entry " + std::to_string(image.entry) + " of container at " + std::to_string(image.container_offset)
               : " at " + std::to_string(image.offset);
    if (!section.empty()) {
      out += " in ";
      base::append_escaped(out, section);
    }
    out += ", " + std::to_string(module.bytes) + " bytes\n    R " + identify::to_hex(module.r) + "\n";
    if (module.has_modules)
      out += "    M " + identify::to_hex(module.m) + "\n    D " + identify::to_hex(module.d) + "\n";
    if (module.p) out += "    P " + identify::to_hex(*module.p) + "\n";
    for (const std::string& error : module.errors) {
      out += "    error: ";
      base::append_escaped(out, error);
      out += '\n';
    }
    if (module.kernels.empty()) return;
    std::vector<std::string> names;
    for (const Kernel& kernel : module.kernels) names.push_back(kernel.name);
    const std::vector<std::string> readable = identifier_->demangle(names);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Kernel& kernel = module.kernels[i];
      out += "    K " + identify::to_hex(kernel.k) + (kernel.entry ? " " : " (device function) ");
      const std::string& name = readable[i].empty() ? kernel.name : readable[i];
      base::append_escaped(out, std::string_view(name).substr(0, kShownNameMax));
      if (name.size() > kShownNameMax) out += "...";
      out += ": " + std::to_string(kernel.code_bytes) + " bytes, " + std::to_string(kernel.registers) + " registers, " +
             std::to_string(kernel.shared_bytes) + " bytes shared, " + std::to_string(kernel.barriers) + " barriers\n";
    }
  }

  bool json_;
  Output output_;
  Bar bar_;
  base::Status status_;
  identify::Identifier* identifier_ = nullptr;
  std::string file_;
  std::uint64_t entries_ = 0;
  bool found_ = false;
  bool trouble_ = false;
};

}  // namespace

base::Result<int> run_hash(const Flags& flags) {
  identify::Options options;
  if (const auto sm = flags.number("sm")) {
    if (*sm < 10 || *sm > 999)
      return base::Error(base::Code::kBadInput, "--sm: a number such as 80, 90 or 120 is meant");
    options.sm = static_cast<std::uint32_t>(*sm);
  }
  options.all = flags.has("all");
  if (!flags.has("no-cache")) options.cache_path = identify::default_cache_path();
  identify::Identifier identifier(options);
  Printer printer(flags.has("json"));
  printer.set_demangler(identifier);
  for (const std::string& path : flags.arguments()) {
    if (printer.stop_wanted()) break;
    if (base::Status status = identifier.path(path, printer); !status.ok())
      printer.error(path, status.error().message());
  }
  for (const std::string& warning : identifier.warnings()) say(warning);
  return printer.finish();
}

}  // namespace gpuwatch::cli

// SPDX-License-Identifier: Apache-2.0
#include "probe/print.h"

#include <sys/random.h>

#include <cstdio>
#include <cstdlib>

#include "base/escape.h"

namespace gpuwatch::probe {

namespace {

std::string hex(const std::vector<std::uint8_t>& bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text;
}

}  // namespace

std::string format(const char* form, double value) {
  char text[64];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

Nonce fresh_nonce() {
  Nonce nonce{};
  if (::getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) std::abort();
  return nonce;
}

void Report::line(const nlohmann::json& object, const std::string& text) {
  std::string out;
  if (!json_) {
    base::append_escaped(out, text);
  } else {
    nlohmann::json all = object;
    if (round_ != 0) all["round"] = round_;
    if (with_text_ && !text.empty()) all["text"] = base::to_utf8(text);
    out = all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  out += '\n';
  std::fputs(out.c_str(), stdout);
  std::fflush(stdout);
}

int Report::failure(const Failure& failure, int gpu) {
  std::fprintf(stderr, "gpuwatch-probe: %s\n", failure.text.c_str());
  if (json_) {
    nlohmann::json object{
        {"type", "error"}, {"reason", base::to_utf8(failure.text)}, {"exit_code", static_cast<int>(failure.outcome)}};
    if (gpu >= 0) object["gpu"] = gpu;
    line(object, "");
  }
  return static_cast<int>(failure.outcome);
}

namespace {

void print_verdict(const char* type, const FunctionVerdict& verdict, const std::string& label, int gpu, bool quiet,
                   Report& report) {
  nlohmann::json object{{"type", type},
                        {"gpu", gpu},
                        {"image", label},
                        {"name", base::to_utf8(verdict.name)},
                        {"verdict", to_string(verdict.verdict)},
                        {"bytes", verdict.bytes},
                        {"relocations", verdict.relocations},
                        {"unchecked_relocations", verdict.unchecked}};
  if (verdict.address != 0) object["address"] = verdict.address;
  object["read_by"] = report.read_by();
  std::string text = std::string("  ") + to_string(verdict.verdict) + " " + verdict.name;
  if (report.read_by() != "gpu") text += " (read by the " + report.read_by() + ")";
  if (!verdict.reason.empty()) {
    object["reason"] = base::to_utf8(verdict.reason);
    text += ": " + verdict.reason;
  }
  if (verdict.loader_changes != 0) object["loader_changes"] = verdict.loader_changes;
  if (verdict.verdict == Verdict::kDiffer) {
    object["first_offset"] = verdict.first_offset;
    object["different_bytes"] = verdict.different_bytes;
    for (const CodeDifference& difference : verdict.differences)
      object["differences"].push_back({{"offset", difference.offset},
                                       {"expected", hex(difference.expected)},
                                       {"resident", hex(difference.resident)}});
    text += ", " + std::to_string(verdict.different_bytes) + " bytes, first at offset " +
            std::to_string(verdict.first_offset);
  }
  const bool plain = verdict.verdict == Verdict::kMatch || verdict.verdict == Verdict::kMatchRelocated;
  if (plain) object["resident_sha256"] = identify::to_hex(verdict.resident);
  // A constant bank has none.
  if (plain && verdict.image != nullptr) {
    object["form_sha256"] = identify::to_hex(verdict.form);
    object["source"] = verdict.image->ptx() ? "ptx" : "cubin";
    object["r"] = identify::to_hex(verdict.image->r());
    if (const FunctionHashes* hashes = verdict.image->of(verdict.name)) {
      object["k"] = identify::to_hex(hashes->k);
      object["t"] = identify::to_hex(hashes->t);
    }
  }
  if (plain && quiet) text.clear();
  if (report.json() || !text.empty()) report.line(object, text);
}

}  // namespace

void print_function(const FunctionVerdict& verdict, const std::string& label, int gpu, bool quiet, Report& report) {
  print_verdict("kernel", verdict, label, gpu, quiet, report);
}

void print_bank(const FunctionVerdict& verdict, const std::string& label, int gpu, bool quiet, Report& report) {
  print_verdict("constant_bank", verdict, label, gpu, quiet, report);
}

void print_batch(const BatchFigures& figures, std::size_t number, int gpu, Report& report) {
  if (!report.json()) return;
  report.line({{"type", "batch"},
               {"gpu", gpu},
               {"number", number},
               {"modules", figures.modules},
               {"functions", figures.functions},
               {"banks", figures.banks},
               {"text_bytes", figures.text_bytes},
               {"hashed_bytes", figures.hashed_bytes},
               {"heap_bytes", figures.heap_bytes},
               {"heap_ranges", figures.heap_ranges},
               {"readings_gpu_ms", {figures.gpu_ms[0], figures.gpu_ms[1]}},
               {"load_ms", figures.load_ms},
               {"read_ms", figures.read_ms},
               {"refresh_ms", figures.refresh_ms},
               {"search_ms", figures.search_ms},
               {"settle_ms", figures.settle_ms},
               {"hash_ms", figures.hash_ms},
               {"host_hash_ms", figures.host_ms},
               {"unload_ms", figures.unload_ms}},
              "");
}

void add_counts(const Totals& totals, nlohmann::json& object, std::string& text) {
  for (int i = 0; i < 5; ++i) {
    object[to_string(static_cast<Verdict>(i))] = totals.counts[i];
    text +=
        std::string(i == 0 ? " " : ", ") + std::to_string(totals.counts[i]) + " " + to_string(static_cast<Verdict>(i));
  }
  nlohmann::json banks;
  std::string bank_text;
  for (int i = 0; i < 5; ++i) {
    banks[to_string(static_cast<Verdict>(i))] = totals.banks[i];
    if (totals.banks[i] != 0)
      bank_text += (bank_text.empty() ? "; constant banks: " : ", ") + std::to_string(totals.banks[i]) + " " +
                   to_string(static_cast<Verdict>(i));
  }
  object["constant_banks"] = banks;
  text += bank_text;
}

}  // namespace gpuwatch::probe

// SPDX-License-Identifier: Apache-2.0
#include "cli/one_call.h"

#include <string.h>

#include <array>
#include <charconv>
#include <cstring>

namespace gpuwatch::cli {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

namespace {

constexpr std::uint32_t kXferNumber = 211;  // NV_ESC_IOCTL_XFER_CMD
constexpr std::size_t kXferBytes = 16;      // {u32 number, u32 size, u64 address}
constexpr std::uint32_t kFrontendMajor = 195;
constexpr std::uint32_t kOtherMajor = 240;  // dynamic on real machines; nothing depends on it

struct Device {
  std::uint8_t kind = GPUWATCH_NODE_OTHER;
  std::uint32_t rdev = 0;
};

bool is_frontend(const Device& device) {
  return device.kind == GPUWATCH_NODE_CTL || device.kind == GPUWATCH_NODE_GPU;
}

std::optional<std::uint64_t> number_from(std::string_view text) {
  const bool hex = text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  if (hex) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

Result<Device> device_from(std::string_view text) {
  std::string_view name = text;
  if (name.starts_with("/dev/")) name.remove_prefix(5);
  struct Node {
    std::string_view prefix;
    gpuwatch_node_kind kind;
    std::uint32_t major;
    std::uint32_t minor;
    bool numbered;
  };
  static constexpr std::array<Node, 8> kNodes = {{
      {"nvidiactl", GPUWATCH_NODE_CTL, kFrontendMajor, 255, false},
      {"nvidia-uvm-tools", GPUWATCH_NODE_UVM_TOOLS, kOtherMajor, 1, false},
      {"nvidia-uvm", GPUWATCH_NODE_UVM, kOtherMajor, 0, false},
      {"nvidia-modeset", GPUWATCH_NODE_MODESET, kFrontendMajor, 254, false},
      {"nvidia-caps/nvidia-cap", GPUWATCH_NODE_CAPS, kOtherMajor, 0, true},
      {"nvidia-nvswitch", GPUWATCH_NODE_NVSWITCH, kOtherMajor, 0, true},
      {"nvidia-nvlink", GPUWATCH_NODE_NVLINK, kOtherMajor, 0, false},
      {"nvidia", GPUWATCH_NODE_GPU, kFrontendMajor, 0, true},
  }};
  for (const Node& node : kNodes) {
    if (!name.starts_with(node.prefix)) continue;
    const std::string_view rest = name.substr(node.prefix.size());
    const auto minor = node.numbered ? number_from(rest) : std::nullopt;
    const bool fits = node.numbered ? minor && *minor < 255 && rest.size() <= 3 : rest.empty();
    if (fits)
      return Device{static_cast<std::uint8_t>(node.kind),
                    node.major << 20 | (minor ? static_cast<std::uint32_t>(*minor) : node.minor)};
  }
  return Error(Code::kBadInput, "--device: unknown device '" + std::string(text) +
                                    "'; devices are: nvidiactl, nvidia0 (any number), nvidia-uvm, nvidia-uvm-tools, "
                                    "nvidia-modeset, nvidia-nvswitch0, nvidia-nvlink, nvidia-caps/nvidia-cap1");
}

// _IOC(_IOC_READ|_IOC_WRITE, 0x46, 0x2b, 0x30), as strace prints a request it
// has no name for.
std::optional<std::uint64_t> ioc_from(std::string_view text) {
  if (!text.starts_with("_IOC(") || !text.ends_with(")")) return std::nullopt;
  text = text.substr(5, text.size() - 6);
  std::array<std::string_view, 4> parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t comma = text.find(',');
    if ((comma == std::string_view::npos) != (i + 1 == parts.size())) return std::nullopt;
    parts[i] = text.substr(0, comma);
    while (parts[i].starts_with(' ')) parts[i].remove_prefix(1);
    while (parts[i].ends_with(' ')) parts[i].remove_suffix(1);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  std::uint64_t direction = 0;
  if (parts[0].find("_IOC_WRITE") != std::string_view::npos) direction |= 1;
  if (parts[0].find("_IOC_READ") != std::string_view::npos) direction |= 2;
  const auto type = number_from(parts[1]);
  const auto number = number_from(parts[2]);
  const auto size = number_from(parts[3]);
  if (!type || !number || !size || *type > 0xFF || *number > 0xFF || *size > 0x3FFF) return std::nullopt;
  return direction << 30 | *size << 16 | *type << 8 | *number;
}

Result<std::uint32_t> request_from(std::string_view text) {
  auto value = ioc_from(text);
  if (!value) value = number_from(text);
  // strace prints 32 bits, a debugger may print the 64 of the register.
  if (value && *value >> 32 == 0xFFFFFFFF) *value &= 0xFFFFFFFF;
  if (!value || *value > 0xFFFFFFFF)
    return Error(Code::kBadInput, "--request: '" + std::string(text) +
                                      "' is no request; give it as 0xc030462b, as "
                                      "_IOC(_IOC_READ|_IOC_WRITE, 0x46, 0x2b, 0x30), or the command's number alone");
  return static_cast<std::uint32_t>(*value);
}

Result<std::int64_t> ret_from(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value > -4096) return value;
  for (int number = 1; number < 4096; ++number)
    if (const char* name = ::strerrorname_np(number); name != nullptr && text == name) return std::int64_t{-number};
  return Error(Code::kBadInput, "--ret: '" + std::string(text) +
                                    "' is no return value; give a number as 0 or -13, or an error as EACCES");
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

Error at_column(std::size_t place, const std::string& what) {
  return Error(Code::kBadInput, "column " + std::to_string(place + 1) + ": " + what);
}

// One escape of a C string at `at`, which is behind its backslash.
Result<char> escaped_byte(std::string_view text, std::size_t& at) {
  const char c = text[at];
  if (c == 'x') {
    const int high = at + 1 < text.size() ? hex_digit(text[at + 1]) : -1;
    const int low = at + 2 < text.size() ? hex_digit(text[at + 2]) : -1;
    if (high < 0 || low < 0) return at_column(at, "\\x wants two hex digits");
    at += 3;
    return static_cast<char>(high << 4 | low);
  }
  if (c >= '0' && c <= '7') {
    unsigned value = 0;
    for (unsigned digits = 0; digits < 3 && at < text.size() && text[at] >= '0' && text[at] <= '7'; ++digits)
      value = value * 8 + static_cast<unsigned>(text[at++] - '0');
    if (value > 0xFF) return at_column(at - 3, "an octal escape over \\377");
    return static_cast<char>(value);
  }
  static constexpr std::string_view kLetters = "abfnrtve\"\\'";
  static constexpr std::string_view kBytes = "\a\b\f\n\r\t\v\x1b\"\\'";
  const std::size_t letter = kLetters.find(c);
  if (letter == std::string_view::npos) return at_column(at, std::string("unknown escape \\") + c);
  ++at;
  return kBytes[letter];
}

Result<std::string> bytes_from_string(std::string_view text) {
  std::string bytes;
  std::size_t at = 0;
  std::size_t end = text.size();
  if (text.starts_with('"')) {
    if (text.ends_with("...")) return at_column(end - 3, "strace cut the text here; run it again with -s 65536");
    if (end < 2 || text.back() != '"') return at_column(end - 1, "the closing quote is missing: is the text cut?");
    at = 1;
    --end;
  }
  while (at < end) {
    if (text[at] != '\\') {
      bytes += text[at++];
      continue;
    }
    if (++at >= end) return at_column(at - 1, "a backslash with nothing behind it");
    auto byte = escaped_byte(text.substr(0, end), at);
    if (!byte) return std::move(byte.error());
    bytes += *byte;
  }
  return bytes;
}

void append_struct(std::vector<std::byte>& out, const void* bytes, std::size_t count) {
  const auto* const from = static_cast<const std::byte*>(bytes);
  out.insert(out.end(), from, from + count);
  out.resize((out.size() + 7) & ~std::size_t{7});
}

struct Part {
  gpuwatch_capture_what what;
  const std::optional<std::string>& bytes;
};

class Builder {
 public:
  explicit Builder(const OneCallTexts& texts) : texts_(texts) {}

  Result<OneCall> build() {
    auto device = device_from(texts_.device);
    if (!device) return std::move(device.error());
    device_ = *device;
    auto request = request_from(texts_.request);
    if (!request) return std::move(request.error());
    fixed_.cmd = *request;
    for (const auto& [flag, text, bytes] :
         {Text{"--arg", &texts_.arg, &arg_}, Text{"--out", &texts_.out, &out_},
          Text{"--params", &texts_.params, &params_}, Text{"--params-out", &texts_.params_out, &params_out_}}) {
      if (!*text) continue;
      auto parsed = bytes_from_text(**text);
      if (!parsed) return std::move(parsed.error()).with_context(flag);
      *bytes = std::move(*parsed);
    }
    if (!arg_ && !out_)
      return Error(Code::kBadInput, "no argument; give its bytes before the call with --arg, after it with --out");
    if (!texts_.ret.empty()) {
      auto ret = ret_from(texts_.ret);
      if (!ret) return std::move(ret.error());
      fixed_.ret = *ret;
    }
    if (Status status = check_sizes(); !status.ok()) return std::move(status.error());
    return finish();
  }

 private:
  struct Text {
    const char* flag;
    const std::optional<std::string>* text;
    std::optional<std::string>* bytes;
  };

  Status check_sizes() {
    if (!is_frontend(device_)) return {};
    std::uint32_t size = (fixed_.cmd >> 16) & 0x3FFF;
    const std::size_t given = arg_ ? arg_->size() : out_->size();
    if (fixed_.cmd <= 0xFF && given <= 0x3FFF) {
      // The number alone: the bytes say how many there are.
      size = static_cast<std::uint32_t>(given);
      fixed_.cmd |= 0xC0004600U | size << 16;
    }
    for (const auto& [flag, bytes] : {std::pair{"--arg", &arg_}, std::pair{"--out", &out_}})
      if (*bytes && (*bytes)->size() != size)
        return Error(Code::kBadInput, std::string(flag) + ": " + std::to_string((*bytes)->size()) +
                                          " bytes, but the request's argument has " + std::to_string(size) +
                                          "; give all of it, or check --request");
    if ((fixed_.cmd & 0xFF) == kXferNumber) return unwrap();
    return {};
  }

  // The wrapper names the command; what it points to is the argument.
  Status unwrap() {
    if (!arg_ || arg_->size() != kXferBytes)
      return Error(Code::kBadInput, "--arg: NV_ESC_IOCTL_XFER_CMD wants the 16 bytes of its wrapper before the call");
    std::memcpy(&fixed_.inner_cmd, arg_->data(), 4);
    std::memcpy(&fixed_.inner_size, arg_->data() + 4, 4);
    for (const auto& [flag, bytes] : {std::pair{"--params", &params_}, std::pair{"--params-out", &params_out_}})
      if (*bytes && (*bytes)->size() != fixed_.inner_size)
        return Error(Code::kBadInput, std::string(flag) + ": " + std::to_string((*bytes)->size()) +
                                          " bytes, but the wrapper in --arg says " + std::to_string(fixed_.inner_size) +
                                          "; give all that it points to");
    head_.flags = GPUWATCH_F_XFER;
    return {};
  }

  Result<OneCall> finish() {
    std::vector<std::byte> captures;
    const bool wrapped = head_.flags == GPUWATCH_F_XFER;
    const std::array<Part, 4> plain = {{{GPUWATCH_CAP_ARG_IN, arg_},
                                        {GPUWATCH_CAP_ARG_OUT, out_},
                                        {GPUWATCH_CAP_NESTED0_IN, params_},
                                        {GPUWATCH_CAP_NESTED0_OUT, params_out_}}};
    const std::array<Part, 3> unwrapped = {
        {{GPUWATCH_CAP_XFER_IN, arg_}, {GPUWATCH_CAP_ARG_IN, params_}, {GPUWATCH_CAP_ARG_OUT, params_out_}}};
    for (const Part& part : wrapped ? std::span<const Part>(unwrapped) : std::span<const Part>(plain)) {
      if (!part.bytes) continue;
      gpuwatch_capture capture{};
      capture.what = static_cast<std::uint16_t>(part.what);
      capture.want = capture.len = static_cast<std::uint32_t>(part.bytes->size());
      append_struct(captures, &capture, sizeof capture);
      append_struct(captures, part.bytes->data(), part.bytes->size());
      ++fixed_.nr_captures;
    }
    const std::size_t bytes = sizeof head_ + sizeof fixed_ + captures.size();
    if (bytes > GPUWATCH_REC_MAX)
      return Error(Code::kBadInput,
                   "--arg, --out, --params and --params-out: more than 64 KiB together; leave some out");
    head_.len = static_cast<std::uint32_t>(bytes);
    head_.type = GPUWATCH_REC_IOCTL;
    head_.node_kind = device_.kind;
    head_.rdev = device_.rdev;
    OneCall call;
    append_struct(call.record, &head_, sizeof head_);
    append_struct(call.record, &fixed_, sizeof fixed_);
    call.record.insert(call.record.end(), captures.begin(), captures.end());
    call.outcome_known = !texts_.ret.empty() || (wrapped ? params_out_ : out_).has_value();
    return call;
  }

  const OneCallTexts& texts_;
  Device device_;
  gpuwatch_rec head_{};
  gpuwatch_rec_ioctl fixed_{};
  std::optional<std::string> arg_, out_, params_, params_out_;
};

}  // namespace

Result<std::string> bytes_from_text(std::string_view text) {
  if (text.find_first_of("\\\"") != std::string_view::npos) return bytes_from_string(text);
  std::string bytes;
  for (std::size_t at = 0; at < text.size();) {
    static constexpr std::string_view kBetween = " \t\r\n,:;-";
    if (kBetween.find(text[at]) != std::string_view::npos) {
      ++at;
      continue;
    }
    if (text[at] == '0' && at + 1 < text.size() && (text[at + 1] == 'x' || text[at + 1] == 'X')) at += 2;
    std::size_t end = at;
    while (end < text.size() && hex_digit(text[end]) >= 0) ++end;
    if (end < text.size() && kBetween.find(text[end]) == std::string_view::npos)
      return at_column(end, std::string("'") + text[end] + "' is no hex digit");
    if (end == at || (end - at) % 2 != 0)
      return at_column(at, std::to_string(end - at) + " hex digits, an odd number; a byte has two: is one cut off?");
    for (; at < end; at += 2) bytes += static_cast<char>(hex_digit(text[at]) << 4 | hex_digit(text[at + 1]));
  }
  if (bytes.empty()) return Error(Code::kBadInput, "no bytes; give hex digits as 2400c1d0, or strace's \"\\x24\\x00\"");
  return bytes;
}

Result<OneCall> make_one_call(const OneCallTexts& texts) {
  return Builder(texts).build();
}

}  // namespace gpuwatch::cli

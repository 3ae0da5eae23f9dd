// SPDX-License-Identifier: Apache-2.0
// Result<T> and Status: the one way errors travel between rooms. An error has
// a code, an optional errno and a message that names the place and the remedy.
// Nothing here throws or logs.
#pragma once

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace gpuwatch::base {

enum class Code {
  kIo,           // the system refused: see errno
  kBadInput,     // bytes from outside do not have the promised form
  kTruncated,    // well-formed up to the cut
  kUnsupported,  // version or feature this build does not have
  kPermission,
  kNotFound,
  kLimit,  // over a stated bound
};

class Error {
 public:
  Error(Code code, std::string message, int sys_errno = 0)
      : code_(code), errno_(sys_errno), message_(std::move(message)) {}

  // An error that carries errno and its text.
  static Error from_errno(const std::string& what, int sys_errno = errno) {
    const Code code = sys_errno == EPERM || sys_errno == EACCES ? Code::kPermission
                      : sys_errno == ENOENT                     ? Code::kNotFound
                                                                : Code::kIo;
    return Error(code, what + ": " + std::strerror(sys_errno), sys_errno);
  }

  Code code() const { return code_; }
  int sys_errno() const { return errno_; }
  const std::string& message() const { return message_; }

  // Puts "what: " before the message, for callers that know more.
  Error&& with_context(const std::string& what) && {
    message_ = what + ": " + message_;
    return std::move(*this);
  }

 private:
  Code code_;
  int errno_;
  std::string message_;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : data_(std::move(value)) {}      // NOLINT: implicit by intent
  Result(Error error) : data_(std::move(error)) {}  // NOLINT: implicit by intent

  bool ok() const { return std::holds_alternative<T>(data_); }
  explicit operator bool() const { return ok(); }
  T& value() & { return std::get<T>(data_); }
  const T& value() const& { return std::get<T>(data_); }
  T&& value() && { return std::get<T>(std::move(data_)); }
  T& operator*() { return value(); }
  T* operator->() { return &value(); }
  Error& error() { return std::get<Error>(data_); }
  const Error& error() const { return std::get<Error>(data_); }

 private:
  std::variant<T, Error> data_;
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT: implicit by intent

  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  Error& error() { return *error_; }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace gpuwatch::base

// SPDX-License-Identifier: Apache-2.0
#include "judge/sign.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include <memory>

#include "base/io.h"
#include "judge/exchange.h"

namespace gpuwatch::judge {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

namespace {

constexpr std::size_t kKeyBytes = 32, kSignatureBytes = 64, kFileMax = 64 << 10;

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Context = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

// A key behind a passphrase fails instead of asking on the terminal.
int no_passphrase(char*, int, int, void*) {
  return 0;
}

std::string hex(const unsigned char* bytes, std::size_t size) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < size; ++i) {
    out += kDigits[bytes[i] >> 4];
    out += kDigits[bytes[i] & 15];
  }
  return out;
}

bool from_hex(const std::string& text, unsigned char* out, std::size_t size) {
  if (text.size() != 2 * size) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (value < 0) return false;
    out[i / 2] = static_cast<unsigned char>(out[i / 2] << 4 | value);
  }
  return true;
}

enum class Half { kPrivate, kPublic };

Result<Key> read_key(const std::string& path, Half half) {
  auto text = base::read_text_file(path, kFileMax);
  if (!text) return std::move(text.error());
  std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new_mem_buf(text->data(), static_cast<int>(text->size())),
                                                &BIO_free);
  ERR_clear_error();
  Key key(half == Half::kPrivate ? PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr)
                                 : PEM_read_bio_PUBKEY(bio.get(), nullptr, no_passphrase, nullptr),
          &EVP_PKEY_free);
  ERR_clear_error();
  const char* wanted = half == Half::kPrivate ? "private" : "public";
  if (!key) {
    if (half == Half::kPublic && text->find("PRIVATE KEY") != std::string::npos)
      return Error(Code::kBadInput, path + ": a private key; pass the public one (openssl pkey -pubout)");
    if (half == Half::kPrivate && text->find("PUBLIC KEY") != std::string::npos)
      return Error(Code::kBadInput, path + ": a public key; signing needs the private one");
    if (text->find("ENCRYPTED") != std::string::npos)
      return Error(Code::kUnsupported, path + ": behind a passphrase; decrypt it first (openssl pkey)");
    return Error(Code::kBadInput, path + ": no PEM " + wanted + " key");
  }
  if (EVP_PKEY_id(key.get()) != EVP_PKEY_ED25519)
    return Error(Code::kUnsupported, path + ": not an Ed25519 key (openssl genpkey -algorithm ed25519)");
  return key;
}

Result<std::string> public_half(EVP_PKEY* key, const std::string& path) {
  unsigned char raw[kKeyBytes];
  std::size_t size = sizeof raw;
  if (EVP_PKEY_get_raw_public_key(key, raw, &size) != 1 || size != sizeof raw)
    return Error(Code::kBadInput, path + ": has no public half");
  return hex(raw, size);
}

Result<std::string> message_of(Baseline& baseline) {
  auto digest = contents_digest(baseline);
  if (!digest) return std::move(digest.error());
  std::string message(kSignedPrefix, sizeof kSignedPrefix);  // with its NUL
  message.append(reinterpret_cast<const char*>(digest->data()), digest->size());
  return message;
}

const unsigned char* bytes_of(const std::string& text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

Status sign_baseline(Baseline& baseline, const std::string& private_key_file) {
  auto key = read_key(private_key_file, Half::kPrivate);
  if (!key) return std::move(key.error());
  auto public_key = public_half(key->get(), private_key_file);
  if (!public_key) return std::move(public_key.error());
  auto message = message_of(baseline);
  if (!message) return std::move(message.error());
  Context context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  unsigned char value[kSignatureBytes];
  std::size_t size = sizeof value;
  if (!context || EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key->get()) != 1 ||
      EVP_DigestSign(context.get(), value, &size, bytes_of(*message), message->size()) != 1 || size != sizeof value)
    return Error(Code::kIo, private_key_file + ": OpenSSL cannot sign with it");
  return baseline.set_signature({std::move(*public_key), hex(value, size)});
}

Result<SignatureState> verify_baseline(Baseline& baseline, const std::string& public_key_file) {
  auto key = read_key(public_key_file, Half::kPublic);
  if (!key) return std::move(key.error());
  auto public_key = public_half(key->get(), public_key_file);
  if (!public_key) return std::move(public_key.error());
  auto stored = baseline.signature();
  if (!stored) return std::move(stored.error());
  if (!*stored) return SignatureState::kUnsigned;
  if ((*stored)->public_key != *public_key) return SignatureState::kOtherKey;
  unsigned char value[kSignatureBytes] = {};
  if (!from_hex((*stored)->value, value, sizeof value)) return SignatureState::kBad;
  auto message = message_of(baseline);
  if (!message) return std::move(message.error());
  Context context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (!context || EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key->get()) != 1)
    return Error(Code::kIo, public_key_file + ": OpenSSL cannot verify with it");
  const int answer = EVP_DigestVerify(context.get(), value, sizeof value, bytes_of(*message), message->size());
  ERR_clear_error();
  return answer == 1 ? SignatureState::kGood : SignatureState::kBad;
}

}  // namespace gpuwatch::judge

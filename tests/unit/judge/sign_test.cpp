// SPDX-License-Identifier: Apache-2.0
#include "judge/sign.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <sqlite3.h>

#include <fstream>

#include "make.h"

namespace gpuwatch::judge {
namespace {

class Signing : public WithBaselines {
 protected:
  void write_keys(const std::string& name, const char* type = "ED25519") {
    EVP_PKEY* key = std::string(type) == "RSA" ? EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", std::size_t{2048})
                                               : EVP_PKEY_Q_keygen(nullptr, nullptr, type);
    ASSERT_NE(key, nullptr);
    std::FILE* out = std::fopen(file(name).c_str(), "w");
    PEM_write_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(out);
    out = std::fopen(file(name + ".pub").c_str(), "w");
    PEM_write_PUBKEY(out, key);
    std::fclose(out);
    out = std::fopen(file(name + ".locked").c_str(), "w");
    PEM_write_PrivateKey(out, key, EVP_aes_128_cbc(), reinterpret_cast<const unsigned char*>("word"), 4, nullptr,
                         nullptr);
    std::fclose(out);
    EVP_PKEY_free(key);
  }

  SignatureState state_of(Baseline& baseline, const std::string& key = "key.pub") {
    auto state = verify_baseline(baseline, file(key));
    EXPECT_TRUE(state.ok()) << (state.ok() ? "" : state.error().message());
    return *state;
  }
};

TEST_F(Signing, SignedContentsVerify) {
  write_keys("key");
  write_keys("other");
  Baseline baseline = make("x", {entry(cubin("one", {kernel("a", "a")}))});
  EXPECT_EQ(state_of(baseline), SignatureState::kUnsigned);
  ASSERT_TRUE(sign_baseline(baseline, file("key")).ok());
  EXPECT_EQ(state_of(baseline), SignatureState::kGood);
  EXPECT_EQ(state_of(baseline, "other.pub"), SignatureState::kOtherKey);
  auto again = Baseline::open(file("x"), Baseline::Access::kRead);
  EXPECT_EQ(state_of(*again), SignatureState::kGood);
  const Entry more[] = {entry(cubin("two", {}))};
  ASSERT_TRUE(baseline.add(more).ok());
  EXPECT_EQ(state_of(baseline), SignatureState::kUnsigned) << "new contents, nobody's signature";
}

TEST_F(Signing, EveryTamperedValueIsSeen) {
  write_keys("key");
  const char* changes[] = {"UPDATE module SET r = zeroblob(32)",
                           "UPDATE module SET m = NULL",
                           "UPDATE module SET sm = 80",
                           "UPDATE module SET origin = 1",
                           "UPDATE module SET bytes = bytes + 1",
                           "UPDATE kernel SET k = zeroblob(32)",
                           "UPDATE kernel SET t = zeroblob(32)",
                           "UPDATE kernel SET registers = 1",
                           "UPDATE kernel SET entry = 0",
                           "DELETE FROM kernel",
                           "DELETE FROM module",
                           "DELETE FROM source",
                           "UPDATE name SET text = 'other'",
                           "UPDATE file SET package = 'other'",
                           "UPDATE file SET added = 7",
                           "UPDATE source SET entry = 9",
                           "UPDATE meta SET value = 'other' WHERE key = 'label'",
                           "UPDATE meta SET value = 'denied' WHERE key = 'stance'",
                           "UPDATE meta SET value = replace(value, substr(value, 5, 1), '0') WHERE key = 'signature'",
                           "UPDATE meta SET value = '' WHERE key = 'signature'",
                           "UPDATE meta SET value = upper(value) WHERE key = 'signature'"};
  int n = 0;
  for (const char* sql : changes) {
    const std::string name = "x" + std::to_string(n++);
    {
      Baseline baseline = make(name, {entry(cubin("one", {kernel("a", "a")}))});
      ASSERT_TRUE(sign_baseline(baseline, file("key")).ok());
    }
    sqlite3* handle = nullptr;
    ASSERT_EQ(sqlite3_open(file(name).c_str(), &handle), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(handle, sql, nullptr, nullptr, nullptr), SQLITE_OK);
    ASSERT_GT(sqlite3_changes(handle), 0) << sql;
    sqlite3_close(handle);
    auto baseline = Baseline::open(file(name), Baseline::Access::kRead);
    ASSERT_TRUE(baseline.ok()) << baseline.error().message();
    EXPECT_EQ(state_of(*baseline), SignatureState::kBad) << sql;
  }
}

TEST_F(Signing, KeyFilesThatWillNotDo) {
  write_keys("key");
  write_keys("rsa", "RSA");
  std::ofstream(file("text")) << "no key";
  Baseline baseline = make("x", {});
  struct Case {
    const char* file;
    const char* sign;
    const char* verify;
  };
  const Case cases[] = {
      {"absent", "No such file", "No such file"},
      {"text", "no PEM private key", "no PEM public key"},
      {"rsa", "not an Ed25519 key", "a private key; pass the public one"},
      {"rsa.pub", "a public key; signing needs the private one", "not an Ed25519 key"},
      {"key.pub", "a public key; signing needs the private one", nullptr},
      {"key", nullptr, "a private key; pass the public one"},
      {"key.locked", "behind a passphrase", "a private key; pass the public one"},
  };
  for (const Case& c : cases) {
    const base::Status status = sign_baseline(baseline, file(c.file));
    ASSERT_EQ(status.ok(), c.sign == nullptr) << c.file;
    if (!status.ok()) {
      EXPECT_NE(status.error().message().find(c.sign), std::string::npos) << status.error().message();
    }
    const auto state = verify_baseline(baseline, file(c.file));
    ASSERT_EQ(state.ok(), c.verify == nullptr) << c.file;
    if (!state.ok()) {
      EXPECT_NE(state.error().message().find(c.verify), std::string::npos) << state.error().message();
    }
  }
}

}  // namespace
}  // namespace gpuwatch::judge

// SPDX-License-Identifier: Apache-2.0
// Linked statically: no preloaded library gets into it.
int main(void) {
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Nothing but a source for the target that compiles the headers of the tests once. It holds no test.
#include <gtest/gtest.h>
